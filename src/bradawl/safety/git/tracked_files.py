"""Which files of a working tree git has in its index, found without starting git."""

import os
from functools import cache, lru_cache
from pathlib import Path
from posixpath import dirname, join
from typing import Literal

from bradawl.safety.git.small_files import named_in, read_bytes
from bradawl.safety.path_walk import real_path

_LARGEST_INDEX = 50_000_000
_WHOLE_NAMES = 3  # later versions of an index write only what differs from the name before
HIDDEN_TEXT = "# this file holds keys: it is not shown in the sandbox\n"
"""What a sandbox shows in place of a file with keys."""


def repository_root(path: str) -> str:
    """The nearest folder at or above an absolute path that holds a `.git`; empty if there is none."""
    folder = path
    while not os.path.lexists(join(folder, ".git")):
        if folder in ("/", ""):
            return ""
        folder = dirname(folder)
    return folder


def tracks(path: str) -> bool:
    """Whether git has a path, or something below it, in the index of the repository that it lies in."""
    repository = repository_root(path)
    return bool(repository) and (is_tracked(path, repository) or tracks_below(path, repository))


def is_tracked(path: str, repository: str) -> bool:
    """Whether git has a file in its index, so that its content is no secret of this machine.

    What git tracks must not be hidden from it either: it would take the cover for the new content, and commit that.
    """
    index = _index_of(repository)
    try:
        found = os.lstat(index)
    except OSError:
        return False
    listed = _listed(index, (found.st_mtime_ns, found.st_size, found.st_ino), os.fsencode(path[len(repository) + 1 :]))
    return listed == "tracked" or (listed == "empty" and _is_empty(path))


def tracks_below(folder: str, repository: str) -> bool:
    """Whether git has a file below a folder in its index; true also where that can't be told."""
    index = _index_of(repository)
    try:
        found = os.lstat(index)
    except OSError:
        return False
    name = os.fsencode(folder[len(repository) + 1 :]) + b"/"
    return _lists_below(index, (found.st_mtime_ns, found.st_size, found.st_ino), name)


def _index_of(repository: str) -> str:
    dot_git = f"{repository}/.git"
    named = named_in(dot_git, "gitdir:")
    return f"{real_path(Path(repository, named)) if named else dot_git}/index"


@lru_cache(maxsize=256)
def _lists_below(index: str, stamp: tuple[int, int, int], name: bytes) -> bool:
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
def _listed(index: str, _: tuple[int, int, int], name: bytes) -> Literal["", "tracked", "empty", "cover"]:
    """What an index says of a file.

    An entry ends in the content's hash, the length of its name, in twelve bits, the name, and a NUL. A content that is
    a sandbox's cover was added by a program in a sandbox, and so may be one that is empty (`git add -N`).
    """
    data = read_bytes(index, _LARGEST_INDEX)
    start = data.find(name + b"\0")
    while start > 1:
        if int.from_bytes(data[start - 2 : start]) & 0xFFF == min(len(name), 0xFFF):
            return _kind_of(data[max(0, start - 34) : start - 2])
        start = data.find(name + b"\0", start + 1)
    return ""


def _kind_of(entry: bytes) -> Literal["tracked", "empty", "cover"]:
    if entry.endswith(_hashes(HIDDEN_TEXT)):
        return "cover"
    return "empty" if entry.endswith(_hashes("")) else "tracked"


@cache
def _hashes(text: str) -> tuple[bytes, ...]:
    """What git calls a file with this text, in repositories of both kinds."""
    from hashlib import sha1, sha256

    blob = b"blob %d\0%b" % (len(text), text.encode())
    return sha1(blob, usedforsecurity=False).digest(), sha256(blob).digest()


def _is_empty(path: str) -> bool:
    try:
        return os.lstat(path).st_size == 0
    except OSError:
        return False
