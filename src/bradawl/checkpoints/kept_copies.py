"""Finds files and folders that an undo would remove although they hold the only copy of what it can't restore.

Such a file is one whose content was not saved, or a folder that undo does not cover, under another name than before.
It is renamed back if it is surely the same one, and left alone if it may be.
"""

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.checkpoints.birth_time import birth_time_ns
from bradawl.checkpoints.errors import RestoreRefused
from bradawl.checkpoints.record import ChangeRecord, FileState, Identity

if TYPE_CHECKING:
    from bradawl.checkpoints.opened_folders import FolderWalk

_Inode = tuple[int, int]
_LEFT: Final = "what was in it is not saved (how much that was is not known)"


class WantedState(msgspec.Struct, frozen=True):
    """What undo is to restore at a path."""

    wanted: FileState | None


class KeptCopies(msgspec.Struct):
    """What becomes of the only copies."""

    renames: dict[bytes, bytes] = {}
    """Present path by the path to rename to."""
    conflicts: dict[bytes, str] = {}
    """Files that are left alone unless the user agrees, and why."""
    impossible: dict[bytes, str] = {}
    """Paths that are left alone, and why."""
    left_out: tuple[bytes, ...] = ()
    """Folders, with a slash at the end, that are renamed or left alone with everything in them."""
    lost: tuple[str, ...] = ()
    """Sentences about folders whose contents are gone."""

    @property
    def sources(self) -> frozenset[bytes]:
        """The present paths of what is renamed."""
        return frozenset(self.renames.values())


def identity_of(found: os.stat_result) -> Identity:
    """The identity of a file or folder by its status."""
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns)


def present_status(walk: "FolderWalk", path: bytes) -> os.stat_result | None:
    """Status of a path, links not followed; None if it does not exist, or can't be reached."""
    with contextlib.suppress(OSError):
        parent, name = walk.parent(path)
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    return None


def find_kept_copies(
    walk: "FolderWalk", wanted: Mapping[bytes, FileState | None], records: Sequence[ChangeRecord]
) -> KeptCopies:
    """Find what must not be removed. `wanted` are the states to restore by path; the newest record comes first.

    Raises `RestoreRefused` if a folder to rename was changed by a later call: its files belong to both names.
    """
    needed = {path: state for path, state in wanted.items() if state is not None and state.identity is not None}
    if not needed:
        return KeptCopies()
    search = _CopySearch(walk, wanted, needed)
    search.pair()
    search.check_folders(records)
    return search.result


