"""Restores files, folders and links to earlier states, exactly and without following links. Starts no program."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

import msgspec

from bradawl.checkpoints.composed_changes import compose
from bradawl.checkpoints.coverage import is_cache
from bradawl.checkpoints.errors import RestoreRefused, RestoreStopped, StoreError
from bradawl.checkpoints.file_states import digest_of, is_same, read_state
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.opened_notes import noted_walk
from bradawl.checkpoints.owners import give_owner
from bradawl.checkpoints.planned_renames import CHANGED, PlannedRenames, Stamp, stamp_of
from bradawl.checkpoints.record import Change, ChangeRecord, FileState, Owner
from bradawl.checkpoints.restore_intent import new_temporary_name
from bradawl.checkpoints.restore_plan import PlannedChange, RestorePlan, plan
from bradawl.checkpoints.restored_files import (
    overwrite_file,
    place_file,
    place_link,
    place_name,
    set_file_mode,
)
from bradawl.checkpoints.store import ContentStore, add_checked

__all__ = ["PlannedChange", "RestorePlan", "apply", "compose", "plan"]

_OWNER: Final = "was restored, but not its owner (user {}, group {}): only root may give files to other users."
_FOLDER_STAYS: Final = "the folder holds other files, so it stays"
_REPOSITORY_STAYS: Final = (
    "git's objects or hooks in it stay, because they are too large or were changed since; remove the folder to make the"
    " repository again"
)


Begin = Callable[[ChangeRecord, tuple[tuple[bytes, int], ...]], None]
"""Called before the first change with the intended changes and the closed folders that are open now, with their modes.

Writes them and what the store has to the disk; an `OSError` refuses the restore.
"""


def apply(
    plan: RestorePlan,
    store: ContentStore,
    *,
    overwrite: Collection[bytes] = (),
    begin: Begin | None = None,
    temporary: bytes = b"",
    should_stop: Callable[[], bool] = bool,
) -> ChangeRecord:
    """Restore what a plan names, of the conflicts only those in `overwrite`. Blocks while it works.

    Saves the present contents first; the returned record names what was changed, and undoes it. Its `uncovered` says
    what was not restored and why, and its `unrestored` what of that a later restore may. A path whose state is no
    longer the one in the plan is left alone. New files are first written under the name `temporary`, so that the
    caller can remove what a killed restore left.

    Raises `RestoreRefused` if git holds a lock of what would be restored, and `OSError` if the present contents can't
    be saved; nothing is changed then. Raises `RestoreStopped` if `should_stop` returned true, which is called between
    two changes.
    """
    chosen = [change for change in (*plan.changes, *plan.git) if not change.conflict or change.path in overwrite]
    with noted_walk(store.folder, plan.roots) as walk:
        git = frozenset(change.path for change in plan.git)
        if lock := _held_lock(walk, [change.path for change in chosen if change.path in git]):
            raise RestoreRefused(f"Nothing was restored: {lock}")
        restoration = _Restoration(walk, store, git, temporary or new_temporary_name(), should_stop)
        began_at = time.time_ns() // 1_000_000
        try:
            restoration.save_present(chosen)
        except _NotSaved as error:
            raise error.args[0] from None
        if begin is None:
            store.flush()
        else:
            begin(restoration.intended(), restoration.opened())
        restoration.restore()
        record = restoration.record()
    unrestored = sorted((*record.unrestored, *plan.outside), key=lambda change: change.path)
    return msgspec.structs.replace(record, unrestored=tuple(unrestored), began_at=began_at)


def held_lock(plan: RestorePlan, store: ContentStore) -> str:
    """A sentence about the lock of git that makes `apply` refuse the plan without its conflicts; empty without one."""
    with noted_walk(store.folder, plan.roots) as walk:
        return _held_lock(walk, [change.path for change in plan.git if not change.conflict])


class _Stop(Exception):
    """The caller wants the restore to stop."""


class _NotSaved(Exception):
    """The present content of a file can't be saved."""


