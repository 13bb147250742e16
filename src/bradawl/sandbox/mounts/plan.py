"""Decides for each path of one writable folder whether a sandbox mounts it read-only, masks it, or blocks it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.path_walk import real_path
from bradawl.safety.permissions.protected_paths import protected_names
from bradawl.sandbox.discovery.folder_index import is_in_any
from bradawl.sandbox.discovery.git_folders import folders_in, kind_of
from bradawl.sandbox.discovery.workspace_survey import SurveyResult
from bradawl.sandbox.mounts.placeholders import Placeholder

_MORE_OF_GIT: Final = (".git/worktrees/*/commondir", ".git/worktrees/*/gitdir")
_FOLDERS_OF_GIT: Final = ("hooks", "info")
_MOST_REPOSITORIES: Final = 12
"""Nested repositories whose data git may still change; the data of further ones are read-only."""
_MOST_MOUNTS: Final = 300
_MOST_RUN_LATER: Final = 40
_MOST_PINNED: Final = 100
"""Beyond this number of mounts the folders above hidden files are not pinned; moved files are still hidden."""
_MOST_BESIDE_A_LINK: Final = 250

Kind = Literal["write", "read", "secret", "missing", "unreadable", "empty"]

UNREADABLE: Final = ("secret", "unreadable", "empty")
"""Kinds whose contents programs can't read."""


class Mount(msgspec.Struct, frozen=True):
    """One path and how programs see it.

    `write`: writable, and can't be moved. `read`: read-only. `secret`: a text that says it is hidden. `missing`: an
    empty folder that git ignores. `unreadable`: exists but can't be opened. `empty`: an empty folder.
    """

    path: str
    kind: Kind


