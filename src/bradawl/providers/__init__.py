"""Model I/O: wire protocols, server quirks, HTTP adapters, the model client and its retries."""
