"""Restores indexes of git that programs changed as git itself would not.

Git uses the names in an index as paths without checking them, so that the user's next `git checkout .` would write, and
`git commit -a` read, files in `.git` or outside the working tree.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from functools import partial
from posixpath import basename, dirname
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.control_characters import escape
from bradawl.safety.git.index_check import ExaminedIndex, examine_index, hash_length, without_entries
from bradawl.safety.git.repository import UnsupportedRepository
from bradawl.safety.git.small_files import named_in, read_bytes
from bradawl.safety.name_lists import first_of
from bradawl.safety.path_walk import real_path
from bradawl.sandbox.check_failures import CheckFailures, still_not_checked
from bradawl.sandbox.filesystem.closed_folders import open_parents, restore_modes
from bradawl.sandbox.restore.index_places import IndexPlace, IndexPlaces
from bradawl.sandbox.restore.restore_path import put_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder
from bradawl.sandbox.restore.snapshot import Entry

_MOST_BYTES: Final = 100_000_000
_MOST_AT_FIRST: Final = 1_048_576
_MOST_KEPT: Final = 256_000_000
_CONFIG_BYTES: Final = 1_048_576
_SETTLED_NS: Final = 50_000_000
_TRIES: Final = 5
_MOST_NAMED: Final = 3
_NOTHING: Final = ExaminedIndex()
_LEFT: Final = " (could not be put back: {})"
_DAMAGED: Final = "git would not have written it"


class _File(msgspec.Struct, frozen=True):
    """One version of an index or a shared index."""

    stamp: tuple[int, ...]
    is_settled: bool
    """Whether a later change must change the stamp: clocks of file systems are coarse."""
    mode: int
    """With the type of the file."""
    user: int
    group: int
    data: bytes | None
    """None if it is no regular file, too large, or unreadable."""


_UNKNOWN: Final = _File((), is_settled=False, mode=stat.S_IFREG, user=-1, group=-1, data=None)
"""A file that can't be examined."""


class _Version(msgspec.Struct, frozen=True):
    """An index with the shared index that it names, if any."""

    index: _File
    shared_path: str = ""
    shared: _File | None = None


class _Finding(msgspec.Struct, frozen=True):
    """Why an index can't stay as it is."""

    reason: str
    dropped: frozenset[bytes] = frozenset()
    """Entries without which it may stay."""
    is_old: bool = False
    """It was so before programs ran."""


