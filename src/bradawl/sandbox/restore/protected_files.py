"""Restores protected files that programs changed, where a sandbox can't prevent the change.

Files are compared before a program starts and after it and all its processes have ended. A changed file is moved to a
folder that programs can't write to, and the old one is restored. A record of the old state is on disk while a program
runs: after a crash, the next start restores from it.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.whole_writes import write_all
from bradawl.sandbox.check_failures import CheckFailures, drained, still_not_checked
from bradawl.sandbox.restore.harmless_git_files import without_added_programs
from bradawl.sandbox.restore.locked_files import open_locked, read_abandoned
from bradawl.sandbox.restore.new_repositories import is_new_repository
from bradawl.sandbox.restore.restore_path import forget_old, is_without_copy, put_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder
from bradawl.sandbox.restore.snapshot import (
    Baseline,
    Entry,
    Snapshot,
    WatchedPath,
    is_same,
    retake_snapshot,
    take_snapshot,
)

Mounts = Mapping[str, bool]
"""The paths that are mounted for programs, and whether they may write there."""
IsDue = Callable[[str, Entry | None, Entry | None, Snapshot], bool]
"""Whether a changed path is restored while programs run: path, entry before, entry now, snapshot before."""
_Abandoned = tuple[list[WatchedPath], Snapshot, Mounts]
_RECORD = "before-"
_MOST_ALONE = 20
_RECORD_FLAGS = os.O_RDWR | os.O_APPEND


def _without_added_programs(path: str, now: Entry, before: Snapshot) -> Entry | None:
    return without_added_programs(path, now, before.get(path))


class ChangeRules(NamedTuple):
    """Decides what becomes of the changes that programs made."""

    may_stay: Callable[[str, Entry, Entry | None], bool] | None = None
    """Whether a change may stay: path, the state before, and the state now, None for a removed path."""
    may_be_new: Callable[[str, Entry, Snapshot], bool] = is_new_repository
    """Whether a new file may stay: path, its state, and the snapshot before."""
    without_programs: Callable[[str, Entry, Snapshot], Entry | None] = _without_added_programs
    """As `may_be_new`; the state that replaces a file that may not stay. None for the old state."""


class ProtectedFiles:
    """The protected files of some folders, watched while programs run. Not thread-safe; its owner closes it.

    Overlapping programs share one snapshot, taken when the first begins: otherwise a change of one would be part of the
    other's snapshot. Changes by other programs meanwhile are undone, too: who made a change can't be determined.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[WatchedPath]],
        kept: str,
        new_paths: Callable[[], Iterable[WatchedPath]] | None = None,
        rules: ChangeRules | None = None,
        *,
        prevents_changes: bool = False,
        suspect_since: Callable[[Snapshot], Iterable[str]] | None = None,
    ) -> None:
        """`places` names protected paths; it is called when the first of overlapping programs begins.

        `new_paths` names paths that did not exist before, such as new repositories; it is called when a program has
        ended, and defaults to `places`. `prevents_changes` says that programs can't change what is mounted
        read-only, so that such changes come from outside and stay after a crash.
        `suspect_since` gives remarks on what a program may have left whose agent was killed; its argument is the
        snapshot before. `kept` is the folder for changed files, created when first needed.
        """
        self._places = places
        self._new_paths = new_paths or places
        self._rules = rules or ChangeRules()
        self._prevents_changes = prevents_changes
        self._suspect_since = suspect_since
        self._kept = kept
        self._watched: tuple[WatchedPath, ...] = ()
        self._before: Snapshot = {}
        self._running = 0
        self._record = -1
        self._record_path = ""
        self._has_recovered = False
        self._recovered: tuple[str, ...] = ()
        self._unchecked: tuple[str, ...] = ()
        """Paths that could not be compared after a program; they are compared again before the next one."""
        self._mounts: Mounts = {}
        self._set_aside: dict[str, None] = {}
        self._removed_lines: dict[str, tuple[str, ...]] = {}
        self._not_put_back: dict[str, tuple[str, Entry | None]] = {}
        """Paths that could not be restored, with the folder that programs can't move, and the old state."""

    def begin(self, mounts: Mounts | None = None) -> None:
        """Call before a program with `mounts` starts. Raises `ToolError` if an earlier one can't be checked."""
        if not self._has_recovered:
            self._recover()
        self.check_again()
        if self._running == 0:
            self._mounts = mounts or {}
            self._watched = tuple(self._places())
            self._before = take_snapshot(self._watched, self._before, opens=not self._prevents_changes)
            self._keep_what_was_not_put_back()
            self._write_record()
        self._running += 1

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Call once per `begin`, when the program is gone. Returns the restored paths, and those that could not be
        restored.

        `allowed` names files and folders that the program was allowed to change.
        """
        self._running -= 1
        unchecked, self._unchecked = self._unchecked, ("/",)  # until the check has come to its end
        failures = CheckFailures()
        restored = failures.attempt("/", lambda: self._check(allowed, failures), ())
        failures.forget(restored)
        self._unchecked = tuple(dict.fromkeys((*unchecked, *failures.paths)))
        if self._running == 0 and not self._unchecked:
            failures.attempt(self._kept, self._empty_record, None)
        recovered, self._recovered = self._recovered, ()
        return (*recovered, *restored, *failures.remarks())

    def withdraw(self) -> None:
        """Call instead of `end` if the program did not start: it has changed nothing that has to be compared."""
        self._running -= 1
        if self._running == 0 and not self._unchecked:
            self._empty_record()

    def take_set_aside(self) -> tuple[str, ...]:
        """The folders to which changed files were moved since the last call."""
        folders, self._set_aside = tuple(self._set_aside), {}
        return folders

    def take_removed_lines(self) -> dict[str, tuple[str, ...]]:
        """The files that were put back without some lines since the last call, and those lines."""
        lines, self._removed_lines = self._removed_lines, {}
        return lines

    def _keep_what_was_not_put_back(self) -> None:
        """Compare such paths with their old state again: what a program changed there does not become the user's."""
        for path, (place, entry) in self._not_put_back.items():
            self._watched += ((place, path[len(place) :].strip("/")),)
            if entry is not None:
                self._before[path] = entry
                continue
            for each in [each for each in self._before if is_within(each, path)]:
                del self._before[each]

    def check_again(self) -> None:
        """Compare again what could not be compared before, unless a program runs. The next `end` returns what this
        restores. Raises `ToolError` if it still can't be compared: then no program may start.
        """
        if self._running:
            return
        aside = SetAsideFolder(self._kept)
        again = [self._put_back(path, *known, aside) for path, known in sorted(self._not_put_back.items())]
        self._set_aside.update(dict.fromkeys(aside.places))
        self._recovered += tuple(again)
        if not self._unchecked:
            return
        failures = CheckFailures()
        restored = failures.attempt("/", lambda: self._check((), failures, within=self._unchecked), ())
        self._recovered += restored
        failures.forget(restored)
        if failures.paths:
            raise still_not_checked(failures)
        self._unchecked = ()

    def _check(
        self, allowed: tuple[str, ...], failures: CheckFailures, *, within: tuple[str, ...] = ("/",)
    ) -> tuple[str, ...]:
        """Compare and restore what lies in the folders `within`. A part that fails is added to `failures`."""
        before, now = self._before, self._now(failures)
        changed = [
            path for path in self._changed(before, now, failures) if any(is_within(path, each) for each in within)
        ]
        given = {path for path in changed if any(is_within(path, folder) for folder in allowed)}
        fine = {path for path in changed if self._may_stay(path, before.get(path), now.get(path), failures)}
        for path in given:
            _take_over(before, now, (each for each in {**before, **now} if is_within(each, path)))
        _take_over(before, now, fine)  # changes inside were checked one by one
        return self._restore(before, now, [path for path in changed if path not in given | fine])

    def check_running(
        self, allowed: tuple[str, ...], is_due: IsDue, failures: CheckFailures, *, restores: bool
    ) -> tuple[str, ...]:
        """Compare while programs run. Returns the due paths that may not stay; with `restores` they are restored.

        What may stay is compared with the old state again at the end. Parts that fail are added to `failures`.
        """
        before, now = Baseline(self._before), self._now(failures)
        due = [
            path
            for path in self._changed(before, now, failures)
            if is_due(path, before.get(path), now.get(path), before)
            and not any(is_within(path, folder) for folder in allowed)
            and not self._may_stay(path, before.get(path), now.get(path), failures)
        ]
        return self._restore(before, now, due) if restores else tuple(due)

    def _now(self, failures: CheckFailures) -> Snapshot:
        places = dict.fromkeys((*self._watched, *drained(self._new_paths, failures)))
        return retake_snapshot(places, self._before, failures)

    def _changed(self, before: Snapshot, now: Snapshot, failures: CheckFailures) -> list[str]:
        """Paths whose kind, content or mode changed; of a new or removed folder only the folder itself."""
        known = Baseline(before)
        paths = {path for path in (*before, *now) if _differs(path, before.get(path), now.get(path), failures)}
        paths = {path for path in paths if path in before or not self._is_harmless(path, now[path], known, failures)}
        paths |= failures.attempt("/", lambda: _folders_to_move_whole(paths, before), set[str]())
        return [path for path in paths if path in before or not _lies_in(path, paths)]

    def _is_harmless(self, path: str, entry: Entry, before: Snapshot, failures: CheckFailures) -> bool:
        if entry.kind == "parent":
            return True
        return failures.attempt(path, lambda: self._rules.may_be_new(path, entry, before), default=False)

    def _may_stay(self, path: str, before: Entry | None, now: Entry | None, failures: CheckFailures) -> bool:
        rule = self._rules.may_stay
        if not rule or not before:
            return False
        return failures.attempt(path, lambda: rule(path, before, now), default=False)

    def close(self) -> None:
        """Remove the record, unless the next start has to recover from it; safe to call twice."""
        if self._unchecked:
            self._record_path = ""
        self._drop_record()

    # ------------------------------------------------------------------ a crash in between

    def _write_record(self) -> None:
        """Save the snapshot. If that fails, only recovery after a crash is lost, so programs run all the same."""
        with contextlib.suppress(OSError):
            if self._record >= 0:  # kept after a check that could not be completed
                os.close(self._record)
                self._record = -1
                Path(self._record_path).write_bytes(b"")
            if self._record_path:
                with contextlib.suppress(OSError):  # another agent took it for abandoned
                    self._record = open_locked(self._record_path, _RECORD_FLAGS)
            if self._record < 0:
                self._open_record()
            write_all(self._record, _encode(self._watched, self._before, self._mounts))

    def _open_record(self) -> None:
        Path(self._kept).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._record_path = f"{self._kept}/{_RECORD}{os.urandom(8).hex()}"
        self._record = open_locked(self._record_path, _RECORD_FLAGS | os.O_CREAT | os.O_EXCL)

    def _empty_record(self) -> None:
        """Keep the empty record for the next program: creating one takes longer."""
        if self._record >= 0:
            try:
                os.ftruncate(self._record, 0)
            except OSError:
                self._drop_record()
            else:
                os.close(self._record)
                self._record = -1

    def _drop_record(self) -> None:
        if self._record_path:
            with contextlib.suppress(OSError):
                Path(self._record_path).unlink()
            self._record_path = ""
        if self._record >= 0:
            os.close(self._record)
            self._record = -1

    def _recover(self) -> None:
        """Restore changes by programs whose agent was killed. Raises `ToolError` if something can't be compared."""
        forget_old(self._kept)
        failures = CheckFailures()
        for record in failures.attempt(self._kept, partial(_records_in, self._kept), ()):
            found = failures.attempt(str(record), partial(_abandoned, str(record)), None)
            if found is not None:
                self._restore_abandoned(found, failures)
            if failures.paths:
                break
            if found is not None:
                with contextlib.suppress(OSError):
                    record.unlink()
        if failures.paths:
            raise still_not_checked(failures)
        self._has_recovered = True

    def _restore_abandoned(self, record: _Abandoned, failures: CheckFailures) -> None:
        places, before, mounts = record
        now = retake_snapshot(places, before, failures)
        mounted = mounts if self._prevents_changes else None
        changed = [
            path
            for path in self._changed(before, now, failures)
            if (was := before.get(path)) is None
            or not (
                _is_by_user(path, was, now.get(path), mounted) or self._may_stay(path, was, now.get(path), failures)
            )
        ]
        restored = self._restore(before, now, changed)
        failures.forget(restored)
        self._recovered += restored
        if before and self._suspect_since and not failures.paths:
            self._recovered += tuple(drained(partial(self._suspect_since, before), failures))

    # ------------------------------------------------------------------ putting back

    def _restore(self, before: Snapshot, now: Snapshot, changed: list[str]) -> tuple[str, ...]:
        """Restore paths, outermost first: a replaced folder must be back before its contents."""
        done: list[str] = []
        before, aside = Baseline(before), SetAsideFolder(self._kept)
        for path in sorted(changed):
            fallback = next((folder for folder, _ in self._watched if is_within(path, folder)), "/")
            place = CheckFailures().attempt(path, partial(_place_of, path, before, now), fallback)
            done.append(self._put_back(path, place, self._state_to_restore(path, before, now), aside))
        self._set_aside.update(dict.fromkeys(aside.places))
        return tuple(done)

    def _state_to_restore(self, path: str, before: Snapshot, now: Snapshot) -> Entry | None:
        failures = CheckFailures()
        if path in now:
            cleaned = partial(self._rules.without_programs, path, now[path], before)
            if state := failures.attempt(path, cleaned, None):
                self._removed_lines[path] = _lines_only_in(now[path], state)
                return state
        return before.get(path)

    def _put_back(self, path: str, place: str, entry: Entry | None, aside: SetAsideFolder) -> str:
        """Restore a path. Returns the path, with a remark if that failed."""
        failures = CheckFailures()
        failures.attempt(path, partial(put_back, path, place, entry, aside), None)
        self._not_put_back.pop(path, None)
        if not failures.paths:
            return path
        if not (entry and is_without_copy(entry)):
            self._not_put_back[path] = place, entry
        return f"{path} (could not be put back: {failures.reason(path)})"


