"""Helpers for whoever works on the project."""
