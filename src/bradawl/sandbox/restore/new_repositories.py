"""Recognizes files of new repositories that make git run nothing, and removes from the others what would."""

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.git.config_file import Entry as Setting
from bradawl.safety.git.settings_without_programs import has_no_programs, without_programs
from bradawl.safety.git.template_hooks import TemplateHooks
from bradawl.safety.path_walk import real_path
from bradawl.safety.permissions.protected_paths import credentials
from bradawl.sandbox.check_failures import CheckFailures
from bradawl.sandbox.discovery.folder_index import is_in_any
from bradawl.sandbox.discovery.git_folders import kind_of
from bradawl.sandbox.restore.git_directories import GitDirectories, parents
from bradawl.sandbox.restore.snapshot import Entry, Snapshot, WatchedPath, holds_any, is_same, take_snapshot

_EMPTY_AT_FIRST: Final = ("hooks", "branches", "remotes")
"""Folders that `git init` creates, by its templates."""
_SETTINGS: Final = ("config", "config.worktree")
_LINK_OF_GITOXIDE: Final = "docs.url"
"""A file that gitoxide, and so Jujutsu, puts beside the samples of hooks. Git runs nothing of this name."""
_ALTERNATES: Final = "objects/info/alternates"
_TREE: Final = re.compile(r"(.+/worktrees/[^/]+)/(config\.worktree|commondir)", re.DOTALL)
_MODULE: Final = re.compile(r"(modules/.+?)/((?:config|hooks)(?:/.*)?)", re.DOTALL)


class _Place(msgspec.Struct, frozen=True):
    """A file of a new repository."""

    data: str
    """Its git directory."""
    inner: str
    """The path in the git directory."""
    is_allowed: Callable[[Setting], bool]
    """Whether a setting may stay though it is not harmless everywhere."""
    is_tree: bool = False
    """Whether the git directory is that of a linked working tree."""


class NewRepositoryFiles:
    """Judges the files of repositories that programs create: those that git would obey."""

    def __init__(self, roots: tuple[str, ...] = (), home: str = "") -> None:
        """`roots` are the folders that programs can write to; `home` is the user's home folder, empty if unknown."""
        self._roots = roots
        self._credentials = credentials(home)
        self._templates = TemplateHooks(roots, home)

    def prepare(self) -> None:
        """Read what the user has configured for new repositories. Call before programs; only the first call counts."""
        self._templates.read()

    def is_harmless(self, path: str, entry: Entry, before: Snapshot) -> bool:
        """Whether git runs nothing because of a file of a repository that is not in `before`."""
        place = _place_of(path, before)
        return place is not None and self._is_harmless_at(place, entry)

    def is_harmless_in_data(self, path: str, data: str, entry: Entry) -> bool:
        """As `is_harmless`, for a file in the data folder of a new bare repository."""
        return self._is_harmless_at(_in_bare(path, data), entry)

    def are_harmless(self, places: Iterable[WatchedPath], data: str = "") -> bool:
        """Whether git runs nothing because of these files of a new repository; `data` if it has no `.git` folder."""
        return all(
            entry.kind == "parent"
            or self.is_harmless(path, entry, {})
            or (data != "" and is_within(path, data) and self.is_harmless_in_data(path, data, entry))
            for path, entry in take_snapshot(places, {}).items()
        )

    def are_surely_harmless(self, places: tuple[WatchedPath, ...], data: str = "") -> bool:
        """As `are_harmless`; False if it can't be determined."""
        return CheckFailures().attempt("", partial(self.are_harmless, places, data), default=False)

    def is_harmless_in_made(self, path: str, entry: Entry, made: frozenset[str], bare: frozenset[str]) -> bool:
        """As `is_harmless`, for a file in one of the git directories `made` or in one of the bare repositories `bare`,
        both created by programs.
        """
        if is_in_any(path, made):
            return self.is_harmless(path, entry, {})
        data = _innermost(path, bare)
        return data != "" and self.is_harmless_in_data(path, data, entry)

    def without_programs(self, path: str, entry: Entry, before: Snapshot, bare: frozenset[str]) -> Entry | None:
        """A configuration file of a repository that is not in `before`, or in one of the new bare repositories `bare`,
        without the settings that run something.

        None for other files, and for one that can't be changed safely.
        """
        place, data = _place_of(path, before), _innermost(path, bare)
        cleaned = None if place is None else _cleaned(place, entry)
        return cleaned or (_cleaned(_in_bare(path, data), entry) if data else None)

    def _is_harmless_at(self, place: _Place, entry: Entry) -> bool:
        inner = place.inner
        if inner in _EMPTY_AT_FIRST:
            return entry.kind == "folder"
        if entry.kind != "file":
            return False
        if inner.startswith("hooks/"):
            name = inner.removeprefix("hooks/")
            return (
                name.endswith(".sample")
                or name == _LINK_OF_GITOXIDE
                or self._templates.is_hook_of_git(name, entry.content or b"")
            )
        if entry.content == b"":
            return True  # may be the placeholder of a program that still runs
        if inner == "commondir" and place.is_tree:
            return entry.content in (b"../..", b"../..\n")  # a blank line would be the folder itself
        if inner == _ALTERNATES:
            return self._are_objects_in_reach(f"{place.data}/objects", entry.content)
        return (
            inner in _SETTINGS
            and entry.content is not None
            and has_no_programs(os.fsdecode(entry.content), place.is_allowed)
        )

    def _are_objects_in_reach(self, objects: str, content: bytes | None) -> bool:
        """Whether a list of borrowed objects, as `git clone --shared` writes it, names only folders in the roots, and
        repositories elsewhere that hold no keys: programs can read both.
        """
        for line in os.fsdecode(content or b"#").removesuffix("\n").split("\n"):
            if not line or line.startswith(('"', "#")) or not line.isprintable():
                return False
            folder = real_path(Path(objects, line))
            is_own = any(is_within(folder, root) for root in self._roots)
            if kind_of(folder) != "folder" or not (is_own or self._is_in_repository(folder)):
                return False
        return True

    def _is_in_repository(self, objects: str) -> bool:
        data, _, name = objects.rpartition("/")
        is_data = name == "objects" and kind_of(f"{data}/HEAD") == "file" and kind_of(f"{data}/refs") == "folder"
        return is_data and not any(is_within(objects, each) for each in self._credentials)


