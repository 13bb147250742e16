"""Lists the files of a folder without what ignore files leave out."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from typing import Final

_MOST_FILES: Final = 50_000
_PATIENCE_S: Final = 2.0


def listed_files(folder: str) -> tuple[str, ...]:
    """Folders, with a slash at their end, and files below a folder, relative to it. May block for two seconds.

    Without ripgrep, or in a folder that takes longer, only the entries of the folder itself.
    """
    from bradawl.app.program_paths import find_ripgrep

    if rg := find_ripgrep():
        argv = (rg, "--no-config", "--files", "--hidden", "--glob", "!.git", "--null", ".")
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(  # noqa: S603 - a trusted program, without a shell
                argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False
            )
            return _with_folders([os.fsdecode(each).removeprefix("./") for each in done.stdout.split(b"\0") if each])
    with contextlib.suppress(OSError):
        entries = [each for each in os.scandir(folder) if each.name.isprintable()]
        return tuple(sorted(each.name + "/" * each.is_dir() for each in entries))
    return ()


def _with_folders(files: list[str]) -> tuple[str, ...]:
    shown = sorted(file for file in files[:_MOST_FILES] if file.isprintable())
    return (*sorted({parent for file in shown for parent in _parents(file)}), *shown)


def _parents(file: str) -> Iterator[str]:
    parts = file.split("/")[:-1]
    return ("/".join(parts[: number + 1]) + "/" for number in range(len(parts)))
