"""Git's data that programs may remove as a whole."""

import os
from collections.abc import Iterable

from bradawl.sandbox.discovery.folder_index import is_in_any
from bradawl.sandbox.restore.git_directories import parents


class RemovableData:
    """Folders, of which there may be thousands: what is asked about one path takes the time for its depth."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._folders: set[str] = set()
        self._below: dict[str, list[str]] = {}
        """The folders below each folder above one."""
        self.add(folders)

    def add(self, folders: Iterable[str]) -> None:
        """Add further folders."""
        for folder in set(folders) - self._folders:
            self._folders.add(folder)
            for above in parents(folder):
                self._below.setdefault(above, []).append(folder)

    def contain(self, path: str) -> bool:
        """Whether a path is one of the folders, or in one."""
        return is_in_any(path, self._folders)

    def has_lost(self, path: str) -> bool:
        """Whether one of the folders at, above or below a path does not exist any more."""
        around = (path, *parents(path))
        found = (*(each for each in around if each in self._folders), *self._below.get(path, ()))
        return any(not os.path.lexists(each) for each in found)
