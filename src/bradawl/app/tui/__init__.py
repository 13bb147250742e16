"""The terminal front end: shows events, asks for permission, reads lines. `repl` starts it."""
