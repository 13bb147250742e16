"""Linux inotify: reports which entries of watched folders have changed."""

import ctypes
import os
import struct
from typing import Final

IN_IGNORED: Final = 0x8000
"""The watch has ended: its folder is gone."""
_IN_Q_OVERFLOW: Final = 0x4000
NAMES: Final = 0x40 | 0x80 | 0x100 | 0x200
"""Entries of a folder were moved, created or deleted."""
CHANGES: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200  # modify, attrib, close_write, moved, create, delete
_SELF: Final = 0x400 | 0x800  # delete_self, move_self
_IN_ONLYDIR: Final = 0x01000000
_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 1 << 18
_MOST_READS: Final = 64
"""Far more than a queue holds by default: programs can make events faster than they are read, and never stop."""


class QueueOverflow(Exception):
    """The kernel has dropped events."""


class Inotify:
    """An inotify instance. Raises `OSError` if the system has none, or no more."""

    def __init__(self) -> None:
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            create = self._libc.inotify_init1
        except (OSError, AttributeError) as error:
            raise OSError("no inotify") from error
        self._descriptor = self._checked(create(os.O_NONBLOCK | os.O_CLOEXEC))

    def fileno(self) -> int:
        """The descriptor, readable when events wait."""
        return self._descriptor

    def watch(self, folder: int, what: int = CHANGES) -> int:
        """Watch an open folder; returns the number of the watch. Raises `OSError`.

        `what` is `CHANGES`, or `NAMES` for fewer events; the end of the folder is reported with both.
        The path by descriptor leads to the open folder itself, whatever its name leads to by now.
        """
        path = b"/proc/self/fd/%d" % folder
        mask = ctypes.c_uint32(what | _SELF | _IN_ONLYDIR)
        return self._checked(self._libc.inotify_add_watch(self._descriptor, path, mask))

    def remove(self, watch: int) -> None:
        """End a watch; one that has ended is ignored."""
        self._libc.inotify_rm_watch(self._descriptor, watch)

    def events(self) -> list[tuple[int, int, bytes]]:
        """Take all waiting events: watch, mask, and name of the entry (empty for the folder itself).

        Raises `QueueOverflow` after all are taken, if the kernel dropped some, or if there is no end to them.
        """
        found: list[tuple[int, int, bytes]] = []
        for _ in range(_MOST_READS):
            if not (data := self._read()):
                break
            place = 0
            while place < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, place)
                place += _HEADER.size + length
                found.append((watch, mask, data[place - length : place].rstrip(b"\0")))
        else:
            raise QueueOverflow
        if any(mask & _IN_Q_OVERFLOW for _, mask, _ in found):
            raise QueueOverflow
        return found

    def close(self) -> None:
        """End all watches."""
        os.close(self._descriptor)

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
