"""A whole run without a key or a network: the real agent repairs a small program, a script plays the model."""
