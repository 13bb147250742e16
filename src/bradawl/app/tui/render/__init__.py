"""Lines for a terminal: answers, code, diffs, calls and notices as text with colour codes. No terminal is needed."""
