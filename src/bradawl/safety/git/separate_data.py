"""Finds a repository's data outside the workspace: those of a linked worktree, a submodule, or a folder in a
repository.

A project may contain a `.git` file that names any folder. The folder counts only if it names the working tree in
return: only git writes that.
"""

import os
import re
import stat
from pathlib import Path

from bradawl.core.effects import is_within
from bradawl.safety.git.small_files import named_in, read_text
from bradawl.safety.path_walk import real_path


def data_folder(dot_git: str) -> str:
    """The git directory that must be writable for git to work; empty if it can't be confirmed.

    `dot_git` is an absolute, resolved `.git` file. For a linked worktree the result is the main git directory.
    """
    named = named_in(dot_git, "gitdir: ")
    if not named:
        return ""
    folder = real_path(Path(dot_git).parent / named)
    common = named_in(f"{folder}/commondir", "")
    if common:
        place = real_path(Path(folder, common))
        back = named_in(f"{folder}/gitdir", "")
        is_ours = back and real_path(Path(folder, back)) == dot_git
        return place if is_ours and str(Path(folder).parent) == f"{place}/worktrees" and _is_repository(place) else ""
    tree = _working_tree(f"{folder}/config")
    is_ours = tree and real_path(Path(folder, tree)) == str(Path(dot_git).parent)
    return folder if is_ours and _is_repository(folder) else ""


def data_above(root: str, home: str) -> str:
    """The git directory of the repository around a folder that is no repository itself; empty if there is none to write
    to.

    The repository must belong to this user, and must not contain the home folder, as repositories of dotfiles do.
    """
    while (above := root.rpartition("/")[0]) or root not in ("", "/"):
        root = above
        dot_git = f"{above}/.git"
        try:
            found = os.lstat(dot_git)
        except OSError:
            continue
        if found.st_uid != os.geteuid() or not above or (home and is_within(home, above)):
            return ""
        if stat.S_ISDIR(found.st_mode):
            return dot_git if _is_repository(dot_git) else ""
        return data_folder(dot_git)
    return ""


def _is_repository(folder: str) -> bool:
    place = Path(folder)
    return (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir()


def _working_tree(config: str) -> str:
    found = re.findall(r'(?mi)^\s*worktree\s*=\s*"?([^"\n]+?)"?\s*$', read_text(config))
    return found[0] if len(found) == 1 else ""
