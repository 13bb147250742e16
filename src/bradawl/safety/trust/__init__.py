"""Trust in a project: what its files may configure, and the folders the user has trusted."""
