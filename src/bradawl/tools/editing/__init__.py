"""How an edit finds its place, and what it makes of it."""
