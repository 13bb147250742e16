"""What a sandbox shows in place of what it hides, or where nothing is."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from bradawl.safety.git.tracked_files import HIDDEN_TEXT

_GAP_TEXT: Final = "# nothing is here: this stands in a sandbox where a protected file or folder is missing\n*\n"
_IS_COMPLETE: Final = "complete-3"


def make_mask_sources(place: Path) -> None:
    """What is seen in place of what is hidden; the same for all agents, so that it stays."""
    if not (place / _IS_COMPLETE).exists():
        (place / "folder").mkdir(0o755, parents=True, exist_ok=True)
        (place / "file").touch(0o444)
        (place / "closed-folder").mkdir(0o000, exist_ok=True)
        (place / "closed-file").touch(0o000)
        for name, text in (("secret", HIDDEN_TEXT), ("ignore", _GAP_TEXT)):
            (place / name).write_text(text)
        _make_gap(place / "gap")
        (place / _IS_COMPLETE).touch()


def _make_gap(folder: Path) -> None:
    """A folder that git takes to hold only what is ignored, which it neither shows nor cleans away.

    The file that says so is laid over a socket: who lists files, as searches and git do, passes over it. The link is
    what is ignored.
    """
    folder.mkdir(0o755, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "nothing").symlink_to(".gitignore")
    with contextlib.suppress(OSError):  # a file system without sockets: then it is listed
        os.mknod(folder / ".gitignore", stat.S_IFSOCK | 0o644)
    (folder / ".gitignore").touch()
