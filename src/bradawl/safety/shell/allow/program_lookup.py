"""Finds the program that bash starts for a name, and tells whether the agent may have replaced it."""

import os
from pathlib import Path

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.path_walk import followed
from bradawl.safety.trusted_programs import why_writable


class ProgramLookup(msgspec.Struct, frozen=True):
    """The programs that shell commands find."""

    search_path: str
    """The value of `PATH` in bash."""
    changeable: tuple[str, ...]
    """Folders in which the agent may have created or changed programs without a question; absolute, resolved."""

    def is_trusted(self, name: str) -> bool:
        """Whether the agent can't have changed the program of this name. True if there is none: nothing would run."""
        for folder in self.search_path.split(":"):
            if not folder.startswith("/"):
                return False  # the working directory, or a folder in it
            path = f"{folder}/{name}"
            if os.access(path, os.X_OK) and Path(path).is_file():
                return self._is_out_of_reach(path)
        return True

    def _is_out_of_reach(self, path: str) -> bool:
        """Whether neither the program nor any link that leads to it can be changed."""
        try:
            places = followed(path)
        except OSError:
            return False
        return not any(map(self._is_changeable, (path, *places))) and not why_writable(places[-1])

    def _is_changeable(self, place: str) -> bool:
        return any(is_within(place, folder) for folder in self.changeable)

    def is_affected_by_write(self, place: str) -> bool:
        """Whether a write to this path, or below it, may change which program a name finds."""
        folders = [os.path.realpath(folder) for folder in self.search_path.split(":") if folder]
        return any(is_within(place, folder) or is_within(folder, place) for folder in folders)
