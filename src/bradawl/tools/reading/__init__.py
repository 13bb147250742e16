"""What is in a file, and how it is shown."""
