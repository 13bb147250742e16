"""Permission rules: their syntax, the built-in rules, and suggestions for new ones."""
