"""Compares versions of git's index. `git status` rewrites it with the times of files; what is staged stays the same."""

import hashlib
import struct
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
_STAT_BYTES: Final = 40
"""Stat data at the beginning of an entry: times, device, inode, mode (bytes 24 to 27), owner, size."""
_EXTENDED: Final = 0x40
_SHA1_BYTES: Final = 20
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


_GITLINK: Final = 0o160000
_LINK_EXTENSION: Final = b"link"
_TREE_EXTENSION: Final = b"TREE"


def object_names(data: bytes) -> set[bytes]:
    """Names of the objects (20 or 32 bytes each) that an index needs: of files and of its cached trees.

    Without commits of submodules and without empty files, whose object need not exist. Empty if it is not understood.
    """
    try:
        kind, version, count = _HEADER.unpack_from(data)
        hash_length = _hash_length(data)
        if kind != b"DIRC" or version not in (2, 3, 4) or not hash_length:
            return set()
        end, at = len(data) - hash_length, _HEADER.size
        found: set[bytes] = set()
        for _ in range(count):
            mode = int.from_bytes(data[at + 24 : at + 28])
            if mode & 0o170000 != _GITLINK:
                found.add(data[at + _STAT_BYTES : at + _STAT_BYTES + hash_length])
            at = _entry_end(data, at, version, hash_length)
        while at < end:
            size = int.from_bytes(data[at + 4 : at + 8])
            if data[at : at + 4] == _LINK_EXTENSION:
                return set()
            if data[at : at + 4] == _TREE_EXTENSION:
                found |= _cached_trees(data[at + 8 : at + 8 + size], hash_length)
            at += 8 + size
    except (struct.error, IndexError, ValueError):
        return set()
    new = hashlib.sha1 if hash_length == _SHA1_BYTES else hashlib.sha256
    return found - {bytes(hash_length), new(b"blob 0\0", usedforsecurity=False).digest()}


def _cached_trees(data: bytes, hash_length: int) -> set[bytes]:
    """Trees of the extension `TREE`: for each a path, NUL, number of entries, space, of subtrees, LF, and its name."""
    found: set[bytes] = set()
    at = 0
    while at < len(data):
        path_end = data.index(b"\0", at)
        line_end = data.index(b"\n", path_end)
        at = line_end + 1
        if int(data[path_end + 1 : line_end].split(b" ")[0]) >= 0:  # below 0: not valid, without a name
            found.add(data[at : at + hash_length])
            at += hash_length
    return found


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
