"""Undo: finds what calls change in the workspace, saves the contents, and restores them."""
