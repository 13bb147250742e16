"""Pack files: contents one behind another, each with a header, written by one process and read by all.

A pack is only appended to. A header names the digest and the length of what follows and has a checksum, so that a
reader finds the last complete content after the writer was killed at any byte.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from bradawl.safety.whole_writes import write_all

FULL: Final = 0
DELTA: Final = 1
RECORD: Final = 2
LARGE: Final = 3
"""A file with one content and no header."""

_MARK = b"bpk1"
_FIELDS = struct.Struct("<4sBBxxQQ32s")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES: Final = _FIELDS.size + _CHECKSUM.size
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 255

Kind = Literal[0, 1, 2, 3]


class Entry(NamedTuple):
    """Place of a content in the store."""

    file: str
    """Name in the store's folder."""
    offset: int
    """First byte of what is stored."""
    stored: int
    """Bytes stored, without the header."""
    size: int
    """Bytes of the content."""
    kind: int
    depth: int
    """Number of differences to apply to a full content."""


def read_entries(descriptor: int, name: str, start: int, end: int) -> Iterator[tuple[bytes, Entry]]:
    """Digests and places of the complete contents between two offsets; ends at the first that is not complete.

    Raises `OSError`.
    """
    while start + HEADER_BYTES <= end:
        header = os.pread(descriptor, HEADER_BYTES, start)
        if len(header) < HEADER_BYTES or _CHECKSUM.unpack_from(header, _FIELDS.size)[0] != zlib.crc32(
            header[: _FIELDS.size]
        ):
            return
        mark, kind, depth, stored, size, digest = _FIELDS.unpack_from(header)
        start += HEADER_BYTES
        if mark != _MARK or start + stored > end:
            return
        yield digest, Entry(name, start, stored, size, kind, depth)
        start += stored


def next_offset(entry: Entry) -> int:
    """Offset of the header that follows a content."""
    return entry.offset + entry.stored


class PackWriter:
    """Appends contents to a new pack file. Not thread-safe; `close` closes the file."""

    def __init__(self, folder: int, name: str) -> None:
        """`folder` is a descriptor. Raises `OSError`."""
        self.name = name
        self.end = 0
        """Bytes in complete contents."""
        self.is_usable = True
        """False after a failed write whose beginning could not be cut off."""
        self._synced = -1
        self._file = os.open(name, _NEW, 0o600, dir_fd=folder)

    def append(self, digest: bytes, data: bytes, size: int, kind: int, depth: int) -> Entry:
        """Append one content with one write. Raises `OSError`; the pack ends with the content before then."""
        fields = _FIELDS.pack(_MARK, kind, min(depth, _DEEPEST), len(data), size, digest)
        header = fields + _CHECKSUM.pack(zlib.crc32(fields))
        try:
            written = os.writev(self._file, (header, data))
            if written < HEADER_BYTES + len(data):
                write_all(self._file, (header + data)[written:])
        except BaseException:
            self._cut_off()
            raise
        entry = Entry(self.name, self.end + HEADER_BYTES, len(data), size, kind, depth)
        self.end = next_offset(entry)
        return entry

    def _cut_off(self) -> None:
        self.is_usable = False
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self.end)
            os.lseek(self._file, self.end, os.SEEK_SET)
            self.is_usable = True

    @property
    def is_synced(self) -> bool:
        """Whether all contents are on the disk."""
        return self._synced == self.end

    def sync(self) -> None:
        """Wait until all contents are on the disk. Raises `OSError`, also if the file was removed meanwhile."""
        if not self.is_synced:
            os.fsync(self._file)
            self._synced = self.end
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(2, os.strerror(2), self.name)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
