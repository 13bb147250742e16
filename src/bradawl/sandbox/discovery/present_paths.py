"""Finds which of many known paths exist, by listing the folders they lie in."""

import os
from collections.abc import Iterable
from typing import Final, TypeAlias

_FEW: Final = 8
"""So many paths in one folder are looked up; for more of them one listing is cheaper."""
_MANY_ENTRIES: Final = 400
"""A folder with more entries is not listed again: that would take longer than looking up the paths."""

_Names: TypeAlias = "dict[str, _Names]"
"""Names in a folder, each with the names wanted below it; the empty name marks a wanted path."""


class PresentPaths:
    """Which of some absolute paths exist. Nothing is remembered between two questions but the size of folders."""

    def __init__(self, paths: Iterable[str]) -> None:
        """The order of `paths` is the order of the result."""
        self._paths = tuple(paths)
        self._names: _Names = {}
        self._large: set[str] = set()
        for path in self._paths:
            names = self._names
            for name in path.strip("/").split("/"):
                names = names.setdefault(name, {})
            names[""] = {}

    def now(self) -> tuple[str, ...]:
        """Those that exist now. A link counts if its target exists."""
        found: set[str] = set()
        self._search("", self._names, found)
        return tuple(path for path in self._paths if path in found)

    def _search(self, folder: str, names: _Names, found: set[str]) -> None:
        for name in names if len(names) <= _FEW or folder in self._large else self._listed(folder, names):
            path, below = f"{folder}/{name}", names[name]
            if not name:
                continue
            if "" in below and os.access(path, os.F_OK):
                found.add(path)
            if len(below) > ("" in below):
                self._search(path, below, found)

    def _listed(self, folder: str, names: _Names) -> Iterable[str]:
        """The names that the folder holds in any spelling of case; all names if it can't be listed."""
        try:
            entries = os.listdir(folder)  # noqa: PTH208 - names are wanted, not paths
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError:
            return names
        if len(entries) > _MANY_ENTRIES:
            self._large.add(folder)
        held = {entry.lower() for entry in entries}
        return [name for name in names if name.lower() in held]
