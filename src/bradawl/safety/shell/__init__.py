"""Shell command lines: what a line would do, and the reasons to refuse it."""
