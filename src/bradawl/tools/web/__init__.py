"""Web pages: which may be read, and what is in them."""
