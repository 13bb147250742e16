"""The width of a terminal."""

import os
from collections.abc import Mapping
from typing import Final, TextIO

from bradawl.app.rendering import DEFAULT_WIDTH

_WIDEST: Final = 1_000
ONE_LINE: Final = 1_000_000
"""The width of files and pipes for texts that are one line each there."""


def terminal_width(stream: TextIO, environ: Mapping[str, str], otherwise: int = DEFAULT_WIDTH) -> int:
    """Cells in a line of the stream's terminal; COLUMNS wins, and `otherwise` is for files and pipes."""
    columns = environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and 0 < len(columns) < 6 and int(columns):
        return min(int(columns), _WIDEST)
    try:
        return min(os.get_terminal_size(stream.fileno()).columns, _WIDEST) or otherwise
    except (OSError, ValueError, AttributeError):
        return otherwise