class GitIndexes:
    """The indexes of some repositories, watched while programs run. Not thread-safe.

    An index is read only if its file changed, and parsed only if a program changed it.
    """

    def __init__(self, places: IndexPlaces, kept: str, *, most_bytes: int = _MOST_BYTES) -> None:
        """`kept` is a folder for what is moved away. Larger indexes than `most_bytes` are not examined. The caller
        searches the folders of `places` first.
        """
        self._most_bytes = most_bytes
        self._places = places
        self._kept = kept
        self._before: dict[str, _Version] = {}
        self._examined: dict[tuple[bytes, str], ExaminedIndex | None] = {}
        self._hidden: list[frozenset[str]] = []
        self._unchecked: frozenset[str] | None = None
        """The hidden paths of a comparison that failed; None if none has."""
        self._recovered: tuple[str, ...] = ()
        self._inodes: dict[str, tuple[int, int]] = {}
        self._left_alone: set[str] = set()
        self._set_aside: list[str] = []
        self._seen: set[str] = set()
        self._passed: dict[str, _Version] = {}
        """The indexes in which the last check of running programs found nothing."""
        self._first_bytes_left = _MOST_AT_FIRST
        self._bytes_left = 0

    def begin(self, hidden: Iterable[str] = ()) -> None:
        """Call before a program starts. `hidden` are files and folders that it can't read, or that only it sees."""
        self._passed.clear()
        if not self._hidden:
            known, self._before, self._bytes_left = self._before, {}, _MOST_KEPT
            for place in self._places.before():
                with _opened_folders(place):
                    version = self._read(place, known.get(place.path))
                if version is not None:
                    self._before[place.path] = version
        self._hidden.append(frozenset(hidden))
        self._inodes |= {path: inode for path in self._hidden[-1] if (inode := _inode(path))}

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Call once per `begin`, when the program is gone. Returns the restored paths with the reasons.

        `allowed` names files and folders that the program was allowed to change. If the comparison fails, a remark is
        returned, and `check_again` repeats it.
        """
        hidden = frozenset[str].intersection(*self._hidden) if self._hidden else frozenset[str]()
        failures = CheckFailures()
        compared = failures.attempt(self._places.roots[0], partial(self._compare, hidden, allowed), ())
        restored, self._recovered = (*self._recovered, *compared), ()
        self._unchecked = hidden if failures.paths else self._unchecked
        self._hidden = self._hidden[1:]
        if not self._hidden and self._unchecked is None:
            self._inodes.clear()
            self._examined.clear()
        return (*restored, *failures.remarks())

    def withdraw(self) -> None:
        """Call instead of `end` if the program that began last did not start."""
        self._hidden.pop()

    def check_running(self, allowed: tuple[str, ...], failures: CheckFailures, *, restores: bool) -> tuple[str, ...]:
        """Compare while programs run. Returns the indexes that can't stay; with `restores` they are restored, and the
        reasons are returned with them. A part that fails is added to `failures`.
        """
        hidden = frozenset[str].intersection(*self._hidden) if self._hidden else frozenset[str]()
        compare = partial(self._compare, hidden, allowed) if restores else partial(self._wrong_ones, hidden, allowed)
        return failures.attempt(self._places.roots[0], compare, ())

    def take_set_aside(self) -> tuple[str, ...]:
        """The folders to which changed indexes were moved since the last call."""
        folders, self._set_aside = tuple(self._set_aside), []
        return folders

    def _wrong_ones(self, hidden: frozenset[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
        self._bytes_left = _MOST_KEPT
        found: list[str] = []
        for place in self._places.now():
            if any(is_within(place.path, each) for each in allowed):
                continue
            with _opened_folders(place):
                found += [place.path] if self._is_wrong(place, hidden) else []
        self._examined.clear()  # a job may run for hours, and write many versions
        return tuple(found)

    def _is_wrong(self, place: IndexPlace, hidden: frozenset[str]) -> bool:
        before, passed = self._before.get(place.path), self._passed.get(place.path)
        now = self._read(place, passed or before)
        if now is None or any(each is not None and _is_same(each, now) for each in (passed, before)):
            return False
        finding = self._try_to_find(place, before, now, hidden)
        if finding is None or finding.is_old:
            self._passed[place.path] = now
            return False
        return True

    def check_again(self) -> None:
        """Compare again what could not be compared before, unless a program runs. The next `end` returns what this
        restores. Raises `ToolError` if it still can't be compared: then no program may start.
        """
        if self._unchecked is None or self._hidden:
            return
        failures = CheckFailures()
        self._recovered = failures.attempt(self._places.roots[0], partial(self._compare, self._unchecked, ()), ())
        if failures.paths:
            raise still_not_checked(failures)
        self._unchecked = None

    def _compare(self, hidden: frozenset[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
        self._bytes_left = _MOST_KEPT
        notes: list[str] = []
        for place in self._places.now():
            is_allowed = any(is_within(place.path, each) for each in allowed)
            with _opened_folders(place):
                notes += self._check(place, hidden, is_allowed=is_allowed)
        return tuple(notes)

    # ------------------------------------------------------------------ reading

    def _read(self, place: IndexPlace, known: _Version | None) -> _Version | None:
        """The current version; None if there is no index."""
        index = self._read_file(place.path, known.index if known else None)
        if index is None:
            return None
        shared_path = known.shared_path if known and index is known.index else self._shared_path(place, index)
        known_shared = known.shared if known and known.shared_path == shared_path else None
        return _Version(index, shared_path, self._read_file(shared_path, known_shared) if shared_path else None)

    def _read_file(self, path: str, known: _File | None) -> _File | None:
        """The current file; None if there is none. One that the user's git replaces meanwhile is read again."""
        found = self._read_once(path, known)
        for _ in range(_TRIES):
            if found is None or found.data is not None or _is_as_read(path, found):
                break
            found = self._read_once(path, known)
        return found

    def _read_once(self, path: str, known: _File | None) -> _File | None:
        import time

        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return _UNKNOWN
        stamp = _stamp(status)
        if known and known.stamp == stamp and known.is_settled:
            self._bytes_left -= len(known.data or b"")
            return known
        is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS
        data = None
        if stat.S_ISREG(status.st_mode) and status.st_size <= min(self._most_bytes, self._bytes_left):
            data = read_bytes(path, status.st_size + 1)
            data = data if len(data) == status.st_size else None
            self._bytes_left -= status.st_size
        return _File(stamp, is_settled, status.st_mode, status.st_uid, status.st_gid, data)

    def _shared_path(self, place: IndexPlace, index: _File) -> str:
        examined = self._examine(place, index) if index.data and b"link" in index.data else None
        return f"{dirname(place.path)}/sharedindex.{examined.shared}" if examined and examined.shared else ""

    def _examine(self, place: IndexPlace, file: _File) -> ExaminedIndex | None:
        """What an index names; None if git would not have written it."""
        if file.data is None:
            return None
        key = file.data, dirname(place.path)
        if key not in self._examined:
            try:
                self._examined[key] = examine_index(file.data, _hash_length(key[1]))
            except UnsupportedRepository:
                self._examined[key] = None
        return self._examined[key]

    def _examine_all(self, place: IndexPlace, version: _Version | None) -> ExaminedIndex | None:
        if version is None:
            return _NOTHING
        own = self._examine(place, version.index)
        if own is None or not own.shared:
            return own
        shared = self._examine(place, version.shared) if version.shared else None
        if shared is None or shared.shared:
            return None
        refused = tuple(sorted({*own.refused, *shared.refused}))
        return msgspec.structs.replace(own, names=own.names + shared.names, refused=refused)

    # ------------------------------------------------------------------ comparing

    def _check(
        self, place: IndexPlace, hidden: frozenset[str], *, is_allowed: bool, tries: int = _TRIES
    ) -> tuple[str, ...]:
        before = self._before.get(place.path)
        now = self._read(place, before)
        if now is None:
            return ()
        is_fine = is_allowed or (before is not None and _is_same(before, now))
        if not is_fine:
            finding = self._try_to_find(place, before, now, hidden)
        else:
            finding = None if is_allowed else self._old_finding(place, now)
        self._seen.add(place.path)
        if finding is None:
            self._before[place.path] = now
            return ()
        if tries and not _is_as_read(place.path, now.index):  # what the user's git wrote meanwhile must not be undone
            return self._check(place, hidden, is_allowed=is_allowed, tries=tries - 1)
        if finding.is_old:
            self._before[place.path] = now
            is_said, self._left_alone = place.path in self._left_alone, self._left_alone | {place.path}
            return () if is_said else (place.path + _LEFT.format(f"{finding.reason}, as before the command"),)
        return (place.path + self._restored(place, before, now, finding),)

    def _old_finding(self, place: IndexPlace, now: _Version) -> _Finding | None:
        """As `_finding` for an index that has not changed: once each, for the small ones. A command may have changed it
        before bradawl was killed.
        """
        size = len(now.index.data or b"")
        if place.path in self._seen or size > self._first_bytes_left:
            return None
        self._first_bytes_left -= size
        examined = self._examine_all(place, now)
        refused = examined.refused if examined else ()
        return _Finding(f"it names {_shown(refused)}", is_old=True) if refused else None

    def _try_to_find(
        self, place: IndexPlace, before: _Version | None, now: _Version, hidden: frozenset[str]
    ) -> _Finding | None:
        try:
            return self._finding(place, before, now, hidden)
        except (OSError, MemoryError, RecursionError, ValueError):
            return _Finding(_unreadable(now.index))

    def _finding(
        self, place: IndexPlace, before: _Version | None, now: _Version, hidden: frozenset[str]
    ) -> _Finding | None:
        if now.index.data is None:
            return _Finding(_unreadable(now.index), is_old=before is not None and before.index.data is None)
        examined, old = self._examine_all(place, now), self._examine_all(place, before)
        if examined is None:
            return _Finding(_DAMAGED, is_old=old is None)
        refused = set(examined.refused) - set(old.refused if old else ())
        if refused:
            return _Finding(f"it named {_shown(refused)}")
        if examined.refused:
            return _Finding(f"it names {_shown(examined.refused)}", is_old=True)
        named = self._hidden_names(place, examined, old or _NOTHING, hidden)
        why = "which only the sandbox shows" if all(map(_is_in_placeholder, named)) else "which commands can't read"
        return _Finding(f"it named {_shown(named)}, {why}", frozenset(named)) if named else None

    def _hidden_names(
        self, place: IndexPlace, now: ExaminedIndex, old: ExaminedIndex, hidden: frozenset[str]
    ) -> set[bytes]:
        """New entries that name hidden files, or files in hidden folders, also where a folder was moved."""
        if not place.tree:
            return set()
        inside = {os.fsencode(path[len(place.tree) + 1 :]) for path in hidden if is_within(path, place.tree)}
        folders = (path for path in inside if f"{place.tree}/{os.fsdecode(path)}" not in self._inodes)
        last = {os.fsencode(basename(path)) for path in hidden}
        if not any(map(now.has_basename, last)) and not any(map(now.has_below, folders)):
            return set()
        inodes = {self._inodes[path] for path in hidden if path in self._inodes}
        new = set(now.names.split(b"\0")) - set(old.names.split(b"\0"))
        return {
            name
            for name in new
            if any(path in inside for path in _and_parents(name))
            or (basename(name) in last and _inode(f"{place.tree}/{os.fsdecode(name)}") in inodes)
        }

    # ------------------------------------------------------------------ putting back

    def _restored(self, place: IndexPlace, before: _Version | None, now: _Version, finding: _Finding) -> str:
        aside = SetAsideFolder(self._kept)
        try:
            if finding.dropped and (entry := self._without(place, now, finding.dropped)):
                put_back(place.path, place.place, entry, aside)
            elif before is None or before.index.data is not None:
                self._put_all_back(place, before, aside)
            else:
                put_back(place.path, place.place, None, aside)
                return _LEFT.format(f"{finding.reason}; it was moved away, and git reset makes a new one")
        except OSError as error:
            return _LEFT.format(f"{finding.reason}; {error.strerror}")
        finally:
            self._set_aside += aside.places
        return f" ({finding.reason})"

    def _put_all_back(self, place: IndexPlace, before: _Version | None, aside: SetAsideFolder) -> None:
        index = before.index if before else None
        put_back(place.path, place.place, _entry(index) if index else None, aside)
        if before and before.shared and before.shared_path:
            put_back(before.shared_path, place.place, _entry(before.shared), aside)

    def _without(self, place: IndexPlace, now: _Version, dropped: frozenset[bytes]) -> Entry | None:
        try:
            data = without_entries(now.index.data or b"", dropped, _hash_length(dirname(place.path)))
        except UnsupportedRepository:
            return None
        return _entry(msgspec.structs.replace(now.index, data=data))