class _Restoration:
    def __init__(
        self,
        walk: FolderWalk,
        store: ContentStore,
        git: Collection[bytes],
        temporary: bytes,
        should_stop: Callable[[], bool],
    ) -> None:
        self._walk = walk
        self._store = store
        self._git = git
        self._temporary = temporary
        self._should_stop = should_stop
        self._done = 0
        self._changes: dict[bytes, PlannedChange] = {}
        self._names: dict[tuple[int, int], list[PlannedChange]] = {}
        self._stamps: dict[bytes, Stamp | None] = {}
        self._failed: dict[bytes, str] = {}
        self._may_succeed_later: set[bytes] = set()
        """The failed paths whose failure has a cause outside of the file, such as a full disk."""
        self._unread: list[Change] = []
        self._separated: list[bytes] = []
        self._other_owner: dict[bytes, Owner] = {}
        """The owners that could not be given."""
        self._stayed: dict[bytes, bool] = {}
        """Folders that were to be removed and hold only caches, or files of a cache; true for the caches."""

    def save_present(self, chosen: list[PlannedChange]) -> None:
        """Save the contents that will be replaced. Leaves out paths that have changed since the plan."""
        for change in chosen:
            try:
                self._stamps[change.path] = self._stamp(change.path)
                is_as_planned = is_same(self._state(change), change.now)
            except OSError as error:
                self._fail_for(change, error)
                self._unread.append(Change(change.path, change.wanted, change.now))
                continue
            if is_as_planned:
                self._changes[change.path] = change
            else:
                self._fail(change.path, CHANGED)
        for change in list(self._changes.values()):
            if change.wanted is not None:
                self._add_missing_folders(change.path)

    def _add_missing_folders(self, path: bytes) -> None:
        """Add the folders above a path that were removed since, as changes of the plan."""
        folder = os.path.dirname(path)  # noqa: PTH120 names are bytes
        while folder not in self._changes and self._walk.root_of(folder) not in (None, folder):
            try:
                self._walk.folder(folder)
            except FileNotFoundError:
                self._changes[folder] = PlannedChange(folder, None, FileState("folder", 0o755))
                self._stamps[folder] = None
            except OSError:
                return
            else:
                return
            folder = os.path.dirname(folder)  # noqa: PTH120 names are bytes

    def intended(self) -> ChangeRecord:
        """What `restore` will change if nothing fails."""
        changes = [Change(path, self._as_saved(each.now), each.wanted) for path, each in sorted(self._changes.items())]
        return ChangeRecord("", now := time.time_ns() // 1_000_000, tuple(changes), began_at=now)

    def opened(self) -> tuple[tuple[bytes, int], ...]:
        """The closed folders that are open now, with their modes, but for those that are to stay open so."""
        wanted = {path: change.wanted.mode for path, change in self._changes.items() if change.wanted is not None}
        return tuple((path, mode) for path, mode in self._walk.opened() if wanted.get(path) != mode | stat.S_IRWXU)

    def _state(self, change: PlannedChange) -> FileState | None:
        """The present state of a path; its content is saved."""
        wanted, now = change.wanted.content if change.wanted is not None else "", change.now

        def add(file: int, size: int) -> str:
            if size > self._store.largest_bytes:
                return digest_of(file, size) if now is not None and now.content and now.size == size else ""
            try:
                return add_checked(self._store, file, size, wanted)
            except OSError as error:
                raise _NotSaved(error) from error

        if now is not None and now.kind == "file" and not now.content:
            return read_state(self._walk, change.path, lambda _file, _size: "")  # the content stays as it is
        return read_state(self._walk, change.path, add)

    def restore(self) -> None:
        """Remove, make folders, make files and links, and set the modes of folders at the end."""
        is_stopped = False
        try:
            self._restore_all()
        except _Stop:
            is_stopped = True
        for path, error in self._walk.finish().items():
            self._fail(path, f"its mode was not restored: {_text(error)}")
            self._may_succeed_later.add(path)
        if is_stopped:
            raise RestoreStopped(self._done, len(self._changes))

    def _restore_all(self) -> None:
        changes = sorted(self._changes.values(), key=lambda change: change.path)
        renames = PlannedRenames(self._walk, self._changes, self._failed, self._stamps)
        if renames.by_target:
            self._check_stop()
        self._done += len(renames.by_target)
        renames.park()
        above = renames.folders_of_sources()
        first = [change for change in changes if change.path not in above]
        for kind, undo in (("file", self._remove), ("link", self._remove), ("folder", self._remove_folder)):
            self._remove_all(kind, first if kind == "folder" else changes, undo)
        self._make_all("folder", changes, self._make_folder)
        renames.carry_out()
        self._remove_all("folder", [change for change in changes if change.path in above], self._remove_folder)
        self._names = _names_of_files(self._walk, [each for each in changes if each.path not in self._failed])
        self._make_all("file", changes, self._make_file)
        self._make_all("link", changes, self._make_link)

    def _remove_all(
        self, kind: str, changes: Sequence[PlannedChange], undo: Callable[[PlannedChange, FileState], None]
    ) -> None:
        for change in reversed(changes):
            is_in_the_way = change.now is not None and (bool(change.source) or _is_removed(change.now, change.wanted))
            if change.now is None or change.now.kind != kind or change.moves_away or change.path in self._failed:
                continue
            if is_in_the_way:
                self._try(change, change.now, undo)

    def _make_all(
        self, kind: str, changes: Sequence[PlannedChange], make: Callable[[PlannedChange, FileState], None]
    ) -> None:
        for change in changes:
            if change.source or change.wanted is None or change.wanted.kind != kind or change.path in self._failed:
                continue
            self._try(change, change.wanted, make)

    def record(self) -> ChangeRecord:
        """What was changed, as found on the disk where something failed."""
        changes: list[Change] = []
        unrestored = [change for change in self._unread if change.path in self._may_succeed_later]
        for path, change in sorted(self._changes.items()):
            after = present = change.wanted
            if path in self._failed or path in self._stayed:
                after, present = self._found_states(change)
            if not is_same(change.now, after):
                changes.append(Change(path, self._as_saved(change.now), self._as_saved(after)))
            if path in self._may_succeed_later and not is_same(present, change.wanted):
                unrestored.append(Change(path, change.wanted, self._as_saved(present)))
        separated = "was one of several names of a file (hard links); the others keep their content."
        return ChangeRecord(
            call_id="",
            at=time.time_ns() // 1_000_000,
            changes=tuple(changes),
            uncovered=(
                *(f"{os.fsdecode(path)!r} was not restored: {why}." for path, why in sorted(self._failed.items())),
                *(f"{os.fsdecode(path)!r} {separated}" for path in self._separated),
                *(f"{os.fsdecode(path)!r} {_OWNER.format(*owner)}" for path, owner in self._other_owner.items()),
            ),
            stayed=tuple(sorted(path for path, is_cache in self._stayed.items() if is_cache)),
            unrestored=tuple(unrestored),
        )

    def _found_states(self, change: PlannedChange) -> tuple[FileState | None, FileState | None]:
        """The state after a failure, for a redo and a later restore. Unreadable: the wanted and the earlier one."""
        with contextlib.suppress(OSError):
            try:
                found = self._state(change)
            except _NotSaved:  # the disk is full
                found = read_state(self._walk, change.path)
            return found, found
        return change.wanted, change.now

    def _as_saved(self, state: FileState | None) -> FileState | None:
        """A state without the name of a content that is too large to be saved."""
        if state is None or state.size <= self._store.largest_bytes or self._store.has(state.content):
            return state
        return msgspec.structs.replace(state, content="")

    def _try(self, change: PlannedChange, state: FileState, work: Callable[[PlannedChange, FileState], None]) -> None:
        self._check_stop()
        self._done += (state is change.wanted) or change.wanted is None
        try:
            work(change, state)
        except OSError as error:
            self._fail_for(change, error)
        except StoreError as error:
            self._fail(change.path, str(error).rstrip("."))

    def _check_stop(self) -> None:
        if self._should_stop():
            raise _Stop

    def _fail_for(self, change: PlannedChange, error: OSError) -> None:
        self._fail(change.path, _text(error))
        if error.errno != errno.ESTALE and not change.source and not change.moves_away:
            self._may_succeed_later.add(change.path)

    def _fail(self, path: bytes, why: str) -> None:
        self._failed.setdefault(path, why)

    def _stamp(self, path: bytes) -> Stamp | None:
        """What shows that a file has changed since it was saved."""
        try:
            found = _status(*self._walk.parent(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stamp_of(found)

    # -------------------------------------------------------------- single paths

    def _remove(self, change: PlannedChange, _now: FileState) -> None:
        parent, name = self._walk.parent(change.path)
        if stamp_of(_status(parent, name)) != self._stamps[change.path]:
            raise OSError(errno.ESTALE, CHANGED)
        os.unlink(name, dir_fd=parent)

    def _remove_folder(self, change: PlannedChange, _now: FileState) -> None:
        parent, name = self._walk.parent(change.path)
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if _holds_caches_only(self._walk, change.path, self._stayed):
                self._stayed[change.path] = is_cache(change.path)
            else:
                self._fail(change.path, _REPOSITORY_STAYS if _is_repository(change.path) else _FOLDER_STAYS)
        else:
            self._walk.forget(change.path)

    def _make_folder(self, change: PlannedChange, wanted: FileState) -> None:
        if change.now is None or change.now.kind != "folder" or change.moves_away:
            parent, name = self._parent(change.path)
            os.mkdir(name, 0o700, dir_fd=parent)
            self._note_owner(change.path, wanted, give_owner(parent, name, wanted.owner))
        self._walk.set_mode(change.path, wanted.mode)

    def _make_link(self, change: PlannedChange, wanted: FileState) -> None:
        parent, name = self._parent(change.path)
        check = partial(self._is_there, change, parent, name)
        has_owner = place_link(parent, name, wanted.target, self._temporary, check, wanted.owner)
        self._note_owner(change.path, wanted, has_owner)

    def _make_file(self, change: PlannedChange, wanted: FileState) -> None:
        parent, name = self._parent(change.path)
        found = _status(parent, name)
        self._check_unchanged(change, found)
        if change.link:
            _make_name(self._walk, change, wanted, (parent, name), self._temporary)
            return
        if found is not None and not wanted.content:
            set_file_mode(parent, name, wanted.mode, (found.st_dev, found.st_ino))
            return
        names = self._names.get((found.st_dev, found.st_ino), []) if found is not None else []
        if found is not None and found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
            if found.st_nlink == sum(is_same(each.wanted, wanted) for each in names):
                try:
                    overwrite_file(parent, name, wanted, self._store, (found.st_dev, found.st_ino))
                finally:  # also one that was overwritten in part is no change by others at its next name
                    self._stamps.update(dict.fromkeys((each.path for each in names), stamp_of(_status(parent, name))))
                return
            if found.st_nlink > len(names):
                self._separated.append(change.path)
        elif found is not None and change.now is not None and change.now.content == wanted.content:
            set_file_mode(parent, name, wanted.mode, (found.st_dev, found.st_ino))
            return
        is_locked = change.path in self._git and _lock_of(change.path) == change.path + b".lock"
        check = partial(self._is_there, change, parent, name)
        has_owner = place_file(parent, name, wanted, self._store, self._temporary, check=check, lock=is_locked)
        self._note_owner(change.path, wanted, has_owner)

    def _note_owner(self, path: bytes, wanted: FileState, has_owner: bool) -> None:
        if not has_owner and wanted.owner is not None:
            self._other_owner[path] = wanted.owner

    def _check_unchanged(self, change: PlannedChange, found: os.stat_result | None) -> None:
        """Raises `OSError` if the path is not as saved, or as left by the removals."""
        is_folder = change.now is not None and change.now.kind == "folder" and not change.moves_away
        if stamp_of(found) != (None if is_folder else self._stamps[change.path]):
            raise OSError(errno.ESTALE, CHANGED)

    def _is_there(self, change: PlannedChange, parent: int, name: bytes) -> bool:
        """Whether a file has the path, which is as saved, or as left by the removals. Raises `OSError` if it is not."""
        found = _status(parent, name)
        self._check_unchanged(change, found)
        return found is not None

    def _parent(self, path: bytes) -> tuple[int, bytes]:
        """Descriptor of a path's folder and the name in it; folders that were removed since are made again."""
        try:
            return self._walk.parent(path)
        except FileNotFoundError:
            folder = os.path.dirname(path)  # noqa: PTH120 names are bytes
            parent, name = self._parent(folder)
            os.mkdir(name, 0o755, dir_fd=parent)
            give_owner(parent, name, None)
            self._changes.setdefault(folder, PlannedChange(folder, None, FileState("folder", 0o755)))
            self._walk.set_mode(folder, 0o755)
            return self._walk.parent(path)


def _make_name(
    walk: FolderWalk, change: PlannedChange, wanted: FileState, place: tuple[int, bytes], temporary: bytes
) -> None:
    """Give a file with another name this one, too. Raises `OSError`, also if the other one has changed."""
    parent = os.dup(place[0])
    try:
        place_name(walk.parent(change.link), (parent, place[1]), wanted, temporary)
    finally:
        os.close(parent)


def _holds_caches_only(walk: FolderWalk, path: bytes, stayed: Collection[bytes]) -> bool:
    """Whether a folder is a cache, or all that is in it are such folders, which stayed."""
    if is_cache(path):
        return True
    folder = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walk.folder(path))
    try:
        with os.scandir(folder) as entries:
            return all(path + b"/" + os.fsencode(entry.name) in stayed for entry in entries)
    finally:
        os.close(folder)


def _names_of_files(walk: FolderWalk, changes: Sequence[PlannedChange]) -> dict[tuple[int, int], list[PlannedChange]]:
    """By device and inode the paths of the plan that are names of one file (hard links), after the removals."""
    names: dict[tuple[int, int], list[PlannedChange]] = {}
    for change in changes:
        if change.wanted is not None and change.wanted.kind == "file":
            try:
                found = _status(*walk.parent(change.path))
            except OSError:
                continue
            if found is not None and found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                names.setdefault((found.st_dev, found.st_ino), []).append(change)
    return names


def _is_removed(now: FileState, wanted: FileState | None) -> bool:
    """Whether the present file, link or folder has to go before the wanted one is made."""
    return wanted is None or (now.kind == "folder") != (wanted.kind == "folder")


def _is_repository(path: bytes) -> bool:
    above, _, name = path.rpartition(b"/")
    return name == b".git" or above.endswith(b"/.git/modules")


def _text(error: OSError) -> str:
    return str(error.strerror or error)


def _status(parent: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _held_lock(walk: FolderWalk, paths: list[bytes]) -> str:
    """A sentence about a lock that git, or a git that died, holds of one of these files; empty without one."""
    locks = {_lock_of(path) for path in paths} | {
        path[: path.index(b"/.git/") + 6] + b"index.lock" for path in paths if b"/.git/" in path
    }
    for lock in sorted(locks):
        try:
            is_there = read_state(walk, lock, lambda _file, _size: "") is not None
        except OSError as error:
            is_there = error.errno != errno.ENAMETOOLONG  # no file has such a name
        if is_there:
            shown = os.fsdecode(lock)
            return f"{shown!r} exists, so git may be at work. If not, remove it and try again."
    return ""


def _lock_of(path: bytes) -> bytes:
    """The lock that git takes for a file: of a reflog that of its reference."""
    return path.replace(b"/.git/logs/", b"/.git/", 1) + b".lock"
