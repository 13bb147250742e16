"""Watches of folders: which entries may have changed since they were last compared."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bradawl.sandbox.filesystem.inotify import IN_IGNORED, Inotify, QueueOverflow

if TYPE_CHECKING:
    from bradawl.checkpoints.folder import Folder

_LIMIT_FILE: Final = "/proc/sys/fs/inotify/max_user_watches"
_MOUNTS: Final = "/proc/self/mountinfo"
_OWN_SHARE: Final = 4
"""Divisor: the user's editors need watches of the same limit."""
_LOCAL_FILE_SYSTEMS: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs", "ramfs"}
)
"""All changes on these pass through this kernel. On others, inotify misses what other machines change."""


class FolderWatches:
    """Watches by inotify. `is_complete` turns false for good once a folder could not be watched."""

    def __init__(self, most: int, paths: tuple[bytes, ...]) -> None:
        self._most = min(most, _system_limit() // _OWN_SHARE)
        self._folders: dict[int, Folder] = {}
        self._inotify: Inotify | None = None
        if all(_file_system(path) in _LOCAL_FILE_SYSTEMS for path in paths):
            with contextlib.suppress(OSError):
                self._inotify = Inotify()

    @property
    def is_complete(self) -> bool:
        """Whether each listed folder is watched."""
        return self._inotify is not None

    def add(self, folder: "Folder", descriptor: int) -> None:
        """Watch an open folder unless it is watched."""
        if self._inotify is None:
            return
        status = os.fstat(descriptor)
        identity = (status.st_dev, status.st_ino)
        if folder.watched == identity and self._folders.get(folder.watch) is folder:
            return
        self.remove(folder)
        if len(self._folders) >= self._most:
            self.close()
            return
        try:
            folder.watch = self._inotify.watch(descriptor)
        except OSError:  # the limit of the user is reached, or there is no /proc
            self.close()
            return
        folder.watched = identity
        self._folders[folder.watch] = folder

    def remove(self, folder: "Folder") -> None:
        """End the watch of a folder that has left the index."""
        if self._inotify is not None and self._folders.get(folder.watch) is folder:
            self._inotify.remove(folder.watch)
            del self._folders[folder.watch]
        folder.watch = -1

    def dirty(self) -> "dict[Folder, set[str]] | None":
        """Take what may have changed: names of entries by folder. None if all folders must be compared."""
        if self._inotify is None:
            return None
        try:
            events = self._inotify.events()
        except QueueOverflow:
            self._start_again()
            return None
        found: dict[Folder, set[str]] = {}
        for watch, mask, name in events:
            if (folder := self._folders.get(watch)) is None:
                continue
            names = found.setdefault(folder, set())
            if name:
                names.add(os.fsdecode(name))
            if mask & IN_IGNORED:
                del self._folders[watch]
                folder.watch = -1
        return found

    def close(self) -> None:
        """End all watches."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._folders.clear()

    def _start_again(self) -> None:
        """End all watches. The next full search adds new ones: some may have ended among the lost events."""
        self.close()
        with contextlib.suppress(OSError):
            self._inotify = Inotify()


def _system_limit() -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(_LIMIT_FILE).read_bytes())
    return 0


def _file_system(path: bytes) -> str:
    """Type of the file system that holds a path; empty if unknown."""
    with contextlib.suppress(OSError, ValueError):
        lines = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        return max(_mounts_above(os.fsdecode(path), lines), default=(0, 0, ""))[2]
    return ""


def _mounts_above(path: str, lines: list[str]) -> list[tuple[int, int, str]]:
    """Length of the mount point, line number and type of the mounts that hold a path; a later mount covers others."""
    found: list[tuple[int, int, str]] = []
    for number, line in enumerate(lines):
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4].replace("\\040", " ").rstrip("/")
        if path == point or path.startswith(f"{point}/"):
            found.append((len(point), number, rest.split(" ")[0]))
    return found
