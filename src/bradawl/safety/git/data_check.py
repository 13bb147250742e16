"""Whether a repository's folder holds what git puts there: plain files in plain folders.

Git follows links in its data and shows lines of what it can't make sense of, so that a link in there shows a file from
anywhere. A name of a commit may stand for any file of the folder, whatever it is called.
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
"""A folder that was changed later than so long ago may change again without a new time."""


class _Kind(Enum):
    DATA = auto()
    OBJECTS = auto()
    """Also what other programs keep; files may be hard links, as those of a local clone are."""
    HOOKS = auto()
    """Programs: they may be links to programs."""


_AT_TOP: Final = {"hooks": _Kind.HOOKS, **dict.fromkeys(("objects", "modules", "lfs", "annex"), _Kind.OBJECTS)}


class _FolderScan(NamedTuple):
    """What was seen in one folder."""

    below: list[tuple[str, _Kind]]
    """The folders in it that are git's, too."""
    size: int
    """The number of names in it."""
    is_settled: bool
    """Nothing in it depends on what is elsewhere, as a link does."""


class GitDataCheck:
    """Looks through folders of git's, and again only through those that have changed."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, _Kind], tuple[tuple[int, ...], _FolderScan]] = {}

    def check(self, folder: str, tree: str = "", *, has_loose: bool = True) -> None:
        """Raise `UnsupportedRepository` unless all below is plain.

        `folder` is a repository's, or one of objects if no `tree` is given; `tree` is the root of the working tree.
        Unless it `has_loose` ones to scan at, objects that are files of their own are passed over.
        """
        pending = [(folder, _Kind.DATA if tree else _Kind.OBJECTS)]
        count = 0
        while pending:
            place = pending.pop()
            is_top = bool(tree) and place[0] == folder
            try:
                below, seen, _ = self._scan(*place, tree if is_top else "")
            except FileNotFoundError:  # a folder that git has emptied meanwhile
                continue
            except OSError:
                raise UnsupportedRepository(place[0]) from None
            count += seen
            if count > _MOST_ENTRIES:
                raise UnsupportedRepository(folder)
            pending += below if has_loose else [each for each in below if not _is_of_loose_objects(*each)]

    def _scan(self, folder: str, kind: _Kind, tree: str) -> _FolderScan:
        """What is in a folder; `tree` is given for the topmost alone."""
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
                below += _behind(entry, kind, tree)
            if count > _MOST_ENTRIES:
                raise UnsupportedRepository(folder)
    return _FolderScan(below, count, is_settled)


def _is_of_loose_objects(folder: str, kind: _Kind) -> bool:
    """Whether it is one of the 256 that git spreads objects over."""
    return kind is _Kind.OBJECTS and folder[-3] == "/"


def _kind_of(name: str, kind: _Kind, *, is_top: bool) -> _Kind:
    if is_top:
        return _AT_TOP.get(name, _Kind.DATA)
    return _Kind.HOOKS if kind is _Kind.OBJECTS and name == "hooks" else kind


def _check_file(entry: "os.DirEntry[str]", kind: _Kind) -> None:
    """A hard link would show another file just as well; git makes them of objects alone."""
    if kind is _Kind.OBJECTS:
        return
    found = entry.stat(follow_symlinks=False)
    if kind is _Kind.HOOKS and found.st_mode & 0o111:
        return
    if found.st_nlink > 1 or (kind is _Kind.HOOKS and may_hold_secrets(entry.name)):
        raise UnsupportedRepository(entry.path)


def _behind(entry: "os.DirEntry[str]", kind: _Kind, tree: str) -> list[tuple[str, _Kind]]:
    """Nothing, for what git can't read or only starts; the folder of the working tree that holds the hooks.

    Raises `UnsupportedRepository` for any other link, and for a pipe or a device.
    """
    if not entry.is_symlink():
        if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
            return []  # as the program has that watches files for git; it can't be opened
        raise UnsupportedRepository(entry.path)
    if _leads_nowhere(entry.path) or (kind is _Kind.HOOKS and _is_program(entry.path)):
        return []
    if tree and entry.name == "hooks":
        target = os.path.realpath(entry.path)
        if target.startswith(f"{tree}/") and not f"{target}/".startswith(f"{tree}/.git/"):
            return [(target, _Kind.HOOKS)]
    raise UnsupportedRepository(entry.path)


def _leads_nowhere(link: str) -> bool:
    """Whether it names nothing, in its own folder: so editors mark a file as theirs."""
    target = os.readlink(link)  # noqa: PTH115 - pathlib would normalise it
    return basename(target) == target and not os.path.lexists(f"{dirname(link)}/{target}")


def _is_program(link: str) -> bool:
    """Whether a link leads to a program, or to one that is not in the working tree at the moment."""
    target = os.path.realpath(link)
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return not target.startswith(("/proc/", "/dev/"))  # where another process finds other files
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)
