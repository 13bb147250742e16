"""The time when a file or folder was made, which its inode number alone does not tell: numbers are used again."""

import ctypes
import os
import sys
from typing import Final

_STATX_BTIME: Final = 0x800
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_STRUCT_BYTES: Final = 256
_MASK_AT: Final = 0
_BTIME_AT: Final = 80
"""Offset of `stx_btime` in `struct statx`: seconds (64 bits), nanoseconds (32 bits). See statx(2)."""
_SECOND_NS: Final = 1_000_000_000


def birth_time_ns(parent: int, name: bytes) -> int:
    """Birth time of an entry of an open folder in ns, links not followed; 0 if it can't be determined."""
    if sys.platform == "darwin":
        try:
            return int(os.stat(name, dir_fd=parent, follow_symlinks=False).st_birthtime * _SECOND_NS)
        except OSError:
            return 0
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):
        return 0
    found = ctypes.create_string_buffer(_STRUCT_BYTES)
    if statx(parent, ctypes.c_char_p(name), _AT_SYMLINK_NOFOLLOW, ctypes.c_uint(_STATX_BTIME), found) != 0:
        return 0
    if not int.from_bytes(found.raw[_MASK_AT : _MASK_AT + 4], sys.byteorder) & _STATX_BTIME:
        return 0
    seconds = int.from_bytes(found.raw[_BTIME_AT : _BTIME_AT + 8], sys.byteorder, signed=True)
    return seconds * _SECOND_NS + int.from_bytes(found.raw[_BTIME_AT + 8 : _BTIME_AT + 12], sys.byteorder)
