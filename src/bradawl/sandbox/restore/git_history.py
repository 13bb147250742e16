"""Restores git's objects and references that programs removed or damaged.

Before a program starts, new objects are copied to a folder that programs can't reach, and the references are read. When
it has ended, missing ones are restored. Changes by git itself, such as packing objects or deleting a branch, stay.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.control_characters import in_remark
from bradawl.safety.name_lists import first_of
from bradawl.sandbox.check_failures import CheckFailures, still_not_checked
from bradawl.sandbox.filesystem.closed_folders import open_parents
from bradawl.sandbox.restore.git_data_events import GitDataEvents
from bradawl.sandbox.restore.git_indexes import GitIndexes
from bradawl.sandbox.restore.git_objects import LostObject, ObjectFiles
from bradawl.sandbox.restore.protected_files import IsDue, ProtectedFiles
from bradawl.sandbox.restore.restore_path import SetAsideFolder, forget_old, put_back, put_copy_back
from bradawl.sandbox.restore.snapshot import (
    Entry,
    Snapshot,
    WatchedPath,
    is_changed,
    pipes_in,
    take_partial_snapshot,
    take_snapshot,
)

_REFERENCES: Final = (
    "HEAD",
    "packed-refs",
    "refs",
    "logs",
    "reftable",
    "index",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "FETCH_HEAD",
    "shallow",
)
_NEEDED: Final = ("HEAD", "packed-refs", "refs", "refs/heads", "reftable", "reftable/tables.list", "objects")
_CACHES: Final = ("info/commit-graph", "info/commit-graphs", "pack/multi-pack-index")
_HEAD: Final = re.compile(rb"(?:ref: refs/[^\0-\x20]+|(?!0+\s*$)[0-9a-f]{40}(?:[0-9a-f]{24})?)\s*")
_OBJECT: Final = rb"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_LISTS: Final = {
    "packed-refs": re.compile(rb"(?:(?:#.*|\^%b|%b refs/[^\0-\x20]+)\n)+" % (_OBJECT, _OBJECT)),
    "shallow": re.compile(rb"(?:%b\n)*" % _OBJECT),
    "index": re.compile(rb"DIRC.*", re.DOTALL),
}
"""The lines that git writes in these files. Git fails at any other line; without a line in the first file it finds no
references.
"""
_MOST_SHOWN: Final = 3
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
    """The history of some repositories, watched while programs run. Not thread-safe."""

    def __init__(self, repositories: Callable[[], Iterable[RepositoryLocation]], kept: str) -> None:
        """`repositories` is called when the first of several overlapping programs begins. `kept` is a folder in
        bradawl's state.
        """
        self._repositories = repositories
        self._kept = kept
        self._watched: dict[str, _WatchedRepository] = {}
        self._running = 0
        self._unchecked: dict[str, _WatchedRepository] = {}
        """Repositories in which programs ran that have not been compared since."""
        self._recovered: tuple[str, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether a program is running."""
        return self._running > 0

    def begin(self) -> None:
        """Call before a program starts. Raises `ToolError` if what an earlier program did can't be checked."""
        self.check_again()
        if self._running == 0:
            known, self._watched = self._watched, {}
            for each in self._repositories():
                self._watched[each.data] = known.get(each.data) or _WatchedRepository(each, self._kept)
        for watched in self._watched.values():
            watched.begin(is_first=self._running == 0)
        self._running += 1

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Call once per `begin`, when the program is gone. Returns the restored paths.

        `allowed` names files and folders that the program was allowed to change.
        """
        self._running -= 1
        for data, watched in self._watched.items():
            if not any(is_within(data, path) for path in allowed):
                self._unchecked[data] = watched
        failures = CheckFailures()
        recovered, self._recovered = self._recovered, ()
        return (*recovered, *self._check(failures), *failures.remarks())

    def check_again(self) -> None:
        """As `ProtectedFiles.check_again`: a later program would make the damage the state that is restored."""
        if not self._running:
            failures = CheckFailures()
            self._recovered += self._check(failures)
            if failures.paths:
                raise still_not_checked(failures)

    def _check(self, failures: CheckFailures) -> tuple[str, ...]:
        restored: list[str] = []
        for data, watched in tuple(self._unchecked.items()):
            restored += failures.attempt(data, partial(watched.end, f"{self._kept}/changed"), [])
            if data not in failures.paths:
                del self._unchecked[data]
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

    def begin(self, hidden: Iterable[str] = (), allowed: tuple[str, ...] = ()) -> None:
        """Call before a program starts. It can't read `hidden`; checks while it runs leave `allowed` as they are."""
        self._files.begin()
        try:
            self._history.begin()
        except BaseException:
            self._files.end()
            raise
        try:
            if self._indexes:
                self._indexes.begin(hidden)
        except BaseException:
            self._files.end()
            self._history.end()
            raise
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
        allowed = tuple(path for each in self._allowed for path in each)
        compare = partial(self._files.check_running, allowed, is_due, failures, restores=restores)
        found = failures.attempt("/", compare, ())
        if indexes and self._indexes:
            found += self._indexes.check_running(allowed, failures, restores=restores)
        return found

    def notes(self) -> tuple[str, ...]:
        """A sentence on where the changed files are that were moved away since the last call."""
        folders = self.take_set_aside()
        removed = self._files.take_removed_lines()
        of_lines = tuple(_ONLY_LINES.format(in_remark(path), _shown(lines)) for path, lines in removed.items())
        return (*of_lines[:_MOST_SHOWN], *((_SET_ASIDE.format(", ".join(folders)),) if folders else ()))

    def take_set_aside(self) -> tuple[str, ...]:
        """The folders to which changed files were moved since the last call of this method or `notes`."""
        return self._files.take_set_aside()

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


