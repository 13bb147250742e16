"""Parses git's index exactly as git does, or rejects it.

Git uses the names in it as paths without checking them: `git diff` shows the file `../../x` if the index lists it.
"""

import re
import struct
from collections.abc import Callable, Iterator
from functools import cached_property
from posixpath import basename
from typing import Final, NamedTuple

from bradawl.safety.git.repository import UnsupportedRepository
from bradawl.safety.permissions.protected_paths import may_hold_secrets

_HEADER: Final = struct.Struct(">4sII")
_SUBMODULE: Final = b"\xe0\x00"
_SUBMODULE_MODE: Final = b"\0\0\xe0\0"
_EXTENDED: Final = 0x40
_STAMPS_LENGTH: Final = 76
"""The length of the file stamps and flags in the extension for untracked files."""
_PADDING: Final = bytes(8)
_LONG: Final = 0xFFF
"""The value of the length field for names that are longer."""
_IGNORED: Final = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")
"""Characters that macOS ignores in names."""
_ELSEWHERE: Final = (b"\0.\0", b"\0..\0", b"\0.git\0", *(b"\0git~%d\0" % number for number in range(1, 5)))
"""Parts of a path that lead out of the working tree or into `.git`, which Windows also calls `git~1`."""


class Entries(NamedTuple):
    """The list of entries in an index."""

    names: list[bytes]
    submodules: list[bytes]
    """Names of the entries that are submodules."""
    ends: list[int]
    """For each entry, the offset at which its content hash ends and its flags begin."""
    end: int
    """The offset behind the last entry."""
    continued: frozenset[int] = frozenset()
    """Numbers of the entries that use a part of the name before, in version 4."""


class Index:
    """The entries of an index. Paths are relative to the root of the working tree."""

    def __init__(self, names: list[bytes], submodules: list[bytes], hashes: Callable[[int], bytes]) -> None:
        """`hashes` returns the content hash of the entry with a given number."""
        self._names = names
        self._hashes = hashes
        self.submodules = tuple(map(_text, submodules))

    @cached_property
    def secrets(self) -> tuple[tuple[str, bytes], ...]:
        """Tracked files whose names suggest secrets, with the content hash in the index."""
        named = enumerate(map(_text, self._names))
        return tuple((name, self._hashes(at)) for at, name in named if may_hold_secrets(basename(name)))

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """Tracked pattern files (`.gitignore`, `.gitattributes`) below the topmost folder."""
        return tuple(_text(name) for name in self._names if name.endswith((b"/.gitattributes", b"/.gitignore")))

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """All folders that contain tracked files, at any depth."""
        folders: set[bytes] = set()
        pending = {name[: name.rfind(b"/")] for name in self._names if b"/" in name}
        while pending:
            folders |= pending
            pending = {name[: name.rfind(b"/")] for name in pending if b"/" in name} - folders
        return tuple(map(_text, folders))


def read_index(data: bytes, hash_length: int) -> Index:
    """Parse an index. `hash_length` is 20 or 32.

    Raises `UnsupportedRepository`, also for names that git never writes.
    """
    try:
        names, submodules, ends, end, _ = parse_entries(data, hash_length)
        remembered = _parse_extensions(data, end, hash_length)
    except (struct.error, IndexError, ValueError):
        raise UnsupportedRepository("index") from None
    if _leads_elsewhere(names) or _leads_elsewhere(remembered) or any(b"/" in name[:-1] for name in remembered):
        raise UnsupportedRepository("index")
    return Index(names, submodules, lambda at: data[ends[at] - hash_length : ends[at]])


def parse_entries(data: bytes, hash_length: int) -> Entries:
    """Parse the entries of an index of any version.

    Raises `UnsupportedRepository`, `ValueError`, `IndexError` or `struct.error`.
    """
    kind, version, count = _HEADER.unpack_from(data)
    if kind != b"DIRC" or version not in (2, 3, 4):
        raise UnsupportedRepository("index")
    read = _parse_prefixed_names if version == 4 else _parse_complete_names
    return read(data, count, 40 + hash_length)