class _CopySearch:
    def __init__(
        self, walk: "FolderWalk", wanted: Mapping[bytes, FileState | None], needed: Mapping[bytes, FileState]
    ) -> None:
        self.result = KeptCopies()
        self._walk = walk
        self._wanted = wanted
        self._needed = needed
        self._present = {path: found for path in sorted(wanted) if (found := present_status(walk, path)) is not None}
        self._by_inode: dict[_Inode, list[bytes]] = {}
        for path, found in self._present.items():
            self._by_inode.setdefault((found.st_dev, found.st_ino), []).append(path)

    def pair(self) -> None:
        """Find the present name of each path that can't be restored from the store."""
        lost: list[str] = []
        for path, state in sorted(self._needed.items()):
            if self._is_in_place(path, state) or self._pair_by_inode(path, state) or self._pair_by_time(path, state):
                continue
            found = self._present.get(path)
            if state.kind == "folder" and (found is None or not stat.S_ISDIR(found.st_mode)):
                lost.append(f"{self._shown(path)} was removed; {_LEFT}.")
        self.result.lost = tuple(lost)

    def _is_in_place(self, path: bytes, state: FileState) -> bool:
        found = self._present.get(path)
        return found is not None and (found.st_dev, found.st_ino) == _inode(state)

    def _pair_by_inode(self, path: bytes, state: FileState) -> bool:
        """Find it by its inode, which a rename keeps."""
        taken = self.result.sources
        for other in self._by_inode.get(_inode(state), ()):
            if other in taken or not self._is_replaced(other, state) or not _is_kind(self._present[other], state):
                continue
            if (sameness := self._sameness(other, state)) == "same":
                self.result.renames[path] = other
                return True
            if sameness == "changed":
                self._leave(other, path, "it was changed since it was renamed")
                return True
        return False

    def _pair_by_time(self, path: bytes, state: FileState) -> bool:
        """Find a copy, or what was moved from another file system: size and time of change are the same."""
        for other, found in self._present.items():
            if self._is_replaced(other, state) and _is_kind(found, state) and _looks_alike(found, state):
                self._leave(other, path, "it may be a copy")
                return True
        return False

    def _is_replaced(self, path: bytes, state: FileState) -> bool:
        """Whether undo would remove or replace what is at the path, and that is not where the state belongs."""
        wanted = self._wanted[path]
        if wanted is None or wanted.kind != state.kind:
            return True
        if wanted.identity is None:
            return state.kind == "file"  # a folder keeps its inode
        return _inode(wanted) != _inode(state)

    def _sameness(self, path: bytes, state: FileState) -> str:
        """`same`, `changed`, or empty if the inode was freed and used again."""
        found, known = self._present[path], state.identity
        if known is None or _looks_alike(found, state):
            return "same"
        born = birth_time_ns(*self._walk.parent(path))
        if born and known[2]:
            if born > known[2]:
                return ""
            return "same" if state.kind == "folder" else "changed"
        return "changed" if state.kind == "folder" or 2 * found.st_size >= state.size else ""

    def _leave(self, present: bytes, path: bytes, why: str) -> None:
        text = f"it holds what was {self._shown(path)}, which is not saved; {why}"
        if self._needed[path].kind == "file":
            self.result.conflicts[present] = text
        else:
            self._leave_folder(present, text)
            self.result.impossible[path] = f"it is not saved; see {self._shown(present)}"

    def _leave_folder(self, present: bytes, why: str) -> None:
        self.result.impossible[present] = why
        self.result.left_out = (*self.result.left_out, present + b"/")

    # ------------------------------------------------------------------ folders

    def check_folders(self, records: Sequence[ChangeRecord]) -> None:
        """Find what prevents that folders are renamed back."""
        for target, source in list(self.result.renames.items()):
            if self._needed[target].kind != "folder":
                continue
            if _was_changed_later(source, records):
                raise RestoreRefused(
                    f"Nothing was restored: {self._shown(source)} was {self._shown(target)}, which is not saved, and a "
                    "later step changed files in it. Go back one step at a time."
                )
            if why := self._why_not_renamed(target, source):
                del self.result.renames[target]
                self._leave_folder(source, f"it was {self._shown(target)}, which is not saved; {why}")
                self.result.impossible[target] = why
            else:
                self.result.left_out = (*self.result.left_out, source + b"/")

    def _why_not_renamed(self, target: bytes, source: bytes) -> str:
        found = self._present.get(target)
        if found is not None and target not in self.result.sources and stat.S_ISDIR(found.st_mode):
            recorded = any(path.startswith(target + b"/") for path in self._wanted)
            if not recorded and not _is_empty(self._walk, target):
                return "another folder has its name now"
        if any(state is not None for path, state in self._wanted.items() if path.startswith(source + b"/")):
            return "another folder had this name before"
        return ""

    def _shown(self, path: bytes) -> str:
        root = self._walk.root_of(path) or b""
        return (path[len(root) :].lstrip(b"/") or path).decode(errors="backslashreplace")


def _inode(state: FileState) -> _Inode:
    return (-1, -1) if state.identity is None else state.identity[:2]


def _is_kind(found: os.stat_result, state: FileState) -> bool:
    return stat.S_ISDIR(found.st_mode) if state.kind == "folder" else stat.S_ISREG(found.st_mode)


def _looks_alike(found: os.stat_result, state: FileState) -> bool:
    is_same_size = state.kind == "folder" or found.st_size == state.size
    return is_same_size and state.identity is not None and found.st_mtime_ns == state.identity[3]


def _was_changed_later(folder: bytes, records: Sequence[ChangeRecord]) -> bool:
    """Whether a call changed something in the folder after the call that gave it this name."""
    for record in records:
        own = next((change for change in record.changes if change.path == folder), None)
        if own is not None and (own.before is None or own.before.kind != "folder" or own.before.identity is not None):
            return False
        if any(change.path.startswith(folder + b"/") for change in record.changes):
            return True
    return False


def _is_empty(walk: "FolderWalk", path: bytes) -> bool:
    try:
        descriptor = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walk.folder(path))
    except OSError:
        return False
    try:
        with os.scandir(descriptor) as entries:
            return next(entries, None) is None
    finally:
        os.close(descriptor)
