"""Finds paths that are one file for a file system that ignores case, or the form of letters, in names."""

import os
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from bradawl.checkpoints.kept_copies import present_status
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.record import FileState

_SAME: Final = "it is {!r} in another spelling, which this file system does not tell apart; rename it back"


def other_spellings(walk: FolderWalk, wanted: Mapping[bytes, FileState | None]) -> dict[bytes, str]:
    """By path of what must not be removed, why: it is a file or folder that is to stay, or to come back."""
    stays: dict[str, list[bytes]] = {}
    for path, state in wanted.items():
        if state is not None:
            stays.setdefault(_folded(path), []).append(path)
    found: dict[bytes, str] = {}
    for path in (path for path, state in wanted.items() if state is None):
        if same := _same_entry(walk, path, stays.get(_folded(path), ())):
            found[path] = _SAME.format(os.fsdecode(same))
    return found


def _same_entry(walk: FolderWalk, path: bytes, others: Iterable[bytes]) -> bytes:
    for other in others:
        one, two = present_status(walk, path), present_status(walk, other)
        if one is None or two is None or (one.st_dev, one.st_ino) != (two.st_dev, two.st_ino):
            continue
        if stat.S_ISDIR(one.st_mode) or one.st_nlink == 1:  # two hard links are two names
            return other
    return b""


def _folded(path: bytes) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", os.fsdecode(path)).casefold())
