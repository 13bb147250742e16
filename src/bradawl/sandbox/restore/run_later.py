"""Finds which files that editors, agents, shells, CI or hooks run later were changed."""

import os
import stat
from collections.abc import Callable, Iterable

_MOST_ENTRIES = 2_000
_Stamp = tuple[int, int, int, int]
Contents = dict[str, _Stamp]
"""Inode, mode, size and change time of a file, or of a folder and all that is in it."""


class RunLaterWatch:
    """Finds what a program made or changed. Begins before the program, and is asked after it."""

    def __init__(self, paths: Iterable[str], made: Callable[[], tuple[str, ...]]) -> None:
        """`made` finds the new files and folders after the program."""
        self._before, self._made = _State(paths), made

    def made_or_changed(self) -> tuple[str, ...]:
        """The new files and folders, then the changed ones."""
        return (*self._made(), *self._before.changed())


class _State:
    """The state of some files and folders. At most 2,000 entries are examined, those of the first paths first."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._left = _MOST_ENTRIES
        self._found = {path: contents for path in paths if (contents := self._contents(path))}

    def changed(self) -> tuple[str, ...]:
        """The paths that exist as before and contain something else now."""
        now = _State(self._found)
        return tuple(path for path, contents in now._found.items() if contents != self._found[path])

    def _contents(self, top: str) -> Contents:
        found: Contents = {}
        waiting = [top]
        while waiting and self._left > 0:
            path = waiting.pop()
            self._left -= 1
            try:
                status = os.lstat(path)
                found[path] = (status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns)
                if stat.S_ISDIR(status.st_mode):
                    with os.scandir(path) as entries:
                        waiting += sorted(entry.path for entry in entries)
            except OSError:
                continue
        return found
