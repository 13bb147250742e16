"""Where the data of a repository lies that is not in the workspace: of a second working tree, a submodule, a folder.

The file belongs to the project and may name any folder, so that a folder only counts if it names the working tree in
turn: that is written there by git, and not by who wrote the project.
"""

import os
import re
import stat
from pathlib import Path

from bradawl.core.effects import is_within
from bradawl.safety.git.small_files import named_in, read_text
from bradawl.safety.path_walk import real_path


def data_folder(dot_git: str) -> str:
    """The repository behind a `.git` file that has to be writable for git to work; empty if it can't be believed.

    `dot_git` is absolute and resolved. Of a second working tree it is the data folder of the first.
    """
    named = named_in(dot_git, "gitdir:")
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
    """The data of the repository in which a folder lies that is none itself; empty where there is none to write to.

    It has to be of this user's making, and not one that holds the home folder, as some keep their settings in.
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
