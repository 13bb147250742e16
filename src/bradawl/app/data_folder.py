"""Whether bradawl's data folder can be written: sessions, undo and the state of sandboxes need it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

UNWRITABLE_HINT: Final = "Make it writable, free some space on its disk, or set BRADAWL_HOME to another folder."
_ROOM_BYTES: Final = 1_048_576
"""A disk with less is full: a record of undo, or the files of a sandbox, may not find room."""
_FULL: Final = ", whose disk is full,"


def unwritable_place(folder: str, statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> str:
    """The folder that can't be written, itself or the nearest one above that exists; empty if it can.

    If only its disk is full, the text says that.
    """
    places = (Path(folder), *Path(folder).parents)
    existing = next((one for one in places if os.access(one, os.F_OK)), places[-1])
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        return str(existing)
    with contextlib.suppress(OSError):
        disk = statvfs(existing)
        lacks_inodes = disk.f_files > 0 and disk.f_favail == 0
        if lacks_inodes or disk.f_bavail * disk.f_frsize < _ROOM_BYTES:
            return f"{existing}{_FULL}"
    return ""


def without_data_text(folder: str, statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> str:
    """Why there is no sandbox or no bubblewrap, and what to do; empty if the data folder can be written."""
    place = unwritable_place(folder, statvfs)
    what = "bubblewrap does not work" if place.endswith(_FULL) else "No sandbox works"
    return f"{what}, because {place} can't be written: bradawl keeps its data there. {UNWRITABLE_HINT}" if place else ""
