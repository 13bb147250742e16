"""Compares protected files that have further hard links, by which programs can change them."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from typing import Final

_MOST_ENTRIES: Final = 10_000
_MOST_BYTES: Final = 16_000_000
"""A larger file is compared by its times."""
_WAIT_S: Final = 0.05
"""Time in which a further link may go: some programs save by `link` and `unlink`."""
_POLL_S: Final = 0.002


def linked_files(paths: Iterable[str]) -> tuple[str, ...]:
    """The files at or below paths that have further hard links, also 50 ms later. Blocks meanwhile if there are any."""
    found = tuple(path for each in paths for path in _files(each) if _is_linked(path))
    deadline = time.monotonic() + _WAIT_S
    while found and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        found = tuple(path for path in found if _is_linked(path))
    return found


class LinkedFiles:
    """Protected files with further hard links, and their content when it was last compared."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def add(self, paths: Iterable[str]) -> None:
        """Compare these files from now on."""
        self._known |= {path: _content(path) for path in paths}

    def changed(self) -> tuple[str, ...]:
        """Files that have changed since the last call. Forgets files that have no further links."""
        found: list[str] = []
        for path, before in tuple(self._known.items()):
            if not _is_linked(path):
                del self._known[path]
            elif (now := _content(path)) != before:
                self._known[path] = now
                found.append(path)
        return tuple(found)


def _files(path: str) -> Iterator[str]:
    yield path
    left = _MOST_ENTRIES
    for folder, _, names in os.walk(path):
        for name in names:
            yield f"{folder}/{name}"
        left -= 1 + len(names)
        if left < 0:
            return


def _is_linked(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def _content(path: str) -> bytes:
    """A digest; empty if the file can't be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size > _MOST_BYTES:
            return repr((status.st_size, status.st_mtime_ns, status.st_ctime_ns)).encode()
        return hashlib.sha256(opened.read(_MOST_BYTES + 1)).digest()
