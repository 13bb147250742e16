"""Restores git's objects and references that programs removed or damaged.

Before a program starts, new objects are copied to a folder that programs can't reach, and the references are read. When
it has ended, missing ones are restored. Changes by git itself, such as packing objects or deleting a branch, stay.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.control_characters import in_remark
from bradawl.safety.name_lists import first_of
from bradawl.sandbox.check_failures import KILLED, NOT_CHECKED, CheckFailures, reason_of, still_not_checked
from bradawl.sandbox.filesystem.closed_folders import open_parents
from bradawl.sandbox.restore.git_data_events import GitDataEvents
from bradawl.sandbox.restore.git_indexes import GitIndexes
from bradawl.sandbox.restore.git_objects import LostObject, ObjectFiles
from bradawl.sandbox.restore.git_references import References, shortened
from bradawl.sandbox.restore.history_records import AbandonedState, HistoryRecords, HistoryState
from bradawl.sandbox.restore.protected_files import IsDue, Mounts, ProtectedFiles
from bradawl.sandbox.restore.restore_path import forget_old, put_back, put_copy_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder
from bradawl.sandbox.restore.snapshot import Entry, is_changed, pipes_in

_FOLDERS: Final = ("objects", "refs")
_CACHES: Final = ("info/commit-graph", "info/commit-graphs", "pack/multi-pack-index")
_MOST_SHOWN: Final = 3
_MOST_RECORDED: Final = 1_048_576
_RECORDS: Final = 50

_SET_ASIDE: Final = (
    "what was moved away is kept for 30 days in {}. If the user changed it in another program meanwhile, tell them "
    "where it is"
)
_ONLY_LINES: Final = "from {} only the lines that run programs, or that commands may not add, were removed: {}"
_MOST_LINES: Final = 5
_LONGEST_LINE: Final = 120


class RepositoryLocation(msgspec.Struct, frozen=True):
    """Where a repository's data are."""

    data: str
    place: str
    """A folder that is or contains the data and that programs can't move."""


