"""Reads files of all kinds and formats them for the model."""
