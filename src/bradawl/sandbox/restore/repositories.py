"""Selects the git files of a workspace to check after programs have run."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.git.named_paths import NamedPaths, has_other_names, named_by_config
from bradawl.safety.git.run_paths import working_tree
from bradawl.safety.git.separate_data import data_folder
from bradawl.safety.git.small_files import named_in
from bradawl.safety.home_links import HomeLinks
from bradawl.safety.path_walk import real_path
from bradawl.safety.permissions.protected_paths import watched_names
from bradawl.sandbox.check_failures import KILLED, NOT_CHECKED, CheckFailures, for_each, in_parts
from bradawl.sandbox.discovery.folder_index import is_in_any
from bradawl.sandbox.discovery.git_folders import data_folders, data_of, folders_in, folders_of_modules, kind_of
from bradawl.sandbox.restore.created_repositories import CreatedRepositories
from bradawl.sandbox.restore.git_directories import GitDirectories, parents
from bradawl.sandbox.restore.git_file_names import (
    NOT_HELD,
    OF_ANY_DATA,
    OF_DATA,
    OF_GIT,
    OF_MODULES,
    STATE,
    STEPS,
    paths_in_data,
    submodule_lists,
)
from bradawl.sandbox.restore.git_history import RepositoryLocation
from bradawl.sandbox.restore.gitlinks import IndexWatch
from bradawl.sandbox.restore.harmless_git_files import (
    adds_only_harmless_settings,
    is_plain_at_first,
    is_state,
    is_written,
    runs_by_state,
    without_added_programs,
    without_added_settings,
)
from bradawl.sandbox.restore.new_repositories import NewRepositoryFiles, was_only_moved
from bradawl.sandbox.restore.removable_data import RemovableData
from bradawl.sandbox.restore.snapshot import Entry, Snapshot, WatchedPath

_MODULES: Final = 50
_MOST_MOUNTED: Final = 20
_MOST_NAMING: Final = 300
_MANY: Final = 50
"""New repositories beyond this number are examined one by one, because a snapshot has a limit."""
_MOST_FOLDERS_OF_MODULES: Final = 2_000


class Repositories:
    """The repositories of a workspace: those that existed first, and those that programs created.

    Repositories that existed first are covered by mounts. Those that programs create are not, nor are new submodules of
    existing ones: they are checked as a whole when programs have ended. Later programs may move and remove them, as
    long as they contain nothing that git would run. A mount is lost if a program outside the sandbox replaces the file,
    as git does with its configuration; so covered files are checked, too. Repositories far from the root, and data
    folders that git recognizes by their contents, have no mounts: they are compared, and may be removed as a whole.
    """

    def __init__(
        self,
        roots: tuple[str, ...],
        home: str,
        directories: GitDirectories,
        *,
        has_mounts: bool = False,
        state: str = "",
        named: NamedPaths | None = None,
    ) -> None:
        """`directories` search the roots; the caller searches them before a program starts. `has_mounts` says that
        repositories near the root, and existing paths that git's configuration names, are mounted read-only.
        """
        self._roots = roots
        self._home = home
        self._created = CreatedRepositories(state)
        self._directories = directories
        self._has_mounts = has_mounts
        self._named = named or NamedPaths(home)
        self._home_links = HomeLinks(home)
        self._new_files = NewRepositoryFiles(roots, home)
        self._indexes = IndexWatch()
        self._watched_others: frozenset[str] = frozenset()
        self._new_others: frozenset[str] = frozenset()
        self._others_first: frozenset[str] | None = None
        self._made_others: frozenset[str] = frozenset()
        self._removable = RemovableData()
        self._to_remove: frozenset[str] = frozenset()
        self._covered: frozenset[str] = frozenset()
        self._covered_repositories: frozenset[str] = frozenset()
        self._covered_data: tuple[str, ...] = ()
        self._data_of_covered: tuple[str, ...] = ()
        self._made: frozenset[str] = frozenset()
        self._cached: dict[str, tuple[str, ...]] | None = None

    @contextlib.contextmanager
    def caching(self) -> Iterator[None]:
        """Determine git's data at most once in the body. Only correct while no program runs."""
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

    def harmless_new_ones(self, *, is_busy: bool) -> frozenset[str]:
        """Repositories and data of linked trees by programs from which git runs nothing; all new ones if `is_busy`."""
        self._new_files.prepare()
        return self._harmless_new_ones(self._current_repositories(), self._working_trees(), is_busy=is_busy)

    def _harmless_new_ones(self, now: tuple[str, ...], trees: tuple[str, ...], *, is_busy: bool) -> frozenset[str]:
        if not is_busy:
            self._created.adopt(each for each in (*now, *trees) if not self._directories.is_pending(each))
        harmless, created = self._new_files.are_harmless, self._created.new_among((*now, *trees))
        new = (folder for folder in created if folder not in self._roots and folder not in trees)
        known = frozenset(now)

        def if_plain(folder: str) -> tuple[str, ...]:
            is_plain = self._belongs_to_known(folder, known) or harmless(self._repository_paths(folder))
            return (folder,) if is_plain else ()

        plain = [each for folder in new for each in self._cached_result(f"plain {folder}", partial(if_plain, folder))]
        plain += [tree for tree in trees if tree in created and harmless(self._working_tree_settings(tree))]
        return frozenset(plain)

    def watched_paths(self) -> Iterator[WatchedPath]:
        """Paths to compare, as of when the first of overlapping programs begins."""
        self._new_files.prepare()
        self._directories.adopt()
        self._indexes.forget()
        trees = self._working_trees()
        now = tuple(each for each in self._current_repositories() if not self._directories.is_pending(each))
        made = self._harmless_new_ones(now, trees, is_busy=False)
        repositories = frozenset(now) - made
        self._covered = repositories | (frozenset(trees) - made)
        self._covered_repositories = repositories
        self._made = (made & frozenset(trees)) | {f"{folder}/.git" for folder in now if folder in made}
        near = frozenset((*self._roots, *self._near_ones())) - self._to_remove
        for folder in dict.fromkeys((*self._roots, *sorted(repositories & near))):
            names = NOT_HELD if folder in repositories else OF_GIT
            yield from ((folder, name) for name in (*names, *watched_names(), *submodule_lists(folder)))
        for folder in sorted(repositories - near):
            yield from self._paths_below_root(folder, (*OF_GIT, *watched_names()))
        self._data_of_covered = data_folders(self._roots, repositories, self._home)
        for data in self._data_of_covered:
            yield from paths_in_data(data)
        self._covered_data = (*(f"{each}/.git" for each in repositories), *self._data_of_covered)
        yield from _submodule_paths(self, (*OF_MODULES, *OF_ANY_DATA), is_start=True)
        yield from self._not_covered(now, trees)
        yield from self._state_paths((*self._roots, *now))
        self._removable = RemovableData((*self._made, *(f"{folder}/.git" for folder in repositories - near)))
        yield from _paths_of_others(self, near)
        yield from (place for root in self._roots for place in _paths_named_by_config(self, root))

    def _near_ones(self) -> Iterator[str]:
        return (folder for root in self._roots for folder in self._directories.near(root))

    def expect_removal(self, folders: tuple[str, ...]) -> frozenset[str]:
        """The repositories near a root that the next program removes as a whole, with one of these folders: they are
        compared as deeper ones are, because read-only mounts would keep a part of them.
        """
        near = self._near_ones() if folders else ()
        self._to_remove = frozenset(each for each in near if any(is_within(each, folder) for folder in folders))
        return self._to_remove

    def _state_paths(self, folders: Iterable[str]) -> Iterator[WatchedPath]:
        """The steps of a rebase of each repository; the index where a repository exists that it could name."""
        known = tuple(dict.fromkeys(folders))
        has_nested = any(folder not in self._roots for folder in known)
        for folder in (each for each in known if kind_of(f"{each}/.git") == "folder"):
            if has_nested:
                self._indexes.watch(f"{folder}/.git/index", folder)
            yield from self._paths_below_root(folder, STATE if has_nested else STEPS)

    def named_by_config(self, root: str) -> tuple[str, ...]:
        """Paths in a root, existing or not, that git's settings name, or to which links in the home folder lead."""
        by_git = self._cached_result(f"git {root}", partial(_named_by_settings, self, root))
        return (*by_git, *self._cached_result(f"home {root}", lambda: self._home_links.all(root)))

    def working_tree_paths(self) -> Iterator[WatchedPath]:
        """Files in which linked working trees name their data, for backends without mounts; new working trees
        left out.
        """
        trees = (tree for tree in self._working_trees() if tree not in self._made)
        return (place for tree in trees for place in self._paths_below_root(tree, ("commondir", "gitdir")))

    def repository_locations(self) -> Iterator[RepositoryLocation]:
        """Data of the repositories of the roots and of their submodules, also outside the roots."""
        own = ((data_of(root), root) for root in self._roots)
        inside = ((data, root) for data, root in own if is_within(data, root) and Path(data).is_dir())
        for data, place in (*inside, *((each, each) for each in self._data_outside())):
            yield RepositoryLocation(data, place)
            modules = (module for module, is_data in folders_of_modules(data) if is_data)
            for module in islice(modules, _MODULES):
                yield RepositoryLocation(module, place)

    def may_stay(self, path: str, before: Entry, now: Entry | None) -> bool:
        """Whether a change may stay: programs, or others meanwhile, may have made it."""
        has_cover = not self._removable.contain(path)
        return self.is_own_change_of_git(path, before, now) or (
            now is not None and adds_only_harmless_settings(path, before, now, may_lead_elsewhere=has_cover)
        )

    def is_own_change_of_git(self, path: str, before: Entry, now: Entry | None) -> bool:
        """As `may_stay`, for backends without mounts: there, lines of the configuration may not change."""
        if is_state(path):
            return now is None or not runs_by_state(path, now, before)
        if path in self._indexes:
            return now is None or not self._adds_armed_submodule(path, now)
        if is_written(path):
            return now is None or now.kind == "file"
        made = self._made, self._made_others
        is_fine = now is not None and self._new_files.is_harmless_in_made(path, now, *made)
        return is_fine or self._is_gone(path, before, now)

    def without_programs(self, path: str, now: Entry, before: Snapshot) -> Entry | None:
        """A list of rebase steps, or the configuration of a repository that programs created, without the lines that
        run programs. None for other files, and if programs would still run.
        """
        steps = without_added_programs(path, now, before.get(path))
        is_made = is_in_any(path, self._made)
        if steps is None and self._has_mounts and path in before and not is_made:
            return without_added_settings(path, before[path], now)  # others changed it, or it had no cover
        others = self._new_others | self._made_others
        return steps or self._new_files.without_programs(path, now, {} if is_made else before, others)

    def _is_gone(self, path: str, before: Entry, now: Entry | None) -> bool:
        """Whether a file was removed together with a repository or working tree that may be, or is a parent folder."""
        if now is not None and before.kind != "parent":
            return False
        return self._removable.has_lost(path)

    def may_be_new(self, path: str, entry: Entry, before: Snapshot) -> bool:
        """Whether a new file may stay: git made it and will run nothing because of it, or it was moved unchanged."""
        if is_state(path):
            return not runs_by_state(path, entry)
        if path in self._indexes or path.endswith("/.git/index"):
            return path not in self._indexes or not self._adds_armed_submodule(path, entry)
        if self._new_files.is_harmless(path, entry, before) or is_plain_at_first(path, entry):
            return True
        if self._new_files.is_harmless_in_made(path, entry, self._made, self._made_others):
            return True
        data = next((each for each in parents(path) if each in self._new_others), "")
        if data and self._new_files.is_harmless_in_data(path, data, entry):
            return True
        return was_only_moved(self._directories, path, entry, before)

    def _adds_armed_submodule(self, index: str, now: Entry) -> bool:
        """Whether an index has a new submodule whose configuration, older than the program, would run something."""
        if now.kind != "file":
            return True
        added = self._indexes.added(index, now)
        return added is None or any(self._is_armed(folder) for folder in added)

    def _is_armed(self, folder: str) -> bool:
        if not os.path.lexists(f"{folder}/.git") or not self._directories.existed(folder):
            return False  # one that is new is examined by itself
        known = self._belongs_to_known(folder, frozenset(self._current_repositories()))
        return not known and not self._new_files.are_harmless(self._repository_paths(folder))

    @property
    def covered(self) -> tuple[str, ...]:
        """Repositories below the roots that existed at the last call of `watched_paths`."""
        return tuple(each for each in sorted(self._covered_repositories) if each not in self._roots)

    def new_paths(self) -> Iterator[WatchedPath]:
        """Paths created since; the caller searches first. Settings of trees and submodules belong to their repository.

        What can't be determined for one repository is left out; the iteration raises `IncompleteCheckError` at its end.
        """
        return in_parts(
            lambda: _submodule_paths(self, OF_ANY_DATA, is_start=False),
            lambda: self._not_covered(self._current_repositories(), ()),
            lambda: self._paths_of_new_trees(self._working_trees()),
            lambda: for_each(
                [folder for folder in self._current_repositories() if folder not in self._covered],
                partial(_state_paths_of_new_one, self),
            ),
            self._paths_of_new_others,
            partial(_new_links, self),
            partial(_record_created, self),
        )()

    def _paths_of_new_others(self) -> Iterator[WatchedPath]:
        """Files in new data folders. What existed before the folder became one stays; git's own part is moved then."""
        new = [
            data
            for data in self._directories.others()
            if data not in self._watched_others and not self._directories.is_read_only(data)
        ]
        self._new_others = frozenset(new)
        yield from for_each(new, partial(_paths_of_new_other, self, is_one_of_many=len(new) > _MANY))

    def _not_covered(self, now: tuple[str, ...], trees: tuple[str, ...]) -> Iterator[WatchedPath]:
        belongs, known = CheckFailures().attempt, frozenset(now)
        new = [folder for folder in now if folder not in self._covered and not self._directories.is_read_only(folder)]
        new = [each for each in new if not belongs(each, partial(self._belongs_to_known, each, known), default=False)]
        for folder in new:
            if len(new) <= _MANY or not self._new_files.are_surely_harmless(tuple(self._repository_paths(folder))):
                yield from self._repository_paths(folder)
        yield from self._paths_of_new_trees(trees)

    def _paths_of_new_trees(self, trees: tuple[str, ...]) -> Iterator[WatchedPath]:
        for tree in trees:
            if tree not in self._covered:
                yield from self._working_tree_settings(tree)

    def _current_repositories(self) -> tuple[str, ...]:
        """Repositories as of the last search, those of the roots as of now."""
        own = (each for each in self._roots if os.path.lexists(f"{each}/.git"))
        return tuple(dict.fromkeys((*own, *self._directories.repositories())))

    def _data_outside(self) -> tuple[str, ...]:
        return self._cached_result("data", lambda: data_folders(self._roots, self._roots, self._home))

    def _working_trees(self) -> tuple[str, ...]:
        """Data folders of linked working trees of the roots' repositories."""
        return self._cached_result("trees", partial(_trees, self))

    def _belongs_to_known(self, folder: str, folders: frozenset[str]) -> bool:
        data = data_folder(f"{folder}/.git")
        if not data:
            return _names_plain_data(self, folder)
        trees = (above for each in (data, *parents(data)) if (above := each.removesuffix("/.git")) != each)
        known = any(
            tree in folders and (data == f"{tree}/.git" or data.startswith(f"{tree}/.git/modules/")) for tree in trees
        )
        return known or data in self._data_outside() or data in self._directories.others()

    def _repository_paths(self, folder: str) -> Iterator[WatchedPath]:
        return self._paths_below_root(folder, (*OF_GIT, *watched_names()))

    def _working_tree_settings(self, tree: str) -> Iterator[WatchedPath]:
        return self._paths_below_root(tree, ("config.worktree", "commondir"))

    def _paths_below_root(self, folder: str, names: tuple[str, ...], place: str = "") -> Iterator[WatchedPath]:
        """Paths relative to the root, or to `place` outside of it, because folders on the way may have been
        replaced.
        """
        start = next((root for root in self._roots if is_within(folder, root)), place or folder)
        way = folder[len(start) :].strip("/")
        return ((start, f"{way}/{name}".strip("/")) for name in names)


