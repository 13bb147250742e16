"""What ignore files say: whether ripgrep searches a hidden file because of one, and whether git ignores a file."""

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import join
from typing import Final

from bradawl.safety.git.small_files import text_in
from bradawl.safety.git.tracked_files import is_tracked, repository_root

_FILES: Final = (".ignore", ".rgignore", ".gitignore", ".git/info/exclude")


def is_unignored(path: str) -> bool:
    """Whether an ignore file above a file may re-include it, or a folder above it.

    ripgrep then searches the file although its name begins with a dot. Also True for an unreadable ignore file.
    """
    names = [part.lower() for part in path.split("/") if part]
    files = (str(folder / name) for folder in Path(path).parents for name in _FILES)
    return any(_unignores(_text(file), names) for file in files if os.path.lexists(file))


def may_match(pattern: str, names: list[str]) -> bool:
    """Whether the last name in a pattern may match one of `names`, which are in lower case."""
    last = pattern.strip().rstrip("/").rpartition("/")[2].lower()
    return not last or "\\" in last or "{" in last or any(fnmatchcase(name, last) for name in names)


def _unignores(text: str | None, names: list[str]) -> bool:
    if text is None:
        return True
    return any(may_match(line.strip()[1:], names) for line in text.splitlines() if line.strip().startswith("!"))


def _text(path: str) -> str | None:
    return text_in(os.path.realpath(path))


def is_ignored_by_git(path: str) -> bool:
    """Whether git certainly ignores a path. Only plain patterns count, and only if no file re-includes anything."""

    top = repository_root(path)
    if not top or is_tracked(path, top):
        return False
    parts = path[len(top) + 1 :].split("/")
    files = [join(top, *parts[:depth], ".gitignore") for depth in range(len(parts))]
    texts = [text_in(file) or "" for file in files if os.path.lexists(file)]
    if any(line.lstrip().startswith("!") for text in texts for line in text.splitlines()):
        return False
    first = text_in(files[0]) or "" if os.path.lexists(files[0]) else ""
    wanted = {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)} | set(parts)
    return any(_plain_pattern(line) in wanted for line in first.splitlines())


def _plain_pattern(line: str) -> str:
    return re.sub(r"/(?:\*\*?)?\Z", "", line.strip()).removeprefix("/")
