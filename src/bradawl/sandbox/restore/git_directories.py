"""Finds the data of git at any depth of a workspace, and what programs have added since none ran."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from bradawl.core.effects import is_within
from bradawl.safety.permissions.protected_paths import (
    is_covered_in_root,
    protected_names,
    run_later_endings,
    run_later_names,
)
from bradawl.sandbox.check_failures import NOT_CHECKED
from bradawl.sandbox.discovery.folder_index import (
    NAMES_OF_GIT,
    Folder,
    FolderIndex,
    is_git_directory,
    is_in_any,
    outermost,
)
from bradawl.sandbox.restore.run_later import RunLaterWatch

PASSED_OVER: Final = frozenset(
    (".git", "node_modules", "__pycache__", "site-packages", ".tox", ".nox", ".mypy_cache", ".ruff_cache")
)
"""Folders with files of others, in which new names say nothing about the project."""
_DEPTH: Final = 3
_MOST_NEAR: Final = 60
_LARGE: Final = 4_000
_AT_ONCE_S: Final = 0.01
_MARKS: Final = ("HEAD", "refs", "objects", "commondir")
"""Without one of these names git recognizes no repository. The first new one is moved away."""
_PLACEHOLDERS: Final = frozenset(protected_names())
"""Names that exist in a root while programs run, because of the sandbox itself."""
_OBEYED: Final = ("config", "config.worktree", "hooks", "commondir")


class FolderSearches:
    """Searches of the indexes of some folders. `GitDirectories` uses their results when it is told to."""

    def __init__(self, indexes: tuple[FolderIndex, ...], *, opens_first: bool) -> None:
        """`opens_first` says that closed folders are always opened."""
        self._indexes = indexes
        self._opens_first = opens_first
        self._is_stopped = False
        self.skipped: frozenset[str] = frozenset()
        """Folders that programs can't write to: left out after programs."""

    def finish(self, *, opens: bool = False, within_s: float | None = None) -> None:
        """Search all folders; `opens` after programs. May run in another thread."""
        for index in self._indexes:
            if self._is_stopped:
                return
            index.search(
                opens=opens or self._opens_first,
                skipped=self.skipped if opens else frozenset(),
                within_s=within_s,
            )

    def stop(self) -> None:
        """Let the search that runs in another thread end soon, and begin none before `allow`."""
        self._is_stopped = True
        for index in self._indexes:
            index.stop()

    def allow(self) -> None:
        """Search again, after `stop`."""
        self._is_stopped = False

    def shortly(self, *, opens: bool = False) -> bool:
        """As `finish`, in about 10 ms; False if that is not enough."""
        if any(index.size > _LARGE for index in self._indexes):
            return False
        self.finish(opens=opens, within_s=_AT_ONCE_S)
        return all(index.is_complete for index in self._indexes)


