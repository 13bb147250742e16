"""Takes snapshots of protected files: type, content and mode."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.path_walk import real_path
from bradawl.sandbox.check_failures import CheckFailures, is_absent, is_absent_or_closed
from bradawl.sandbox.filesystem.closed_folders import open_parents, restore_modes
from bradawl.sandbox.filesystem.time_bits import NS_BITS

_FILE_BYTES = 1_048_576
_TOTAL_BYTES = 33_554_432
_NESTED = 4
_MOST_FOLDERS = 20_000
_MOST_ENTRIES = 100_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

T = TypeVar("T")

WatchedPath = tuple[str, str]
"""A folder, absolute and resolved, and a name in it, where `*` matches one or more path components."""


class Entry(msgspec.Struct, frozen=True):
    """One file, folder or link, or a parent folder of one (`parent`)."""

    kind: Literal["file", "folder", "parent", "link", "other"]
    place: bytes
    """The watched folder in which it was found; programs can't move it."""
    stamp: tuple[int, ...]
    """Changes whenever content or mode change."""
    mode: int = 0
    user: int = -1
    group: int = -1
    content: bytes | None = None
    """For a link, its target. None if the file is too large or can't be read."""


Snapshot = dict[str, Entry]


class Baseline(dict[str, Entry]):
    """A snapshot that does not change any more. What is asked about a folder does not take the time for all entries."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """The paths of all entries, and the folders above them."""
        found = set(self)
        for path in self:
            while (path := path.rpartition("/")[0]) and path not in found:
                found.add(path)
        return frozenset(found)


def holds_any(found: Snapshot, folder: str) -> bool:
    """Whether a snapshot has an entry for the folder, or for something in it."""
    if isinstance(found, Baseline):
        return folder in found.folders
    return any(is_within(path, folder) for path in found)


def take_snapshot(
    places: Iterable[WatchedPath], known: Snapshot, *, opens: bool = False, file_bytes: int = _FILE_BYTES
) -> Snapshot:
    """All entries at the watched paths. Entries whose stamp is in `known` are not read again.

    With `opens`, closed folders of this user are opened for the time of the search. Larger files than `file_bytes` are
    not read.
    Raises `ToolError` if there are so many that a command would have to wait.
    """
    search = _SnapshotTaker(known, opens=opens, file_bytes=file_bytes)
    try:
        search.through(places)
    finally:
        restore_modes(search.opened)
    if search.exceeded_at:
        raise ToolError(
            f"nothing can run in the sandbox: {search.exceeded_at} holds more than {_MOST_ENTRIES:,} files that would "
            "have to be examined before and after each command. Move what is not needed out of it (references of git: "
            "git pack-refs --all), or ask to run without the sandbox"
        )
    return search.found


def take_partial_snapshot(places: Iterable[WatchedPath], known: Snapshot, *, file_bytes: int = _FILE_BYTES) -> Snapshot:
    """As `take_snapshot`, but stops at the limit instead of raising: for checks after a program has ended."""
    search = _SnapshotTaker(known, file_bytes=file_bytes)
    search.through(places)
    return search.found


def retake_snapshot(places: Iterable[WatchedPath], before: Snapshot, failures: CheckFailures) -> Snapshot:
    """As `take_snapshot`, with all entries of `before`, even if nothing leads to them any more.

    Opens folders that programs closed, and closes them again. Raises no `Exception`: `failures` gets the watched paths
    that could not be examined, or that hold too many entries.
    """
    search = _SnapshotTaker(before, opens=True, is_retaken=True)
    try:
        for folder, name in places:
            failures.attempt(_fixed_part(folder, name), partial(search.through, ((folder, name),)), None)
            if search.exceeded_at:
                failures.add(search.exceeded_at, f"it holds more than {_MOST_ENTRIES:,} files")
                search.allow_more()
        for path, entry in before.items():
            failures.attempt(path, partial(search.add_known, path, entry), None)
    finally:
        failures.attempt("/", lambda: restore_modes(search.opened), None)
    return search.found


def _fixed_part(folder: str, name: str) -> str:
    """The path of a watched name up to the first `*`."""
    return f"{folder}/{name.partition('*')[0]}".rstrip("/")


class _SnapshotTaker:
    def __init__(
        self, known: Snapshot, *, opens: bool = False, is_retaken: bool = False, file_bytes: int = _FILE_BYTES
    ) -> None:
        """`is_retaken` says that new and changed links are not followed."""
        self.found: Snapshot = {}
        self.folder = ""
        self._place = b""
        """The folder, as entries hold it."""
        self.opened: dict[str, int] = {}
        """Folders that were closed to this user and their old modes; with `opens` they are opened."""
        self._known = known
        self._opens = opens
        self._is_retaken = is_retaken
        self._file_bytes = file_bytes
        self._left = max(_TOTAL_BYTES, 2 * file_bytes)
        self._most_entries = _MOST_ENTRIES
        self.exceeded_at = ""
        """The watched folder that exceeds the limit; empty if none does."""

    def allow_more(self) -> None:
        """Go on after the limit: for the next watched path it applies anew."""
        self._most_entries, self.exceeded_at = len(self.found) + _MOST_ENTRIES, ""

    def through(self, places: Iterable[WatchedPath]) -> None:
        """Search all watched paths."""
        for folder, name in places:
            self._begin_at(folder)
            self.follow(folder, tuple(name.split("/")))
            if self.exceeded_at:
                return

    def _begin_at(self, folder: str) -> None:
        if folder != self.folder:
            self.folder, self._place = folder, os.fsencode(folder)

    def follow(self, path: str, parts: tuple[str, ...], nested: int = 0) -> None:
        """Follow a name, one component at a time."""
        if not parts:
            self._take_all(path)
        elif parts[0] == "*":
            for inner in self._inside(path):
                if (status := self._status(inner)) is None or stat.S_ISREG(status.st_mode):
                    continue  # git reads nothing in there
                self._step(inner, parts[1:])
                if nested < _NESTED and self._is_parent(inner):
                    self.follow(inner, parts, nested + 1)
        else:
            self._step(f"{path}/{parts[0]}", parts[1:])

    def add_known(self, path: str, before: Entry) -> None:
        """Add an entry of an earlier snapshot that the search may have missed. If a link is on the way now, it would be
        another file.
        """
        self._begin_at(os.fsdecode(before.place))
        status = None if path in self.found else self._status(path)
        if status is not None and real_path(folder := path.rpartition("/")[0]) == folder:
            self._take(path, status)
            if self.found[path].kind == "folder" and before.kind == "parent":
                self.found[path] = self._entry(path, "parent", status)

    def _step(self, path: str, rest: tuple[str, ...]) -> None:
        path, rest = self._beyond_known(path, rest)
        while (status := self._status(path)) is not None:
            if stat.S_ISLNK(status.st_mode):
                self._take(path, status)
                if self._is_retaken and not is_same(self._known.get(path), self.found[path]):
                    return  # it is moved away, and must not make the files of the user behind it count as new
                target = real_path(path)
                if is_within(target, self.folder) and not is_within(path, target):
                    self.follow(target, rest)
            elif rest and stat.S_ISDIR(status.st_mode):
                self.found[path] = self._entry(path, "parent", status)
                if rest[0] != "*":
                    path, rest = f"{path}/{rest[0]}", rest[1:]  # no recursion: programs make paths of 1,500 folders
                    continue
                self.follow(path, rest)
            else:
                self.follow(path, ()) if not rest else self._take(path, status)
            return

    def _beyond_known(self, path: str, rest: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """The first path on the way that this search has not examined yet: many names begin with the same folders."""
        place = self._place
        while rest and rest[0] != "*":
            known = self.found.get(path)
            if known is None or known.kind != "parent" or known.place != place:
                break
            path, rest = f"{path}/{rest[0]}", rest[1:]
        return path, rest

    def _is_parent(self, path: str) -> bool:
        entry = self.found.get(path)
        return entry is not None and entry.kind == "parent"

    def _inside(self, path: str) -> list[str]:
        return self._opening(path, path, _paths_in) or []

    def _status(self, path: str) -> os.stat_result | None:
        return self._opening(path, path.rpartition("/")[0], os.lstat)

    def _opening(self, path: str, folder: str, examine: Callable[[str], T]) -> T | None:
        """The result for a path, if need be after opening a folder; None if the path is gone, or closed to this user.

        Raises other `OSError`s, such as that of too many open files: as an absence they would hide a change.
        """
        try:
            return examine(path)
        except PermissionError:
            if not self._open_parents(folder):
                return None
        except OSError as error:
            if is_absent(error):
                return None
            raise
        try:
            return examine(path)
        except OSError as error:
            if is_absent_or_closed(error):
                return None
            raise

    def _open_parents(self, folder: str) -> bool:
        """Open closed folders on the way down from the watched folder; False if there are none."""
        opened = open_parents(folder, self.folder) if self._opens and is_within(folder, self.folder) else {}
        for path, mode in opened.items():
            self.opened.setdefault(path, mode)
        return bool(opened)

    def _take_all(self, path: str) -> None:
        top, waiting = path, [path]
        while waiting:
            path = waiting.pop()
            if len(self.found) > self._most_entries:
                self.exceeded_at = top
                return
            if path not in self.found or self._is_parent(path):
                status = self._status(path)
                if status is not None and self._take(path, status):
                    waiting += self._inside(path)

    def _take(self, path: str, status: os.stat_result) -> bool:
        """Add an entry; True for a folder."""
        if stat.S_ISDIR(status.st_mode):
            self.found[path] = self._entry(path, "folder", status)
            return True
        entry = self._known.get(path)
        self.found[path] = entry if entry and entry.stamp == _stamp(status) else self._read(path, status)
        return False

    def _read(self, path: str, status: os.stat_result) -> Entry:
        if stat.S_ISREG(status.st_mode):
            content = _content(path, min(self._file_bytes, self._left))
            self._left -= len(content or b"")
            return self._entry(path, "file", status, content)
        if stat.S_ISLNK(status.st_mode):
            with contextlib.suppress(OSError):
                return self._entry(path, "link", status, os.fsencode(Path(path).readlink()))
        return self._entry(path, "other", status)

    def _entry(
        self,
        path: str,
        kind: Literal["file", "folder", "parent", "link", "other"],
        status: os.stat_result,
        content: bytes | None = None,
    ) -> Entry:
        mode = stat.S_IMODE(status.st_mode)
        return Entry(kind, self._place, _stamp(status), mode, status.st_uid, status.st_gid, content)


def _paths_in(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in islice(entries, _MOST_ENTRIES + 1))


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def is_changed(path: str, entry: Entry) -> bool:
    """Whether an entry changed, or the list of a folder's entries."""
    status = _status(path)
    return status is None or _stamp(status) != entry.stamp