class GitHistory:
    """The history of some repositories, watched while programs run. Not thread-safe; its owner closes it."""

    def __init__(self, repositories: Callable[[], Iterable[RepositoryLocation]], kept: str) -> None:
        """`repositories` is called when the first of several overlapping programs begins. `kept` is a folder in
        bradawl's state.
        """
        self._repositories = repositories
        self._kept = kept
        self._records = HistoryRecords(kept)
        self._abandoned: list[tuple[str, tuple[AbandonedState, ...]]] | None = None
        """What killed agents watched, and could not be compared yet; None before the first search."""
        self._watched: dict[str, _WatchedRepository] = {}
        self._running = 0
        self._recovered: tuple[str, ...] = ()
        """Paths restored since the last `end`."""
        self._unchecked: tuple[str, ...] = ()
        """Data that could not be compared after the last program."""

    @property
    def is_busy(self) -> bool:
        """Whether a program is running."""
        return self._running > 0

    def begin(self, allowed: tuple[str, ...] = ()) -> None:
        """Call before a program starts. `allowed` names files and folders that running programs may change.

        If others run, what they have removed by now is restored, and what has changed is restored from now on. Raises
        `ToolError` if the history can't be examined, or what an earlier program did to it.
        """
        if self._running == 0:
            self.check_again()
            known, self._watched = self._watched, {}
            for each in self._repositories():
                self._watched[each.data] = known.get(each.data) or _WatchedRepository(each, self._kept)
            for watched in self._watched.values():
                _begin(watched)
        else:  # a part that fails is compared again when a program ends
            self._recovered += self._compare(allowed, CheckFailures(), takes_changes=True)
            for each in self._repositories():
                if each.data not in self._watched:
                    self._watched[each.data] = _WatchedRepository(each, self._kept)
                    _begin(self._watched[each.data])
        self._records.begin(self._watched.values())
        self._running += 1

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Call once per `begin`, when the program is gone. Returns the restored paths, and remarks on what could not be
        compared; `check_again` repeats that.

        `allowed` names files and folders that the program was allowed to change.
        """
        self._running -= 1
        failures = CheckFailures()
        self._unchecked = tuple(self._watched)  # also if the comparison is interrupted
        restored = self._compare(allowed, failures, takes_changes=self._running > 0)
        recovered, self._recovered = self._recovered, ()
        self._unchecked = failures.paths
        if self._running:
            self._records.begin(self._watched.values())
        else:
            self._records.end(keeps=bool(self._unchecked))
        return (*recovered, *restored, *failures.remarks())

    def withdraw(self) -> None:
        """Call instead of `end` if the program did not start: it has changed nothing that has to be compared."""
        self._running -= 1
        if self._running == 0:
            self._records.end(keeps=bool(self._unchecked))

    def check_again(self) -> None:
        """Compare again what could not be compared before, unless a program runs, and at first what programs did whose
        agent was killed. The next `end` returns what this restores. Raises `ToolError` if it still can't be compared:
        then no program may start.
        """
        if self._running:
            return
        self._repeat()
        if self._abandoned is None:
            failures = CheckFailures()
            found = failures.attempt(self._kept, lambda: list(self._records.abandoned()), None)
            if found is None:
                raise still_not_checked(failures)
            self._abandoned = found
        while self._abandoned:
            name, states = self._abandoned[0]
            self._resume(states)
            self._repeat()
            self._records.forget(name)
            del self._abandoned[0]

    def _resume(self, states: tuple[AbandonedState, ...]) -> None:
        """Take over what a killed agent watched, as not compared yet. What can't be compared is only named."""
        self._watched = {}
        for each in states:
            if not Path(each.place).is_dir():
                continue
            if each.state is not None and not each.is_replaced:
                repository = RepositoryLocation(each.data, each.place)
                self._watched[each.data] = _WatchedRepository(repository, self._kept, each.state)
                continue
            reason = "the record of its history can't be read" if each.state is None else "another folder is there now"
            remark = f"{each.data} {NOT_CHECKED}{KILLED}, and {reason})"
            self._recovered += () if remark in self._recovered else (remark,)
        self._unchecked = tuple(self._watched)

    def _repeat(self) -> None:
        if not self._unchecked:
            return
        failures = CheckFailures()
        compared = tuple(data for data in self._watched if data not in self._unchecked)
        self._recovered += self._compare(compared, failures, takes_changes=False)
        self._unchecked = failures.paths
        if failures.paths:
            raise still_not_checked(failures)

    def close(self) -> None:
        """Remove the records, unless something has to be compared at the next start; safe to call twice."""
        self._records.close(keeps=bool(self._running or self._unchecked))

    def take_set_aside(self) -> tuple[str, ...]:
        """The folders to which files in the way were moved since the last call."""
        folders = tuple(folder for watched in self._watched.values() for folder in watched.set_aside)
        for watched in self._watched.values():
            watched.set_aside.clear()
        return folders

    def _compare(self, allowed: tuple[str, ...], failures: CheckFailures, *, takes_changes: bool) -> tuple[str, ...]:
        restored: list[str] = []
        for watched in self._watched.values():
            compare = partial(watched.end, f"{self._kept}/changed", takes_changes=takes_changes)
            if not any(is_within(watched.data, path) for path in allowed):
                restored += failures.attempt(watched.data, compare, [])
            elif takes_changes:
                failures.attempt(watched.data, watched.begin, None)
        return tuple(restored)


