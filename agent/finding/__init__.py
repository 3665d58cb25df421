"""Finds passages: an index on disk, words and meaning, and files that change."""