def suspect_since(found: Repositories, before: Snapshot) -> Iterator[str]:
    """Remarks for a command whose check did not run, because bradawl was killed: new repositories from which git
    would run something. `before` is the snapshot before the command.

    They are named and not moved: the user may have made them since. The caller searches the folders first.
    """
    for root in found._roots:
        yield f"{root} {NOT_CHECKED}{KILLED}; git's index and files that tools run later may have changed)"
    now = frozenset(found._current_repositories())
    known = {folder for path in before for folder in (path, *parents(path))}
    for folder in sorted(now):
        is_new = f"{folder}/.git" not in known and not found._belongs_to_known(folder, now)
        if is_new and not found._new_files.are_surely_harmless(tuple(found._repository_paths(folder))):
            yield f"{folder} {NOT_CHECKED}{KILLED}; git runs programs from this new repository)"
    for data in found._directories.others():
        if data not in known and not _is_plain(found, data):
            yield f"{data} {NOT_CHECKED}{KILLED}; git runs programs from this new folder)"


def data_of_roots(found: Repositories) -> tuple[str, ...]:
    """Where git's data of the roots may be; they need not exist."""
    return (*(f"{root}/.git" for root in found._roots), *found._data_of_covered)


def git_obeys(found: Repositories, path: str) -> bool:
    """Whether a path lies in what git takes for the data of a repository, as of the last search, or in what git's
    configuration names.
    """
    if "/.git/" in f"{path}/":
        return True
    named = (each for root in found._roots for each in found.named_by_config(root))
    return any(is_within(path, each) for each in (*found._data_of_covered, *found._directories.others(), *named))


