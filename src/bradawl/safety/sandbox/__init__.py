"""What holds the programs that a model starts: one kind of sandbox for each system, chosen by how it behaves."""
