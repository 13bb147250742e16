"""What becomes of a shell line's output and of what it changed."""
