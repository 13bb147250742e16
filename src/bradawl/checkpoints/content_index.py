"""Where the contents of a store are: read from the headers of all packs, again when other processes have added some."""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from bradawl.checkpoints.deltas import base_of
from bradawl.checkpoints.errors import ContentDamaged, ContentGone
from bradawl.checkpoints.packs import LARGE, Entry, next_offset, read_entries
from bradawl.checkpoints.store_folder import StoreFolder

_PACK: Final = ".pack"
_LARGE: Final = ".large"
_NEW: Final = ".new"
_OPEN_FILES: Final = 16


class ContentIndex:
    """Digests (32 bytes) of saved contents and where they are. Not thread-safe; `close` closes the open files."""

    def __init__(self, folder: StoreFolder) -> None:
        self._folder = folder
        self._entries: dict[bytes, Entry] = {}
        self._other_copies: dict[bytes, list[Entry]] = {}
        self._read_to: dict[str, int] = {}
        """Packs with the offset behind the last content read; large files."""
        self._is_read = False
        self._open: dict[str, int] = {}

    def add(self, digest: bytes, entry: Entry) -> None:
        """Add a content that this process has written."""
        self._entries[digest] = entry
        self._read_to[entry.file] = next_offset(entry)

    def get(self, digest: bytes) -> Entry | None:
        """The place of a content as far as known; what other processes add later may be unknown. Raises `OSError`."""
        if not self._is_read:
            self.refresh()
        return self._entries.get(digest)

    def find(self, digest: bytes) -> Entry | None:
        """The place of a content; reads what other processes have added if it is unknown. Raises `OSError`."""
        found = self.get(digest)
        if found is None:
            self.refresh()
            found = self._entries.get(digest)
        return found

    def items(self) -> Iterator[tuple[bytes, Entry]]:
        """All known contents."""
        return iter(self._entries.items())

    def refresh(self) -> None:
        """Read what other processes have added or removed. Raises `OSError`."""
        sizes = self.file_sizes()
        if not self._read_to.keys() <= sizes.keys():  # a removed file may have hidden a copy in another one
            self.forget()
        self._is_read = True
        for name, size in sizes.items():
            if name.endswith(_PACK) and size > self._read_to.get(name, 0):
                self._read_pack(name, size)
            elif name.endswith(_LARGE) and name not in self._read_to:
                self._read_to[name] = size
                with contextlib.suppress(ValueError):
                    digest = bytes.fromhex(name.removesuffix(_LARGE).rpartition("-")[2])
                    self._put(digest, Entry(name, 0, size, size, LARGE, 0))

    def _put(self, digest: bytes, entry: Entry) -> None:
        """Add a content that was found; of several copies that of this process, which no other one may remove."""
        known = self._entries.get(digest)
        if known is None or entry.file.startswith(self._folder.user):
            self._entries[digest] = entry
        if known is not None and known != entry:
            other = entry if self._entries[digest] == known else known
            self._other_copies.setdefault(digest, []).append(other)

    def drop(self, digest: bytes) -> None:
        """Forget where a content is, which is damaged there: it counts as not saved."""
        self._entries.pop(digest, None)

    def use_other_copy(self, digest: bytes) -> bool:
        """Take another copy of a content whose first one is damaged; false if there is none."""
        copies = self._other_copies.get(digest)
        if not copies:
            return False
        self._entries[digest] = copies.pop()
        return True

    def _read_pack(self, name: str, size: int) -> None:
        start = self._read_to.get(name, 0)
        with contextlib.suppress(FileNotFoundError):
            file = self._folder.open(name)
            try:
                for digest, entry in read_entries(file, name, start, size):
                    self._put(digest, entry)
                    start = next_offset(entry)
            finally:
                os.close(file)
        self._read_to[name] = start

    def forget(self) -> None:
        """Read everything again when it is needed next."""
        self.close()
        self._entries.clear()
        self._other_copies.clear()
        self._read_to.clear()
        self._is_read = False

    def file_sizes(self) -> dict[str, int]:
        """Names and sizes of the files with contents, finished or not. Raises `OSError`."""
        sizes: dict[str, int] = {}
        for name in self._folder.names():
            if name.endswith((_PACK, _LARGE, _NEW)):
                with contextlib.suppress(FileNotFoundError):
                    sizes[name] = self._folder.size(name)
        return sizes

    def base(self, digest: bytes, entry: Entry) -> bytes:
        """Digest of the content that a stored difference applies to; empty if it can't be read."""
        try:
            return base_of(os.pread(self.opened(entry, digest.hex()), 64, entry.offset))
        except (OSError, ContentGone, ContentDamaged):
            return b""

    def stored(self, entry: Entry, name: str) -> bytes:
        """The bytes stored for the content `name` (hex), not checked. Raises `ContentGone` and `ContentDamaged`."""
        file = self.opened(entry, name)
        try:
            data = os.pread(file, entry.stored, entry.offset)
        except OSError as error:
            raise ContentDamaged(name, entry.file) from error
        if len(data) < entry.stored:
            raise ContentDamaged(name, entry.file)
        return data

    def opened(self, entry: Entry, name: str) -> int:
        """Descriptor of the file with a content; it stays open and belongs to the index. Raises `ContentGone`."""
        file = self._open.pop(entry.file, -1)
        if file < 0:
            try:
                file = self._folder.open(entry.file)
            except FileNotFoundError as error:
                raise ContentGone(name) from error
            except OSError as error:
                raise ContentDamaged(name, entry.file) from error
            if len(self._open) >= _OPEN_FILES:
                os.close(self._open.pop(next(iter(self._open))))
        self._open[entry.file] = file  # the last one used is the last to be closed
        return file

    def close(self) -> None:
        """Close the open files."""
        for file in self._open.values():
            os.close(file)
        self._open.clear()
