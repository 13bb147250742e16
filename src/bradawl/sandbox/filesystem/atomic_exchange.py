"""Exchanges two files of a folder in one step, so that what was replaced can be examined afterwards."""

import ctypes
import os
from functools import cache
from typing import Final

_RENAME_EXCHANGE: Final = 2  # linux/fs.h


def exchange(one: str, other: str, folder: int) -> bool:
    """Exchange two names of an open folder. False if the system or the file system can't, or one is missing."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    return renameat2(folder, os.fsencode(one), folder, os.fsencode(other), _RENAME_EXCHANGE) == 0


@cache
def _renameat2() -> "ctypes._NamedFuncPointer | None":
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # missing in musl and on macOS
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return function
