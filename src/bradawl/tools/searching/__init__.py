"""Searches file contents and names with ripgrep."""
