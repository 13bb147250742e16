"""Renames unsaved files and folders back, as a plan says, while other parts of the plan are restored."""

import errno
import os
import stat
from collections.abc import Mapping
from typing import Final

from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.renames import park, rename_all, unparked
from bradawl.checkpoints.restore_plan import PlannedChange
from bradawl.checkpoints.restored_files import set_file_mode
from bradawl.sandbox.filesystem.time_bits import NS_BITS

CHANGED: Final = "it has changed since the plan was made"
"""Why a path is left alone."""

Stamp = tuple[int, int, int, int]
"""Device, inode, size and mtime in ns: differ if a file was changed."""


def stamp_of(found: os.stat_result | None) -> Stamp | None:
    """The stamp of a status; None for a path that does not exist."""
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns & NS_BITS)


class PlannedRenames:
    """The renames of a plan. A file is left alone if its present or its earlier path is.

    Adds to `failed` the reason for each path that is left alone, and sets the stamp of a path to None whose file was
    renamed.
    """

    def __init__(
        self,
        walk: FolderWalk,
        changes: Mapping[bytes, PlannedChange],
        failed: dict[bytes, str],
        stamps: dict[bytes, Stamp | None],
    ) -> None:
        self._walk = walk
        self._changes = changes
        self._failed = failed
        self._stamps = stamps
        self._parked: dict[bytes, bytes] = {}
        """Temporary path by source."""
        self.by_target = {change.path: change.source for change in changes.values() if change.source}
        """Present path by the path to rename to."""
        self._leave_out_halves()

    def _leave_out_halves(self) -> None:
        renames = self.by_target
        while unusable := {
            target
            for target, source in renames.items()
            if not {target, source} <= self._changes.keys() or not {target, source}.isdisjoint(self._failed)
        }:
            for target in unusable:
                source = renames.pop(target)
                self._fail(target, f"{os.fsdecode(source)} was left alone")
                self._fail(source, f"{os.fsdecode(target)} was left alone")
        sources = set(renames.values())
        for change in self._changes.values():
            if change.moves_away and change.path not in sources:
                self._fail(change.path, "what it holds can't be renamed back")

    def folders_of_sources(self) -> set[bytes]:
        """The folders above all present paths: they can be removed only after `carry_out`."""
        return {
            folder
            for source in self.by_target.values()
            if source not in self._parked
            for folder in _folders_above(source)
        }

    def park(self) -> None:
        """Give temporary names to what is where a folder must be made, or in a folder that something else replaces."""
        for target, source in self.by_target.items():
            if not self._is_unchanged(source):
                self._fail(target, CHANGED)
                continue
            above = next((each for each in _folders_above(source) if self._is_replaced_folder(each)), b"")
            own = self._changes[source]
            is_made = own.wanted is not None and own.wanted.kind == "folder" and not own.source
            if above or is_made:
                try:
                    self._parked[source] = park(self._walk, source, above or source)
                except OSError as error:
                    self._fail(target, str(error.strerror or error))

    def carry_out(self) -> None:
        """Rename all, and set their modes."""
        possible = {target: source for target, source in self.by_target.items() if target not in self._failed}
        done: set[bytes] = set()
        for target, source in rename_all(
            self._walk, possible, self._parked, lambda path, error: self._fail(path, str(error.strerror or error))
        ):
            self._stamps[source] = None
            done.add(target)
            self._set_mode(self._changes[target])
        for target, source in self.by_target.items():
            if target in done:
                continue
            if target not in possible and source in self._parked:
                self._unpark(target, source)
            self._fail(target, CHANGED)
            self._fail(source, self._failed[target])

    def _unpark(self, target: bytes, source: bytes) -> None:
        """Give what is not renamed its name back."""
        error = OSError(errno.ECANCELED, self._failed[target])
        self._failed[target] = str(unparked(self._walk, self._parked[source], source, error).strerror)

    def _is_replaced_folder(self, path: bytes) -> bool:
        change = self._changes.get(path)
        if change is None or change.wanted is None:
            return False
        return bool(change.source) or change.wanted.kind != "folder"

    def _is_unchanged(self, path: bytes) -> bool:
        try:
            parent, name = self._walk.parent(path)
            return stamp_of(os.stat(name, dir_fd=parent, follow_symlinks=False)) == self._stamps[path]
        except OSError:
            return False

    def _set_mode(self, change: PlannedChange) -> None:
        """Give a renamed file or folder the wanted mode."""
        if (wanted := change.wanted) is None:
            return
        try:
            if wanted.kind == "folder":
                self._walk.set_mode(change.path, wanted.mode)
                return
            parent, name = self._walk.parent(change.path)
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_IMODE(found.st_mode) != wanted.mode:
                set_file_mode(parent, name, wanted.mode, (found.st_dev, found.st_ino))
        except OSError as error:
            self._fail(change.path, f"its mode was not restored: {error.strerror or error}")

    def _fail(self, path: bytes, why: str) -> None:
        self._failed.setdefault(path, why)


def _folders_above(path: bytes) -> list[bytes]:
    return [path[:at] for at in range(1, len(path)) if path[at : at + 1] == b"/"]
