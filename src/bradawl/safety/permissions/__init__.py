"""Permission rules: their syntax, the built-in ones, and suggestions for new ones."""