class _WatchedRepository:
    """The history of one repository."""

    def __init__(self, repository: RepositoryLocation, kept: str) -> None:
        self.data = repository.data
        self._place = repository.place
        self._kept = f"{kept}/{sha256(os.fsencode(self.data)).hexdigest()[:16]}"
        self._objects = ObjectFiles(f"{self.data}/objects", self._place, f"{self._kept}/objects")
        self._places: tuple[WatchedPath, ...] = tuple((self.data, name) for name in _REFERENCES)
        self._references: Snapshot = {}
        self._is_new = True

    def begin(self, *, is_first: bool) -> None:
        self._objects.capture()
        if is_first:
            before = self._references
            self._references = take_snapshot(self._places, before)
            if before.keys() != self._references.keys() or any(
                before[path] is not entry for path, entry in self._references.items() if entry.kind == "file"
            ):
                self._write_record()
        if self._is_new:
            self._objects.forget_old()
            self._is_new = False

    def end(self, aside_in: str) -> list[str]:
        """Restore what is gone; returns the restored paths."""
        if not self._was_repository():
            return []
        lost, missing = self._lost(), self._missing_references()
        is_closed = any(_is_closed(f"{self.data}{name}") for name in ("", "/objects", "/refs"))
        opened: list[str] = []
        if (lost or missing or is_closed) and self._open_up():
            opened = [f"{self.data}/ (folders that could not be entered)"]
            lost, missing = self._lost(), self._missing_references()
        aside = SetAsideFolder(aside_in)
        restored = [*opened, *self._put_objects_back(lost, aside), *self._put_references_back(missing, aside)]
        if lost or opened:
            self._set_caches_aside(aside)
        if lost or missing:
            self._make_folders(aside)
        restored += self._set_pipes_aside(aside)
        if restored:
            forget_old(aside_in)
        return restored

    def _lost(self) -> list[LostObject]:
        return list({each.name: each for each in self._objects.lost_objects()}.values())

    def _open_up(self) -> bool:
        """Restore this user's permissions on folders; True if a folder was closed."""
        top = ("", "/objects", "/objects/info", "/refs", *(f"/objects/{name}" for name in self._objects.folders))
        inner = (path[len(self.data) :] for path, entry in self._references.items() if entry.kind == "folder")
        opened = [open_parents(f"{self.data}{name}", self._place) for name in (*top, *sorted(inner))]
        return any(opened)

    def _was_repository(self) -> bool:
        head = self._references.get(f"{self.data}/HEAD")
        return head is not None and head.kind == "file" and bool(_HEAD.fullmatch(head.content or b""))

    # ------------------------------------------------------------------ references

    def _missing_references(self) -> list[str]:
        """References to restore: all lost ones if it is not a repository any more, else those that git did not delete
        itself.
        """
        before = self._references
        gone = [path for path, entry in before.items() if _is_gone(path, entry)]
        gone += [path for path in self._damaged() if path not in gone]
        if self._is_broken():
            head = f"{self.data}/HEAD"
            return [*gone, *((head,) if head not in gone and not self._has_head() else ())]
        names = f"{self.data}/refs/"
        packed = _packed(
            take_partial_snapshot([(self.data, "packed-refs")], {}).get(f"{self.data}/packed-refs") if gone else None
        )
        replaced = [path for path in gone if os.path.lexists(path)]
        deleted = (path for path in gone if path.startswith(names) and path not in replaced)
        return [*replaced, *(path for path in deleted if self._is_not_deleted(path[len(names) - 5 :], packed))]

    def _damaged(self) -> list[str]:
        """Changed files that git would not have written so; of new files, the lists only."""
        names = f"{self.data}/refs/"
        lists = [f"{self.data}/{name}" for name in _LISTS]
        changed = [
            path
            for path, entry in self._references.items()
            if entry.kind == "file" and path.startswith(names) and is_changed(path, entry)
        ]
        now = take_partial_snapshot(
            [(self.data, path[len(self.data) + 1 :]) for path in (*changed, *lists)], self._references
        )
        return [path for path in (*changed, *lists) if path in now and not self._is_sound(path, now[path])]

    def _is_sound(self, path: str, now: Entry) -> bool:
        if now.kind != "file" or now.content is None or now is self._references.get(path):
            return True
        pattern = _LISTS.get(path[len(self.data) + 1 :])
        if pattern is None:
            is_loop = now.content.strip() == f"ref: {path[len(self.data) + 1 :]}".encode(errors="surrogateescape")
            return bool(_HEAD.fullmatch(now.content)) and not is_loop
        return bool(pattern.fullmatch(now.content)) and not (
            path.endswith("/packed-refs") and self._has_lost_names(now)
        )

    def _has_lost_names(self, now: Entry) -> bool:
        """Whether names are missing from the list that git did not delete: git deletes their logs with them."""
        lost = _packed(self._references.get(f"{self.data}/packed-refs")).keys() - _packed(now).keys()
        return any(
            os.path.lexists(f"{self.data}/logs/{name}") and not os.path.lexists(f"{self.data}/{name}") for name in lost
        )

    def _is_broken(self) -> bool:
        had = (f"{self.data}/{name}" for name in _NEEDED)
        return not self._has_head() or any(path in self._references and not os.path.lexists(path) for path in had)

    def _has_head(self) -> bool:
        head = take_partial_snapshot([(self.data, "HEAD")], self._references).get(f"{self.data}/HEAD")
        return head is not None and head.kind == "file" and bool(_HEAD.fullmatch(head.content or b""))

    def _is_not_deleted(self, name: str, packed: dict[str, str]) -> bool:
        """Git deletes the log with a reference, and packs a reference with its current value."""
        entry, value = self._references[f"{self.data}/{name}"], packed.get(name, "")
        known = self._references.get(f"{self.data}/packed-refs")
        if entry.kind != "file":
            return False
        if value and (value == os.fsdecode(entry.content or b"").strip() or value != _packed(known).get(name)):
            return False
        return os.path.lexists(f"{self.data}/logs/{name}")

    def _put_references_back(self, missing: list[str], aside: SetAsideFolder) -> list[str]:
        restored: list[str] = []
        for path in sorted(missing):
            try:
                put_back(path, self._place, self._references.get(path), aside)
            except OSError as error:
                restored.append(f"{path} (could not be put back: {error.strerror})")
            else:
                restored.append(path)
        return _shortened(restored, f"{self.data}/refs", "references and their logs")

    # ------------------------------------------------------------------ objects

    def _put_objects_back(self, lost: list[LostObject], aside: SetAsideFolder) -> list[str]:
        restored: list[str] = []
        failed: list[str] = []
        for each in lost:
            path = f"{self.data}/objects/{each.name}"
            if not each.kept:
                failed.append(f"{path} (could not be put back: there is no copy)")
                continue
            try:
                put_copy_back(path, self._place, each.kept, aside)
            except OSError as error:
                failed.append(f"{path} (could not be put back: {error.strerror})")
            else:
                restored.append(path)
        folder = f"{self.data}/objects"
        return [*_shortened(restored, folder, "objects"), *_shortened(failed, folder, "objects that are lost")]

    def _set_caches_aside(self, aside: SetAsideFolder) -> None:
        """Set aside git's caches of object data, which may be damaged, too; git recreates them."""
        for name in _CACHES:
            with contextlib.suppress(OSError):
                put_back(f"{self.data}/objects/{name}", self._place, None, aside)

    def _set_pipes_aside(self, aside: SetAsideFolder) -> list[str]:
        """Set aside named pipes among references and state files, which would block git forever."""
        waiting = [
            path for path, entry in self._references.items() if entry.kind == "folder" and is_changed(path, entry)
        ]
        restored: list[str] = []
        for path in pipes_in(self.data, waiting):
            with contextlib.suppress(OSError):
                put_back(path, self._place, None, aside)
                restored.append(path)
        return _shortened(restored, self.data, "pipes")

    def _make_folders(self, aside: SetAsideFolder) -> None:
        """Create the folders without which git recognizes no repository."""
        folder = Entry("folder", b"", (), 0o755)
        for name in ("objects", "refs"):
            with contextlib.suppress(OSError):
                put_back(f"{self.data}/{name}", self._place, folder, aside)

    # ------------------------------------------------------------------ a record

    def _write_record(self) -> None:
        """Save the list of references, to recover one that is missed later."""
        lines: list[bytes] = []
        start = len(self.data) + 1
        for path, entry in self._references.items():
            name = path[start:]
            if entry.kind == "file" and entry.content and name.startswith(("HEAD", "packed-refs", "refs/")):
                lines += (
                    [entry.content] if name == "packed-refs" else [entry.content.strip() + b" " + os.fsencode(name)]
                )
        data = b"\n".join(lines)
        folder = Path(f"{self._kept}/references")
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / sha256(data).hexdigest()[:16]
            if not path.exists():
                path.write_bytes(data)
                known = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)
                for each in known[:-_RECORDS]:
                    each.unlink()


def _shown(lines: tuple[str, ...]) -> str:
    return first_of(lines, _MOST_LINES, lambda line: in_remark(line[:_LONGEST_LINE]), "; ")


def _is_gone(path: str, entry: Entry) -> bool:
    """Whether it is missing, unreadable, or not a regular file any more, such as a pipe."""
    if entry.kind == "file":
        mode = _mode(path)
        return not stat.S_ISREG(mode) or (entry.mode & stat.S_IRUSR) > (mode & stat.S_IRUSR)
    return entry.kind in ("folder", "link") and not os.path.lexists(path)


def _is_closed(folder: str) -> bool:
    mode = _mode(folder)
    return stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _packed(found: Entry | None) -> dict[str, str]:
    """Names and values in a packed-refs file."""
    lines = ((found.content if found else b"") or b"").splitlines()
    pairs = (os.fsdecode(line).partition(" ") for line in lines if not line.startswith((b"#", b"^")))
    return {name: value for value, _, name in pairs}


def _shortened(paths: list[str], folder: str, what: str) -> list[str]:
    return paths if len(paths) <= _MOST_SHOWN else [f"{folder} ({len(paths)} {what})"]