def _named_by_settings(found: Repositories, root: str) -> tuple[str, ...]:
    directories = found._directories
    deep = (each for each in directories.repositories() if f"{each}/.git" not in found._made)
    trees = dict.fromkeys((working_tree(root) or root, *directories.near(root), *islice(deep, _MOST_NAMING)))
    bare = (each for each in directories.others() if "/.git/" not in each and each not in found._made_others)
    return named_by_config(found._named, root, trees, islice(bare, _MOST_NAMING))


def _is_plain(found: Repositories, data: str, names: tuple[str, ...] = OF_DATA) -> bool:
    """Whether git runs nothing because of what is in a data folder without a `.git` of its own."""
    return found._new_files.are_surely_harmless(tuple(found._paths_below_root(data, names, data)), data)


def _submodule_paths(found: Repositories, names: tuple[str, ...], *, is_start: bool) -> Iterator[WatchedPath]:
    """These names in the data of all submodules, and unexpected files in data folders outside the roots.

    With `is_start`, raises `ToolError` if there are too many to check.
    """
    left = _MOST_FOLDERS_OF_MODULES
    for data in found._covered_data:
        if data in found._data_of_covered:
            yield from ((data, name) for name in OF_ANY_DATA)
        for folder, is_data in folders_of_modules(data):
            left -= 1
            if left < 0:
                if is_start:
                    raise _too_many(data)
                return
            if is_data:
                yield from found._paths_below_root(folder, names, data)


