"""Names of git's files that decide what git runs, and where they are in its data."""

import os
from collections.abc import Iterator
from typing import Final

from bradawl.safety.permissions.protected_paths import protected_names, watched_names
from bradawl.sandbox.discovery.git_folders import folders_in
from bradawl.sandbox.restore.harmless_git_files import STATE_FILES, WRITTEN_FILES
from bradawl.sandbox.restore.snapshot import WatchedPath

OF_GIT: Final = tuple(name for name in protected_names() if name.startswith(".git/"))
OF_ANY_DATA: Final = tuple(name.removeprefix(".git/") for name in watched_names())
"""Files that no data folder of git should have and that can't be blocked by a mount."""

NOT_HELD: Final = (".git/config", ".git/modules/*/config", ".git/modules/*/hooks")
OF_MODULES: Final = ("config", "config.worktree", "hooks", "info/attributes")
STEPS: Final = tuple(f".git/{name}" for name in STATE_FILES)
STATE: Final = (".git/index", *STEPS)
"""Files that git itself writes. They may change, but not so that git runs something."""
OF_DATA: Final = ("config", "config.worktree", "hooks", *OF_ANY_DATA, *STATE_FILES)
"""Names to compare in a data folder. In that of a linked working tree git obeys fewer, unless it shares with itself."""


def submodule_lists(folder: str) -> tuple[str, ...]:
    """The list of submodules, through which git would write if it were a link; not if it is one already."""
    is_link = os.path.islink(f"{folder}/.gitmodules")  # noqa: PTH114 - False in a closed folder
    return () if is_link else (".gitmodules",)


def paths_in_data(data: str) -> Iterator[WatchedPath]:
    """Files of data outside the roots, and of its linked working trees, by which git could run or write something."""
    yield from ((data, name.removeprefix(".git/")) for name in NOT_HELD)
    for own in (data, *folders_in(f"{data}/worktrees")):
        yield from ((own, name) for name in (*STATE_FILES, *WRITTEN_FILES))
