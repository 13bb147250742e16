"""The terminal with a live region: an input line, running calls and a status line below the printed conversation."""
