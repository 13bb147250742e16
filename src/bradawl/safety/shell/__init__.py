"""Analysis of shell command lines: what a line would read, write and run, and the reasons to refuse it."""
