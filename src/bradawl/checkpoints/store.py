"""The content store of a project: contents of files by sha256, and change records. Several processes may use it."""

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from bradawl.checkpoints.content_index import ContentIndex
from bradawl.checkpoints.deltas import apply_delta, base_of, encode_delta
from bradawl.checkpoints.errors import ContentDamaged, ContentGone
from bradawl.checkpoints.garbage import collect
from bradawl.checkpoints.packs import DELTA, FULL, LARGE, RECORD, Entry, PackWriter
from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.store_folder import StoreFolder
from bradawl.safety.whole_writes import write_all

_PACK_BYTES: Final = 16_777_216
_LARGE_BYTES: Final = 1_048_576
_IN_MEMORY_BYTES: Final = 67_108_864
"""Larger contents are streamed, and never stored as a difference."""
_DELTA_BYTES: Final = 16_384
"""Smaller contents are stored whole."""
_MOST_DELTAS: Final = 64
_ENDS_BYTES: Final = 1_024
_MOST_SIMILAR: Final = 20_000
_KEPT_BYTES: Final = 8_388_608
_PIECE: Final = 1_048_576
_UNSYNCED_PACKS: Final = 16
_SHARE_DATA: Final = 0x40049409  # FICLONE of linux/fs.h


class ContentStore:
    """Contents of files by sha256 in hex, and change records, in one folder. Not thread-safe.

    The folder (0700) is created with the first content. `close` closes all descriptors.
    """

    def __init__(self, folder: Path, *, quota_bytes: int = 1_000_000_000) -> None:
        self.quota_bytes = quota_bytes
        """Size that `collect_garbage` keeps to."""
        self.largest_bytes = quota_bytes // 4
        """Largest content that restoring saves: a larger one would push out most records."""
        self.folder = StoreFolder(folder)
        """The folder on the disk, for garbage collection."""
        self.index = ContentIndex(self.folder)
        """What is saved where, for garbage collection."""
        self._pack: PackWriter | None = None
        self._packs = 0
        self._unsynced: list[PackWriter] = []
        self._unsynced_large: list[str] = []
        self._clones = True
        self._last: tuple[bytes, bytes] = (b"", b"")
        self._similar: dict[int, bytes] = {}
        """Digest of the latest content by the hash of its first or last bytes."""

    # -------------------------------------------------------------- adding

    def add(self, descriptor: int, size: int, previous: str = "") -> str:
        """Save the whole content of an open regular file unless it is saved already; returns its sha256.

        `size` is the expected length, `previous` the sha256 of an earlier version of the file if known: then an edit
        takes little space. Durable after `flush`. Raises `OSError`; nothing is saved then.
        """
        if size > _IN_MEMORY_BYTES:
            return self._add_stream(descriptor)
        return self._add(_read_whole(descriptor, size), descriptor, previous)

    def add_bytes(self, data: bytes, previous: str = "") -> str:
        """Like `add`, for bytes in memory."""
        return self._add(data, -1, previous)

    def _add(self, data: bytes, descriptor: int, previous: str) -> str:
        digest = hashlib.sha256(data).digest()
        if not self._is_saved(digest):
            if len(data) < _DELTA_BYTES:
                self._append(digest, data, len(data), FULL, 0)
            else:
                self._add_version(digest, data, descriptor, previous)
        return digest.hex()

    def _add_version(self, digest: bytes, data: bytes, descriptor: int, previous: str) -> None:
        delta, depth = self._delta(data, previous)
        if delta:
            self._append(digest, delta, len(data), DELTA, depth)
        elif len(data) > _LARGE_BYTES:
            self._add_large(digest, data, descriptor)
        else:
            self._append(digest, data, len(data), FULL, 0)
        if len(self._similar) > _MOST_SIMILAR:
            self._similar.clear()
        self._similar.update(dict.fromkeys(_ends(data), digest))
        if len(data) <= _KEPT_BYTES:
            self._last = (digest, data)

    def _delta(self, data: bytes, previous: str) -> tuple[bytes, int]:
        """A difference and its depth if that takes less than half of the space; else nothing."""
        for base in dict.fromkeys((bytes.fromhex(previous), *map(self._similar.get, _ends(data)))):
            entry = self.index.get(base) if base else None
            if base is None or entry is None or entry.size > 2 * len(data) or entry.size > _IN_MEMORY_BYTES:
                continue
            if entry.depth >= min(_MOST_DELTAS, _IN_MEMORY_BYTES // len(data)) or not self._is_saved(base):
                continue
            with contextlib.suppress(ContentGone, ContentDamaged):
                delta = encode_delta(base, self._content(base), data)
                if len(delta) < len(data) // 2:
                    return delta, entry.depth + 1
        return b"", 0

    def _append(self, digest: bytes, data: bytes, size: int, kind: int, depth: int) -> None:
        self.index.add(digest, self._writer().append(digest, data, size, kind, depth))

    def _writer(self) -> PackWriter:
        pack = self._pack
        if pack is None or pack.end >= _PACK_BYTES or not pack.is_usable:
            if len(self._unsynced) >= _UNSYNCED_PACKS:
                self.flush()
            self._packs += 1
            self._pack = pack = PackWriter(self.folder.made(), f"{self.folder.user}-{self._packs}.pack")
            self._unsynced.append(pack)
        return pack

    def _add_large(self, digest: bytes, data: bytes, descriptor: int) -> None:
        with self._new_large() as (file, temporary):
            if not self._clone(descriptor, file) or _digest_of(file) != digest:
                os.ftruncate(file, 0)
                write_all(file, data)
            self._finish_large(temporary, digest, len(data))

    def _add_stream(self, descriptor: int) -> str:
        with self._new_large() as (file, temporary):
            digest = _digest_of(file) if self._clone(descriptor, file) else _copy(descriptor, file)
            if not self._is_saved(digest):
                self._finish_large(temporary, digest, os.fstat(file).st_size)
            return digest.hex()

    @contextlib.contextmanager
    def _new_large(self) -> Iterator[tuple[int, str]]:
        temporary = f"{self.folder.user}-{os.urandom(8).hex()}.new"
        file = self.folder.new(temporary)
        try:
            yield file, temporary
        finally:
            os.close(file)
            self.folder.remove(temporary)

    def _finish_large(self, temporary: str, digest: bytes, size: int) -> None:
        name = f"{self.folder.user}-{digest.hex()}.large"
        self.folder.rename(temporary, name)
        self._unsynced_large.append(name)
        self.index.add(digest, Entry(name, 0, size, size, LARGE, 0))

    def _clone(self, descriptor: int, file: int) -> bool:
        """Share the data of a file where the file system can."""
        if descriptor < 0 or not self._clones:
            return False
        try:
            fcntl.ioctl(file, _SHARE_DATA, descriptor)
        except OSError:
            self._clones = False
            return False
        return True

    def flush(self) -> None:
        """Wait until everything added is on the disk. Raises `OSError`, also if the store was removed meanwhile."""
        has_new = bool(self._unsynced_large)
        for pack in self._unsynced:
            has_new |= not pack.is_synced
            pack.sync()
        for name in self._unsynced_large:
            file = self.folder.open(name)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        if has_new:
            self.folder.sync()
        for pack in self._unsynced:
            if pack is not self._pack:
                pack.close()
        self._unsynced = [self._pack] if self._pack is not None else []
        self._unsynced_large = []

    # -------------------------------------------------------------- reading

    def has(self, sha256: str) -> bool:
        """Whether a content is saved. It is kept from then on while this store is open."""
        digest = bytes.fromhex(sha256)
        if self.index.find(digest) is None:
            return False
        if self._is_saved(digest):
            return True
        self.index.refresh()  # another process may have moved it
        return self._is_saved(digest)

    def holds(self, sha256: str) -> bool:
        """Whether a content is saved now. Unlike `has` it writes nothing, so the content can be dropped later.

        Raises `OSError`.
        """
        entry = self.index.find(bytes.fromhex(sha256))
        while entry is not None:
            try:
                self.folder.size(entry.file)
            except FileNotFoundError:
                return False
            if entry.kind != DELTA:
                return True
            entry = self.index.find(self.index.base(bytes.fromhex(sha256), entry))
        return False

    def _is_saved(self, digest: bytes) -> bool:
        """Whether a content is known to be saved, with all that it is a difference to; pins its files."""
        entry = self.index.get(digest)
        while entry is not None:
            if not self.folder.pin(entry.file):
                return False
            if entry.kind != DELTA:
                return True
            entry = self.index.get(self.index.base(digest, entry))
        return False

    def read(self, sha256: str) -> bytes:
        """A content, checked against its name. Raises `ContentGone` and `ContentDamaged`."""
        return self._content(bytes.fromhex(sha256))

    def copy_to(self, sha256: str, descriptor: int) -> None:
        """Write a content to an open file, from its position on. Raises `OSError`, `ContentGone` and `ContentDamaged`.

        A damaged content may be written in part.
        """
        entry = self.index.find(bytes.fromhex(sha256))
        if entry is None or entry.kind != LARGE or entry.size <= _IN_MEMORY_BYTES:
            write_all(descriptor, self.read(sha256))
        elif _copy(self.index.opened(entry, sha256), descriptor).hex() != sha256:
            raise ContentDamaged(sha256, entry.file)

    def _content(self, digest: bytes) -> bytes:
        if digest == self._last[0]:
            return self._last[1]
        try:
            return self._read_any(digest)
        except ContentGone:  # another process may have moved it
            self.index.refresh()
            return self._read_any(digest)

    def _read_any(self, digest: bytes) -> bytes:
        """Read a content, or another copy of it if that is damaged."""
        while True:
            try:
                return self._read(digest)
            except ContentDamaged:
                if not self.index.use_other_copy(digest):
                    raise

    def _read(self, digest: bytes) -> bytes:
        name = digest.hex()
        deltas: list[bytes] = []
        while True:
            entry = self.index.find(digest)
            if entry is None or len(deltas) > _MOST_DELTAS:
                raise ContentGone(name)
            stored = self.index.stored(entry, name)
            if entry.kind != DELTA:
                break
            deltas.append(stored)
            digest = base_of(stored)
        for delta in reversed(deltas):
            stored = apply_delta(stored, delta)
        if hashlib.sha256(stored).hexdigest() != name:
            raise ContentDamaged(name, entry.file)
        return stored

    # -------------------------------------------------------------- records

    def save_record(self, record: ChangeRecord) -> str:
        """Save a change record; returns its name for `record`. Durable after `flush`. Raises `OSError`."""
        data = msgspec.msgpack.encode(record)
        digest = hashlib.sha256(data).digest()
        if not self._is_saved(digest):
            self._append(digest, data, len(data), RECORD, 0)
        return digest.hex()

    def record(self, ref: str) -> ChangeRecord:
        """A saved change record. Raises `ContentGone` and `ContentDamaged`."""
        entry = self.index.find(bytes.fromhex(ref))
        try:
            return msgspec.msgpack.decode(self.read(ref), type=ChangeRecord)
        except msgspec.DecodeError:
            raise ContentDamaged(ref, entry.file if entry else "") from None

    # -------------------------------------------------------------- size

    def stored_bytes(self) -> int:
        """Bytes of all files of the store. Raises `OSError`."""
        return sum(self.index.file_sizes().values())

    def collect_garbage(self, live: Iterable[str]) -> int:
        """If the store exceeds its quota, drop contents that neither `live` nor the newest records name.

        `live` are sha256 of contents that must stay. Returns the number of bytes freed. Files that another process
        wrote or uses stay while it lives, so the quota may be exceeded until it ends. Raises `OSError`.
        """
        return collect(self, live)

    def copy_entry(self, digest: bytes, entry: Entry) -> None:
        """Copy a content to a pack of this process, as it is stored. Raises `OSError`, `ContentGone`."""
        stored = self.index.stored(entry, digest.hex())
        self.index.add(digest, self._writer().append(digest, stored, entry.size, entry.kind, entry.depth))

    def start_new_pack(self) -> None:
        """Write no more to the current pack."""
        self._pack = None

    def close(self) -> None:
        """Close all files, without waiting for the disk; safe to call twice."""
        for pack in self._unsynced:
            pack.close()
        if self._pack is not None and self._pack not in self._unsynced:
            self._pack.close()
        self._unsynced, self._pack = [], None
        self.index.close()
        self.folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def add_checked(store: ContentStore, descriptor: int, size: int, previous: str = "") -> str:
    """Like `add`, for the only copy of a content: if another process saved it, it is read back, and saved once more if
    that is damaged. Raises `OSError`.
    """
    sha256 = store.add(descriptor, size, previous)
    digest = bytes.fromhex(sha256)
    entry = store.index.get(digest)
    if entry is None or entry.file.startswith(store.folder.user) or _is_intact(store, sha256, entry):
        return sha256
    store.index.drop(digest)
    return store.add(descriptor, size)


def _is_intact(store: ContentStore, sha256: str, entry: Entry) -> bool:
    try:
        if entry.kind == LARGE:
            return _digest_of(store.index.opened(entry, sha256)).hex() == sha256
        store.read(sha256)
    except (OSError, ContentGone, ContentDamaged):
        return False
    return True


def _ends(data: bytes) -> tuple[int, int]:
    """Hashes of the first and the last bytes, by which an earlier version is found."""
    return hash(data[:_ENDS_BYTES]), hash(data[-_ENDS_BYTES:])


def _read_whole(descriptor: int, size: int) -> bytes:
    data = os.pread(descriptor, size + 1, 0)
    if len(data) == size:
        return data
    pieces, at = [data], len(data)
    while piece := os.pread(descriptor, _PIECE, at):
        pieces.append(piece)
        at += len(piece)
        if at > size + _IN_MEMORY_BYTES:  # a program may write faster than this reads
            raise OSError(errno.EAGAIN, "it grows while it is read")
    return b"".join(pieces)


def _copy(source: int, target: int) -> bytes:
    """Copy a whole file to the position in another one; returns the digest."""
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(source, _PIECE, at):
        digest.update(piece)
        write_all(target, piece)
        at += len(piece)
    return digest.digest()


def _digest_of(file: int) -> bytes:
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(file, _PIECE, at):
        digest.update(piece)
        at += len(piece)
    return digest.digest()