class WorkspaceWatch:
    """Watches protected files, git history and git indexes together while programs run."""

    def __init__(self, files: ProtectedFiles, history: GitHistory, indexes: GitIndexes | None = None) -> None:
        """It owns `files` and closes it."""
        self._files = files
        self._history = history
        self._indexes = indexes
        self.events = GitDataEvents()
        """Used by checks of running programs."""
        self._immovable: frozenset[str] = frozenset()
        self._allowed: list[tuple[str, ...]] = []
        """Of each running program, the files and folders that it may change."""
        self._failed_check: Callable[[], CheckFailures] | None = None
        """Repeats the last check of running programs, if it could not examine everything."""

    @property
    def is_busy(self) -> bool:
        """Whether a program is running."""
        return self._history.is_busy

    def immovable(self, covered: Iterable[str]) -> frozenset[str]:
        """The paths covered for a new program that no running program can move: those covered for all that write."""
        return frozenset(covered) & self._immovable if self._history.is_busy else frozenset(covered)

    def set_immovable(self, covered: frozenset[str]) -> None:
        """Set the paths that no program that writes can move. Call before one starts."""
        self._immovable = covered

    def begin(self, hidden: Iterable[str] = (), allowed: tuple[str, ...] = (), mounts: Mounts | None = None) -> None:
        """Call before a program starts, which sees `mounts`. It can't read `hidden`; checks while it runs leave
        `allowed` as they are.
        """
        with contextlib.ExitStack() as undo:
            self._files.begin(mounts)
            undo.callback(self._files.withdraw)
            self._history.begin(self._running_allowed())
            undo.callback(self._history.withdraw)
            if self._indexes:
                self._indexes.begin(hidden)
            undo.pop_all()
        self._allowed.append(allowed)

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Call once per `begin`. Returns the paths that they have restored."""
        if self._allowed:
            self._allowed.remove(allowed if allowed in self._allowed else self._allowed[-1])
        try:
            restored = self._files.end(allowed)
        finally:
            of_history = self._history.end(allowed)
            of_indexes = self._indexes.end(allowed) if self._indexes else ()
        return (*restored, *of_history, *of_indexes)

    def withdraw(self, allowed: tuple[str, ...] = ()) -> None:
        """Call instead of `end` if the program did not start: it has changed nothing that has to be compared."""
        self._allowed.remove(allowed)
        self._files.withdraw()
        self._history.withdraw()
        if self._indexes:
            self._indexes.withdraw()

    def check_running(self, is_due: IsDue, *, indexes: bool, restores: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Compare protected files, and with `indexes` git's indexes, while programs run. The history is compared only
        when they have ended.

        Returns what may not stay (with `restores` it is restored), and remarks on what could not be examined: then
        `check_again` repeats the comparison.
        """
        failures = CheckFailures()
        found = self._compare_running(failures, is_due, indexes=indexes, restores=restores)
        if restores:
            failures.forget(found)

        def repeat() -> CheckFailures:
            again = CheckFailures()
            self._compare_running(again, is_due, indexes=indexes, restores=False)
            return again

        self._failed_check = repeat if failures.paths else None
        return found, failures.remarks()

    def _compare_running(
        self, failures: CheckFailures, is_due: IsDue, *, indexes: bool, restores: bool
    ) -> tuple[str, ...]:
        allowed = self._running_allowed()
        compare = partial(self._files.check_running, allowed, is_due, failures, restores=restores)
        found = failures.attempt("/", compare, ())
        if indexes and self._indexes:
            found += self._indexes.check_running(allowed, failures, restores=restores)
        return found

    def _running_allowed(self) -> tuple[str, ...]:
        return tuple(path for each in self._allowed for path in each)

    def notes(self) -> tuple[str, ...]:
        """A sentence on where the changed files are that were moved away since the last call."""
        folders = self.take_set_aside()
        removed = self._files.take_removed_lines()
        of_lines = tuple(_ONLY_LINES.format(in_remark(path), _shown(lines)) for path, lines in removed.items())
        return (*of_lines[:_MOST_SHOWN], *((_SET_ASIDE.format(", ".join(folders)),) if folders else ()))

    def take_set_aside(self) -> tuple[str, ...]:
        """The folders to which changed files were moved since the last call of this method or `notes`."""
        of_indexes = self._indexes.take_set_aside() if self._indexes else ()
        return (*self._files.take_set_aside(), *self._history.take_set_aside(), *of_indexes)

    def check_again(self) -> None:
        """See `ProtectedFiles.check_again`. A check of running programs that failed is repeated while they run."""
        repeat, self._failed_check = self._failed_check, None
        if repeat is not None and self.is_busy and (failures := repeat()).paths:
            self._failed_check = repeat
            raise still_not_checked(failures)
        self._files.check_again()
        self._history.check_again()
        if self._indexes:
            self._indexes.check_again()

    def close(self) -> None:
        """Remove the records and end the events; safe to call twice."""
        self.events.close()
        self._files.close()
        self._history.close()


def _begin(watched: "_WatchedRepository") -> None:
    try:
        watched.begin()
    except OSError as error:
        raise ToolError(
            f"nothing can run in the sandbox: {watched.data} can't be examined: {reason_of(error)}. Try again, or "
            "ask to run without the sandbox"
        ) from error


