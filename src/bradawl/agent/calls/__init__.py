"""One call of a tool: prepared, authorized, executed, and in order with the other calls of its reply."""
