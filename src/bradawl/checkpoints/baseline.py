"""The first search of a workspace, in slices: lists all files, then saves their contents."""

import os
import time
from collections import deque
from collections.abc import Iterator

import msgspec

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.folder import Folder
from bradawl.checkpoints.folder_reader import Contents, NotSaved, open_folder, save_file
from bradawl.checkpoints.folder_walk import walk
from bradawl.checkpoints.record import FileState
from bradawl.checkpoints.search import Index


class UnsavedContents:
    """Saves the contents that the index names no hash for, as far as the limits allow.

    A file that has changed since it was listed is left out: its earlier content is lost, and a search that records
    must report that.
    """

    def __init__(self, index: Index, contents: Contents, limits: Coverage) -> None:
        self._index = index
        self._contents = contents
        self._limits = limits
        self._unfinished: deque[Folder] = deque()
        self._failed: set[tuple[Folder, str]] = set()
        self._largest = 0
        self.until = 0.0
        """Time (of `time.monotonic`) when a slice ends. At least one file is saved in each folder before."""
        self.store_error: OSError | None = None

    def steps(self) -> Iterator[None]:
        """Save contents; yields between folders, and when the time is over. Ends early at an error of the store."""
        self._largest = self._largest_size()
        for root in self._index.roots.values():
            for _ in walk(root, self._save, lambda *_: None):
                yield
                if self.store_error is not None:
                    return
        while self._unfinished and self.store_error is None:
            folder = self._unfinished.popleft()
            try:
                descriptor = open_folder(folder)
            except OSError:
                continue
            try:
                self._save(folder, descriptor)
            finally:
                os.close(descriptor)
            yield

    def _largest_size(self) -> int:
        """Size of the largest files to save, so that the sum stays within the limit."""
        sizes = sorted(
            state.size
            for root in self._index.roots.values()
            for folder in root.below()
            for state in folder.states.values()
            if self._is_unsaved(state) and state.size <= self._limits.file_bytes
        )
        total = largest = 0
        for size in sizes:
            total += size
            if total > self._limits.baseline_bytes:
                return min(largest, size - 1)
            largest = size
        return largest

    def _is_unsaved(self, state: FileState) -> bool:
        return state.kind == "file" and (not state.content or not self._contents.has(state.content))

    def _save(self, folder: Folder, descriptor: int) -> None:
        """Save the unsaved contents of one folder, or as many as there is time for."""
        for name, state in list(folder.states.items()):
            if state.size > self._largest or not self._is_unsaved(state) or (folder, name) in self._failed:
                continue
            self._save_one(folder, descriptor, name, state)
            if time.monotonic() > self.until:
                self._unfinished.append(folder)
                return

    def _save_one(self, folder: Folder, descriptor: int, name: str, state: FileState) -> None:
        try:
            content, at = save_file(self._contents, descriptor, name)
        except NotSaved as error:
            self.store_error = error
            return
        except OSError:
            at = None
            content = ""
        if at == folder.signatures[name]:
            folder.states[name] = msgspec.structs.replace(state, content=content)
        else:
            self._failed.add((folder, name))
