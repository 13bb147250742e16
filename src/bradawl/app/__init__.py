"""The terminal program, and the one place where concrete classes meet."""
