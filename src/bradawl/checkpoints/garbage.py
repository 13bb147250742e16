"""Garbage collection of a content store: drops what only the oldest records need, until the quota is kept."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, Protocol

from bradawl.checkpoints.content_index import ContentIndex
from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.packs import DELTA, HEADER_BYTES, RECORD, Entry
from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.store_folder import StoreFolder

_FILLED: Final = 0.8
"""Part of the quota that kept contents may take, so that not every call has to collect."""


class CollectedStore(Protocol):
    """What collecting needs of a `ContentStore`."""

    quota_bytes: int
    folder: StoreFolder
    index: ContentIndex

    def record(self, ref: str) -> ChangeRecord:
        """A saved record. Raises `StoreError`."""
        ...

    def copy_entry(self, digest: bytes, entry: Entry) -> None:
        """Copy a content to a pack of this process."""
        ...

    def start_new_pack(self) -> None:
        """Write no more to the current pack."""
        ...

    def flush(self) -> None:
        """Wait until everything written is on the disk."""
        ...


def collect(store: CollectedStore, live: Iterable[str]) -> int:
    """Bring the store below its quota if it exceeds it; see `ContentStore.collect_garbage`."""
    before = _stored_bytes(store)
    if before <= store.quota_bytes:
        return 0
    with store.folder.locked() as is_locked:
        if not is_locked:
            return 0
        store.start_new_pack()
        store.flush()
        store.index.refresh()
        of_live: dict[bytes, Entry] = {}
        for sha256 in live:
            of_live.update(_needed(store, bytes.fromhex(sha256), of_live))
        removed = _drop(store, _kept(store, of_live), before)
        store.folder.pin_only({entry.file for entry in of_live.values()} - removed)
        store.flush()
        store.folder.sync()
    return before - _stored_bytes(store)


def _stored_bytes(store: CollectedStore) -> int:
    return sum(store.index.file_sizes().values())


def _kept(store: CollectedStore, live: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """The live contents, and the newest records with their contents as far as the quota reaches."""
    kept = dict(live)
    room = store.quota_bytes - _bytes_of(kept)
    left = max(int(_FILLED * store.quota_bytes) - _bytes_of(kept), room // 2)
    for digest, record in _newest_first(store):
        more = _needed(store, digest, kept)
        for name in _contents_of(record):
            more.update(_needed(store, bytes.fromhex(name), kept))
        left -= _bytes_of(more)
        if left < 0:
            break
        kept.update(more)
    return kept


def _newest_first(store: CollectedStore) -> list[tuple[bytes, ChangeRecord]]:
    records: list[tuple[bytes, ChangeRecord]] = []
    for digest in [digest for digest, entry in store.index.items() if entry.kind == RECORD]:
        with contextlib.suppress(StoreError):
            records.append((digest, store.record(digest.hex())))
    return sorted(records, key=lambda each: (each[1].at, each[0]), reverse=True)


def _contents_of(record: ChangeRecord) -> set[str]:
    states = [state for change in record.changes for state in (change.before, change.after)]
    return {state.content for state in states if state is not None and state.content}


def _needed(store: CollectedStore, digest: bytes, kept: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """A content and what it is a difference to, without what is kept already."""
    needed: dict[bytes, Entry] = {}
    while digest not in kept and digest not in needed and (entry := store.index.get(digest)) is not None:
        needed[digest] = entry
        if entry.kind == DELTA:
            digest = store.index.base(digest, entry)
    return needed


def _bytes_of(entries: dict[bytes, Entry]) -> int:
    return sum(HEADER_BYTES + entry.stored for entry in entries.values())


def _drop(store: CollectedStore, kept: dict[bytes, Entry], total: int) -> set[str]:
    """Remove files without kept contents; then copy kept contents out of files with few. Returns the removed files."""
    of_file: dict[str, dict[bytes, Entry]] = defaultdict(dict)
    for digest, entry in kept.items():
        of_file[entry.file][digest] = entry
    sizes = store.index.file_sizes()  # before the processes: each of them is visible before its files are
    alive, pinned = store.folder.others()
    sizes = {n: size for n, size in sizes.items() if n not in pinned and n.partition("-")[0] not in alive}
    removed: set[str] = set()
    for name in sorted(sizes, key=lambda name: _bytes_of(of_file[name]) / (sizes[name] + 1)):
        if of_file[name] and total <= store.quota_bytes:
            break
        try:
            for digest, entry in of_file[name].items():
                store.copy_entry(digest, entry)
        except StoreError:  # the file can't be read: what of it can be read may be useful later
            continue
        if of_file[name]:
            store.flush()
        store.folder.remove(name)
        removed.add(name)
        total -= sizes[name] - _bytes_of(of_file[name])
    store.index.forget()
    return removed
