"""Paths that a line may read or change although it is not understood, held against rules and protected paths."""
