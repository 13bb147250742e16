"""Finds rule-protected and secret paths that a line may read or change, without understanding the line completely."""