def is_new_repository(path: str, entry: Entry, before: Snapshot) -> bool:
    """As `NewRepositoryFiles.is_harmless`, without the user's template of hooks and without borrowed objects."""
    return NewRepositoryFiles().is_harmless(path, entry, before)


def _innermost(path: str, folders: frozenset[str]) -> str:
    return next((each for each in (path, *parents(path)) if each in folders), "")


def _never(_: Setting) -> bool:
    return False


def _in_bare(path: str, data: str) -> _Place:
    return _Place(data, path[len(data) + 1 :], _never)


def _place_of(path: str, before: Snapshot) -> _Place | None:
    """None if the path is in no git directory, or in one that existed."""
    if tree := _TREE.fullmatch(path):
        is_new = not holds_any(before, tree[1])
        return _Place(tree[1], tree[2], _never, is_tree=True) if is_new else None
    head, git, inner = path.rpartition("/.git/")
    data, is_allowed = f"{head}/.git", _never
    if module := _MODULE.fullmatch(inner):
        data, inner = f"{data}/{module[1]}", module[2]
        is_allowed = partial(_is_working_tree_in, head, data)
    if not git or holds_any(before, data):
        return None
    return _Place(data, inner, is_allowed)


def _is_working_tree_in(folder: str, data: str, setting: Setting) -> bool:
    """Whether a setting of a submodule names a working tree inside a folder."""
    name, value = setting
    return name == "core.worktree" and bool(value) and is_within(real_path(Path(data, value or "")), folder)


def _cleaned(place: _Place, entry: Entry) -> Entry | None:
    if place.inner not in _SETTINGS or entry.kind != "file" or entry.content is None:
        return None
    text = without_programs(os.fsdecode(entry.content), place.is_allowed)
    return None if text is None else msgspec.structs.replace(entry, content=os.fsencode(text))


def was_only_moved(directories: GitDirectories, path: str, entry: Entry, before: Snapshot) -> bool:
    """Whether a file came with a folder that was moved, and is unchanged. A `.git` folder alone may not be moved: it
    would apply to other files.
    """
    for folder in parents(path):
        old = "" if folder.endswith("/.git") else directories.moved_from(folder)
        if old and not old.endswith("/.git"):
            return is_same(before.get(f"{old}{path[len(folder) :]}"), entry)
    return False
