"""The engine of edit_file and multi_edit: finds the text to replace and builds the new content."""
