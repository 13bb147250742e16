"""Compares versions of git's index. `git status` rewrites it with the times of files; what is staged stays the same."""

import hashlib
import struct
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
_STAT_BYTES: Final = 40
"""Stat data at the beginning of an entry: times, device, inode, mode (bytes 24 to 27), owner, size."""
_EXTENDED: Final = 0x40
_REQUIRED: Final = b"abcdefghijklmnopqrstuvwxyz"
"""First letters of extensions that change the meaning of the entries."""


def staged_state(data: bytes) -> bytes | None:
    """Digest of what an index says without the stat data of files and without caches; None if it is not understood."""
    try:
        kind, version, count = _HEADER.unpack_from(data)
        hash_length = _hash_length(data)
        if kind != b"DIRC" or version not in (2, 3, 4) or not hash_length:
            return None
        end = len(data) - hash_length
        digest = hashlib.sha256(data[: _HEADER.size])
        at = _HEADER.size
        for _ in range(count):
            after = _entry_end(data, at, version, hash_length)
            digest.update(data[at + 24 : at + 28] + data[at + _STAT_BYTES : after])
            at = after
        return digest.digest() if at <= end and _has_caches_only(data, at, end) else None
    except (struct.error, IndexError, ValueError):
        return None


def _hash_length(data: bytes) -> int:
    if data[-20:] in (bytes(20), hashlib.sha1(data[:-20], usedforsecurity=False).digest()):
        return 20
    return 32 if data[-32:] == hashlib.sha256(data[:-32]).digest() else 0


def _entry_end(data: bytes, at: int, version: int, hash_length: int) -> int:
    flags = at + _STAT_BYTES + hash_length
    name = flags + (4 if data[flags] & _EXTENDED else 2)
    if version == 4:  # the name begins with a number, whose last byte is below 128
        while data[name] & 0x80:
            name += 1
        return data.index(b"\0", name + 1) + 1
    return at + ((data.index(b"\0", name) - at + 8) & ~7)


def _has_caches_only(data: bytes, at: int, end: int) -> bool:
    while at < end:
        if data[at] in _REQUIRED:
            return False
        at += 8 + int.from_bytes(data[at + 4 : at + 8])
    return at == end