def _names_plain_data(found: Repositories, folder: str) -> bool:
    """Whether a `.git` file names a data folder in the roots, as `git init --separate-git-dir` writes it, with nothing
    that git would run. The data folder is compared as others are.
    """
    named = named_in(f"{folder}/.git", "gitdir: ")
    data = real_path(Path(folder, named)) if named else ""
    return data in found._directories.others() and _is_plain(found, data)


def _paths_of_others(found: Repositories, near: frozenset[str]) -> Iterator[WatchedPath]:
    """Files in the data folders that exist without a `.git` of their own."""
    others = frozenset(each for each in found._directories.others() if not found._directories.is_pending(each))
    found._watched_others = others
    if found._others_first is None:
        found._others_first = others
    found._made_others = frozenset(each for each in others - found._others_first if _is_plain(found, each))
    kept = (*(f"{folder}/.git" for folder in near), *found._data_of_covered)
    found._removable.add(data for data in others if not any(is_within(data, each) for each in kept))
    for data in sorted(others):
        yield from found._paths_below_root(data, OF_DATA, data)


def _trees(found: Repositories) -> tuple[str, ...]:
    places = (*(f"{root}/.git" for root in found._roots), *found._data_outside())
    return tuple(tree for place in places for tree in folders_in(f"{place}/worktrees"))


