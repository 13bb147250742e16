"""The index of a workspace: its folders, with the state and the signature of each entry."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bradawl.sandbox.filesystem.time_bits import NS_BITS

if TYPE_CHECKING:
    from bradawl.checkpoints.coverage import Reason
    from bradawl.checkpoints.git_data import Role
    from bradawl.checkpoints.record import FileState

Signature = tuple[int, int, int, int, int, int]
"""Mode with file type, inode, size, ctime in ns, mtime in ns, device. A ctime of 0 means: compare again."""


def signature(status: os.stat_result) -> Signature:
    """The signature of a file by its status."""
    return (
        status.st_mode,
        status.st_ino,
        status.st_size,
        status.st_ctime_ns,
        status.st_mtime_ns & NS_BITS,
        status.st_dev,
    )


class Folder:
    """A folder of the index. Names are decoded by `os.fsdecode`."""

    __slots__ = (
        *("path", "name", "parent", "role", "reason", "is_listed", "closed_at", "signatures", "states", "folders"),
        *("depth", "device", "watch", "watched", "left_out"),
    )

    def __init__(self, path: bytes, name: str, parent: "Folder | None", role: "Role") -> None:
        self.path = path
        self.name = name
        self.parent = parent
        self.left_out: frozenset[str] = frozenset()
        """Of a folder with git data, those of `NAMED_IF_REMOVED` that are in it."""
        self.depth: int = 0 if parent is None else parent.depth + 1
        """Levels below the root."""
        self.role: Role = role
        self.reason: Reason = ""
        self.is_listed = False
        """Whether all its entries are in the index."""
        self.closed_at: int | None = None
        """ctime at which it could not be opened."""
        self.signatures: dict[str, Signature] = {}
        self.states: dict[str, FileState] = {}
        self.folders: dict[str, Folder] = {}
        self.device = -1
        self.watch = -1
        self.watched: tuple[int, int] = (-1, -1)
        """Device and inode of the folder that `watch` belongs to."""

    def path_of(self, name: str) -> bytes:
        """Absolute path of an entry."""
        return self.path.rstrip(b"/") + b"/" + os.fsencode(name)

    def add_folder(self, name: str, role: "Role") -> "Folder":
        """Add an empty, unlisted folder."""
        self.folders[name] = added = Folder(self.path_of(name), name, self, role)
        return added

    def is_in_index(self) -> bool:
        """Whether it and its parents still belong to the index."""
        folder = self
        while folder.parent is not None:
            if folder.parent.folders.get(folder.name) is not folder:
                return False
            folder = folder.parent
        return True

    def below(self) -> "Iterator[Folder]":
        """This folder and all below it, parents first."""
        waiting: list[Folder] = [self]
        while waiting:
            folder = waiting.pop()
            yield folder
            waiting.extend(folder.folders.values())

    def chain(self) -> "list[Folder]":
        """The folders from the root to this one."""
        found: list[Folder] = [self]
        while (parent := found[-1].parent) is not None:
            found.append(parent)
        return found[::-1]
