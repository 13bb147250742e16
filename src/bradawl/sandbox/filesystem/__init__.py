"""File system operations that withstand hostile programs: closed folders, deep trees."""
