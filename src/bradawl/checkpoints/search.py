"""One search: compares folders on the disk with the index, updates the index, and records the differences."""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from bradawl.checkpoints.coverage import Coverage, is_virtual_environment, reason_by_name
from bradawl.checkpoints.folder import Folder, Signature
from bradawl.checkpoints.folder_reader import (
    CACHE_TAG,
    Contents,
    NotAFile,
    NotSaved,
    entry_signature,
    has_cache_tag,
    link_target,
    list_entries,
    save_file,
)
from bradawl.checkpoints.folder_watches import FolderWatches
from bradawl.checkpoints.gaps import Gaps
from bradawl.checkpoints.git_data import NAMED_IF_REMOVED, Role, covers_file, role_of_folder
from bradawl.checkpoints.owners import owner_of
from bradawl.checkpoints.record import Change, FileState
from bradawl.checkpoints.sandbox_placeholders import SandboxPlaceholders
from bradawl.checkpoints.unsaved_changes import UnsavedChanges, differs, identified

_CLOCK_STEP_NS: Final = 20_000_000
"""Two changes within this time may leave the same ctime: kernels count in steps of up to 10 ms."""
_COARSE_CLOCK_STEP_NS: Final = 2_000_000_000
"""The same for file systems that store whole seconds."""
_SECOND_NS: Final = 1_000_000_000


class Index:
    """What was found in a workspace: the folders of each root, and what the next search must compare again."""

    def __init__(self, roots: tuple[bytes, ...]) -> None:
        self.clock_ns: Callable[[], int] = time.time_ns
        """The clock that file systems take ctime from."""
        self.roots = {path: Folder(path, os.fsdecode(path), None, "plain") for path in roots}
        self.root_states: dict[bytes, FileState | None] = dict.fromkeys(roots)
        self.entry_count = 0
        self.again: set[tuple[Folder, str]] = set()
        """Entries that may have changed without a trace, or were not saved in time."""
        self.limited: set[Folder] = set()
        """Folders that are not entered, because there are too many entries."""
        self.placeholders = SandboxPlaceholders("")

    def forget_gone(self) -> None:
        """Remove what has left the index from `again` and `limited`."""
        if self.limited:
            self.limited = {folder for folder in self.limited if folder.is_in_index()}
        if self.again:
            self.again = {(folder, name) for folder, name in self.again if folder.is_in_index()}


