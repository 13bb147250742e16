"""Finds what of a workspace needs cover wherever it lies: repositories inside it, and files with keys."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.guarded import is_secret_name
from bradawl.safety.path_walk import real_path
from bradawl.safety.sandbox.gitdirs import is_tracked

_DEPTH: Final = 3
"""Levels below the root at which repositories are looked for; files with keys are looked for at any."""
_FOLDERS: Final = 4_000
_FOLDERS_OF_REPOSITORIES: Final = 400
_SETTLED_NS: Final = 50_000_000
_PASSED_OVER: Final = frozenset(
    (".git", "node_modules", "__pycache__", "site-packages", ".tox", ".nox", ".mypy_cache", ".ruff_cache")
)


class Finds(msgspec.Struct, frozen=True):
    """Absolute paths, nearest first."""

    repositories: tuple[str, ...] = ()
    """Folders below the root that have a `.git` of any kind."""
    secrets: tuple[str, ...] = ()
    """Files with keys, but for those that git tracked when they were first seen."""


class _Secret(NamedTuple):
    path: str
    inode: tuple[int, int]


class _Folder(msgspec.Struct, frozen=True):
    changed_ns: int
    inner: tuple[str, ...]
    secrets: tuple[_Secret, ...]
    has_git: bool


class Survey:
    """Looks through a root, at no more than 4,000 folders; one that is unchanged is not read.

    What git tracks is no secret of this machine, and git would take its cover for the new content. But programs can
    add a file to the index: a file that was once untracked stays a secret, under its path and wherever it is moved.
    """

    def __init__(self, root: str, most_folders: int = _FOLDERS, passed_over: frozenset[str] = _PASSED_OVER) -> None:
        self.is_cut = False
        """Whether there were more folders at the last look."""
        self._root = root
        self._most_folders = most_folders
        self._passed_over = passed_over
        self._known: dict[str, _Folder] = {}
        self._at_once: Finds | None = None
        self._is_at_once = False
        self._secret_paths: set[str] = set()
        self._secret_inodes: set[tuple[int, int]] = set()

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Meanwhile nothing is looked at a second time: for a moment in which no program runs."""
        self._is_at_once = True
        try:
            yield
        finally:
            self._is_at_once, self._at_once = False, None

    def finds(self) -> Finds:
        """What is there now."""
        if self._at_once is not None:
            return self._at_once
        found = self._look_through()
        if self._is_at_once:
            self._at_once = found
        return found

    def _look_through(self) -> Finds:
        repositories: list[str] = []
        secrets: list[_Secret] = []
        known: dict[str, _Folder] = {}
        for number, (depth, path, folder) in enumerate(self._walk(self._most_folders)):
            secrets += folder.secrets
            if folder.changed_ns:
                known[path] = folder
            if folder.has_git and depth <= _DEPTH and number < _FOLDERS_OF_REPOSITORIES and path != self._root:
                repositories.append(path)
        self._known = known
        return Finds(tuple(repositories), tuple(each.path for each in secrets if self._is_kept(each, repositories)))

    def repositories(self) -> tuple[str, ...]:
        """The repositories alone, for which fewer folders are looked at."""
        if self._is_at_once:
            return self.finds().repositories
        walk = self._walk(_FOLDERS_OF_REPOSITORIES, _DEPTH)
        return tuple(path for _, path, folder in walk if folder.has_git and path != self._root)

    def _is_kept(self, secret: _Secret, repositories: list[str]) -> bool:
        if secret.path not in self._secret_paths and secret.inode not in self._secret_inodes:
            inside = (folder for folder in (*repositories, self._root) if is_within(secret.path, folder))
            if is_tracked(secret.path, max(inside, key=len, default=self._root)):
                return False
        self._secret_paths.add(secret.path)
        self._secret_inodes.add(secret.inode)
        return True

    def _walk(self, left: int, deepest: int = sys.maxsize) -> Iterator[tuple[int, str, _Folder]]:
        level, depth = [self._root], 0
        while level and left and depth <= deepest:
            inner: list[str] = []
            for path in level[:left]:
                if folder := self._look(path):
                    yield depth, path, folder
                    inner += folder.inner
            self.is_cut = left < len(level)
            left -= min(left, len(level))
            level, depth = inner, depth + 1
        self.is_cut = self.is_cut or bool(level)

    def _look(self, path: str) -> _Folder | None:
        try:
            changed_ns = os.lstat(path).st_ctime_ns  # programs can set the other time
            known = self._known.get(path)
            return known if known and known.changed_ns == changed_ns else _read(path, changed_ns, self._passed_over)
        except OSError:
            return None


def _read(path: str, changed_ns: int, passed_over: frozenset[str]) -> _Folder:
    """One that changed just now may change again without getting another time; it is not kept in mind."""
    import time

    inner: list[str] = []
    secrets: list[_Secret] = []
    has_git = False
    with os.scandir(path) as entries:
        for entry in entries:
            has_git = has_git or entry.name == ".git"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in passed_over:
                    inner.append(entry.path)
            elif is_secret_name(entry.name) and (secret := _secret(entry)):
                secrets.append(secret)
    is_settled = time.time_ns() - changed_ns > _SETTLED_NS
    return _Folder(changed_ns if is_settled else 0, tuple(inner), tuple(secrets), has_git)


def _secret(entry: "os.DirEntry[str]") -> _Secret | None:
    """The regular file it is, or the one it links to if that has such a name, too: a link may name any file."""
    path = entry.path
    try:
        if entry.is_symlink():
            path = real_path(path)
            if not is_secret_name(path.rpartition("/")[2]):
                return None
        status = os.lstat(path)
    except OSError:
        return None
    return _Secret(path, (status.st_dev, status.st_ino)) if stat.S_ISREG(status.st_mode) else None
