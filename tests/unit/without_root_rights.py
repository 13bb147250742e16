"""Takes from a process of root's the right to read every file, so that modes hold for it as for other users."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522
_READ_RIGHTS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_OWNER_RIGHT = 1 << 0  # CAP_CHOWN
_SIGNAL_RIGHT = 1 << 5  # CAP_KILL
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def modes_hold() -> Iterator[None]:
    """Modes of files hold for this thread; the rights come back at the end."""
    with _without(_READ_RIGHTS):
        yield


@contextmanager
def owners_stay() -> Iterator[None]:
    """This thread can't give files to other users; the right comes back at the end."""
    with _without(_OWNER_RIGHT):
        yield


@contextmanager
def others_refuse_signals() -> Iterator[None]:
    """This thread can't signal processes of other users; the right comes back at the end."""
    with _without(_SIGNAL_RIGHT):
        yield


@contextmanager
def _without(rights: int) -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    before = _capabilities()
    effective, *others = struct.unpack("=6I", before)
    _set_capabilities(struct.pack("=6I", effective & ~rights, *others))
    try:
        yield
    finally:
        _set_capabilities(before)


def _capabilities() -> bytes:
    found = ctypes.create_string_buffer(24)
    assert _libc.capget(struct.pack("=Ii", _VERSION, 0), found) == 0
    return found.raw


def _set_capabilities(data: bytes) -> None:
    assert _libc.capset(struct.pack("=Ii", _VERSION, 0), data) == 0