class GitDirectories:
    """The repositories and data folders of git in some folders, by an index that is searched again on request."""

    def __init__(
        self,
        roots: Iterable[str],
        *,
        run_later: Iterable[str] = (),
        opens_first: bool = False,
        within_s: float = math.inf,
    ) -> None:
        """A search takes at most about `within_s` seconds for each root. `opens_first` says that the searches before
        programs open closed folders, too: for backends that do not cover them. `run_later` are names of folders
        from which git runs hooks in each repository, besides the usual names.
        """
        names = (*NAMES_OF_GIT, *run_later_names(), *run_later)
        self._indexes = tuple(FolderIndex(root, names, run_later_endings(), within_s=within_s) for root in roots)
        self.searches = FolderSearches(self._indexes, opens_first=opens_first)
        self._now: dict[str, Folder] = {}
        self._before: dict[str, Folder] | None = None
        self._gone: dict[tuple[int, int], str] | None = None
        """Where folders were that are not there any more, by their identities; None if that is not known yet."""
        self.rest: tuple[str, ...] = ()
        """Folders that the last search did not reach."""
        self.closed: tuple[str, ...] = ()
        """Folders of this user that the last search could not list."""
        self.failures: tuple[str, ...] = ()
        """Of the `rest`, the folders that could not be examined for another reason than the time, with the reasons."""
        self.unsearched: tuple[str, ...] = ()
        """Of the `rest` after a program, the folders that it could write to."""
        self._unsearched: frozenset[str] = frozenset()
        self._repositories: tuple[str, ...] = ()
        self._others: tuple[str, ...] = ()
        self._is_open = False
        """Whether no search has been completed since a program started."""
        self.adoptions = 0
        """Number of calls of `adopt`: the results of a search begun before the last one are not used."""

    # ------------------------------------------------------------------ searches

    def search(self, *, opens: bool = False, is_searched: bool = False) -> None:
        """Bring all indexes up to date; `opens` after programs. May run in another thread.

        `is_searched` says that `searches` has brought them up to date: only the results are used from now on.
        """
        if not is_searched:
            self.searches.finish(opens=opens)
        self._take_over()

    def search_shortly(self, *, opens: bool = False) -> bool:
        """As `search`, in about 10 ms; False if that is not enough."""
        is_done = self.searches.shortly(opens=opens)
        self._take_over()
        return is_done

    def _take_over(self) -> None:
        self._gone = None
        now = {path: folder for index in self._indexes for path, folder in index.marked.items()}
        self._now = now
        self._repositories = _nearest_first(path for path, folder in now.items() if ".git" in folder.names)
        data = {path for path, folder in now.items() if is_git_directory(folder.names)}
        data |= {shared for path in data if (shared := self._shared_by(path))}
        self._others = _nearest_first(path for path in data if not path.endswith("/.git"))
        self.rest = tuple(path for index in self._indexes for path in index.rest)
        self.closed = tuple(path for index in self._indexes for path in index.closed)
        self.failures = tuple(remark for index in self._indexes for remark in index.failures.remarks())

    def adopt(self) -> None:
        """Count everything that the last search found as existing before. Call while no program runs."""
        before = self._now
        self.adoptions += 1
        if self._is_open:
            self._distrust_all("the search was interrupted")
        self._is_open = True
        if self._before is not None:
            # What an earlier program may have left where no search reached is not the user's.
            before = {
                path: folder
                for path, folder in before.items()
                if path in self._before or not is_in_any(path, self._unsearched)
            }
        self._before, self._gone = before, None
        self.searches.skipped = frozenset((*self.closed, *self.rest))

    def note_end(self, failure: str = "") -> None:
        """Remember which folders the search after a program did not reach, unless they were read-only for it.

        With a `failure` of the search, none counts as reached.
        """
        self._is_open = False
        if failure:
            self._distrust_all(failure)
            return
        self.unsearched = tuple(path for path in self.rest if not self.is_read_only(path))
        self._unsearched = frozenset(self.unsearched) | (self._unsearched if self.rest else frozenset())

    def _distrust_all(self, reason: str) -> None:
        """Count everything that the next search finds, and that did not exist before, as made by programs."""
        self.unsearched = tuple(index.root for index in self._indexes)
        self._unsearched = frozenset(self.unsearched)
        self.failures = tuple(f"{root} {NOT_CHECKED}{reason})" for root in self.unsearched)

    # ------------------------------------------------------------------ results

    def repositories(self) -> tuple[str, ...]:
        """Folders with a `.git` of any kind, nearest to the root first."""
        return self._repositories

    def near(self, root: str) -> tuple[str, ...]:
        """The repositories in the first three levels below a root, without packages and caches; at most 60."""
        inner = (path for path in self.repositories() if path != root and is_within(path, root))
        near = (path for path in inner if _is_near(path[len(root) :].strip("/").split("/")))
        return tuple(near)[:_MOST_NEAR]

    def others(self) -> tuple[str, ...]:
        """Folders that git takes for a repository's data by their contents: bare repositories, data of submodules and
        of linked working trees, and what linked working trees share, which needs no HEAD.
        """
        return self._others

    def _shared_by(self, path: str) -> str:
        """The folder whose settings and hooks git obeys in the data of a linked working tree; empty for others."""
        shared, place, _ = path.rpartition("/worktrees/")
        is_data = place and "commondir" in self._names_now(path) and {"objects", "refs"} <= self._names_now(shared)
        return shared if is_data else ""

    def existed(self, path: str) -> bool:
        """Whether a folder had the data of git, or a `.git`, before programs ran."""
        folder = (self._before or {}).get(path)
        return folder is not None and (".git" in folder.names or is_git_directory(folder.names))

    def is_read_only(self, path: str) -> bool:
        """Whether a path was in a part that no search had reached, and that programs could not write to."""
        return is_in_any(path, self.searches.skipped)

    def is_pending(self, path: str) -> bool:
        """Whether an earlier program may have left a folder where no search reached."""
        return path not in (self._before or {}) and is_in_any(path, self._unsearched)

    def new_part(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Of a data folder, a new name without which git takes it for no repository (empty if none is new), and the
        names that existed before it was one, and that git obeys now.
        """
        had, names = self._names_before(path), self._names_now(path)
        mark = next((name for name in _MARKS if name in names and name not in had), "")
        return mark, tuple(name for name in _OBEYED if name in had)

    def moved_from(self, path: str) -> str:
        """Where a folder was before programs ran, if it has been moved since; empty otherwise."""
        now = self._now.get(path)
        if now is None:
            return ""
        if self._gone is None:
            gone = ((path, folder) for path, folder in (self._before or {}).items() if path not in self._now)
            self._gone = {folder.identity: old for old, folder in reversed(tuple(gone))}
        return self._gone.get(now.identity, "")

    def new_links(self) -> tuple[str, ...]:
        """Links inside `.git` folders that programs made: git writes through a link in the place of its own file."""
        return tuple(
            f"{path}/{name}"
            for path, folder in self._now.items()
            if folder.links and not self.is_read_only(path)
            for name in sorted(folder.links - self._links_before(path))
        )

    def _links_before(self, path: str) -> frozenset[str]:
        folder = (self._before or {}).get(path) or (self._before or {}).get(self.moved_from(path))
        return folder.links if folder is not None else frozenset()

    def run_later(self, root: str) -> tuple[str, ...]:
        """The files and folders in a root that other programs run later and that are read-only for commands."""
        names = self._names_now(root) - NAMES_OF_GIT
        return tuple(f"{root}/{name}" for name in sorted(names) if is_covered_in_root(name))

    def watch_run_later(self) -> RunLaterWatch:
        """Watch such files and folders at any depth that commands can change; not in packages and caches."""
        found = [
            f"{path}/{name}"
            for index in self._indexes
            for path, folder in index.marked.items()
            if not _is_passed_over(path, index.root) and not self.is_read_only(path)
            for name in folder.names - NAMES_OF_GIT
            if path != index.root or not is_covered_in_root(name)
        ]
        present = {path: folder.names for index in self._indexes for path, folder in index.marked.items()}
        return RunLaterWatch(_nearest_first(outermost(found)), lambda: self._made_to_run_later(present))

    def _made_to_run_later(self, present: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
        """Files and folders that programs made and that other programs run later, outermost only, nearest first.

        `present` are those that were there when the program began: what is new since others began is none of its.
        """
        found: list[str] = []
        for index in self._indexes:
            for path, folder in index.marked.items():
                before = (self._before or {}).get(path)
                is_same = before is not None and before.identity == folder.identity
                new = folder.names - NAMES_OF_GIT - (before.names if before and is_same else frozenset())
                new -= present.get(path, frozenset())
                if path == index.root:
                    new -= _PLACEHOLDERS
                if new and not self.is_read_only(path) and not _is_passed_over(path, index.root):
                    found += (f"{path}/{name}" for name in new)
        return _nearest_first(outermost(found))

    def _names_before(self, path: str) -> frozenset[str]:
        folder = (self._before or {}).get(path)
        return folder.names if folder is not None else frozenset()

    def _names_now(self, path: str) -> frozenset[str]:
        folder = self._now.get(path)
        return folder.names if folder is not None else frozenset()


def _is_passed_over(path: str, root: str) -> bool:
    """Whether new names in a folder say nothing about the project. Lazygit reads its settings from `.git` itself."""
    *above, name = path[len(root) :].split("/")
    return name in PASSED_OVER - {".git"} or not PASSED_OVER.isdisjoint(above)


def _is_near(parts: list[str]) -> bool:
    return len(parts) <= _DEPTH and not PASSED_OVER & set(parts)


def _nearest_first(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=lambda each: (each.count("/"), each)))


def parents(path: str) -> Iterator[str]:
    """The folders above a path, innermost first."""
    while path := path.rpartition("/")[0]:
        yield path
