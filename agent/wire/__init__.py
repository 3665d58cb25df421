"""What providers send, as they really send it, read into replies and calls."""
