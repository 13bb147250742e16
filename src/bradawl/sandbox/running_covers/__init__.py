"""Keeps the mounts over hidden and read-only paths on running programs when other programs replace such a path."""
