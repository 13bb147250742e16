"""`bradawl config`: shows settings and their sources, and changes settings files without losing comments."""