def is_same(one: Entry | None, other: Entry | None) -> bool:
    """Whether two entries have the same kind, content and mode."""
    if one is None or other is None or one.kind != other.kind:
        return one is other
    if one.kind in ("folder", "parent") or one.stamp == other.stamp:
        return True
    return one.content is not None and (one.content, one.mode) == (other.content, other.mode)


def pipes_in(folder: str, changed: Iterable[str]) -> list[str]:
    """Named pipes in a folder, in changed folders, and in new folders inside those. No link is followed."""
    found: list[str] = []
    waiting, seen = [(path, True) for path in changed], {folder}
    waiting.append((folder, False))
    while waiting and len(seen) < _MOST_FOLDERS:
        path, goes_down = waiting.pop()
        seen.add(path)
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if goes_down and entry.is_dir(follow_symlinks=False) and entry.path not in seen:
                    waiting.append((entry.path, True))
                elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()) and _is_pipe(entry):
                    found.append(entry.path)
    return sorted(set(found))


def _is_pipe(entry: "os.DirEntry[str]") -> bool:
    return stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns & NS_BITS, status.st_ctime_ns)


def _content(path: str, limit: int) -> bytes | None:
    """Content of a file; None if it is larger than `limit` or can't be read."""
    try:
        opened = os.open(path, _READ)
    except OSError:
        return None
    try:
        data = bytearray()
        while len(data) <= limit and (piece := os.read(opened, 65_536)):
            data += piece
        return bytes(data) if len(data) <= limit else None
    except OSError:
        return None
    finally:
        os.close(opened)
