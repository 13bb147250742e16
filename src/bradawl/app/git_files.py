"""Reads the few files that say how git is configured."""

import stat
from pathlib import Path


def read_whole(path: str, limit: int) -> bytes | None:
    """A regular file of at most `limit` bytes; None for anything else. Never waits, as a pipe would make it."""
    try:
        place = Path(path)
        if not stat.S_ISREG(place.stat().st_mode):
            return None
        with place.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= limit else None
