"""Selects the git files of a workspace to check after programs have run."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.git.separate_data import data_folder
from bradawl.safety.path_walk import real_path
from bradawl.safety.permissions.protected_paths import protected_names, watched_names
from bradawl.sandbox.discovery.git_folders import data_folders, folders_in, folders_of_modules
from bradawl.sandbox.discovery.workspace_survey import WorkspaceSurvey
from bradawl.sandbox.restore.git_history import RepositoryLocation
from bradawl.sandbox.restore.harmless_git_files import adds_only_harmless_lines, is_new_repository
from bradawl.sandbox.restore.snapshot import Entry, WatchedPath, take_snapshot

_OF_GIT: Final = tuple(name for name in protected_names() if name.startswith(".git/"))
_OF_ANY_DATA: Final = tuple(name.removeprefix(".git/") for name in watched_names())
"""Files that no data folder of git should have and that can't be blocked by a mount."""

_NOT_HELD: Final = (".git/config", ".git/modules/*/config", ".git/modules/*/hooks")
_OF_MODULES: Final = ("config", "config.worktree", "hooks", "info/attributes")
_MODULES: Final = 8
_MOST_FOLDERS_OF_MODULES: Final = 2_000


class Repositories:
    """The repositories of a workspace: those that existed first, and those that programs created.

    Repositories that existed first are covered by mounts. Those that programs create are not, nor are new submodules of
    existing ones: they are checked as a whole when programs have ended. Later programs may move and remove them, as
    long as they contain nothing that git would run. A mount is lost if a program outside the sandbox replaces the file,
    as git does with its configuration; so covered files are checked, too.
    """

    def __init__(self, roots: tuple[str, ...], home: str, surveys: Iterable[WorkspaceSurvey]) -> None:
        """`surveys` search the roots."""
        self._roots = roots
        self._home = home
        self._surveys = tuple(surveys)
        self._covered: frozenset[str] = frozenset()
        self._covered_repositories: frozenset[str] = frozenset()
        self._covered_data: tuple[str, ...] = ()
        self._data_of_covered: tuple[str, ...] = ()
        self._existed_first: frozenset[str] | None = None
        self._made: frozenset[str] = frozenset()
        self._cached: dict[str, tuple[str, ...]] | None = None

    @contextlib.contextmanager
    def caching(self) -> Iterator[None]:
        """Search at most once in the body, surveys included. Only correct while no program runs."""
        with contextlib.ExitStack() as surveys:
            for survey in self._surveys:
                surveys.enter_context(survey.caching())
            self._cached = {}
            try:
                yield
            finally:
                self._cached = None

    def _cached_result(self, name: str, search: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        if self._cached is None:
            return search()
        if name not in self._cached:
            self._cached[name] = search()
        return self._cached[name]

    def harmless_new_ones(self) -> frozenset[str]:
        """Repositories and data of linked working trees created since the first call, with nothing in them that git
        would run.
        """
        return self._harmless_new_ones(self._current_repositories(), self._working_trees())

    def _harmless_new_ones(self, now: tuple[str, ...], trees: tuple[str, ...]) -> frozenset[str]:
        if self._existed_first is None:
            self._existed_first = frozenset((*now, *trees))
        new = (folder for folder in now if folder not in self._existed_first and folder not in self._roots)
        plain = [
            folder for folder in new if self._belongs_to_known(folder, now) or _is_plain(self._repository_paths(folder))
        ]
        plain += [
            tree for tree in trees if tree not in self._existed_first and _is_plain(self._working_tree_settings(tree))
        ]
        return frozenset(plain)

    def watched_paths(self) -> Iterator[WatchedPath]:
        """Paths to compare, as of when the first of overlapping programs begins."""
        now, trees = self._current_repositories(), self._working_trees()
        made = self._harmless_new_ones(now, trees)
        repositories = frozenset(now) - made
        self._covered = repositories | (frozenset(trees) - made)
        self._covered_repositories = repositories
        self._made = (made & frozenset(trees)) | {f"{folder}/.git" for folder in now if folder in made}
        for folder in dict.fromkeys((*self._roots, *sorted(repositories))):
            names = _NOT_HELD if folder in repositories else _OF_GIT
            yield from ((folder, name) for name in (*names, *watched_names()))
        self._data_of_covered = data_folders(self._roots, repositories, self._home)
        for data in self._data_of_covered:
            yield from ((data, name.removeprefix(".git/")) for name in _NOT_HELD)
        self._covered_data = (*(f"{each}/.git" for each in repositories), *self._data_of_covered)
        yield from self._submodule_paths((*_OF_MODULES, *_OF_ANY_DATA), is_start=True)
        yield from self._not_covered(now, trees)

    def working_tree_paths(self) -> Iterator[WatchedPath]:
        """Files in which linked working trees name their data, for backends without mounts; new working trees
        left out.
        """
        trees = (tree for tree in self._working_trees() if tree not in self._made)
        return (place for tree in trees for place in self._paths_below_root(tree, ("commondir", "gitdir")))

    def _submodule_paths(self, names: tuple[str, ...], *, is_start: bool) -> Iterator[WatchedPath]:
        """These names in the data of all submodules, and unexpected files in data folders outside the roots.

        With `is_start`, raises `ToolError` if there are too many to check.
        """
        left = _MOST_FOLDERS_OF_MODULES
        for data in self._covered_data:
            if data in self._data_of_covered:
                yield from ((data, name) for name in _OF_ANY_DATA)
            for folder, is_data in folders_of_modules(data):
                left -= 1
                if left < 0:
                    if is_start:
                        raise _too_many(data)
                    return
                if is_data:
                    yield from self._paths_below_root(folder, names, data)

    def repository_locations(self) -> Iterator[RepositoryLocation]:
        """Data of the repositories of the roots and of their submodules, also outside the roots."""
        own = ((real_path(f"{root}/.git"), root) for root in self._roots)
        inside = ((data, root) for data, root in own if is_within(data, root) and Path(data).is_dir())
        for data, place in (*inside, *((each, each) for each in self._data_outside())):
            yield RepositoryLocation(data, place)
            modules = (each for each in folders_in(f"{data}/modules") if os.path.lexists(f"{each}/HEAD"))
            for _, module in zip(range(_MODULES), modules, strict=False):
                yield RepositoryLocation(module, place)

    def may_stay(self, path: str, before: Entry, now: Entry | None) -> bool:
        """Whether a change may stay: programs, or others meanwhile, may have made it."""
        return self.is_gone(path, before, now) or (now is not None and adds_only_harmless_lines(path, before, now))

    def is_gone(self, path: str, before: Entry, now: Entry | None) -> bool:
        """Whether a file was removed together with a new repository or working tree, or is a parent folder."""
        if now is not None and before.kind != "parent":
            return False
        places = (each for each in self._made if is_within(path, each) or is_within(each, path))
        return any(not os.path.lexists(place) for place in places)

    @property
    def covered(self) -> tuple[str, ...]:
        """Repositories below the roots that existed at the last call of `watched_paths`."""
        return tuple(each for each in sorted(self._covered_repositories) if each not in self._roots)

    def new_paths(self) -> Iterator[WatchedPath]:
        """Paths created since. Settings of working trees and submodules belong to their repository."""
        yield from self._submodule_paths(_OF_ANY_DATA, is_start=False)
        yield from self._not_covered(self._current_repositories(), self._working_trees())

    def _not_covered(self, now: tuple[str, ...], trees: tuple[str, ...]) -> Iterator[WatchedPath]:
        for folder in now:
            if folder not in self._covered and not self._belongs_to_known(folder, now):
                yield from self._repository_paths(folder)
        for tree in trees:
            if tree not in self._covered:
                yield from self._working_tree_settings(tree)

    def _current_repositories(self) -> tuple[str, ...]:
        return self._cached_result("repositories", self._look_for_repositories)

    def _look_for_repositories(self) -> tuple[str, ...]:
        inner = (folder for survey in self._surveys for folder in survey.repositories())
        return tuple(dict.fromkeys((*(each for each in self._roots if os.path.lexists(f"{each}/.git")), *inner)))

    def _data_outside(self) -> tuple[str, ...]:
        return self._cached_result("data", lambda: data_folders(self._roots, self._roots, self._home))

    def _working_trees(self) -> tuple[str, ...]:
        """Data folders of linked working trees of the roots' repositories."""
        return self._cached_result("trees", self._look_for_trees)

    def _look_for_trees(self) -> tuple[str, ...]:
        places = (*(f"{root}/.git" for root in self._roots), *self._data_outside())
        return tuple(tree for place in places for tree in folders_in(f"{place}/worktrees"))

    def _belongs_to_known(self, folder: str, folders: tuple[str, ...]) -> bool:
        data = data_folder(f"{folder}/.git")
        known = any(data == f"{each}/.git" or data.startswith(f"{each}/.git/modules/") for each in folders)
        return known or (data != "" and data in self._data_outside())

    def _repository_paths(self, folder: str) -> Iterator[WatchedPath]:
        return self._paths_below_root(folder, (*_OF_GIT, *watched_names()))

    def _working_tree_settings(self, tree: str) -> Iterator[WatchedPath]:
        return self._paths_below_root(tree, ("config.worktree", "commondir"))

    def _paths_below_root(self, folder: str, names: tuple[str, ...], place: str = "") -> Iterator[WatchedPath]:
        """Paths relative to the root, or to `place` outside of it, because folders on the way may have been
        replaced.
        """
        start = next((root for root in self._roots if is_within(folder, root)), place or folder)
        way = folder[len(start) :].strip("/")
        return ((start, f"{way}/{name}".strip("/")) for name in names)


def _too_many(data: str) -> ToolError:
    return ToolError(
        f"nothing can run in the sandbox: {data} holds more folders of submodules than it can look at "
        f"({_MOST_FOLDERS_OF_MODULES:,}). Remove those that are not needed, or ask to run without the sandbox"
    )


def _is_plain(places: Iterable[WatchedPath]) -> bool:
    return all(
        each.kind == "parent" or is_new_repository(path, each, {}) for path, each in take_snapshot(places, {}).items()
    )
