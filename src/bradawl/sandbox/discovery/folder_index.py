"""Keeps an index of all folders of a workspace, to find what programs made in them, at any depth.

A search examines each known folder with one `lstat`, and lists only folders whose change time, inode or device differ:
programs can set the modification time, but not the change time.
"""

import errno
import math
import os
import stat
import threading
import time
from collections.abc import Iterable, Set
from typing import Final, NamedTuple

from bradawl.core.effects import is_within
from bradawl.sandbox.check_failures import CheckFailures, is_absent_or_closed
from bradawl.sandbox.filesystem.closed_folders import open_parents, restore_modes

_SETTLED_NS: Final = 50_000_000
_CHECK_EACH: Final = 128
_MOST_KNOWN: Final = 1_000_000
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTER: Final = stat.S_IRUSR | stat.S_IXUSR
_NO_NAMES: Final[frozenset[str]] = frozenset()

NAMES_OF_GIT: Final = frozenset(
    (".git", "HEAD", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "rebase-merge")
)
"""Names by which git recognizes a repository, and names that it obeys in one."""


class Folder(NamedTuple):
    """What the last listing of a folder found."""

    device: int
    inode: int
    changed_ns: int
    """Change time at the listing; 0 if the folder has to be listed again."""
    inner: tuple[str, ...]
    """Absolute paths of its folders, links left out."""
    names: frozenset[str]
    """Names in it that were asked for."""
    links: frozenset[str] = _NO_NAMES
    """Names of links, if the folder is inside a `.git` folder."""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode, which a folder keeps when it is moved."""
        return self.device, self.inode


class FolderIndex:
    """The folders below a root. Searches may run in any thread; one runs at a time."""

    def __init__(
        self, root: str, names: Iterable[str], suffixes: tuple[str, ...] = (), *, within_s: float = math.inf
    ) -> None:
        """`names` and `suffixes` are the names to find. A search takes at most about `within_s` seconds."""
        self.root = root
        self.marked: dict[str, Folder] = {}
        """Folders with at least one of the names, as of the last search."""
        self.closed: tuple[str, ...] = ()
        """Folders of this user that could not be listed."""
        self.rest: tuple[str, ...] = ()
        """Folders that the last search did not reach in time; their contents are unknown."""
        self.is_complete = False
        """Whether the last search had enough time, and did not fail."""
        self.failures = CheckFailures()
        """Folders that the last search could not examine; they are in `rest`."""
        self.size = 0
        """Number of folders that the last search reached."""
        self._names = frozenset(names)
        self._suffixes = suffixes
        self._within_s = within_s
        self._known: dict[str, Folder] = {}
        self._lock = threading.Lock()
        self._until = 0.0

    def stop(self) -> None:
        """Let the search that runs in another thread end as if its time were over."""
        self._until = 0.0

    def search(
        self, *, opens: bool = False, skipped: frozenset[str] = frozenset(), within_s: float | None = None
    ) -> None:
        """Bring the index up to date. With `opens`, closed folders of this user are opened for the search.

        Folders in `skipped` are not entered, and belong to the `rest`: no program could write there.
        """
        with self._lock:
            opened: dict[str, int] = {}
            self.failures = CheckFailures()
            limit = self._within_s if within_s is None else within_s
            try:
                failed = not self.failures.attempt(
                    self.root, lambda: self._search(opened if opens else None, skipped, limit), default=False
                )
            finally:
                self.failures.attempt(self.root, lambda: restore_modes(opened), None)
            if failed:  # `marked` is that of the search before
                self.rest, self.is_complete = (self.root,), False

    def _search(self, opened: dict[str, int] | None, skipped: frozenset[str], within_s: float) -> bool:
        known, found = self._known, dict[str, Folder]()
        marked, closed, rest, waiting = dict[str, Folder](), list[str](), list[str](), [self.root]
        self._until, lstat, left = time.monotonic() + within_s, os.lstat, _CHECK_EACH
        while waiting:
            path = waiting.pop()
            if path in skipped:
                rest.append(path)
                continue
            left -= 1
            if not left:
                left = _CHECK_EACH
                if time.monotonic() > self._until:
                    waiting.append(path)
                    break
            try:
                status = lstat(path)
                folder = known.get(path)
                # Plain indexes: this loop runs once per folder of the workspace.
                if (
                    folder is None
                    or folder[2] != status.st_ctime_ns
                    or folder[1] != status[1]
                    or folder[0] != status[2]
                ):
                    folder = self._listed(path, status, opened)
            except TimeoutError:
                waiting.append(path)
                break
            except (OSError, RuntimeError, ValueError, MemoryError) as error:
                closed += _closed_folder(path, error)
                rest += self._not_examined(path, error)
                continue
            found[path] = folder
            if folder[4] or folder[5]:
                marked[path] = folder
            if folder[3]:
                waiting += folder[3]
        self.is_complete = not (waiting or self.failures.paths)
        rest += waiting
        keeps = bool(rest) and len(known) < _MOST_KNOWN
        self._known = {**known, **found} if keeps else found
        self.marked, self.closed, self.rest, self.size = marked, tuple(closed), tuple(rest), len(found)
        return True

    def _not_examined(self, path: str, error: Exception) -> tuple[str, ...]:
        """The path, unless it is gone, or closed to this user."""
        if isinstance(error, OSError) and is_absent_or_closed(error):
            return ()
        self.failures.add(path, error)
        return (path,)

    def _listed(self, path: str, status: os.stat_result, opened: dict[str, int] | None) -> Folder:
        """List one folder. Raises `OSError`; `TimeoutError` if it has too many entries for the time left."""
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        if not _may_enter(path, status) and not self._opened(path, opened):
            raise PermissionError(errno.EACCES, "closed", path)
        held = os.open(path, _FOLDER)
        try:
            with os.scandir(held) as entries:
                inner, names, links = self._sorted_out(path, entries)
        finally:
            os.close(held)
        is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS  # else its next change may not show
        changed_ns = status.st_ctime_ns if is_settled else 0
        return Folder(status.st_dev, status.st_ino, changed_ns, tuple(inner), names, links)

    def _sorted_out(
        self, path: str, entries: "Iterable[os.DirEntry[str]]"
    ) -> tuple[list[str], frozenset[str], frozenset[str]]:
        inner, names, links, start = list[str](), set[str](), set[str](), path.rstrip("/")
        is_of_git = "/.git/" in f"{path}/"
        for number, entry in enumerate(entries):
            name = entry.name
            if name in self._names or (self._suffixes and name.endswith(self._suffixes)):
                names.add(name)
            if entry.is_dir(follow_symlinks=False):
                inner.append(f"{start}/{name}")
            elif is_of_git and entry.is_symlink():
                links.add(name)
            if number % 4_096 == 4_095 and time.monotonic() > self._until:
                raise TimeoutError(path)
        return inner, frozenset(names) if names else _NO_NAMES, frozenset(links) if links else _NO_NAMES

    def _opened(self, path: str, opened: dict[str, int] | None) -> bool:
        if opened is None:
            return False
        for place, mode in open_parents(path, self.root).items():
            opened.setdefault(place, mode)
        return os.access(path, os.R_OK | os.X_OK)


def _may_enter(path: str, status: os.stat_result) -> bool:
    is_plain = status.st_uid == os.geteuid() and status.st_mode & _ENTER == _ENTER
    return is_plain or os.access(path, os.R_OK | os.X_OK)


def _closed_folder(path: str, error: Exception) -> tuple[str, ...]:
    """The path, if it is a folder of this user that can't be listed because of its permissions."""
    if not isinstance(error, PermissionError):
        return ()
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return (path,) if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() else ()


def is_in_any(path: str, folders: Set[str]) -> bool:
    """Whether a path is one of the folders or lies below one. Takes no longer for hundreds of thousands of folders."""
    if not folders:
        return False
    while path not in folders:
        if path in ("", "/"):
            return False
        path = path.rpartition("/")[0] or "/"
    return True


def covering(paths: Iterable[str], root: str, most: int) -> tuple[str, ...]:
    """At most `most` folders that together contain all paths, as far down as possible; the root if need be."""
    found = outermost(paths)
    while len(found) > most:
        deepest = max(path.count("/") for path in found)
        found = outermost(path.rpartition("/")[0] if path.count("/") == deepest else path for path in found)
    return tuple(path if is_within(path, root) else root for path in found)


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths without those inside another one, a folder's parts together."""
    found: list[str] = []
    for path in sorted(set(paths), key=lambda each: each.split("/")):
        if not (found and is_within(path, found[-1])):
            found.append(path)
    return found


def is_git_directory(names: frozenset[str]) -> bool:
    """Whether git takes a folder with these names for the data of a repository."""
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)
