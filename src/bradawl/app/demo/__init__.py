"""A complete run without key or network: the real agent repairs a small program, with a scripted model."""