def _lines_only_in(one: Entry, other: Entry) -> tuple[str, ...]:
    kept = frozenset((other.content or b"").splitlines())
    lines = (line for line in (one.content or b"").splitlines() if line not in kept)
    return tuple(line.decode("utf-8", "replace").strip() for line in lines)


def _place_of(path: str, before: Snapshot, now: Snapshot) -> str:
    entry = before.get(path) or now.get(path)
    return os.fsdecode((entry or _anything_in(path, now)).place)


def _differs(path: str, before: Entry | None, now: Entry | None, failures: CheckFailures) -> bool:
    """Whether an entry changed. Files that can't be compared count as changed."""
    are_folders = bool(before and now and before.kind == now.kind and before.kind in ("folder", "parent"))
    return not failures.attempt(path, partial(is_same, before, now), default=are_folders)


class _Record(msgspec.Struct, frozen=True, array_like=True):
    places: list[tuple[bytes, bytes]]
    entries: list[tuple[bytes, Entry]]
    mounts: list[tuple[bytes, bool]] = []


def _encode(places: Iterable[WatchedPath], found: Snapshot, mounts: Mounts) -> bytes:
    record = _Record(
        [(os.fsencode(folder), os.fsencode(name)) for folder, name in places],
        [(os.fsencode(path), entry) for path, entry in found.items()],
        [(os.fsencode(path), is_writable) for path, is_writable in mounts.items()],
    )
    return msgspec.msgpack.encode(record)


