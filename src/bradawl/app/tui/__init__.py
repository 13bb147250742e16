"""The terminal: what is shown, what is asked, what is typed."""
