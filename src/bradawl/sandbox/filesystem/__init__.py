"""File system operations that withstand hostile programs: closed folders, very deep trees."""
