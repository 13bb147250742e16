"""Lists the indexes of git that programs in a workspace can write."""

from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname
from typing import NamedTuple

from bradawl.core.effects import is_within
from bradawl.safety.git.small_files import named_in
from bradawl.safety.path_walk import real_path
from bradawl.sandbox.discovery.git_folders import data_folders, folders_in, folders_of_modules, kind_of
from bradawl.sandbox.restore.git_directories import GitDirectories


class IndexPlace(NamedTuple):
    """An index, which may be missing. Paths are absolute."""

    path: str
    place: str
    """A folder that contains it and that programs can't move."""
    tree: str
    """The root of the working tree; empty if it is not known."""


class IndexPlaces:
    """The indexes of the repositories of a workspace: of linked working trees, submodules and separate data, too."""

    def __init__(self, roots: tuple[str, ...], home: str, directories: GitDirectories) -> None:
        """The caller brings `directories` up to date."""
        self.roots = roots
        self._home = home
        self._directories = directories
        self._outside: tuple[str, ...] = ()

    def before(self) -> tuple[IndexPlace, ...]:
        """All indexes as of the last search, each once, before a program starts. Data outside the roots that exist now
        are the only ones that it can write.
        """
        self._outside = data_folders(self.roots, self.roots, self._home)
        return self.now()

    def now(self) -> tuple[IndexPlace, ...]:
        """As `before`, after a program has ended."""
        found: dict[str, IndexPlace] = {}
        for data, tree in self._data_and_trees():
            place = next((each for each in (*self.roots, *self._outside) if is_within(data, each)), "")
            if place:
                found.setdefault(data, IndexPlace(f"{data}/index", place, tree))
        return tuple(found.values())

    def _data_and_trees(self) -> Iterator[tuple[str, str]]:
        for folder in (*self.roots, *self._directories.repositories()):
            dot_git = f"{folder}/.git"
            match kind_of(dot_git):
                case "folder":
                    yield dot_git, folder
                case "link":
                    yield real_path(dot_git), folder
                case "file":
                    if named := named_in(dot_git, "gitdir: "):  # else git refuses the folder
                        yield real_path(Path(folder, named)), folder
                case _:
                    pass
        yield from ((data, "") for data in self._directories.others())
        for data in self._outside:
            yield data, dirname(data) if data.endswith("/.git") else ""
            yield from ((tree, "") for tree in folders_in(f"{data}/worktrees"))
            yield from ((module, "") for module, is_data in folders_of_modules(data) if is_data)
