"""OS sandboxes for the programs that a model starts: one backend for each system."""
