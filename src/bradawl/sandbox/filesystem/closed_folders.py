"""Opens folders of this user whose permissions a program has removed.

The owner of a folder can remove its permissions and restore them. So a program could hide its changes in a folder until
the folder is opened again.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_ALL: Final = stat.S_IRWXU
_AT: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_parents(path: str, place: str) -> dict[str, int]:
    """Open the folders from `place` down to `path`; returns the folders that were closed and their modes with file
    type.

    Below `place` no link is followed. What can't be opened is left as it is.
    """
    opened: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for reached, folder in _entered_in_turn(place, path[len(place) :]):
            if mode := _open(folder):
                opened[reached] = mode
    return opened


def restore_modes(opened: Mapping[str, int]) -> None:
    """Restore the modes of folders, innermost first. No link is followed."""
    for path in sorted(opened, reverse=True):
        with contextlib.suppress(OSError):
            for reached, folder in _entered_in_turn("/", path):
                if reached == path:
                    _itself(folder).chmod(stat.S_IMODE(opened[path]))


def _entered_in_turn(place: str, way: str) -> Iterator[tuple[str, int]]:
    """`place` and each folder on the way down from it, with a descriptor that is valid until the next one.

    One descriptor is open at a time: a program can nest more folders than a process may have open files.
    """
    reached, folder = place, os.open(place, _AT)
    try:
        yield reached, folder
        for name in filter(None, way.split("/")):
            inner = os.open(name, _AT, dir_fd=folder)
            os.close(folder)
            reached, folder = f"{reached.rstrip('/')}/{name}", inner
            yield reached, folder
    finally:
        os.close(folder)


def open_with_access(name: str, parent: int | None = None) -> int:
    """Descriptor of a folder, with its permissions restored if this user owns it.

    Raises `OSError` if it is not a folder, or can't be entered. The caller closes the descriptor.
    """
    folder = os.open(name, _AT, dir_fd=parent)
    try:
        _open(folder)
        return os.open(".", _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)


def make_readable(name: str, parent: int | None = None) -> None:
    """Restore read permission on this user's file if possible; its hard links share the mode."""
    with contextlib.ExitStack() as held, contextlib.suppress(OSError):
        file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        held.callback(os.close, file)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and os.geteuid() in (0, found.st_uid) and not found.st_mode & stat.S_IRUSR:
            _itself(file).chmod(stat.S_IMODE(found.st_mode) | stat.S_IRUSR)


def _open(folder: int) -> int:
    """Give this user all rights to its own folder. Returns the old mode with file type if that was less, else 0."""
    found = os.fstat(folder)
    if os.geteuid() not in (0, found.st_uid) or found.st_mode & _ALL == _ALL:
        return 0
    _itself(folder).chmod(stat.S_IMODE(found.st_mode) | _ALL)
    return found.st_mode


def _itself(held: int) -> Path:
    """Path by which `chmod` reaches the open file itself, whatever its name leads to by now."""
    return Path(f"/proc/self/fd/{held}")
