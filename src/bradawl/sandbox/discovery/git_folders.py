"""Finds git's data folders outside a workspace, and the folders of submodules."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from bradawl.core.effects import is_within
from bradawl.safety.git.separate_data import data_above, data_folder
from bradawl.safety.git.small_files import named_in
from bradawl.safety.path_walk import real_path
from bradawl.sandbox.check_failures import is_absent_or_closed


def data_folders(roots: Iterable[str], repositories: Iterable[str], home: str) -> tuple[str, ...]:
    """Data folders outside the roots that git must write to: those of the repositories, and of a repository around a
    root.
    """
    writable = tuple(roots)
    named = (data_folder(f"{folder}/.git") for folder in repositories if kind_of(f"{folder}/.git") == "file")
    above = (data_above(root, home) for root in writable if not kind_of(f"{root}/.git"))
    found = dict.fromkeys((*named, *above))
    return tuple(each for each in found if each and not any(is_within(each, root) for root in writable))


def data_of(root: str) -> str:
    """The folder that holds the objects of a root's repository, also if its `.git` is a file; it need not exist."""
    named = named_in(f"{root}/.git", "gitdir: ")
    data = real_path(Path(root, named or ".git"))
    return real_path(Path(data, named_in(f"{data}/commondir", "")))


def folders_of_modules(data: str) -> Iterator[tuple[str, bool]]:
    """Folders in which git keeps the data of submodules, nested ones included, and of linked working trees.

    The flag says whether the folder holds data; otherwise it is a part of a submodule's name.
    """
    waiting = _places_of_modules(data)
    while waiting:
        for folder in folders_in(waiting.pop(0)):
            is_data = os.path.lexists(f"{folder}/HEAD")
            yield folder, is_data
            waiting += _places_of_modules(folder) if is_data else [folder]


def _places_of_modules(data: str) -> list[str]:
    return [f"{data}/modules", *(f"{tree}/modules" for tree in folders_in(f"{data}/worktrees"))]


def folders_in(folder: str) -> list[str]:
    """Folders inside a folder, links left out; empty if there is none, or it is closed to this user. Raises `OSError`
    otherwise: of too many open files it does not follow that there are none.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        if is_absent_or_closed(error):
            return []
        raise


def kind_of(path: str) -> Literal["", "file", "folder", "link"]:
    """Type of a path, links not followed; empty if it does not exist or can't be examined."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ""
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "file"