class MountPlan:
    """The mounts of one writable folder, outermost first, and the placeholders they need."""

    def __init__(self, root: str, unprotected: frozenset[str] = frozenset()) -> None:
        """`unprotected` get no mounts: see `Repositories.harmless_new_ones`."""
        self._root = root
        self._unprotected = unprotected
        self._is_in_repository = any(kind_of(f"{place}/.git") for place in _and_parents(root))
        self.mounts: dict[str, Mount] = {root: Mount(root, "write")}
        self.placeholders: dict[str, Placeholder] = {}
        self._read_only: set[str] = set()

    # ------------------------------------------------------------------ the whole

    def for_workspace(self, found: SurveyResult) -> "MountPlan":
        """Cover protected and secret files in a root of the workspace. Raises `ToolError` if there are too many."""
        for name in protected_names():
            if not name.startswith(".git/"):
                self._protect(self._root, tuple(name.split("/")), in_git=False)
        covered = (folder for folder in found.repositories if folder not in self._unprotected)
        for number, folder in enumerate((self._root, *covered)):
            if number <= _MOST_REPOSITORIES:
                self._add_repository(folder)
            else:
                self._add(f"{folder}/.git", "read")
        named = [path for path in found.named if kind_of(path) in ("file", "folder")]
        for path in (*named[:_MOST_RUN_LATER], *found.run_later[:_MOST_RUN_LATER]):
            if is_within(path, self._root) and kind_of(path) in ("file", "folder"):
                self._pin_folders_to(str(Path(path).parent))
                self._add(path, "read")
        self._add_secrets(found)
        for path in found.unsearched:
            self._pin_folders_to(str(Path(path).parent))
            self._add(path, "read")
        if len(self.mounts) > _MOST_MOUNTS:
            raise self._too_many()
        return self

    def add_installation(self, places: Iterable[str]) -> "MountPlan":
        """Make bradawl's own installation in this folder read-only; no mount makes a part of it writable again."""
        for place in places:
            if not is_within(place, self._root) and not is_within(self._root, place):
                continue
            if kind_of(place) == "link":
                self._make_read_only(str(Path(place).parent))
                continue
            top = place if is_within(place, self._root) else self._root
            self._pin_folders_to(top)
            self._add(top, "read")
            for path in [path for path, mount in self.mounts.items() if mount.kind != "secret"]:
                if path != top and is_within(path, top):
                    del self.mounts[path]
                    self.placeholders.pop(path, None)
        return self

    def for_read_only_root(self, found: SurveyResult) -> tuple[Mount, ...]:
        """The mounts over files with keys alone, for a folder that is not writable."""
        self._add_secrets(found)
        mounts = tuple(mount for mount in self.mounts.values() if mount.kind != "write")
        if len(mounts) > _MOST_MOUNTS:
            raise self._too_many()
        return mounts

    def _add_secrets(self, found: SurveyResult) -> None:
        for secret in found.secrets:
            self._add(secret, "secret")
        self._pin_parents_of(found.secrets)
        for folder in found.closed:
            self._add(folder, "unreadable")
        closed = frozenset(found.closed)  # a command can make tens of thousands
        for path in [path for path in self.mounts if is_in_any(path.rpartition("/")[0], closed)]:
            del self.mounts[path]
            self.placeholders.pop(path, None)

    def _pin_parents_of(self, secrets: Iterable[str]) -> None:
        """Keep the folders above hidden files from being moved, as far as the number of mounts allows."""
        for secret in secrets:
            if is_within(secret, self._root) and len(self.mounts) < _MOST_PINNED:
                self._pin_folders_to(str(Path(secret).parent))

    def _too_many(self) -> ToolError:
        return ToolError(
            f"{self._root} holds more protected files and files with keys than a sandbox can cover ({_MOST_MOUNTS}); "
            "work in a folder of it"
        )

    def for_data_folder(self) -> "MountPlan":
        """Cover protected files in a folder of git's data outside the workspace."""
        self._add_data(self._root)
        return self

    # ------------------------------------------------------------------ repositories

    def _add_repository(self, folder: str) -> None:
        dot_git = f"{folder}/.git"
        kind = kind_of(dot_git)
        if kind == "link":
            self._make_read_only(folder)
            target = real_path(dot_git)
            if is_within(target, self._root) and kind_of(target) == "folder":
                self._pin_folders_to(target)
                self._add_data(target)
        elif kind == "folder":
            self._pin_folders_to(dot_git)
            self._add_data(dot_git)
        elif kind == "file":
            self._pin_folders_to(folder)
            self._add(dot_git, "read")

    def _add_data(self, data: str) -> None:
        for name in (*protected_names(), *_MORE_OF_GIT):
            if name.startswith(".git/"):
                self._protect(data, tuple(name.split("/")[1:]), in_git=True)

    # ------------------------------------------------------------------ one name

    def _protect(self, folder: str, parts: tuple[str, ...], *, in_git: bool) -> None:
        """Cover what a name leads to, and pin the folders on the way."""
        if parts[0] == "*":
            self._protect_all(folder, parts, in_git=in_git)
            return
        path, rest = f"{folder}/{parts[0]}", parts[1:]
        match kind_of(path):
            case "":
                self._protect_missing(path, rest, in_git=in_git)
            case "link":
                self._make_read_only(folder)
                target = real_path(path)
                if is_within(target, self._root) and kind_of(target) in (
                    "file",
                    "folder",
                ):  # a link to itself has no target
                    self._pin_folders_to(str(Path(target).parent))
                    self._add(target, "read")
            case "folder" if rest:
                self._add(path, "write")
                self._protect(path, rest, in_git=in_git)
            case kind if _is_empty(path, kind):  # it may be another agent's placeholder
                self._add_placeholder(path, is_folder=kind == "folder", in_git=in_git)
            case _:
                self._add(path, "read")

    def _protect_all(self, folder: str, parts: tuple[str, ...], *, in_git: bool) -> None:
        """Submodule names may have several parts: folders without data of their own are searched deeper."""
        for inner in folders_in(folder):
            if inner in self._unprotected:
                continue
            self._add(inner, "write")
            if kind_of(f"{inner}/HEAD"):
                self._protect(inner, parts[1:], in_git=in_git)
            elif inner.count("/") < folder.count("/") + 4 and len(self.mounts) < _MOST_MOUNTS:
                self._protect_all(inner, parts, in_git=in_git)

    def _protect_missing(self, path: str, rest: tuple[str, ...], *, in_git: bool) -> None:
        """Block a missing protected file with a placeholder.

        Outside git's data the placeholder is always a folder: git, copies and searches ignore an empty folder, and it
        can't be taken for the file. Two levels down nothing is needed: programs can't create the missing first folder.
        """
        if rest and "*" in rest:
            return
        is_folder = not in_git or bool(rest) or path.rpartition("/")[2] in _FOLDERS_OF_GIT
        self._add_placeholder(path, is_folder=is_folder, in_git=in_git)

    def _add_placeholder(self, path: str, *, is_folder: bool, in_git: bool) -> None:
        """Where git may look, the placeholder is one that git ignores: otherwise `git clean` would try to remove it and
        fail.
        """
        self.placeholders[path] = Placeholder(path, is_folder)
        self._add(path, "missing" if is_folder and self._is_in_repository and not in_git else "read")

    # ------------------------------------------------------------------ folders on the way

    def _pin_folders_to(self, folder: str) -> None:
        """Make each folder on the way a mount point: a mount point can't be moved, a folder that contains one can."""
        path = self._root
        for part in folder[len(self._root) :].split("/"):
            if part:
                path = f"{path}/{part}"
                self._add(path, "write")

    def _make_read_only(self, folder: str) -> None:
        """Make a folder read-only that holds a link to a protected path, except its other entries: a link can't be
        covered, only kept from being replaced.
        """
        if folder in self._read_only:
            return
        self._pin_folders_to(folder)
        self._read_only.add(folder)
        self.mounts[folder] = Mount(folder, "read")
        with os.scandir(folder) as entries:
            inside = [entry.path for entry in entries if not entry.is_symlink()]
        for path in inside if len(inside) <= _MOST_BESIDE_A_LINK else ():
            if path not in self.placeholders:
                self._add(path, "write")

    def _add(self, path: str, kind: Kind) -> None:
        """The strictest kind for a path wins; it keeps the position of the first."""
        known = self.mounts.get(path)
        if known is None or known.kind == "write":
            self.mounts[path] = Mount(path, kind)


def _and_parents(folder: str) -> Iterator[str]:
    """A folder and its parents; the root of the file system as the empty string."""
    while folder.strip("/"):
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""


def is_empty_folder(path: str) -> bool:
    """Whether it is an empty folder, not a link to one."""
    return kind_of(path) == "folder" and _is_empty(path, "folder")


def _is_empty(path: str, kind: str) -> bool:
    try:
        if kind != "folder":
            return os.lstat(path).st_size == 0
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except OSError:
        return False
