"""Determines what git would read and start in a folder, without starting git."""
