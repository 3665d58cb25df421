"""The owner's phone: what happened is stored first, and delivered from there."""
