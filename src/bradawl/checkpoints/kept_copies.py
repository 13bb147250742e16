"""Finds files and folders that an undo would remove although they hold the only copy of what it can't restore.

Such a file is one whose content was not saved, or a folder that undo does not cover, under another name than before.
It is renamed back if it is surely the same one, and left alone if it may be. A hard link brings a removed file back.
If nothing of that is found, the new files that may be copies or archives are left alone.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.checkpoints.birth_time import birth_time_ns
from bradawl.checkpoints.coverage import is_cache
from bradawl.checkpoints.errors import RestoreRefused
from bradawl.checkpoints.gaps import shortened
from bradawl.checkpoints.record import ChangeRecord, FileState, Identity
from bradawl.checkpoints.renames import PARKED
from bradawl.sandbox.filesystem.time_bits import NS_BITS

if TYPE_CHECKING:
    from bradawl.checkpoints.opened_folders import FolderWalk

_Inode = tuple[int, int]
_LEFT: Final = "what was in it is not saved (how much that was is not known)"
_COMPRESSION: Final = 1_000
"""A compressed file is at most about this many times smaller than its content: 1,032 times with deflate."""
_SMALLEST_ARCHIVE: Final = 100
"""Bytes. Archives and copies of folders are larger, but for a copy of a folder with small files only."""


class WantedState(msgspec.Struct, frozen=True):
    """What undo is to restore at a path."""

    wanted: FileState | None


class KeptCopies(msgspec.Struct):
    """What becomes of the only copies."""

    renames: dict[bytes, bytes] = {}
    """Present path by the path to rename to."""
    links: dict[bytes, bytes] = {}
    """Present path, after the renames, of the file that is to get a further name (a hard link), by that name."""
    conflicts: dict[bytes, str] = {}
    """Files that are left alone unless the user agrees, and why."""
    impossible: dict[bytes, str] = {}
    """Paths that are left alone, and why."""
    left_out: tuple[bytes, ...] = ()
    """Folders, with a slash at the end, that are renamed or left alone with everything in them."""
    lost: tuple[str, ...] = ()
    """Sentences about folders whose contents are gone."""
    sources: set[bytes] = set()
    """The present paths of what is renamed."""
    parked: dict[bytes, FileState] = {}
    """The present states of those among the sources that have the temporary name of a restore that was stopped."""


def identity_of(found: os.stat_result) -> Identity:
    """The identity of a file or folder by its status."""
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns & NS_BITS)


def is_known_file(found: os.stat_result, identity: Identity) -> bool:
    """Whether a status is that of the identified file, and its content was not written since."""
    return (found.st_dev, found.st_ino, found.st_mtime_ns & NS_BITS) == (*identity[:2], identity[3])


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
    search.leave_possible_copies(records)
    return search.result


class _CopySearch:
    def __init__(
        self, walk: "FolderWalk", wanted: Mapping[bytes, FileState | None], needed: Mapping[bytes, FileState]
    ) -> None:
        self.result = KeptCopies()
        self._walk = walk
        self._wanted = wanted
        self._needed = needed
        self._targets: dict[bytes, bytes] = {}
        """The renames by present path."""
        self._lost: dict[bytes, FileState] = {}
        """What is neither at its path nor under another name."""
        self._present = {path: found for path in sorted(wanted) if (found := present_status(walk, path)) is not None}
        self._by_inode: dict[_Inode, list[bytes]] = {}
        self._by_look: dict[tuple[int, int], list[bytes]] = {}
        """Present paths by what copies keep."""
        for path, found in self._present.items():
            self._by_inode.setdefault((found.st_dev, found.st_ino), []).append(path)
            size = -1 if stat.S_ISDIR(found.st_mode) else found.st_size
            self._by_look.setdefault((found.st_mtime_ns & NS_BITS, size), []).append(path)

    def pair(self) -> None:
        """Find the present name of each path that can't be restored from the store."""
        unpaired = {
            path: state
            for path, state in sorted(self._needed.items())
            if not self._is_in_place(path, state) and not self._pair_by_inode(path, state)
        }
        if unpaired and self._add_parked(unpaired.values()):
            unpaired = {path: state for path, state in unpaired.items() if not self._pair_by_inode(path, state)}
        self._targets = {source: target for target, source in self.result.renames.items()}
        for path, state in unpaired.items():
            if not self._pair_by_link(path, state) and not self._pair_by_time(path, state):
                self._lost[path] = state
        removed = [path for path, state in self._lost.items() if state.kind == "folder" and not self._is_folder(path)]
        self.result.lost = tuple(f"{self._shown(path)} was removed; {_LEFT}." for path in removed)

    def _add_parked(self, states: Iterable[FileState]) -> bool:
        """Look for the states under temporary names of restores that were stopped; true if there are some."""
        inodes = {_inode(state) for state in states}
        parked: list[tuple[bytes, os.stat_result]] = []
        for folder in {path.rpartition(b"/")[0] for path in self._wanted}:
            parked += _parked_in(self._walk, folder)
        known = [(path, found) for path, found in parked if (found.st_dev, found.st_ino) in inodes]
        if known:
            self._wanted = {**self._wanted, **dict.fromkeys((path for path, _ in known), None)}
        for path, found in known:
            self._present[path] = found
            self._by_inode.setdefault((found.st_dev, found.st_ino), []).append(path)
        return bool(known)

    def _rename(self, path: bytes, source: bytes) -> None:
        self.result.renames[path] = source
        self.result.sources.add(source)
        if PARKED.fullmatch(source.rpartition(b"/")[2]):
            found, is_folder = self._present[source], stat.S_ISDIR(self._present[source].st_mode)
            mode = stat.S_IMODE(found.st_mode)
            self.result.parked[source] = (
                FileState("folder", mode) if is_folder else FileState("file", mode, "", found.st_size)
            )

    def _is_in_place(self, path: bytes, state: FileState) -> bool:
        """Whether the file or folder is still at its path. The content of a file with another size counts as lost."""
        found = self._present.get(path)
        if found is None or (found.st_dev, found.st_ino) != _inode(state):
            return False
        if state.kind == "file" and found.st_size != state.size:
            self._lost[path] = state
        return True

    def _is_folder(self, path: bytes) -> bool:
        found = self._present.get(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def _pair_by_link(self, path: bytes, state: FileState) -> bool:
        """Find another name of a removed file that stays, or that is renamed back."""
        for other in self._by_inode.get(_inode(state), ()) if state.kind == "file" else ():
            if not _looks_alike(self._present[other], state) or not stat.S_ISREG(self._present[other].st_mode):
                continue
            target = self._targets.get(other, b"")
            if target or not self._is_replaced(other, state):
                self.result.links[path] = target or other
                return True
        return False

    def _pair_by_inode(self, path: bytes, state: FileState) -> bool:
        """Find it by its inode, which a rename keeps."""
        taken = self.result.sources
        for other in self._by_inode.get(_inode(state), ()):
            if other in taken or not self._is_replaced(other, state) or not _is_kind(self._present[other], state):
                continue
            if (sameness := self._sameness(other, state)) == "same":
                self._rename(path, other)
                return True
            if sameness == "changed":
                self._leave(other, path, "it was changed since it was renamed")
                return True
        return False

    def _pair_by_time(self, path: bytes, state: FileState) -> bool:
        """Find a copy, or what was moved from another file system: size and time of change are the same."""
        look = (0 if state.identity is None else state.identity[3], -1 if state.kind == "folder" else state.size)
        for other in self._by_look.get(look, ()):
            found = self._present[other]
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

    def leave_possible_copies(self, records: Sequence[ChangeRecord]) -> None:
        """Leave the files alone that calls made or enlarged, if they may be copies or archives of what is lost.

        A copy or an archive of a file has a thousandth of its size at least, together with others if it is split. Of a
        folder the size is not known.
        """
        lost = [path for path, state in self._lost.items() if state.kind == "file"]
        added = self._added_bytes(records) if self._lost else {}
        if lost and _COMPRESSION * sum(added.values()) >= min(self._lost[path].size for path in lost):
            self._leave_copies(added, lost[0])
        for folder in self._lost:
            if folder not in lost and not self._is_folder(folder) and not is_cache(folder):
                of_folder = [path for path, size in added.items() if self._may_hold_folder(path, size)]
                self._leave_copies(of_folder, folder)

    def _added_bytes(self, records: Sequence[ChangeRecord]) -> dict[bytes, int]:
        """By path of each file that calls made or enlarged and undo would remove or replace: how much was added."""
        added: dict[bytes, int] = {}
        for change in (change for record in records if record.call_id for change in record.changes):
            found, wanted = self._present.get(change.path), self._wanted[change.path]
            if found is None or not stat.S_ISREG(found.st_mode) or b"/.git/" in change.path:
                continue
            if change.path in self.result.sources or change.path.startswith(self.result.left_out):
                continue
            if wanted is None or wanted.kind != "file":
                added[change.path] = found.st_size
            elif wanted.identity is None:
                added[change.path] = found.st_size - wanted.size
        return {path: size for path, size in added.items() if size > 0}

    def _may_hold_folder(self, path: bytes, size: int) -> bool:
        """Whether a new file may be an archive of a folder, or be in a copy of it."""
        above = path.rpartition(b"/")[0]
        is_in_new_folder = above in self._wanted and self._wanted[above] is None
        return self._wanted[path] is None and (size >= _SMALLEST_ARCHIVE or is_in_new_folder)

    def _leave_copies(self, paths: Iterable[bytes], lost: bytes) -> None:
        for path in paths:
            self.result.conflicts.setdefault(path, f"it may hold what was {self._shown(lost)}, which is not saved")

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
                self.result.sources.discard(source)
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
        return shortened((path[len(root) :].lstrip(b"/") or path).decode(errors="backslashreplace"))


def _parked_in(walk: "FolderWalk", folder: bytes) -> list[tuple[bytes, os.stat_result]]:
    """Paths and status of what has the temporary name of a rename in a folder."""
    found: list[tuple[bytes, os.stat_result]] = []
    with contextlib.suppress(OSError):
        descriptor = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walk.folder(folder))
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if PARKED.fullmatch(name := os.fsencode(entry.name)):
                        found.append((folder + b"/" + name, entry.stat(follow_symlinks=False)))
        finally:
            os.close(descriptor)
    return found


def _inode(state: FileState) -> _Inode:
    return (-1, -1) if state.identity is None else state.identity[:2]


def _is_kind(found: os.stat_result, state: FileState) -> bool:
    return stat.S_ISDIR(found.st_mode) if state.kind == "folder" else stat.S_ISREG(found.st_mode)


def _looks_alike(found: os.stat_result, state: FileState) -> bool:
    is_same_size = state.kind == "folder" or found.st_size == state.size
    return is_same_size and state.identity is not None and found.st_mtime_ns & NS_BITS == state.identity[3]


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