class _WatchedRepository:
    """The history of one repository."""

    def __init__(self, repository: RepositoryLocation, kept: str, state: HistoryState | None = None) -> None:
        """`state` is what another agent has taken before."""
        self.data = repository.data
        self.place = repository.place
        self.kept = f"{kept}/{sha256(os.fsencode(self.data)).hexdigest()[:16]}"
        self._objects = ObjectFiles(f"{self.data}/objects", self.place, f"{self.kept}/objects")
        self._references = References(self.data, self.place)
        self._links: frozenset[str] = frozenset()
        if state is not None:
            self._links = frozenset(state.links)
            self._objects.resume(state.objects)
            self._references.resume(state.references)
        self.set_aside: list[str] = []
        """The folders to which files in the way were moved."""
        self._is_new = True

    def state(self) -> HistoryState:
        """What it is compared with now."""
        return HistoryState(tuple(sorted(self._links)), self._references.known, self._objects.state())

    def begin(self) -> None:
        """Take everything as it is now."""
        self._links = frozenset(name for name in _FOLDERS if stat.S_ISLNK(_mode(f"{self.data}/{name}")))
        self._objects.capture()
        if self._references.take():
            self._write_record()
        if self._is_new:
            self._objects.forget_old()
            self._is_new = False

    def end(self, aside_in: str, *, takes_changes: bool) -> list[str]:
        """Restore what is gone; returns the restored paths. With `takes_changes`, what honest programs and the user
        have changed is restored from now on.
        """
        if not self._references.was_repository():
            return []
        lost, missing = self._lost()
        is_closed = any(_is_closed(f"{self.data}{name}") for name in ("", "/objects", "/refs"))
        opened: list[str] = []
        if (lost or missing or is_closed) and self._open_up():
            opened = [f"{self.data}/ (folders that could not be entered)"]
            lost, missing = self._lost()
        aside = SetAsideFolder(aside_in)
        restored = [*opened, *self._put_objects_back(lost, aside), *self._references.put_back(missing, aside)]
        if lost or opened:
            self._set_caches_aside(aside)
        if lost or missing:
            self._make_folders(aside)
        restored += self._set_pipes_aside(aside)
        self.set_aside += aside.places
        if restored:
            forget_old(aside_in)
        if takes_changes:
            self._references.take_changes(missing)
            self._objects.capture(is_first=False)
        return restored

    def _lost(self) -> tuple[list[LostObject], list[str]]:
        """Object files and references."""
        missing = self._references.missing(self._objects.has_new)
        lost = self._objects.lost_objects(lambda: self._references.named_objects(missing))
        return list({each.name: each for each in lost}.values()), missing

    def _open_up(self) -> bool:
        """Restore this user's permissions on folders; True if a folder was closed."""
        top = ("", "/objects", "/objects/info", "/refs", *(f"/objects/{name}" for name in self._objects.folders))
        inner = (path[len(self.data) :] for path in self._references.folders())
        opened = [open_parents(f"{self.data}{name}", self.place) for name in (*top, *inner)]
        return any(opened)

    def _put_objects_back(self, lost: list[LostObject], aside: SetAsideFolder) -> list[str]:
        restored: list[str] = []
        failed: list[str] = []
        for each in lost:
            path = f"{self.data}/objects/{each.name}"
            if not each.kept:
                failed.append(f"{path} (could not be put back: there is no copy)")
                continue
            try:
                put_copy_back(path, self.place, each.kept, aside)
            except OSError as error:
                self._objects.owe(each.name)
                failed.append(f"{path} (could not be put back: {error.strerror})")
            else:
                restored.append(path)
        folder = f"{self.data}/objects"
        return [*shortened(restored, folder, "objects"), *shortened(failed, folder, "objects that are lost")]

    def _set_caches_aside(self, aside: SetAsideFolder) -> None:
        """Set aside git's caches of object data, which may be damaged, too; git recreates them."""
        for name in _CACHES:
            with contextlib.suppress(OSError):
                put_back(f"{self.data}/objects/{name}", self.place, None, aside)

    def _set_pipes_aside(self, aside: SetAsideFolder) -> list[str]:
        """Set aside named pipes among references and state files, which would block git forever."""
        known = self._references.known
        waiting = [path for path in self._references.folders() if is_changed(path, known[path])]
        restored: list[str] = []
        for path in pipes_in(self.data, waiting):
            with contextlib.suppress(OSError):
                put_back(path, self.place, None, aside)
                restored.append(path)
        return shortened(restored, self.data, "pipes")

    def _make_folders(self, aside: SetAsideFolder) -> None:
        """Create the folders without which git recognizes no repository."""
        folder = Entry("folder", b"", (), 0o755)
        for name in _FOLDERS:
            if name not in self._links:
                with contextlib.suppress(OSError):
                    put_back(f"{self.data}/{name}", self.place, folder, aside)

    def _write_record(self) -> None:
        """Save the list of references, to recover one that is missed later."""
        lines: list[bytes] = []
        start = len(self.data) + 1
        for path, entry in self._references.known.items():
            name = path[start:]
            is_recorded = entry.kind == "file" and name.startswith(("HEAD", "packed-refs", "refs/"))
            if is_recorded and entry.content and len(entry.content) <= _MOST_RECORDED:
                lines += (
                    [entry.content] if name == "packed-refs" else [entry.content.strip() + b" " + os.fsencode(name)]
                )
        data = b"\n".join(lines)
        folder = Path(f"{self.kept}/references")
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / sha256(data).hexdigest()[:16]
            if not path.exists():
                unfinished = folder / "unfinished"
                unfinished.write_bytes(data)
                unfinished.rename(path)
                known = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)
                for each in known[:-_RECORDS]:
                    each.unlink()


def _shown(lines: tuple[str, ...]) -> str:
    return first_of(lines, _MOST_LINES, lambda line: in_remark(line[:_LONGEST_LINE]), "; ")


def _is_closed(folder: str) -> bool:
    mode = _mode(folder)
    return stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
