"""Modules are compiled at their first import, and their bytecode is kept on the disk."""

import os
import resource
import sys
from typing import Final

_SPACE_BYTES: Final = 32 << 20


def keep_no_cut_bytecode() -> None:
    """Don't let Python write bytecode to a disk that is nearly full, or under a limit on the size of files.

    CPython before 3.14 does not notice that such a write ended in the middle and keeps the file; every later run
    would then end with an `EOFError` (marshal data too short) where it imports the module.
    """
    if _is_limited() or _is_nearly_full(sys.pycache_prefix or __file__.rpartition("/")[0]):
        sys.dont_write_bytecode = True


def _is_limited() -> bool:
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return soft not in (resource.RLIM_INFINITY, -1) and soft < _SPACE_BYTES


def _is_nearly_full(folder: str) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _SPACE_BYTES
