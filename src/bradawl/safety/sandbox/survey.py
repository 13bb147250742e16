"""Finds what of a workspace needs cover wherever it lies: repositories inside it, and files with keys."""

import os
import stat
from collections.abc import Iterator
from typing import Final

import msgspec

from bradawl.safety.guarded import is_secret_name

_DEPTH: Final = 3
_FOLDERS: Final = 400
_SETTLED_NS: Final = 50_000_000
_PASSED_OVER: Final = frozenset(
    (".git", "node_modules", "__pycache__", "site-packages", ".tox", ".nox", ".mypy_cache", ".ruff_cache")
)


class Finds(msgspec.Struct, frozen=True):
    """Absolute paths, nearest first."""

    repositories: tuple[str, ...] = ()
    """Folders below the root that have a `.git` of any kind."""
    secrets: tuple[str, ...] = ()


class _Folder(msgspec.Struct, frozen=True):
    changed_ns: int
    inner: tuple[str, ...]
    secrets: tuple[str, ...]
    has_git: bool


class Survey:
    """Looks through a root, three levels down and at no more than 400 folders; one that is unchanged is not read."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, _Folder] = {}

    def finds(self) -> Finds:
        """What is there now."""
        seen = dict(self._walk())
        self._known = {path: folder for path, folder in seen.items() if folder.changed_ns}
        return Finds(
            tuple(path for path, folder in seen.items() if folder.has_git and path != self._root),
            tuple(secret for folder in seen.values() for secret in folder.secrets),
        )

    def _walk(self) -> Iterator[tuple[str, _Folder]]:
        level, left = [self._root], _FOLDERS
        for _ in range(_DEPTH + 1):
            inner: list[str] = []
            for path in level[:left]:
                if folder := self._look(path):
                    yield path, folder
                    inner += folder.inner
            left -= min(left, len(level))
            level = inner

    def _look(self, path: str) -> _Folder | None:
        try:
            changed_ns = os.lstat(path).st_mtime_ns
            known = self._known.get(path)
            return known if known and known.changed_ns == changed_ns else _read(path, changed_ns)
        except OSError:
            return None


def _read(path: str, changed_ns: int) -> _Folder:
    """One that changed just now may change again without getting another time; it is not kept in mind."""
    import time

    inner: list[str] = []
    secrets: list[str] = []
    has_git = False
    with os.scandir(path) as entries:
        for entry in entries:
            has_git = has_git or entry.name == ".git"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _PASSED_OVER:
                    inner.append(entry.path)
            elif is_secret_name(entry.name) and (secret := _secret(entry)):
                secrets.append(secret)
    is_settled = time.time_ns() - changed_ns > _SETTLED_NS
    return _Folder(changed_ns if is_settled else 0, tuple(inner), tuple(secrets), has_git)


def _secret(entry: "os.DirEntry[str]") -> str:
    """The regular file it is, or the one it links to if that has such a name, too: a link may name any file."""
    path = entry.path
    try:
        if entry.is_symlink():
            path = os.path.realpath(path)
            if not is_secret_name(path.rpartition("/")[2]):
                return ""
        return path if stat.S_ISREG(os.lstat(path).st_mode) else ""
    except OSError:
        return ""
