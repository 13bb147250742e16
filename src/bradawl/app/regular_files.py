"""Reads regular files and nothing else: never waits for a pipe, also if the kind of a file changes meanwhile."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

Check = Callable[[os.stat_result], object]
"""Is called with the status of the open file, and may raise."""


def read_regular(path: str | Path, limit_bytes: int, check: Check = lambda _: None) -> bytes:
    """At most so many bytes of a regular file, by its real path. Raises `OSError` for anything else.

    A link at the end of the path is an error, and so is a folder on the way that is replaced by a link while the file
    is opened.
    """

    def check_place(descriptor: int) -> None:
        opened = Path(f"/proc/self/fd/{descriptor}")
        if opened.is_symlink() and str(opened.readlink()) != os.fspath(path):
            raise OSError(0, "it was replaced while it was opened")

    return _read(path, limit_bytes, check, os.O_NOFOLLOW, check_place)


def read_linked(path: str | Path, limit_bytes: int, check: Check = lambda _: None) -> bytes:
    """At most so many bytes of a regular file; links that lead to it are followed. Raises `OSError`."""
    return _read(path, limit_bytes, check, 0, lambda _: None)


def _read(path: str | Path, limit_bytes: int, check: Check, flags: int, check_place: Callable[[int], None]) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        check_place(descriptor)
        check(found)
        data = bytearray()
        while len(data) < limit_bytes and (more := os.read(descriptor, limit_bytes - len(data))):
            data += more
        return bytes(data)
    finally:
        os.close(descriptor)
