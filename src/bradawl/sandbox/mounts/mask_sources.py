"""Creates the empty files and folders that are mounted over hidden paths, such as a `.env` or a key."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from bradawl.safety.git.tracked_files import HIDDEN_TEXT

_GAP_TEXT: Final = "# nothing is here: this stands in a sandbox where a protected file or folder is missing\n*\n"
_IS_COMPLETE: Final = "complete-3"


def make_mask_sources(place: Path) -> None:
    """Create the mask sources in `place`. All agents share them, so they stay."""
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
    """A folder that git treats as fully ignored: git neither shows it nor removes it.

    Its `.gitignore` is mounted over a socket, because file searches and git skip sockets. The link in it is the ignored
    entry.
    """
    folder.mkdir(0o755, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "nothing").symlink_to(".gitignore")
    with contextlib.suppress(OSError):  # a file system without sockets: searches show the file
        os.mknod(folder / ".gitignore", stat.S_IFSOCK | 0o644)
    (folder / ".gitignore").touch()
