"""Checks that a git directory contains only plain files in plain folders, as git creates them.

Git follows links in its data, and its error messages quote lines that it can't parse. A link can thus show a file from
anywhere, and the name of a commit may resolve to any file in the directory.
"""

import os
import stat
import time
from enum import Enum, auto
from posixpath import basename, dirname
from typing import Final, NamedTuple

from bradawl.safety.git.repository import UnsupportedRepository
from bradawl.safety.permissions.protected_paths import may_hold_secrets

_MOST_ENTRIES: Final = 200_000
_SETTLED_NS: Final = 20_000_000
"""A folder that changed more recently than this may change again without a new timestamp."""


class _Kind(Enum):
    DATA = auto()
    OBJECTS = auto()
    """Object stores, and folders of other programs. Hard links are allowed: a local clone creates them."""
    HOOKS = auto()
    """Hook scripts. Links to programs are allowed."""


_AT_TOP: Final = {"hooks": _Kind.HOOKS, **dict.fromkeys(("objects", "modules", "lfs", "annex"), _Kind.OBJECTS)}


class _FolderScan(NamedTuple):
    """The result of scanning one folder."""

    below: list[tuple[str, _Kind]]
    """Subfolders that belong to git, too."""
    size: int
    """The number of entries."""
    is_settled: bool
    """The result does not depend on anything outside the folder, as that of a link does."""


class GitDataCheck:
    """Checks git directories, and caches the results of folders that have not changed."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, _Kind], tuple[tuple[int, ...], _FolderScan]] = {}

    def check(self, folder: str, tree: str = "", *, has_loose: bool = True) -> None:
        """Raise `UnsupportedRepository` unless everything below `folder` is plain.

        `folder` is a git directory, or an object store if `tree` is empty. `tree` is the root of the working tree.
        Without `has_loose`, folders of loose objects are skipped.
        """
        pending = [(folder, _Kind.DATA if tree else _Kind.OBJECTS)]
        count = 0
        while pending:
            place = pending.pop()
            is_top = bool(tree) and place[0] == folder
            try:
                below, seen, _ = self._scan(*place, tree if is_top else "")
            except FileNotFoundError:  # git has removed the folder meanwhile
                continue
            except OSError:
                raise UnsupportedRepository(place[0]) from None
            count += seen
            if count > _MOST_ENTRIES:
                raise UnsupportedRepository(folder)
            pending += below if has_loose else [each for each in below if not _is_of_loose_objects(*each)]

    def _scan(self, folder: str, kind: _Kind, tree: str) -> _FolderScan:
        """Scan a folder, or return the cached result. `tree` is given for the topmost folder only."""
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            raise UnsupportedRepository(folder)
        now = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
        key = (folder, kind)
        known = self._known.get(key)
        if known is not None and known[0] == now:
            return known[1]
        self._known.pop(key, None)
        scan = _scan_folder(folder, kind, tree)
        if scan.is_settled and time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _SETTLED_NS:
            self._known[key] = (now, scan)
        return scan


def _scan_folder(folder: str, kind: _Kind, tree: str) -> _FolderScan:
    """Raises `UnsupportedRepository`, `OSError`."""
    below, count, is_settled = list[tuple[str, _Kind]](), 0, True
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.path, _kind_of(entry.name, kind, is_top=bool(tree))))
            elif entry.is_file(follow_symlinks=False):
                _check_file(entry, kind)
            else:
                is_settled = False
                below += _folders_behind_link(entry, kind, tree)
            if count > _MOST_ENTRIES:
                raise UnsupportedRepository(folder)
    return _FolderScan(below, count, is_settled)


def _is_of_loose_objects(folder: str, kind: _Kind) -> bool:
    """Whether the folder is one of the 256 folders of loose objects."""
    return kind is _Kind.OBJECTS and folder[-3] == "/"


def _kind_of(name: str, kind: _Kind, *, is_top: bool) -> _Kind:
    if is_top:
        return _AT_TOP.get(name, _Kind.DATA)
    return _Kind.HOOKS if kind is _Kind.OBJECTS and name == "hooks" else kind


def _check_file(entry: "os.DirEntry[str]", kind: _Kind) -> None:
    """Raise for hard links, which may expose another file. Git creates them for objects only."""
    if kind is _Kind.OBJECTS:
        return
    found = entry.stat(follow_symlinks=False)
    if kind is _Kind.HOOKS and found.st_mode & 0o111:
        return
    if found.st_nlink > 1 or (kind is _Kind.HOOKS and may_hold_secrets(entry.name)):
        raise UnsupportedRepository(entry.path)


def _folders_behind_link(entry: "os.DirEntry[str]", kind: _Kind, tree: str) -> list[tuple[str, _Kind]]:
    """The folders behind a link: none if it is harmless, or the hooks folder in the working tree.

    Raises `UnsupportedRepository` for any other link, and for a pipe or a device.
    """
    if not entry.is_symlink():
        if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
            return []  # belongs to git's file system monitor; it can't be opened as a file
        raise UnsupportedRepository(entry.path)
    if _is_lock(entry.path) or (kind is _Kind.HOOKS and _is_program(entry.path)):
        return []
    if tree and entry.name == "hooks":
        target = os.path.realpath(entry.path)
        if target.startswith(f"{tree}/") and not f"{target}/".startswith(f"{tree}/.git/"):
            return [(target, _Kind.HOOKS)]
    raise UnsupportedRepository(entry.path)


def _is_lock(link: str) -> bool:
    """Whether a link names a missing file in its own folder: editors use such links as locks."""
    target = os.readlink(link)  # noqa: PTH115 - pathlib would normalise it
    return basename(target) == target and not os.path.lexists(f"{dirname(link)}/{target}")


def _is_program(link: str) -> bool:
    """Whether a link leads to a program, or to a missing one outside the working tree."""
    target = os.path.realpath(link)
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return not target.startswith(("/proc/", "/dev/"))  # these names lead to other files in another process
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)
