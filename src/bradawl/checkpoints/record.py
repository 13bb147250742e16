"""Change records: which files a call changed, with their states before and after. The store keeps the contents."""

from typing import Literal

import msgspec

Identity = tuple[int, int, int, int]
"""Device, inode, ctime and mtime in ns. A ctime of 0 is not known."""


Owner = tuple[int, int]
"""Numbers of the user and the group."""


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """The state of a file, folder or link that undo restores exactly."""

    kind: Literal["file", "folder", "link", "other"]
    """`other`: a device, socket or pipe, which is never restored."""
    mode: int
    """Permission bits."""
    content: str = ""
    """sha256 of a file's bytes in hex; empty if they are not saved."""
    size: int = 0
    target: bytes = b""
    """Target of a link."""
    identity: Identity | None = None
    """Of a file whose content is not saved, or a folder that is not entered: finds it again after a rename."""
    owner: Owner | None = None
    """None if it is the one that restoring gives: for root that of the folder, for others this process's."""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One changed path. A missing state means that the path did not exist."""

    path: bytes
    """Absolute."""
    before: FileState | None
    after: FileState | None


class ChangeRecord(msgspec.Struct, frozen=True):
    """What one call changed, or one undo."""

    call_id: str
    """Empty for an undo."""
    at: int
    """Unix time in milliseconds, when the search ended."""
    changes: tuple[Change, ...]
    """Sorted by path. A new or removed folder is listed with everything in it."""
    uncovered: tuple[str, ...] = ()
    """Sentences about what may have changed and can't be restored."""
    is_exact: bool = True
    """False if changes are missing, such as those of git data elsewhere, or may be missing or older than the call."""
    is_late: bool = False
    """True if they were found long after the call, whose agent was killed: the user may have made them meanwhile."""
    stayed: tuple[bytes, ...] = ()
    """Caches that an undo was to remove and that hold files, sorted. Folders with nothing else in them stayed, too."""
    unrestored: tuple[Change, ...] = ()
    """What an undo could not restore and a later one may: `before` is the state to restore, `after` the one found."""
    began_at: int = 0
    """Of an undo: Unix time in milliseconds, before its first change. 0 in a record that does not say it."""
