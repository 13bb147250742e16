"""Web pages: checks their addresses and converts their content."""
