"""Reuses empty files and folders as placeholders: creating and removing them can take longer than a command."""

import contextlib
import errno
import os
import stat
from pathlib import Path

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpareFiles:
    """Empty files kept by a second hard link, one per path. A file is only reused at its own path."""

    def __init__(self, place: str) -> None:
        """`place` is the folder for the second links, created when first needed; empty for no reuse."""
        self._place = place
        self._names: dict[str, str] = {}
        self._is_clean = False

    def put_at(self, path: str) -> None:
        """Put an empty file at a path. Raises `OSError`, also if the path exists."""
        name = self._names.get(path, "")
        if name and _is_unused(name):
            try:
                os.link(name, path, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:  # it was removed, or another file system is mounted there now
                pass
            else:
                return
        if name:
            _remove(self._names.pop(path))
        os.close(os.open(path, _NEW, 0o644))
        if self._place:
            self._keep(path)

    def _keep(self, path: str) -> None:
        name = f"{self._place}/{os.urandom(8).hex()}"
        try:
            if not self._is_clean:
                self._clean()
            os.link(path, name, follow_symlinks=False)
        except OSError:  # another file system, or one without hard links
            self._place = ""
        else:
            self._names[path] = name

    def _clean(self) -> None:
        """Remove files of killed agents; a living agent creates its own again."""
        Path(self._place).mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.scandir(self._place) as entries:
            for entry in entries:
                _remove(entry.path)
        self._is_clean = True

    def close(self) -> None:
        """Remove the second links; safe to call twice."""
        for name in self._names.values():
            _remove(name)
        self._names.clear()


def _is_unused(name: str) -> bool:
    """Whether a file is unchanged: a program that wrote to it or linked it could do so again."""
    try:
        found = os.lstat(name)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == 0 and found.st_nlink == 1


def _remove(name: str) -> None:
    with contextlib.suppress(OSError):
        Path(name).unlink()


class SpareFolders:
    """Empty folders that are moved to a path and back: removing one can take longer than a command."""

    def __init__(self, place: str) -> None:
        """`place` is where they are kept, across agents; empty for no reuse."""
        self._place = place
        self._free: list[str] | None = None

    def put_at(self, path: str) -> None:
        """Put an empty folder at a path. Raises `OSError`, also if the path exists."""
        if self._free is None:
            self._free = self._found()
        while self._free and not os.path.lexists(path):
            spare = self._free.pop()
            try:
                if _has_entries(spare):  # a program that had it open has filled it since
                    continue
                os.rename(spare, path)  # noqa: PTH104 - pathlib takes twice as long
            except FileNotFoundError:  # another agent has taken it, or the target can't exist
                continue
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._place, self._free = "", []  # another file system: nothing can be moved
            else:
                return
        Path(path).mkdir(0o755)

    def take_back(self, path: str) -> bool:
        """Move an empty folder away; False if it can't be moved. One with entries stays, or is moved back."""
        if not self._place:
            return False
        goal = f"{self._place}/{os.urandom(8).hex()}"
        try:
            if _has_entries(path):
                return True
            os.rename(path, goal)  # noqa: PTH104 - pathlib takes twice as long
            if _has_entries(goal):
                os.rename(goal, path)  # noqa: PTH104 - pathlib takes twice as long
                return True
        except OSError:
            return False
        if self._free is not None:
            self._free.append(goal)
        return True

    def _found(self) -> list[str]:
        if not self._place:
            return []
        with contextlib.suppress(OSError):
            Path(self._place).mkdir(mode=0o700, parents=True, exist_ok=True)
            return [str(path) for path in Path(self._place).iterdir()]
        self._place = ""
        return []


def _has_entries(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is not None