def submodules_in(data: bytes) -> frozenset[str]:
    """Names of the submodules in an index; its extensions are not read.

    Raises `UnsupportedRepository` if the entries can't be parsed.
    """
    if _SUBMODULE_MODE not in data:
        return frozenset()
    for hash_length in (20, 32):
        try:
            return frozenset(map(_text, parse_entries(data, hash_length).submodules))
        except (struct.error, IndexError, ValueError, UnsupportedRepository):
            continue
    raise UnsupportedRepository("index")


def _parse_complete_names(data: bytes, count: int, flags_at: int) -> Entries:
    """Versions 2 and 3: complete names, padded with NUL to a multiple of eight."""
    names, submodules, ends, at, find = list[bytes](), list[bytes](), list[int](), _HEADER.size, data.index
    for _ in range(count):
        flags = at + flags_at
        start = flags + (4 if data[flags] & _EXTENDED else 2)
        end = find(b"\0", start)
        name = data[start:end]
        names.append(name)
        ends.append(flags)
        if data[at + 26 : at + 28] == _SUBMODULE:
            submodules.append(name)
        at += (end - at + 8) & ~7
        if _stored_length(data, flags) != min(end - start, _LONG) or data[end:at] != _PADDING[: at - end]:
            raise UnsupportedRepository("index")
    return Entries(names, submodules, ends, at)


def _parse_prefixed_names(data: bytes, count: int, flags_at: int) -> Entries:
    """Version 4: how many bytes to remove from the name before, and what to append."""
    names, submodules, ends, at, name = list[bytes](), list[bytes](), list[int](), _HEADER.size, b""
    continued: set[int] = set()
    for number in range(count):
        flags = at + flags_at
        start = flags + (4 if data[flags] & _EXTENDED else 2)
        cut, start = _parse_number(data, start)
        end = data.index(b"\0", start)
        if cut > len(name):
            raise UnsupportedRepository("index")
        if cut < len(name):
            continued.add(number)
        name = name[: len(name) - cut] + data[start:end]
        if _stored_length(data, flags) != min(len(name), _LONG):
            raise UnsupportedRepository("index")
        names.append(name)
        ends.append(flags)
        if data[at + 26 : at + 28] == _SUBMODULE:
            submodules.append(name)
        at = end + 1
    return Entries(names, submodules, ends, at, frozenset(continued))


def _parse_extensions(data: bytes, end: int, hash_length: int) -> list[bytes]:
    """The untracked files and folders in git's cache, which git may enter without checking them."""
    last = len(data) - 2 * hash_length - 12
    if data[last : last + 4] == b"EOIE" and int.from_bytes(data[last + 8 : last + 12]) != end:
        raise UnsupportedRepository("index")  # git would begin to read there
    names, at = list[bytes](), end
    while at <= len(data) - hash_length - 8:
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8])
        if kind == b"IEOT":  # offsets of blocks, with which git reads the entries in another order
            raise UnsupportedRepository("index")
        if kind == b"UNTR":
            names += untracked_names(data[at + 8 : at + 8 + size], hash_length)
        at += 8 + size
    return names


def untracked_names(data: bytes, hash_length: int) -> Iterator[bytes]:
    """Names of folders and files in the extension for untracked files.

    Raises `ValueError` or `IndexError` if it can't be parsed.
    """
    if not data:
        return
    length, at = _parse_number(data, 0)
    at = data.index(b"\0", at + length + _STAMPS_LENGTH + 2 * hash_length) + 1
    count, at = _parse_number(data, at)
    for _ in range(count):
        files, at = _parse_number(data, at)
        _, at = _parse_number(data, at)
        for _ in range(files + 1):
            end = data.index(b"\0", at)
            yield data[at:end]
            at = end + 1


def _parse_number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length number of seven bits per byte, and the offset behind it."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = (value + 1 << 7) + (data[at] & 127)
    return value, at + 1


def _stored_length(data: bytes, flags: int) -> int:
    return (data[flags] & 15) << 8 | data[flags + 1]


def _leads_elsewhere(names: list[bytes]) -> bool:
    """Whether one of the names is no path within the working tree. A name that ends with `/` is a folder."""
    text = b"\0%b\0" % b"\0".join(names).lower()
    if b"\0/" in text or b"//" in text:
        return True
    parts = text.replace(b"/", b"\0")
    parts = parts if parts.isascii() else _IGNORED.sub(b"", parts)
    return any(part in parts for part in _ELSEWHERE)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
