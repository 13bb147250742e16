"""Lines and names found, with ripgrep or without."""
