"""Sizes that decide what `read_file` shows of a file with code."""

WHOLE_BYTES = 24_000
"""A larger file of code is shown as an outline, unless the call asks for lines or definitions."""
OUTLINE_CHARACTERS = 8_000
"""Most characters of an outline. What does not fit is counted."""
NAMED_CHARACTERS = 12_000
"""Most characters of the definitions that are shown with an outline because the conversation names them."""
NAMED_AT_MOST = 12
"""Most of these definitions."""
SEARCHED_CHARACTERS = 400_000
"""Most characters of the conversation that are searched for names, the newest first."""
