"""Results of shell commands: their output, their changes to the session, and what the sandbox blocked."""