class Search:
    """Compares what it is given with the index.

    `records`: differences become `changes`. `knows_absent`: an entry that is not in the index did not exist, also in a
    folder that was not listed completely. `saves`: contents of new and changed files are saved.
    """

    def __init__(
        self,
        index: Index,
        contents: Contents,
        limits: Coverage,
        watches: FolderWatches,
        *,
        records: bool = False,
        knows_absent: bool = False,
        saves: bool = True,
    ) -> None:
        self._index = index
        self._contents = contents
        self._limits = limits
        self._watches = watches
        self.records = records
        self._knows_absent = knows_absent
        self._saves = saves
        index.placeholders.expire()
        self._recent_ns = index.clock_ns()
        self.reading_s = 0.0
        """Time spent on contents."""
        self.changes: list[Change] = []
        self.gaps = Gaps(tuple(index.roots))
        self._unsaved = UnsavedChanges(limits.file_bytes)
        self.store_error: OSError | None = None

    # ------------------------------------------------------------------ folders

    def compare_root(self, root: Folder, status: os.stat_result | None) -> None:
        """Compare a root itself, given its status; None if it is gone."""
        before = self._index.root_states[root.path]
        after = None if status is None else FileState("folder", stat.S_IMODE(status.st_mode))
        if before != after:
            self._record(root.path, before, after, is_known=root.is_listed)
            self._index.root_states[root.path] = after
        if status is not None:
            root.device = status.st_dev
            return
        root.is_listed = True
        for name in list(root.states):
            self.remove(root, name)

    def visit(self, folder: Folder, descriptor: int) -> None:
        """Compare the entries of an open folder."""
        try:
            self._watches.add(folder, descriptor)
            found = self._listed(folder, descriptor)
        except OSError as error:
            self.cannot_open(folder, error, None)
            return
        if found is None:
            return
        folder.closed_at = None
        if found != folder.signatures:
            self._compare(folder, descriptor, found)
        if not folder.is_listed:
            if self.records and not self._knows_absent:
                self.gaps.add("unknown", folder.path)
            folder.is_listed = True

    def cannot_open(self, folder: Folder, error: OSError, parent: int | None) -> None:
        """Handle a folder that can't be opened: it is gone, replaced or closed. What is known of it stays if closed."""
        if folder.parent is None or error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            at = folder.parent.signatures[folder.name][3] if folder.parent is not None else 0
            if folder.closed_at != at:
                folder.closed_at = at
                self.gaps.add("closed", folder.path)
            return
        if parent is not None:
            self.look_at(folder.parent, parent, folder.name)

    def look_at(self, folder: Folder, descriptor: int, name: str) -> None:
        """Compare one entry of an open folder."""
        found = entry_signature(descriptor, name)
        if found is None or self._role(folder, name, found) is None:
            if name in folder.states:
                self.remove(folder, name)
            elif found is None:
                self._index.again.discard((folder, name))
                _note_left_out(self, folder, folder.left_out - {name})
            elif self._knows_absent:
                self.gaps.add("excluded", folder.path_of(name))
        elif found != folder.signatures.get(name):
            self._update(folder, descriptor, name, found)

    def remove(self, folder: Folder, name: str) -> None:
        """Remove an entry, with everything below it."""
        before = identified(folder, name)
        self._forget_folder(folder, name)
        self._record(folder.path_of(name), before, None, is_known=True)
        del folder.states[name], folder.signatures[name]
        self._index.again.discard((folder, name))
        self._index.entry_count -= 1

    def _listed(self, folder: Folder, descriptor: int) -> dict[str, Signature] | None:
        """The covered entries of a folder; None if it must not be entered."""
        room = self._limits.entries - self._index.entry_count
        found = list_entries(descriptor, max(0, room) + len(folder.signatures))
        if found is None:
            self.gaps.add("limit", folder.path)
            if not folder.signatures:
                folder.reason = "limit"
                self._index.limited.add(folder)
                return None
            known = {name: entry_signature(descriptor, name) for name in folder.signatures}
            return {name: at for name, at in known.items() if at is not None}
        if not folder.states and self._is_heavy(folder, descriptor, found):
            return None
        if folder.role == "plain":
            return found
        if folder.role == "modules" and "HEAD" in found:
            folder.role = "git"
        covered = {name: at for name, at in found.items() if self._role(folder, name, at) is not None}
        if folder.role == "git":
            _note_left_out(self, folder, NAMED_IF_REMOVED & (found.keys() - covered.keys()))
        return covered

    def _is_heavy(self, folder: Folder, descriptor: int, found: dict[str, Signature]) -> bool:
        """Whether a mark in a folder without known entries says that it is a cache or a virtual environment."""
        if folder.parent is None or folder.role != "plain":
            return False
        if is_virtual_environment(found) or (CACHE_TAG in found and has_cache_tag(descriptor)):
            folder.reason = "heavy"
            self._watches.remove(folder)
            if self.records:
                self.gaps.add("heavy", folder.path)
        return folder.reason == "heavy"

    def _compare(self, folder: Folder, descriptor: int, found: dict[str, Signature]) -> None:
        known = folder.signatures
        for name in known.keys() - found.keys():
            self.remove(folder, name)
        for name, at in found.items():
            if known.get(name) != at:
                self._update(folder, descriptor, name, at)

    @staticmethod
    def _role(folder: Folder, name: str, found: Signature) -> Role | None:
        """Role of an entry by its name; None if it is not covered."""
        if stat.S_ISDIR(found[0]):
            if folder.parent is None and name == ".git":
                return "git"
            return role_of_folder(folder.role, name)
        return "plain" if covers_file(folder.role, name) else None

    # ------------------------------------------------------------------ entries

    def _update(self, folder: Folder, descriptor: int, name: str, found: Signature) -> None:
        """Bring an entry up to date that is new or may have changed."""
        before, known = identified(folder, name), folder.signatures.get(name)
        if before is None and self._index.placeholders.include(folder.path_of(name), descriptor, name, found):
            self._index.again.add((folder, name))  # there is no event if it is filled
            return
        try:
            after, at = _with_owner(self._state(folder, descriptor, name, found), descriptor, name)
        except FileNotFoundError:
            if before is not None:
                self.remove(folder, name)
            return
        if before is None:
            self._index.entry_count += 1
        if after.kind != "folder":
            self._forget_folder(folder, name)
        if self.records and (known is None or known[1] != at[1]):
            self._unsaved.add_new(after, found)
        folder.states[name], folder.signatures[name] = after, at
        if before is None or differs(before, after):
            self._record(
                folder.path_of(name), before, _noted(folder, name, after, self._limits), is_known=folder.is_listed
            )
        if before is not None and before.identity is not None and self.records:
            self._unsaved.add_changed(Change(folder.path_of(name), before, after), before.identity, at)

    def _state(self, folder: Folder, descriptor: int, name: str, found: Signature) -> tuple[FileState, Signature]:
        """State of an entry, and the signature to keep. Raises `FileNotFoundError` if it is gone."""
        mode = stat.S_IMODE(found[0])
        if stat.S_ISDIR(found[0]):
            self._update_folder(folder, name, found)
            return FileState("folder", mode), found
        if stat.S_ISREG(found[0]):
            return self._file_state(folder, descriptor, name, found)
        if stat.S_ISLNK(found[0]):
            try:
                target = link_target(descriptor, name)
            except FileNotFoundError:
                raise
            except OSError:  # it is no link any more
                return self._again(folder, name, FileState("other", mode), found)
            return self._kept(folder, name, FileState("link", mode, target=target), found)
        return FileState("other", mode), found

    def _update_folder(self, folder: Folder, name: str, found: Signature) -> None:
        """Add a folder to the index if it is new."""
        below = folder.folders.get(name)
        if below is None:
            below = folder.add_folder(name, self._role(folder, name, found) or "plain")
            below.is_listed = self.records and (folder.is_listed or self._knows_absent)
            below.reason = reason_by_name(name, self._limits) if below.role == "plain" else ""
            if below.path in self._limits.excluded:
                below.reason = "quiet"
            if len(below.path) > self._limits.path_bytes:
                below.reason = "long"
        below.device = found[5]
        if below.device != folder.device:
            below.reason = "mount"
        elif below.reason == "mount":
            below.reason = ""
        below.reason = folder.reason or below.reason
        if self.records and not self._knows_absent and below.reason not in ("", "quiet"):
            self.gaps.add(below.reason, below.path)

    def _file_state(self, folder: Folder, descriptor: int, name: str, found: Signature) -> tuple[FileState, Signature]:
        path, mode, size = folder.path_of(name), stat.S_IMODE(found[0]), found[2]
        unsaved = FileState("file", mode, size=size)
        if not self._saves or size > self._limits.file_bytes:
            return unsaved, found
        if self.reading_s > self._limits.reading_s or self.store_error is not None:
            if self._looks_the_same(folder, name, found):
                return self._again(folder, name, folder.states[name], found)
            self.gaps.add("late" if self.store_error is None else "unsaved", path)
            return self._again(folder, name, unsaved, found)
        started, known = time.monotonic(), folder.states.get(name)
        try:
            content, at = save_file(self._contents, descriptor, name, known.content if known is not None else "")
        except NotSaved as error:
            self.store_error = error
            self.gaps.add("unsaved", path)
            return self._again(folder, name, unsaved, found)
        except FileNotFoundError:
            raise
        except OSError as error:
            return self._unread(folder, name, unsaved, found, error)
        finally:
            self.reading_s += time.monotonic() - started
        return self._kept(folder, name, FileState("file", stat.S_IMODE(at[0]), content, at[2]), at)

    def _looks_the_same(self, folder: Folder, name: str, found: Signature) -> bool:
        """Whether a file whose content is saved is only to be compared again because its last change was recent."""
        known, state = folder.signatures.get(name), folder.states.get(name)
        is_saved = state is not None and state.kind == "file" and bool(state.content)
        return is_saved and known is not None and (*known[:3], 0, *known[4:]) == (*found[:3], 0, *found[4:])

    def _unread(
        self, folder: Folder, name: str, unsaved: FileState, found: Signature, error: OSError
    ) -> tuple[FileState, Signature]:
        """State of a file that could not be read, or is not a file any more."""
        if isinstance(error, NotAFile) or error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            self.gaps.add("unsteady", folder.path_of(name))
            return self._again(folder, name, unsaved, found)
        self.gaps.add("unreadable", folder.path_of(name))
        return unsaved, found

    def _kept(self, folder: Folder, name: str, state: FileState, at: Signature) -> tuple[FileState, Signature]:
        """The state, to be compared again if a later change could leave the same signature."""
        step = _CLOCK_STEP_NS if at[3] % _SECOND_NS else _COARSE_CLOCK_STEP_NS
        if at[3] >= self._recent_ns - step:
            return self._again(folder, name, state, at)
        self._index.again.discard((folder, name))
        return state, at

    def _again(self, folder: Folder, name: str, state: FileState, at: Signature) -> tuple[FileState, Signature]:
        self._index.again.add((folder, name))
        return state, (*at[:3], 0, *at[4:])

    # ------------------------------------------------------------------ differences

    def _forget_folder(self, folder: Folder, name: str) -> None:
        """Remove a folder's contents from the index, if the entry is a folder."""
        if (gone := folder.folders.pop(name, None)) is None:
            return
        if self.records and gone.reason not in ("", "quiet"):
            self.gaps.add(gone.reason, gone.path)
        for each in gone.below():
            _note_left_out(self, each, ())
            self._watches.remove(each)
            self._index.entry_count -= len(each.states)
            for below in each.states if not each.reason else ():
                self._record(each.path_of(below), identified(each, below), None, is_known=True)

    def _record(self, path: bytes, before: FileState | None, after: FileState | None, *, is_known: bool) -> None:
        """Record a difference. An unlisted folder's new entry may have existed before: it is only taken over."""
        if not self.records or (before is None and not is_known and not self._knows_absent):
            return
        if path in self._limits.excluded:
            return  # the store's own folder
        if after is None and before is not None and before.kind == "file" and before.identity is not None:
            self._unsaved.add_gone(path, before.identity)
        self.changes.append(Change(path, before, after))

    def finish(self) -> None:
        """Add what is known only at the end: which of the unsaved files and folders were renamed."""
        self.changes = self._unsaved.completed(self.changes, self.gaps)


def _noted(folder: Folder, name: str, state: FileState, limits: Coverage) -> FileState | None:
    """The state to record of an entry; of a large file with its identity, which shows later whether it was written."""
    return identified(folder, name) if state.kind == "file" and state.size > limits.file_bytes else state


def _with_owner(state: tuple[FileState, Signature], folder: int, name: str) -> tuple[FileState, Signature]:
    """The state and signature of an entry of an open folder, with its owner if that is to be recorded."""
    found, at = state
    owner = owner_of(os.stat(name, dir_fd=folder, follow_symlinks=False), folder)
    return (found if owner == found.owner else msgspec.structs.replace(found, owner=owner)), at


def _note_left_out(search: Search, folder: Folder, names: Iterable[str]) -> None:
    """Report folders of git data that undo can't bring back and that are gone."""
    left_out = frozenset(names)
    for name in folder.left_out - left_out if search.records else ():
        search.gaps.add("excluded", folder.path_of(name))
    folder.left_out = left_out
