"""OS sandboxes for the programs that a model starts: bubblewrap, Landlock and macOS sandbox-exec."""
