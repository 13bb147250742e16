"""Where the data of a repository lies that is not in the workspace: of a second working tree, a submodule, a folder.

The file belongs to the project and may name any folder, so that a folder only counts if it names the working tree in
turn: that is written there by git, and not by who wrote the project.
"""

import os
import re
import stat
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from bradawl.core.effects import is_within
from bradawl.safety.path_walk import real_path

_LARGEST = 65_536
_LARGEST_INDEX = 50_000_000
_WHOLE_NAMES = 3  # later versions of an index write only what differs from the name before
HIDDEN_TEXT = "# this file holds keys: it is not shown in the sandbox\n"
"""What a sandbox shows in place of a file with keys."""


def data_folder(dot_git: str) -> str:
    """The repository behind a `.git` file that has to be writable for git to work; empty if it can't be believed.

    `dot_git` is absolute and resolved. Of a second working tree it is the data folder of the first.
    """
    named = _named_in(dot_git, "gitdir:")
    if not named:
        return ""
    folder = real_path(Path(dot_git).parent / named)
    common = _named_in(f"{folder}/commondir", "")
    if common:
        place = real_path(Path(folder, common))
        back = _named_in(f"{folder}/gitdir", "")
        is_ours = back and real_path(Path(folder, back)) == dot_git
        return place if is_ours and str(Path(folder).parent) == f"{place}/worktrees" and _is_repository(place) else ""
    tree = _working_tree(f"{folder}/config")
    is_ours = tree and real_path(Path(folder, tree)) == str(Path(dot_git).parent)
    return folder if is_ours and _is_repository(folder) else ""


def data_above(root: str, home: str) -> str:
    """The data of the repository in which a folder lies that is none itself; empty where there is none to write to.

    It has to be of this user's making, and not one that holds the home folder, as some keep their settings in.
    """
    while (above := root.rpartition("/")[0]) or root not in ("", "/"):
        root = above
        dot_git = f"{above}/.git"
        try:
            found = os.lstat(dot_git)
        except OSError:
            continue
        if found.st_uid != os.geteuid() or not above or (home and is_within(home, above)):
            return ""
        if stat.S_ISDIR(found.st_mode):
            return dot_git if _is_repository(dot_git) else ""
        return data_folder(dot_git)
    return ""


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
    named = _named_in(dot_git, "gitdir:")
    return f"{real_path(Path(repository, named)) if named else dot_git}/index"


@lru_cache(maxsize=256)
def _lists_below(index: str, stamp: tuple[int, int, int], name: bytes) -> bool:
    data = _data(index, _LARGEST_INDEX)
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
    data = _data(index, _LARGEST_INDEX)
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


def _is_repository(folder: str) -> bool:
    place = Path(folder)
    return (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir()


def _named_in(path: str, before: str) -> str:
    """The one path in a file of git's; empty for another kind of file."""
    text = _text(path)
    return text[len(before) :].strip(" \r\n") if text.startswith(before) else ""


def _working_tree(config: str) -> str:
    found = re.findall(r'(?mi)^\s*worktree\s*=\s*"?([^"\n]+?)"?\s*$', _text(config))
    return found[0] if len(found) == 1 else ""


def text_in(path: str) -> str | None:
    """A small file's text; None for one that is large or can't be read."""
    try:
        size = os.lstat(path).st_size
    except OSError:
        return None
    text = _text(path)
    return text if text or not size else None


def _text(path: str) -> str:
    return os.fsdecode(_data(path, _LARGEST))


def _data(path: str, limit: int) -> bytes:
    """A file that is smaller; nothing of any other."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        with os.fdopen(opened, "rb", closefd=False) as file:
            data = file.read(limit)
    except OSError:
        return b""
    finally:
        os.close(opened)
    return data if len(data) < limit else b""
