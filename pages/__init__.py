"""The face: the chat page."""
