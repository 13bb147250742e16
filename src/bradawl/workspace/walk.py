"""Walks a folder breadth first and leaves out what git ignores."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator

from bradawl.core.ports import FileEntry
from bradawl.workspace.ignore import RuleSet, is_ignored, parse_rules

_TEMPORARY = (".bradawl-", ".tmp")
ReadText = Callable[[str], str]
"""The text of a small file; empty when it can't be read."""


def temporary_name(unique: str) -> str:
    """The name under which a file is written before it takes its place; no walk shows it."""
    return unique.join(_TEMPORARY)


def is_temporary(name: str) -> bool:
    """True for names made by `temporary_name`."""
    return name.startswith(_TEMPORARY[0]) and name.endswith(_TEMPORARY[1])


class Walk:
    """One walk. Symlinks are never followed, `.git` is never entered; an unreadable folder counts as empty."""

    def __init__(self, root: str, read_text: ReadText) -> None:
        self._root = root
        self._read_text = read_text

    def files(self) -> Iterator[FileEntry]:
        """Regular files, nearest folders first, sorted by name within one folder."""
        waiting = deque([(self._root, self._rules_above())])
        while waiting:
            folder, chain = waiting.popleft()
            chain += self._rules_in(folder)
            for entry in _entries(folder):
                if entry.name == ".git" or is_temporary(entry.name):
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_ignored(chain, entry.path, is_folder=is_folder):
                    continue
                if is_folder:
                    waiting.append((entry.path, chain))
                elif entry.is_file(follow_symlinks=False):
                    yield from _file(entry)

    def _rules_in(self, folder: str) -> tuple[RuleSet, ...]:
        texts = (self._read_text(f"{folder}/{name}") for name in (".git/info/exclude", ".gitignore"))
        return tuple(rules for text in texts if text and (rules := parse_rules(folder, text)))

    def _rules_above(self) -> tuple[RuleSet, ...]:
        """Rules of the folders above the root, up to the top of its repository."""
        chain: tuple[RuleSet, ...] = ()
        folder = self._root
        while not os.path.lexists(f"{folder}/.git") and folder != "/":
            folder = folder.rpartition("/")[0] or "/"
            chain = self._rules_in(folder) + chain
        return chain


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)
    return []


def _file(entry: os.DirEntry[str]) -> Iterator[FileEntry]:
    with contextlib.suppress(OSError):  # it may be gone by now
        status = entry.stat(follow_symlinks=False)
        yield FileEntry(entry.path, status.st_mtime_ns, status.st_size)
