"""Reads git's configuration files."""

import stat
from pathlib import Path


def read_whole(path: str, limit: int) -> bytes | None:
    """The content of a regular file of at most `limit` bytes; None for anything else. Never blocks, as on a pipe."""
    try:
        place = Path(path)
        if not stat.S_ISREG(place.stat().st_mode):
            return None
        with place.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= limit else None
