"""What git would read and start in a folder, found out without starting git."""
