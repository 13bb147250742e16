"""The state of a workspace: an index of all its files, and what differs from it later."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from bradawl.checkpoints.baseline import UnsavedContents
from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.folder import Folder
from bradawl.checkpoints.folder_reader import Contents, entry_signature, open_child, open_folder
from bradawl.checkpoints.folder_walk import walk
from bradawl.checkpoints.folder_watches import FolderWatches
from bradawl.checkpoints.gaps import Gaps
from bradawl.checkpoints.outside_git import OutsideGit
from bradawl.checkpoints.record import Change
from bradawl.checkpoints.sandbox_placeholders import SandboxPlaceholders
from bradawl.checkpoints.saved_index import decode_index, encode_index
from bradawl.checkpoints.search import Index, Search

_DEFAULT_LIMITS: Final = Coverage()
_REBUILT: Final = ("", "heavy", "quiet")
"""Reasons for which folders are not entered whose contents can be made again."""
_LATE: Final = "The call began before all files were listed, so some of its changes may be missing."


class WorkspaceTree:
    """Files of the roots, with saved contents. Synchronous; not thread-safe. `close` ends its watches.

    `roots` are absolute, resolved paths. `known` is the result of an earlier `dump`; one that is damaged or of other
    roots is ignored. Paths that are passed in or returned are absolute; names in them need not be UTF-8.
    """

    def __init__(
        self,
        roots: tuple[str | bytes, ...],
        contents: Contents,
        limits: Coverage = _DEFAULT_LIMITS,
        known: bytes | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.roots: Final = _outermost(tuple(os.fsencode(root) for root in roots))
        """Without those inside another one."""
        self._contents = contents
        self._limits = limits
        loaded = decode_index(known, self.roots) if known is not None else None
        self._index = Index(self.roots) if loaded is None else loaded
        self._index.clock_ns = clock_ns
        self._index.placeholders = SandboxPlaceholders(limits.sandbox_state)
        self._watches = FolderWatches(limits.watches, self.roots)
        self._outside_git = OutsideGit(self.roots)
        self._is_watching = False
        """Whether all folders were compared, and listed ones are watched since."""
        self._is_late = False
        """Whether a call began before all files were listed."""
        self._unsaved = UnsavedContents(self._index, contents, limits)
        self._steps: Iterator[None] | None = self._baseline_steps()
        self.is_listed = loaded is not None
        """Whether all files are in the index, so that `changes` finds what existed before."""
        self.is_exact = True
        """Whether the last `changes` found all that undo needs: it compared everything with the state before."""
        self.store_error: OSError | None = None
        """The error of the content store in the last search, as of a full disk; None if it could save everything."""

    @property
    def is_complete(self) -> bool:
        """Whether the baseline is complete: files are listed, and contents saved within the limits."""
        return self._steps is None

    @property
    def is_incremental(self) -> bool:
        """Whether `refresh` costs only what has changed; else it searches everything."""
        return self._is_watching and self._watches.is_complete

    # ------------------------------------------------------------------ searches

    def baseline(self, until: float) -> bool:
        """List all files, then save their contents, until a time of `time.monotonic`. True when complete.

        Call it again while it returns False; other calls may come in between.
        """
        self._unsaved.until = until
        while self._steps is not None:
            if next(self._steps, self) is self:
                self._steps = None
                self._note_error(self._unsaved.store_error)
            elif time.monotonic() > until:
                break
        return self.is_complete

    def refresh(self, paths: tuple[str | bytes, ...] | None = None) -> None:
        """Bring the index up to date before a call that may change `paths`, or anything if None.

        The differences belong to no call. Contents of `paths` are saved even if the baseline is not complete.
        """
        if paths is not None:
            search = self._search(knows_absent=True)
            self._look_at(search, paths)
            self._note_error(search.store_error)
        elif self.is_listed:
            search = self._search()
            self._refresh_all(search)
            self._outside_git.update()
            self._note_error(search.store_error)
        else:
            self._list_all()

    def changes(self, paths: tuple[str | bytes, ...] | None = None) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        """What differs from the index, sorted by path, and sentences about what may differ and is not covered.

        Searches everything, or `paths` only, and updates the index. Contents of new and changed files are saved.
        """
        search = self._search(records=True, knows_absent=paths is not None)
        self.is_exact = True
        if paths is not None:
            self._look_at(search, paths)
        else:
            self._watches.dirty()  # what changed before now is found by the search
            self._search_all(search)
            self.is_exact &= not self._outside_git.report(search.gaps)
            for folder in self._index.limited:
                search.gaps.add("limit", folder.path)
            if self._is_late:
                self.is_exact = False
                search.gaps.add_sentence(_LATE)
                self._is_late = not self.is_listed
        self._note_error(search.store_error)
        search.finish()
        return tuple(sorted(search.changes, key=lambda change: change.path)), search.gaps.sentences()

    def uncovered(self, *, with_rebuilt: bool = True) -> tuple[str, ...]:
        """What undo does not cover in this workspace at all, as sentences; without `with_rebuilt` but for packages
        and caches.
        """
        gaps = Gaps(self.roots)
        ignored = () if with_rebuilt else _REBUILT
        for folder in self._folders():
            if folder.closed_at is not None:
                gaps.add("closed", folder.path)
            for name, below in folder.folders.items():
                if below.reason and below.reason not in ignored and not folder.reason:
                    gaps.add(below.reason, folder.path_of(name))
            for name, state in folder.states.items():
                if state.kind == "file" and not state.content and not folder.reason:
                    is_large = state.size > self._limits.file_bytes
                    gaps.add("too large" if is_large else "not saved", folder.path_of(name))
        for path in self._outside_git.folders:
            gaps.add_sentence(f"The git data in {path.decode(errors='backslashreplace')} are outside the workspace.")
        return gaps.sentences()

    def covers_files(self) -> bool:
        """Whether the contents of all files are saved, except packages, caches and git's objects."""
        if not self.is_complete or self.store_error is not None or self._outside_git.folders:
            return False
        return all(
            folder.closed_at is None
            and all(below.reason in _REBUILT for below in folder.folders.values())
            and all(state.content or state.kind != "file" for state in folder.states.values())
            for folder in self._folders()
            if not folder.reason
        )

    def dump(self) -> bytes:
        """The index, for `known` of a later tree."""
        return encode_index(self._index)

    def contents(self) -> set[str]:
        """sha256 of all contents that the index names; garbage collection must keep them."""
        states = (state for folder in self._folders() for state in folder.states.values())
        return {state.content for state in states if state.content}

    def close(self) -> None:
        """End the watches and the baseline."""
        self._watches.close()
        self._steps = None

    # ------------------------------------------------------------------ parts

    def _search(self, *, records: bool = False, knows_absent: bool = False, saves: bool = True) -> Search:
        return Search(
            self._index,
            self._contents,
            self._limits,
            self._watches,
            records=records,
            knows_absent=knows_absent,
            saves=saves,
        )

    def _baseline_steps(self) -> Iterator[None]:
        search = self._search(saves=False)
        self._watches.dirty()
        for root in self._index.roots.values():
            for _ in self._steps_below(search, root):
                yield
                if self._is_watching:  # another search was faster
                    break
        self.is_listed = self._is_watching = True
        self._outside_git.update()
        yield
        yield from self._unsaved.steps()

    def _list_all(self) -> None:
        """Do the first part of the baseline."""
        until = time.monotonic() + self._limits.search_s
        self._unsaved.until = until
        while self._steps is not None and not self.is_listed and time.monotonic() < until:
            next(self._steps)
        self._is_late = not self.is_listed

    def _search_all(self, search: Search) -> None:
        started, visited = time.monotonic(), 0
        for root in self._index.roots.values():
            for _ in self._steps_below(search, root):
                visited += 1
                if time.monotonic() - started - search.reading_s > self._limits.search_s:
                    search.gaps.add_sentence(
                        f"The search ended after {self._limits.search_s:g} s: only {visited} folders were searched."
                    )
                    self._is_watching = self.is_exact = False
                    return
        self._is_watching = self.is_listed = True
        self._index.forget_gone()

    def _steps_below(self, search: Search, root: Folder) -> Iterator[None]:
        """Search a root and what is in it; yields between folders."""
        if self._enter_root(search, root):
            yield from walk(root, search.visit, search.cannot_open)

    def _enter_root(self, search: Search, root: Folder) -> bool:
        """Compare a root itself; False if it is gone."""
        try:
            descriptor = open_child(None, root.path)
        except PermissionError:
            with contextlib.suppress(OSError):
                search.compare_root(root, os.lstat(root.path))
            return True
        except OSError:
            search.compare_root(root, None)
            return False
        try:
            search.compare_root(root, os.fstat(descriptor))
        finally:
            os.close(descriptor)
        return True

    def _refresh_all(self, search: Search) -> None:
        dirty = self._watches.dirty()
        if dirty is None or not self._is_watching or not all(map(_is_in_place, self._index.roots.values())):
            self._search_all(search)
            return
        for folder, name in self._index.again:
            dirty.setdefault(folder, set()).add(name)
        for folder in sorted(dirty, key=lambda folder: folder.path):
            if not folder.is_in_index():
                continue
            if folder.parent is not None or self._enter_root(search, folder):
                self._compare_names(search, folder, dirty[folder])
        self._index.forget_gone()

    def _compare_names(self, search: Search, folder: Folder, names: set[str]) -> None:
        """Compare some entries of a folder, and search folders that are new or replaced."""
        try:
            descriptor = open_folder(folder)
        except OSError:
            return  # its parent has an event, too
        replaced: list[Folder] = []
        try:
            if folder.watch < 0:
                search.visit(folder, descriptor)
            for name in names:
                known = folder.signatures.get(name)
                search.look_at(folder, descriptor, name)
                below = folder.folders.get(name)
                if below is not None and (known is None or below.watch < 0 or known[1] != folder.signatures[name][1]):
                    replaced.append(below)
        finally:
            os.close(descriptor)
        for below in replaced:
            _walk_whole(search, below)

    def _look_at(self, search: Search, paths: tuple[str | bytes, ...]) -> None:
        """Compare single paths, with everything in those that are folders."""
        for path in map(os.fsencode, paths):
            root = next((root for root in self._index.roots.values() if _is_below(path, root.path)), None)
            if root is None and any(_is_below(path, own) for own in self._limits.excluded):
                continue  # a folder of bradawl, such as the sandbox's temporary one
            if root is None:
                search.gaps.add("outside", path)
            elif self._enter_root(search, root):
                self._look_below(search, root, path)

    def _look_below(self, search: Search, root: Folder, path: bytes) -> None:
        """Compare the entries on the way from a root to a path; what is below the first new one is new, too."""
        folder = root
        for part in filter(None, path[len(root.path) :].split(b"/")):
            name = os.fsdecode(part)
            try:
                descriptor = open_folder(folder)
            except OSError as error:
                search.cannot_open(folder, error, None)
                return
            was_known = name in folder.folders
            try:
                search.look_at(folder, descriptor, name)
            finally:
                os.close(descriptor)
            below = folder.folders.get(name)
            if below is None:
                return
            folder = below
            if not was_known and not folder.reason and (self.is_listed or search.records):
                break
        _walk_whole(search, folder)

    def _folders(self) -> Iterator[Folder]:
        for root in self._index.roots.values():
            yield from root.below()

    def _note_error(self, error: OSError | None) -> None:
        self.store_error = error


def _walk_whole(search: Search, folder: Folder) -> None:
    if not folder.reason:
        for _ in walk(folder, search.visit, search.cannot_open):
            pass


def _is_in_place(root: Folder) -> bool:
    """Whether the watched folder is still at the root's path."""
    try:
        found = entry_signature(None, root.path)
    except OSError:
        return False
    return found is not None and (found[5], found[1]) == root.watched


def _outermost(roots: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The roots that are not inside another one."""
    unique = dict.fromkeys(root.rstrip(b"/") or b"/" for root in roots)
    return tuple(root for root in unique if not any(other != root and _is_below(root, other) for other in unique))


def _is_below(path: bytes, root: bytes) -> bool:
    return path == root or path.startswith(root.rstrip(b"/") + b"/")