@contextlib.contextmanager
def _opened_folders(place: IndexPlace) -> Iterator[None]:
    """Closed folders of this user on the way to the index are open in the body."""
    folder = dirname(place.path)
    opened = {} if os.access(folder, os.X_OK) else open_parents(folder, place.place)
    try:
        yield
    finally:
        restore_modes(opened)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    of_content = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return (*of_content, status.st_mode, status.st_uid)


def _is_as_read(path: str, file: _File) -> bool:
    """Whether a file has not been replaced or written since it was read."""
    try:
        return not file.stamp or _stamp(os.lstat(path)) == file.stamp
    except OSError:
        return False


def _is_same(before: _Version, now: _Version) -> bool:
    """Whether nothing that counts has changed."""
    if before.shared_path != now.shared_path or (before.shared is None) != (now.shared is None):
        return False
    pairs = ((before.index, now.index), (before.shared or _UNKNOWN, now.shared or _UNKNOWN))
    return all(one is other or (one.data is not None and one.data == other.data) for one, other in pairs)


def _is_in_placeholder(name: bytes) -> bool:
    """Whether a hidden name is one of a placeholder's files. See `bradawl.sandbox.mounts.mask_sources`."""
    return basename(name) in (b"nothing", b".gitignore")


def _and_parents(name: bytes) -> Iterator[bytes]:
    while name:
        yield name
        name = name.rpartition(b"/")[0]


def _entry(file: _File) -> Entry:
    kind = "file" if stat.S_ISREG(file.mode) else "other"
    return Entry(kind, b"", file.stamp, stat.S_IMODE(file.mode), file.user, file.group, file.data)


def _hash_length(data: str) -> int:
    """Length of the hashes in the indexes in a data folder of git. Raises `UnsupportedRepository`."""
    common = named_in(f"{data}/commondir", "")
    folder = real_path(f"{data}/{common}") if common else data
    return hash_length(read_bytes(f"{folder}/config", _CONFIG_BYTES))


def _unreadable(file: _File) -> str:
    return "it can't be examined" if stat.S_ISREG(file.mode) else "it is no regular file"


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _shown(names: Iterable[bytes]) -> str:
    texts = [escape(name[:200].decode("utf-8", "replace")).replace("\n", "\\n") for name in sorted(names)]
    return first_of(texts, _MOST_NAMED)