def _records_in(kept: str) -> tuple[Path, ...]:
    """The records of all agents. Raises `OSError`, unless there is no such folder."""
    try:
        return tuple(path for path in Path(kept).iterdir() if path.name.startswith(_RECORD))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _is_by_user(path: str, before: Entry, now: Entry | None, mounts: Mounts | None) -> bool:
    """Whether a path must have been changed by the user after a program was killed with its agent, or may have been and
    makes nothing run. `mounts` are those that kept the program from changing it, None without any.
    """
    if now is None:
        is_of_user = before.kind == "parent" or _has_lost_repository(path, os.fsdecode(before.place))
        return is_of_user or mounts is not None
    is_index = path.endswith("/index") and now.kind == "file"
    return is_index or (mounts is not None and not _is_writable(path, mounts))


def _is_writable(path: str, mounts: Mounts) -> bool:
    """Whether programs with these mounts may write a path; not if it is in none."""
    while path not in mounts:
        if path in ("", "/"):
            return False
        path = path.rpartition("/")[0]
    return mounts[path]


def _has_lost_repository(path: str, root: str) -> bool:
    """Whether a file was removed with the whole repository, below the root, that it belonged to."""
    folder, separator, _ = f"{path}/".partition("/.git/")
    return bool(separator) and folder != root and not os.path.lexists(f"{folder}/.git")


