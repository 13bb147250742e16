"""Finds entries of submodules that programs added to git's index: `git status` runs git in such a folder."""

import os

from bradawl.safety.git.index import submodules_in
from bradawl.safety.git.repository import UnsupportedRepository
from bradawl.safety.git.small_files import read_bytes
from bradawl.sandbox.restore.snapshot import Entry

_MOST_BYTES = 256_000_000
_SHARED = "sharedindex."
_NOWHERE = b"no shared index has this name"


class IndexWatch:
    """The submodules in the indexes of some working trees, before programs ran and now."""

    def __init__(self) -> None:
        self._trees: dict[str, str] = {}
        self._links_before: dict[str, tuple[tuple[int, ...], frozenset[str] | None]] = {}

    def forget(self) -> None:
        """Watch no index any more."""
        self._trees.clear()

    def watch(self, index: str, tree: str) -> None:
        """Watch an index; `tree` is its working tree. Call before programs run."""
        self._trees[index] = tree
        try:
            status = os.lstat(index)
        except OSError:
            self._links_before.pop(index, None)
            return
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if index not in self._links_before or self._links_before[index][0] != stamp:
            self._links_before[index] = stamp, _links_with_shared(index, read_bytes(index, _MOST_BYTES))

    def watch_new(self, index: str, tree: str) -> None:
        """Watch an index that did not exist before programs ran."""
        self._trees[index] = tree
        self._links_before.pop(index, None)

    def added(self, index: str, now: Entry) -> tuple[str, ...] | None:
        """Folders that the index names as submodules and did not name before. None if they can't be determined."""
        content = now.content if now.content is not None else read_bytes(index, _MOST_BYTES)
        links, before = (
            _links_with_shared(index, content),
            self._links_before[index][1] if index in self._links_before else frozenset[str](),
        )
        if links is None:
            return () if before is None else None
        tree = self._trees[index]
        return tuple(f"{tree}/{name.rstrip('/')}" for name in sorted(links - (before or frozenset())))

    def __contains__(self, index: str) -> bool:
        return index in self._trees


def _links_with_shared(index: str, data: bytes) -> frozenset[str] | None:
    """The submodules in an index and in the shared index that it names; None if they can't be determined."""
    found = [_links(data)]
    if b"link" in data:
        folder = index.rpartition("/")[0]
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return None
        shared = (name for name in names if name.startswith(_SHARED) and _hash_in(name) in data)
        found += [_links(read_bytes(f"{folder}/{name}", _MOST_BYTES)) for name in shared]
    known = [links for links in found if links is not None]
    return frozenset[str]().union(*known) if len(known) == len(found) else None


def _hash_in(name: str) -> bytes:
    """The hash in the name of a shared index; a byte that no index ends with if there is none."""
    try:
        return bytes.fromhex(name.removeprefix(_SHARED)) or _NOWHERE
    except ValueError:
        return _NOWHERE


def _links(data: bytes) -> frozenset[str] | None:
    try:
        return submodules_in(data)
    except UnsupportedRepository:
        return None
