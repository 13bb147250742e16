"""Recognizes the placeholders of sandboxes in a workspace, which are no changes of a call."""

import os
import stat
import time
from typing import Final

from bradawl.checkpoints.folder import Signature
from bradawl.checkpoints.folder_reader import open_child
from bradawl.sandbox.mounts.placeholder_records import placeholder_identity, recorded_placeholders

_FRESH_S: Final = 0.002
"""Within one search the records are read again after this time. Reading takes about a twentieth of it."""


class SandboxPlaceholders:
    """The empty files and folders that sandboxes of the project, also of other sessions, hold as mount points."""

    def __init__(self, state: str) -> None:
        """`state` is the folder with the sandboxes' records; empty for no sandbox."""
        self._state = state
        self._recorded: set[tuple[str, str]] = set()
        self._read_at = -1.0

    def expire(self) -> None:
        """Read the records again when they are needed next, as at the start of a search."""
        self._read_at = -1.0

    def include(self, path: bytes, folder: int, name: str, found: Signature) -> bool:
        """Whether an entry of an open folder is a placeholder, and empty."""
        mode, inode, size, _, modified_ns, device = found
        is_folder = stat.S_ISDIR(mode)
        if not self._state or (size and not is_folder) or not (is_folder or stat.S_ISREG(mode)):
            return False
        if time.monotonic() - self._read_at > _FRESH_S:
            self._recorded = recorded_placeholders(self._state)
            self._read_at = time.monotonic()
        if (os.fsdecode(path), placeholder_identity(mode, device, inode, modified_ns)) not in self._recorded:
            return False
        return not is_folder or _is_empty(folder, name)


def _is_empty(folder: int, name: str) -> bool:
    try:
        descriptor = open_child(folder, name)
    except OSError:
        return False
    try:
        with os.scandir(descriptor) as entries:
            return next(entries, None) is None
    except OSError:
        return False
    finally:
        os.close(descriptor)
