"""Finds the repository that git would use in a folder, for the layouts that git itself creates.

Rejects all other layouts: a link on the way, a `.git` that git would ignore, a bare repository, and a gitfile that
neither `git worktree` nor `git submodule` has written.
"""

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from posixpath import basename, dirname
from typing import Final, NamedTuple

from bradawl.safety.path_walk import followed

Read = Callable[[str, int], bytes | None]
"""Reads a regular file completely, up to a number of bytes; None if it is missing, larger or unreadable."""
Stamp = tuple[int, ...] | None

_LONGEST: Final = 200_000
_HEAD: Final = re.compile(r"(?:ref: refs/[^\0-\x20\x7f]{1,240}|[0-9a-f]{40}|[0-9a-f]{64})\n?")
"""Stricter than git, which also accepts a link, other blanks behind `ref:`, and text behind an object name."""
_GITFILE: Final = re.compile(r"gitdir: ([^\0\r\n]*[^\0\r\n ])\n?")
_ONE_LINE: Final = re.compile(r"([^\0\r\n]*[^\0\r\n ])\n?")


class UnsupportedRepository(Exception):
    """The repository, or what git would read in it, can't be determined."""


class Repository(NamedTuple):
    """A repository with a working tree. Paths are absolute and contain no links."""

    top: str
    """The root of the working tree."""
    own: str
    """`GIT_DIR`: the folder of HEAD and the index."""
    shared: str
    """`GIT_COMMON_DIR`: the folder of configuration, objects and refs. Differs from `own` in a linked worktree only."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether a gitfile leads to the git directory: of a submodule, or one that was separated on purpose."""
        return self.own == self.shared != f"{self.top}/.git"


class GitFiles:
    """Reads git's files, and remembers the state of each path for a later comparison."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.stamps: dict[str, Stamp] = {}

    def exists(self, path: str) -> bool:
        """Whether the name exists, even as a dangling link."""
        self.stamps[path] = stamp(path)
        return self.stamps[path] is not None

    def data(self, path: str, limit: int = _LONGEST) -> bytes | None:
        """The contents; None if there is no such file. Raises `UnsupportedRepository` if it can't be read."""
        if not self.exists(path):
            return None
        data = self._read(path, limit)
        if data is None:
            raise UnsupportedRepository(path)
        return data

    def text(self, path: str) -> str | None:
        """As `data`, decoded as UTF-8."""
        data = self.data(path)
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise UnsupportedRepository(path) from None

    def kind(self, path: str) -> int:
        """The file type bits of the mode, 0 if the path is missing. Links are not followed."""
        self.exists(path)
        try:
            return stat.S_IFMT(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError:
            raise UnsupportedRepository(path) from None


def stamp(path: str) -> Stamp:
    """A value that changes when the file, or the target of a link, is replaced or written; None if it is missing."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    first = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    if not stat.S_ISLNK(found.st_mode):
        return first
    try:
        target = Path(path).stat()
    except OSError:
        return first
    return (*first, target.st_dev, target.st_ino, target.st_size, target.st_mtime_ns, target.st_ctime_ns)


def find_repository(files: GitFiles, folder: str) -> Repository | None:
    """The repository that git would use in an absolute folder without links; None if there is none up to `/`.

    Raises `UnsupportedRepository`.
    """
    while True:
        dot_git = f"{folder.rstrip('/')}/.git"
        kind = files.kind(dot_git)
        if kind == stat.S_IFDIR:
            _check_git_folder(files, dot_git)
            return Repository(folder, dot_git, dot_git)
        if kind:
            return _linked(files, folder, dot_git)
        if _may_be_bare(files, folder):
            raise UnsupportedRepository(folder)
        if folder == "/":
            return None
        folder = dirname(folder)


def _may_be_bare(files: GitFiles, folder: str) -> bool:
    """Whether git may treat the folder itself as a repository. `commondir` moves objects and refs elsewhere."""
    prefix = folder.rstrip("/")
    if not files.exists(f"{prefix}/HEAD"):
        return False
    return files.exists(f"{prefix}/commondir") or (files.exists(f"{prefix}/objects") and files.exists(f"{prefix}/refs"))


def _check_git_folder(files: GitFiles, place: str, *, is_worktree: bool = False) -> None:
    """Raise unless git treats the folder as a git directory that contains everything it would read."""
    if files.kind(f"{place}/HEAD") != stat.S_IFREG or not _HEAD.fullmatch(files.text(f"{place}/HEAD") or ""):
        raise UnsupportedRepository(place)
    if is_worktree:
        return
    if any(files.kind(f"{place}/{name}") != stat.S_IFDIR for name in ("objects", "refs")):
        raise UnsupportedRepository(place)
    if files.exists(f"{place}/commondir"):  # only linked worktrees have one
        raise UnsupportedRepository(place)


def _linked(files: GitFiles, folder: str, gitfile: str) -> Repository:
    if files.kind(gitfile) != stat.S_IFREG:
        raise UnsupportedRepository(gitfile)
    own = _place_said_in(files, gitfile, _GITFILE, folder)
    if not files.exists(f"{own}/commondir"):
        _check_git_folder(files, own)
        return Repository(folder, own, own)
    shared = _place_said_in(files, f"{own}/commondir", _ONE_LINE, own)
    back = _place_said_in(files, f"{own}/gitdir", _ONE_LINE, own)
    is_registered = dirname(dirname(own)) == shared and basename(dirname(own)) == "worktrees" and back == gitfile
    if not is_registered:
        raise UnsupportedRepository(own)
    _check_git_folder(files, own, is_worktree=True)
    _check_git_folder(files, shared)
    return Repository(folder, own, shared)


def _place_said_in(files: GitFiles, path: str, form: re.Pattern[str], folder: str) -> str:
    """The path that is the only contents of a small file, relative to `folder`."""
    if files.kind(path) != stat.S_IFREG:
        raise UnsupportedRepository(path)
    match = form.fullmatch(files.text(path) or "")
    if match is None:
        raise UnsupportedRepository(path)
    return plain_path(match[1], folder)


def plain_path(said: str, folder: str) -> str:
    """The absolute path of `said`, relative to `folder`. Raises `UnsupportedRepository` if it leads through a link."""
    try:
        *links, real = followed(said if said.startswith("/") else f"{folder}/{said}")
    except (OSError, ValueError):
        raise UnsupportedRepository(said) from None
    if links:
        raise UnsupportedRepository(said)
    return real
