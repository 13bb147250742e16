"""Which files git tracks, according to the index, without starting git."""

import os
from functools import cache, lru_cache
from pathlib import Path
from posixpath import dirname, join
from typing import Literal

from bradawl.safety.git.small_files import named_in, read_bytes
from bradawl.safety.path_walk import real_path

_Stamp = tuple[int, int, int]
_LARGEST_INDEX = 50_000_000
_WHOLE_NAMES = 3  # later versions store only the difference to the name before
HIDDEN_TEXT = "# this file holds keys: it is not shown in the sandbox\n"
"""What a sandbox shows in place of a file with keys."""


def repository_root(path: str) -> str:
    """The nearest folder at or above an absolute path that contains `.git`; empty if there is none."""
    folder = path
    while not os.path.lexists(join(folder, ".git")):
        if folder in ("/", ""):
            return ""
        folder = dirname(folder)
    return folder


def tracks(path: str) -> bool:
    """Whether git tracks a path, or one below it, in the repository that contains it."""
    repository = repository_root(path)
    return bool(repository) and (is_tracked(path, repository) or tracks_below(path, repository))


def is_tracked(path: str, repository: str) -> bool:
    """Whether git tracks a file, so that its content is no secret of this machine.

    A sandbox must not cover a tracked file: git would see the cover as a change, and could commit it.
    """
    index, stamp = _index_of(repository)
    if stamp is None:
        return False
    listed = _state_in_index(index, stamp, os.fsencode(path[len(repository) + 1 :]))
    return listed == "tracked" or (listed == "empty" and _is_empty(path))


def tracks_below(folder: str, repository: str) -> bool:
    """Whether git tracks a file below a folder; also True if that can't be determined."""
    index, stamp = _index_of(repository)
    return stamp is not None and _lists_below(index, stamp, os.fsencode(folder[len(repository) + 1 :]) + b"/")


def _index_of(repository: str) -> tuple[str, _Stamp | None]:
    """The path of the index, and what changes when it is written; None if it is missing."""
    dot_git = f"{repository}/.git"
    named = named_in(dot_git, "gitdir: ")
    index = f"{real_path(Path(repository, named)) if named else dot_git}/index"
    try:
        found = os.lstat(index)
    except OSError:
        return index, None
    return index, (found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=256)
def _lists_below(index: str, stamp: _Stamp, name: bytes) -> bool:
    data = read_bytes(index, _LARGEST_INDEX)
    if data[:4] != b"DIRC" or int.from_bytes(data[4:8]) > _WHOLE_NAMES:
        return stamp[1] > 0
    start = data.find(name)
    while start > 1:
        length = data.find(b"\0", start) - start
        if int.from_bytes(data[start - 2 : start]) & 0xFFF == min(length, 0xFFF):
            return True
        start = data.find(name, start + 1)
    return False


@lru_cache(maxsize=256)
def _state_in_index(index: str, _: _Stamp, name: bytes) -> Literal["", "tracked", "empty", "cover"]:
    """What the index says about a file.

    An entry ends with the content hash, the length of the name in twelve bits, the name, and a NUL. An entry with the
    content of a sandbox's cover was added by a program in a sandbox; an empty one may have been (`git add -N`).
    """
    data = read_bytes(index, _LARGEST_INDEX)
    start = data.find(name + b"\0")
    while start > 1:
        if int.from_bytes(data[start - 2 : start]) & 0xFFF == min(len(name), 0xFFF):
            return _kind_of(data[max(0, start - 34) : start - 2])
        start = data.find(name + b"\0", start + 1)
    return ""


def _kind_of(entry: bytes) -> Literal["tracked", "empty", "cover"]:
    if entry.endswith(_object_names(HIDDEN_TEXT)):
        return "cover"
    return "empty" if entry.endswith(_object_names("")) else "tracked"


@cache
def _object_names(text: str) -> tuple[bytes, ...]:
    """Git's object names of this text, for both hash functions."""
    from hashlib import sha1, sha256

    blob = b"blob %d\0%b" % (len(text), text.encode())
    return sha1(blob, usedforsecurity=False).digest(), sha256(blob).digest()


def _is_empty(path: str) -> bool:
    try:
        return os.lstat(path).st_size == 0
    except OSError:
        return False
