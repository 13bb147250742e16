"""Paths of a workspace from which git runs something, as known when a session begins: for rules about file tools."""

import os
from typing import Final

from bradawl.safety.git.small_files import LARGEST_SETTINGS, text_in

_CONFIGS: Final = ("config", "config.worktree")
_USER_CONFIGS: Final = (".gitconfig", ".config/git/config")
_UNUSED: Final = ".sample"
_NAMING: Final = (
    *("path", "fsmonitor", "clean", "smudge", "process", "command", "cmd", "driver", "textconv", "external", "pager"),
    *("editor", "askpass", "gitproxy", "alias", "program", "helper", "pack", "filter", "update"),
    *("templatedir", "hook", "tunnel", "server", "prog", "httpd", "browser"),
)
"""Each setting that names a program or a further file has one of these in its name."""


def paths_run_by_git(root: str, home: str) -> tuple[str, ...]:
    """Absolute paths in `root`, existing or not, that hooks and the configuration of its repository name.

    The repository is the one that `root` is a part of. `home` is the user's home folder, for the user's configuration.
    Nested repositories are not considered. Errors count as nothing found.
    """
    tree = working_tree(root)
    if not tree or not _may_name_any(tree, home):
        return ()
    from bradawl.safety.git.named_paths import NamedPaths, named_by_config  # most repositories name nothing

    return named_by_config(NamedPaths(home), root, (tree,))


def working_tree(folder: str) -> str:
    """The nearest folder at or above this one that contains a repository; empty if there is none."""
    while not os.path.lexists(f"{folder}/.git"):
        if folder in ("", "/"):
            return ""
        folder = folder.rpartition("/")[0] or "/"
    return folder


def _may_name_any(tree: str, home: str) -> bool:
    """Whether a hook exists, or a text like the name of such a setting."""
    data = f"{tree}/.git"
    try:
        hooks = os.listdir(f"{data}/hooks")  # noqa: PTH208 - names are wanted, not paths
    except FileNotFoundError:
        hooks = []
    except OSError:  # a `.git` file: the data are elsewhere
        return True
    if any(not name.endswith(_UNUSED) for name in hooks):
        return True
    configs = [f"{data}/{name}" for name in _CONFIGS]
    configs += [f"{home}/{name}" for name in _USER_CONFIGS] if home else []
    return any(map(_has_naming_text, configs))


def _has_naming_text(config: str) -> bool:
    if not os.path.lexists(config):
        return False
    text = text_in(os.path.realpath(config), LARGEST_SETTINGS)
    return text is None or any(word in text.lower() for word in _NAMING)
