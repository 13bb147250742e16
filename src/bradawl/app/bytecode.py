"""Modules are compiled at their first import, and their bytecode is kept on the disk."""

import os
import sys
from typing import Final

_SPACE_BYTES: Final = 32 << 20


def keep_no_cut_bytecode() -> None:
    """Don't let Python write bytecode to a disk that is nearly full.

    CPython before 3.14 does not notice that such a write ended in the middle and keeps the file; every later run
    would then end with an `EOFError` (marshal data too short) where it imports the module.
    """
    folder = sys.pycache_prefix or __file__.rpartition("/")[0]
    try:
        disk = os.statvfs(folder)
    except OSError:
        return
    if disk.f_bavail * disk.f_frsize < _SPACE_BYTES:
        sys.dont_write_bytecode = True
