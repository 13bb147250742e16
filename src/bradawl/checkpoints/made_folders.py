"""What undo does not cover in folders that the undone calls made: it goes with them, and comes back by a redo.

Of a repository that existed before, git's objects stay. Those of a new one would block `git submodule add`. Compiled
Python files of a new folder would keep it, and with it a package without sources.
"""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from bradawl.checkpoints.coverage import is_cache
from bradawl.checkpoints.file_states import read_state
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.record import FileState

_MOST_BYTES: Final = 100_000_000
_MOST_FILES: Final = 20_000
_OWN: Final = frozenset({b"objects", b"branches", b"info", b"description", b"COMMIT_EDITMSG", b"FETCH_HEAD"})
"""Names in git data that are not covered, and that git makes itself."""
_HOOKS: Final = b"hooks"
_SAMPLE: Final = b".sample"
_CACHE: Final = b"__pycache__"
_COMPILED: Final = re.compile(rb".+\.pyc(\.\d+)?")


class _Stays(Exception):
    """The folder holds something that the user or another program may have made."""


def rest_of_made_folders(
    walk: FolderWalk, wanted: Mapping[bytes, FileState | None], left_alone: Collection[bytes]
) -> dict[bytes, FileState]:
    """Present states by path of what else is to be removed with the folders that undo removes.

    `wanted` are the states to restore by path. A repository stays if one of its paths is in `left_alone`, if it holds
    anything that neither the undone calls nor git alone made, or if it is too large. Of other folders, `__pycache__`
    goes if it holds compiled files only. Contents are read, but not saved.
    """
    removed = [path for path, state in wanted.items() if state is None]
    made = [path for path in removed if _is_repository(path, wanted)]
    outer = [path for path in made if not any(path.startswith(other + b"/") for other in made)]
    caches = [path for path in removed if path.rpartition(b"/")[2] == _CACHE]
    found: dict[bytes, FileState] = {}
    for folder in (*outer, *caches):
        if any(path.startswith(folder + b"/") or path == folder for path in left_alone):
            continue
        try:
            found |= _Listing(walk, wanted, made).rest(folder)
        except (_Stays, OSError):
            continue
    return found


def staying_folders(
    walk: FolderWalk, folders: Sequence[bytes], gone: Collection[bytes]
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Which of the folders to remove, sorted by path, hold other paths than `gone`: those, and the caches among them.

    A folder with nothing but caches that stay is in neither.
    """
    held: dict[bytes, bool] = {}
    for folder in reversed(folders):
        names: list[tuple[bytes, os.stat_result]] = []
        with contextlib.suppress(OSError):
            names = _entries(walk, folder)
        left = [path for name, _ in names if (path := folder + b"/" + name) not in gone or path in held]
        if left:
            held[folder] = not is_cache(folder) and not all(held.get(path) is False for path in left)
    staying = sorted(path for path, is_other in held.items() if is_other)
    return tuple(staying), tuple(sorted(path for path in held if is_cache(path)))


def _entries(walk: FolderWalk, folder: bytes) -> list[tuple[bytes, os.stat_result]]:
    descriptor = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walk.folder(folder))
    try:
        with os.scandir(descriptor) as entries:
            return [(os.fsencode(entry.name), entry.stat(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(descriptor)


def _is_repository(path: bytes, wanted: Mapping[bytes, FileState | None]) -> bool:
    head = path + b"/HEAD"
    return b"/.git/" in head and head in wanted and wanted[head] is None


class _Listing:
    """What is in a folder, apart from what is planned already."""

    def __init__(self, walk: FolderWalk, wanted: Mapping[bytes, FileState | None], made: Collection[bytes]) -> None:
        self._walk = walk
        self._wanted = wanted
        self._made = made
        self._files = self._bytes = 0

    def rest(self, top: bytes) -> dict[bytes, FileState]:
        """States by path; empty for what is no folder. Raises `OSError`."""
        found: dict[bytes, FileState] = {}
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            for name, status in _entries(self._walk, folder):
                path = folder + b"/" + name
                if path not in self._wanted:
                    self._check(path, status)
                    state = read_state(self._walk, path)
                    if state is None or state.kind == "other":
                        raise _Stays
                    found[path] = state
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
        return found

    def _check(self, path: bytes, status: os.stat_result) -> None:
        """Raises `_Stays` unless only git or Python makes such a path, and there are not too many."""
        self._files += 1
        self._bytes += status.st_size
        is_known = self._is_of_git(path) or (_is_compiled(path) and stat.S_ISREG(status.st_mode))
        if not is_known or self._files > _MOST_FILES or self._bytes > _MOST_BYTES:
            raise _Stays

    def _is_of_git(self, path: bytes) -> bool:
        repository = max((each for each in self._made if path.startswith(each + b"/")), key=len, default=b"")
        first, _, rest = path[len(repository) + 1 :].partition(b"/")
        is_sample = first == _HOOKS and (not rest or rest.endswith(_SAMPLE))
        return bool(repository) and (first in _OWN or is_sample)


def _is_compiled(path: bytes) -> bool:
    folder, _, name = path.rpartition(b"/")
    return folder.endswith(b"/" + _CACHE) and bool(_COMPILED.fullmatch(name))
