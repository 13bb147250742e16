"""Whether files that searches pass over are brought back by what a project's ignore files say."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from bradawl.safety.git.small_files import text_in

_FILES: Final = (".ignore", ".rgignore", ".gitignore", ".git/info/exclude")


def is_brought_back(path: str) -> bool:
    """Whether an ignore file above a file may say that the file, or a folder it lies in, is to be searched after all.

    ripgrep then searches it although its name begins with a dot. True also for an ignore file that can't be read.
    """
    names = [part.lower() for part in path.split("/") if part]
    files = (str(folder / name) for folder in Path(path).parents for name in _FILES)
    return any(_brings_back(_text(file), names) for file in files if os.path.lexists(file))


def may_mean(pattern: str, names: list[str]) -> bool:
    """Whether the last name in a pattern may be one of these, which are in lower case."""
    last = pattern.strip().rstrip("/").rpartition("/")[2].lower()
    return not last or "\\" in last or "{" in last or any(fnmatchcase(name, last) for name in names)


def _brings_back(text: str | None, names: list[str]) -> bool:
    if text is None:
        return True
    return any(may_mean(line.strip()[1:], names) for line in text.splitlines() if line.strip().startswith("!"))


def _text(path: str) -> str | None:
    return text_in(os.path.realpath(path))
