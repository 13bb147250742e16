"""Which program bash finds by a name, and whether the agent may have put it there."""

import os
from pathlib import Path

import msgspec

from bradawl.safety.path_walk import followed
from bradawl.safety.shell.allow.path_effects import is_within
from bradawl.safety.trusted_programs import why_writable


class Programs(msgspec.Struct, frozen=True):
    """The programs that shell commands find."""

    search_path: str
    """`PATH` as bash has it."""
    changeable: tuple[str, ...]
    """Folders in which the agent may have put or changed a program without being asked; absolute, resolved."""

    def is_trusted(self, name: str) -> bool:
        """Whether the program of this name is out of the agent's reach. True if there is none: nothing would run."""
        for folder in self.search_path.split(":"):
            if not folder.startswith("/"):
                return False  # the working directory, or something in it
            path = f"{folder}/{name}"
            if os.access(path, os.X_OK) and Path(path).is_file():
                return self._is_out_of_reach(path)
        return True

    def _is_out_of_reach(self, path: str) -> bool:
        """Also of each link on the way to it."""
        try:
            places = followed(path)
        except OSError:
            return False
        return not any(map(self._is_changeable, (path, *places))) and not why_writable(places[-1])

    def _is_changeable(self, place: str) -> bool:
        return any(is_within(place, folder) for folder in self.changeable)

    def may_change_by(self, place: str) -> bool:
        """Whether a write to this place, or below it, may change what a name finds."""
        folders = [os.path.realpath(folder) for folder in self.search_path.split(":") if folder]
        return any(is_within(place, folder) or is_within(folder, place) for folder in folders)
