"""Examines a git index as a whole: what it names, and whether git could have written it.

Unlike `read_index`, it accepts everything that git writes: split and sparse indexes, and tables for threads.
"""

import re
import struct
from hashlib import sha1, sha256
from typing import Final

import msgspec

from bradawl.safety.git.entry_names import refused_names
from bradawl.safety.git.index import Entries, parse_entries, untracked_names
from bradawl.safety.git.repository import UnsupportedRepository

_MODE_AT: Final = 24
_STAMPS: Final = 40
_CHECKSUMS: Final = {20: sha1, 32: sha256}
_REQUIRED: Final = (b"link", b"sdir")
"""Extensions that git does not skip if it does not know them. Other required ones do not exist."""
_LENGTHS: Final = {b"sha1": 20, b"sha256": 32}
_EXTENSION: Final = struct.Struct(">4sI")
_BLOCK: Final = struct.Struct(">II")
_NAME_OF_FORMAT: Final = re.compile(rb"(?im)^\s*objectformat\b\s*=?\s*(.*?)\s*$")


class ExaminedIndex(msgspec.Struct, frozen=True):
    """What an index names. Paths are relative to the root of the working tree."""

    names: bytes = b"\0"
    """The names of all entries, with a NUL before and after each."""
    refused: tuple[bytes, ...] = ()
    """Names that git would not add, sorted."""
    shared: str = ""
    """The hash in the name of the shared index (`sharedindex.*`) with the other entries; empty if there is none."""

    def has_below(self, folder: bytes) -> bool:
        """Whether it names a file below a folder."""
        return b"\0%b/" % folder in self.names

    def has_basename(self, name: bytes) -> bool:
        """Whether it names a file whose last component is `name`."""
        return b"/%b\0" % name in self.names or b"\0%b\0" % name in self.names


def hash_length(config: bytes) -> int:
    """Length of the hashes in the indexes of a repository with this configuration.

    Raises `UnsupportedRepository` if it can't be determined.
    """
    if b"objectformat" not in config.lower():
        return 20
    named = {value.strip(b'"').lower() for value in _NAME_OF_FORMAT.findall(config)}
    if len(named) != 1 or not named <= _LENGTHS.keys():
        raise UnsupportedRepository("index")
    return _LENGTHS[named.pop()]


def examine_index(data: bytes, length: int) -> ExaminedIndex:
    """Examine an index, or a shared index. `length`, that of its hashes, is 20 or 32.

    Raises `UnsupportedRepository` if git would not have written it, apart from the names.
    """
    try:
        return _examine(data, length)
    except (struct.error, IndexError, ValueError):
        raise UnsupportedRepository("index") from None


def _examine(data: bytes, length: int) -> ExaminedIndex:
    if not _has_checksum(data, length):
        raise UnsupportedRepository("index")
    entries = parse_entries(data, length)
    names = entries.names
    extensions = _extensions(data, entries.end, length)
    shared = extensions.get(b"link", b"")[:length].strip(b"\0") and extensions[b"link"][:length]
    full = [name for name in names if name] if shared else names  # the others replace entries of the shared index
    if names != sorted(names) or _leads_threads_astray(data, entries, length, extensions):
        raise UnsupportedRepository("index")
    if any(not _is_name(name) for name in untracked_names(extensions.get(b"UNTR", b""), length)):
        raise UnsupportedRepository("index")
    skipped = len(names) - len(full)
    refused = refused_names(full, lambda number: _mode(data, entries, number + skipped, length))
    text = b"\0%b\0" % b"\0".join(full) if full else b"\0"
    return ExaminedIndex(text, refused, shared.hex())


def _has_checksum(data: bytes, length: int) -> bool:
    """Git writes zeros instead with `index.skipHash`."""
    end = data[-length:]
    return end == bytes(length) or end == _CHECKSUMS[length](memoryview(data)[:-length], usedforsecurity=False).digest()


def _mode(data: bytes, entries: Entries, number: int, length: int) -> int:
    at = entries.ends[number] - length - _STAMPS + _MODE_AT
    return int.from_bytes(data[at : at + 4])


def _extensions(data: bytes, at: int, length: int) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    end = len(data) - length
    while at < end:
        kind, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size + size
        if at > end or kind in found or not (kind in _REQUIRED or kind[:1].isupper()):
            raise UnsupportedRepository("index")
        found[kind] = data[at - size : at]
    if at != end:
        raise UnsupportedRepository("index")
    return found


def _leads_threads_astray(data: bytes, entries: Entries, length: int, extensions: dict[bytes, bytes]) -> bool:
    """Whether git, reading with several threads, would begin elsewhere than at the entries and extensions."""
    ends = extensions.get(b"EOIE")
    if ends is not None and int.from_bytes(ends[:4]) != entries.end:
        return True
    blocks = extensions.get(b"IEOT")
    if blocks is None:
        return False
    begins = {end - length - _STAMPS: number for number, end in enumerate(entries.ends)}
    expected = 0
    for at, count in _BLOCK.iter_unpack(blocks[4:]):
        if begins.get(at) != expected or (data[7] == 4 and expected in entries.continued):
            return True
        expected += count
    return expected != len(entries.names)


def _is_name(name: bytes) -> bool:
    return name in (b"", b"/") or (b"/" not in name[:-1] and name.rstrip(b"/") not in (b"", b".", b"..", b".git"))


def without_entries(data: bytes, dropped: frozenset[bytes], length: int) -> bytes:
    """An index without some of its entries, and without extensions that git creates again.

    Raises `UnsupportedRepository` for a split index.
    """
    entries = parse_entries(data, length)
    extensions = _extensions(data, entries.end, length)
    if b"link" in extensions:
        raise UnsupportedRepository("index")
    kept = [number for number, name in enumerate(entries.names) if name not in dropped]
    version = 3 if data[7] == 4 else data[7]
    made = [struct.pack(">4sII", b"DIRC", version, len(kept))]
    made += (_entry(data, entries, number, length) for number in kept)
    made += (_EXTENSION.pack(kind, len(body)) + body for kind, body in extensions.items() if kind == b"sdir")
    text = b"".join(made)
    return text + _CHECKSUMS[length](text, usedforsecurity=False).digest()


def _entry(data: bytes, entries: Entries, number: int, length: int) -> bytes:
    """One entry in version 2 or 3, padded with NUL."""
    flags = entries.ends[number]
    end = flags + (4 if data[flags] & 0x40 else 2)
    entry = data[flags - length - _STAMPS : end] + entries.names[number]
    return entry + bytes(8 - len(entry) % 8)
