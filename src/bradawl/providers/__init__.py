"""Model I/O: wire formats, servers' quirks, and the one client that talks to a model."""
