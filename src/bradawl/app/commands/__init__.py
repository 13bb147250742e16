"""bradawl's slash commands, one function each; `builtin` collects them."""
