"""Opens folders below given roots one by one, without following links. Closed folders are opened temporarily.

A closed folder is one whose owner has removed its own rights. It gets them back while the walk is open; `close`
restores its mode.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

_AT: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FOLDERS: Final = 128

Note = Callable[[bytes, int], None]
"""Takes the path and the mode of a closed folder, and again if it is to get another mode. May raise `OSError`."""


class FolderWalk:
    """Descriptors of folders by absolute path. Not thread-safe; `close` sets the modes back."""

    def __init__(self, roots: Sequence[bytes], note: Note | None = None) -> None:
        """`note` is called before a closed folder is opened; an `OSError` leaves it closed."""
        self._note = note
        self._roots = [root for root in roots if not any(_is_inside(root, other) for other in roots)]
        self._open: dict[bytes, int] = {}
        self._modes: dict[bytes, tuple[int, int, int]] = {}
        """Device, inode, and the mode that each folder gets at the end."""
        self._absent = (b"", 0)
        """The folder that could not be opened last, with a slash at the end, and the number of the error."""

    def root_of(self, path: bytes) -> bytes | None:
        """The root that a path is in or equal to; None outside of the roots and for a path with `.`, `..` or `//`."""
        if not {b"", b".", b".."}.isdisjoint(path.split(b"/")[1:]) or b"\0" in path:
            return None
        return next((root for root in self._roots if path == root or path.startswith(root.rstrip(b"/") + b"/")), None)

    def folder(self, path: bytes) -> int:
        """Descriptor of a folder, for use as `dir_fd`; it belongs to the walk, and is valid until the next call.

        Raises `FileNotFoundError`, `NotADirectoryError` (also for a link) and other `OSError`s.
        """
        root = self.root_of(path)
        if root is None:
            raise PermissionError(1, "it is outside of the folders that undo covers", os.fsdecode(path))
        if self._absent[0] and (path + b"/").startswith(self._absent[0]):
            raise OSError(self._absent[1], os.strerror(self._absent[1]), os.fsdecode(path))
        missing: list[bytes] = []
        while path not in self._open and path != root:
            missing.append(path)
            path = path[: path.rindex(b"/")] or b"/"
        if path not in self._open:
            self._enter(path, path, None)
        for inner in reversed(missing):
            try:
                self._enter(inner, inner[inner.rindex(b"/") + 1 :], self._open[path])
            except (FileNotFoundError, NotADirectoryError) as error:
                self._absent = (inner + b"/", error.errno or errno.ENOENT)
                raise
            path = inner
        self._open[path] = self._open.pop(path)  # the last one used is the last to be closed
        return self._open[path]

    def parent(self, path: bytes) -> tuple[int, bytes]:
        """Descriptor of a path's folder, and the name in it; of a root the descriptor of itself, and `.`.

        Raises like `folder`.
        """
        if path in self._roots:
            return self.folder(path), b"."
        folder, name = os.path.split(path)
        return self.folder(folder), name

    def _enter(self, path: bytes, name: bytes, parent: int | None) -> None:
        folder = os.open(name, _AT, dir_fd=parent)
        try:
            self._open_rights(path, folder)
        except BaseException:
            os.close(folder)
            raise
        if len(self._open) >= _OPEN_FOLDERS:
            os.close(self._open.pop(next(iter(self._open))))
        self._open[path] = folder

    def _open_rights(self, path: bytes, folder: int) -> None:
        found = os.fstat(folder)
        mode = stat.S_IMODE(found.st_mode)
        if mode & stat.S_IRWXU == stat.S_IRWXU or os.geteuid() not in (0, found.st_uid):
            return
        if self._note is not None:
            self._note(path, mode)
        self._modes.setdefault(path, (found.st_dev, found.st_ino, mode))
        change_mode(folder, mode | stat.S_IRWXU)

    def forget(self, path: bytes) -> None:
        """Close a folder that was removed or replaced, and all folders in it."""
        below = path + b"/"
        for each in [each for each in self._open if each == path or each.startswith(below)]:
            os.close(self._open.pop(each))
        for each in [each for each in self._modes if each == path or each.startswith(below)]:
            del self._modes[each]

    def moved(self, path: bytes, to: bytes) -> None:
        """Close a folder that was renamed, and all folders in it; those that were opened get their modes at the end."""
        below = path + b"/"
        modes = {each: mode for each, mode in self._modes.items() if each == path or each.startswith(below)}
        self.forget(path)
        self._absent = (b"", 0)
        self._modes.update((to + each[len(path) :], mode) for each, mode in modes.items())

    def set_mode(self, path: bytes, mode: int) -> None:
        """Give a folder a mode when the walk ends; the folder may be new. Raises like `folder`."""
        self._absent = (b"", 0)
        found = os.fstat(self.folder(path))
        if self._note is not None and path in self._modes:
            self._note(path, mode)
        self._modes[path] = (found.st_dev, found.st_ino, mode)

    def mode_of(self, path: bytes, found: os.stat_result) -> int:
        """The mode of a folder before the walk opened it; `found` is its present status."""
        known = self._modes.get(path)
        is_known = known is not None and known[:2] == (found.st_dev, found.st_ino)
        return known[2] if known is not None and is_known else stat.S_IMODE(found.st_mode)

    def opened(self) -> tuple[tuple[bytes, int], ...]:
        """The folders that get another mode at the end, with that mode."""
        return tuple((path, mode) for path, (_, _, mode) in self._modes.items())

    def finish(self) -> dict[bytes, OSError]:
        """Set the modes, innermost first; returns what failed. A folder that was replaced meanwhile is left alone."""
        failed: dict[bytes, OSError] = {}
        modes, self._modes = self._modes, {}
        for path in sorted(modes, reverse=True):
            device, inode, mode = modes[path]
            try:
                folder = self.folder(path)
                found = os.fstat(folder)
                if (found.st_dev, found.st_ino) == (device, inode):
                    change_mode(folder, mode)
                self.forget(path)  # a mode without rights ends the use of what is cached below
            except OSError as error:
                failed[path] = error
        return failed

    def close(self) -> None:
        """Set the modes, and close all folders."""
        try:
            self.finish()
        finally:
            for folder in self._open.values():
                os.close(folder)
            self._open.clear()
            self._absent = (b"", 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_inside(path: bytes, folder: bytes) -> bool:
    return path != folder and path.startswith(folder.rstrip(b"/") + b"/")


def change_mode(descriptor: int, mode: int) -> None:
    """Change the mode of an open file or folder, also if it was opened as a place only. Raises `OSError`."""
    with contextlib.suppress(FileNotFoundError):
        Path(f"/proc/self/fd/{descriptor}").chmod(mode)
        return
    os.fchmod(descriptor, mode)
