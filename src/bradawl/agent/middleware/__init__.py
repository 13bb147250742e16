"""Features around a step of the loop, one file each."""
