"""The parts of the Chat Completions codec: requests out, replies in, and what open models do to both."""
