"""The terminal by plain lines: for pipes, dumb terminals and screen readers."""