def _new_links(found: Repositories) -> Iterator[WatchedPath]:
    for path in found._directories.new_links():
        folder, _, name = path.rpartition("/")
        yield from found._paths_below_root(folder, (name,))


def _record_created(found: Repositories) -> tuple[WatchedPath, ...]:
    """Remember the repositories and working trees that programs have created; names no paths."""
    trees = (tree for tree in found._working_trees() if tree not in found._covered)
    now = found._current_repositories()
    folders = (each for each in now if f"{each}/.git" in found._made or not found._directories.existed(each))
    found._created.record((*folders, *trees))
    return ()


def _paths_named_by_config(found: Repositories, root: str) -> Iterator[WatchedPath]:
    """Those that no mount keeps as they are: links, missing files, files with hard links, and the last of many."""
    for number, path in enumerate(found.named_by_config(root)):
        is_mounted = found._has_mounts and number < _MOST_MOUNTED and kind_of(path) in ("file", "folder")
        if not is_mounted or has_other_names(path):
            yield root, path[len(root) :].strip("/")


def _state_paths_of_new_one(found: Repositories, folder: str) -> Iterator[WatchedPath]:
    index = f"{folder}/.git/index"
    if kind_of(f"{folder}/.git") != "folder":
        return
    yield from found._paths_below_root(folder, STATE)
    if index not in found._indexes:
        found._indexes.watch_new(index, folder)


def _paths_of_new_other(found: Repositories, data: str, *, is_one_of_many: bool) -> Iterator[WatchedPath]:
    mark, kept = found._directories.new_part(data)
    names = tuple(name for name in OF_DATA if name not in kept)
    if not is_one_of_many or not _is_plain(found, data, names):
        yield from found._paths_below_root(data, names, data)
    if mark and kept and not _is_plain(found, data, kept):
        yield from found._paths_below_root(data, (mark,), data)


def _too_many(data: str) -> ToolError:
    return ToolError(
        f"nothing can run in the sandbox: {data} holds more folders of submodules than it can look at "
        f"({_MOST_FOLDERS_OF_MODULES:,}). Remove those that are not needed, or ask to run without the sandbox"
    )
