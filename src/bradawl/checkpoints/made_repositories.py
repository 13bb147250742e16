"""Git data that undo does not cover in repositories that the undone calls made: they go with the repository.

What is not covered stays in a repository that existed before. Of a new one it would be a rest that blocks `git
submodule add`, so undo removes it, and saves it for a redo.
"""

import os
import stat
from collections.abc import Collection, Mapping
from typing import Final

from bradawl.checkpoints.file_states import read_state
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.record import FileState

_MOST_BYTES: Final = 100_000_000
_MOST_FILES: Final = 20_000
_OWN: Final = frozenset({b"objects", b"branches", b"info", b"description", b"COMMIT_EDITMSG", b"FETCH_HEAD"})
"""Names in git data that are not covered, and that git makes itself."""
_HOOKS: Final = b"hooks"
_SAMPLE: Final = b".sample"


class _Stays(Exception):
    """The repository holds something that the user or another program may have made."""


def rest_of_made_repositories(
    walk: FolderWalk, wanted: Mapping[bytes, FileState | None], left_alone: Collection[bytes]
) -> dict[bytes, FileState]:
    """Present states by path of what else is to be removed with the repositories that undo removes.

    `wanted` are the states to restore by path. A repository stays if one of its paths is in `left_alone`, if it holds
    anything that neither the undone calls nor git alone made, or if it is too large. Contents are read, but not saved.
    """
    made = [path for path, state in wanted.items() if state is None and _is_repository(path, wanted)]
    outer = [path for path in made if not any(path.startswith(other + b"/") for other in made)]
    found: dict[bytes, FileState] = {}
    for repository in outer:
        if any(path.startswith(repository + b"/") or path == repository for path in left_alone):
            continue
        try:
            found |= _Listing(walk, wanted, made).rest(repository)
        except (_Stays, OSError):
            continue
    return found


def _is_repository(path: bytes, wanted: Mapping[bytes, FileState | None]) -> bool:
    head = path + b"/HEAD"
    return b"/.git/" in head and head in wanted and wanted[head] is None


class _Listing:
    """What is in a repository, apart from what is planned already."""

    def __init__(self, walk: FolderWalk, wanted: Mapping[bytes, FileState | None], made: Collection[bytes]) -> None:
        self._walk = walk
        self._wanted = wanted
        self._made = made
        self._files = self._bytes = 0

    def rest(self, repository: bytes) -> dict[bytes, FileState]:
        """States by path. Raises `OSError`."""
        found: dict[bytes, FileState] = {}
        waiting = [repository]
        while waiting:
            folder = waiting.pop()
            for name, status in self._entries(folder):
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

    def _entries(self, folder: bytes) -> list[tuple[bytes, os.stat_result]]:
        descriptor = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._walk.folder(folder))
        try:
            with os.scandir(descriptor) as entries:
                return [(os.fsencode(entry.name), entry.stat(follow_symlinks=False)) for entry in entries]
        finally:
            os.close(descriptor)

    def _check(self, path: bytes, status: os.stat_result) -> None:
        """Raises `_Stays` unless git alone makes such a path, and there are not too many."""
        repository = max((each for each in self._made if path.startswith(each + b"/")), key=len)
        first, _, rest = path[len(repository) + 1 :].partition(b"/")
        is_sample = first == _HOOKS and (not rest or rest.endswith(_SAMPLE))
        self._files += 1
        self._bytes += status.st_size
        if not (first in _OWN or is_sample) or self._files > _MOST_FILES or self._bytes > _MOST_BYTES:
            raise _Stays