def _abandoned(path: str) -> _Abandoned | None:
    """The content of a record; None if its agent still lives, and for another file. Raises `OSError`."""
    data = read_abandoned(path)
    if data is None:
        return None
    if not data:  # no program ran
        return [], {}, {}
    try:
        record = msgspec.msgpack.decode(data, type=_Record)
    except msgspec.DecodeError:
        return None
    named = [(os.fsdecode(folder), os.fsdecode(name)) for folder, name in record.places]
    entries = {os.fsdecode(name): entry for name, entry in record.entries}
    return named, entries, {os.fsdecode(path): is_writable for path, is_writable in record.mounts}


def _anything_in(folder: str, now: Snapshot) -> Entry:
    return next(entry for path, entry in now.items() if is_within(path, folder))


def _folders_to_move_whole(paths: set[str], before: Snapshot) -> set[str]:
    """New folders with so many entries to set aside that the whole folder is moved. All its entries must be among them:
    a folder of the user may hold other files.
    """
    from collections import Counter

    count = Counter(path.rpartition("/")[0] for path in paths if path not in before)
    many = (folder for folder, number in count.items() if number > _MOST_ALONE and folder not in before)
    return {folder for folder in many if _holds_only(folder, paths)}


def _holds_only(folder: str, paths: set[str]) -> bool:
    try:
        with os.scandir(folder) as entries:
            return all(entry.path in paths for entry in entries)
    except OSError:
        return False


def _lies_in(path: str, folders: set[str]) -> bool:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if path in folders:
            return True
    return False


def _take_over(before: Snapshot, now: Snapshot, paths: Iterable[str]) -> None:
    for path in paths:
        if path in now:
            before[path] = now[path]
        else:
            before.pop(path, None)
