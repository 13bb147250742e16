"""Walks a folder breadth first, leaving out files that `.gitignore` or `.bradawlignore` name."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator

from bradawl.core.workspace import FileEntry
from bradawl.workspace.gitignore import RuleSet, is_ignored, parse_rules
from bradawl.workspace.temporary_names import is_temporary

_OWN_IGNORE = ".bradawlignore"
ReadText = Callable[[str], str]
"""Returns the text of a small file; empty if it can't be read."""
OpenFolder = Callable[[str], int | None]
"""Returns a descriptor of a folder, links not followed, which the caller closes; None if it can't be opened."""


def own_ignore_file(root: str) -> str | None:
    """The `.bradawlignore` for a folder: its own, or the nearest above it within the repository.

    Its rules add to git's: they apply where `.gitignore` files have no matching rule.
    """
    for folder in _upwards(root):
        if os.path.isfile(path := f"{folder.rstrip('/')}/{_OWN_IGNORE}"):  # noqa: PTH113 - raises nothing for a long path
            return path
    return None


def _upwards(folder: str) -> Iterator[str]:
    """A folder and its parents up to the top of its repository."""
    yield folder
    while not os.path.lexists(f"{folder}/.git") and folder != "/":
        folder = folder.rpartition("/")[0] or "/"
        yield folder


class Walk:
    """One walk. Links are not followed, `.git` is not entered, an unreadable folder counts as empty."""

    def __init__(self, root: str, read_text: ReadText, open_folder: OpenFolder) -> None:
        self._root = root
        self._read_text = read_text
        self._open_folder = open_folder

    def files(self) -> Iterator[FileEntry]:
        """Regular files, nearest folders first, sorted by name within a folder."""
        waiting = deque([(self._root, (*self._own_rules(), *self._rules_above()))])
        while waiting:
            folder, chain = waiting.popleft()
            if (descriptor := self._open_folder(folder)) is None:
                continue
            try:
                yield from self._files_in(folder, descriptor, chain, waiting)
            finally:
                os.close(descriptor)

    def _files_in(
        self,
        folder: str,
        descriptor: int,
        chain: tuple[RuleSet, ...],
        waiting: "deque[tuple[str, tuple[RuleSet, ...]]]",
    ) -> Iterator[FileEntry]:
        """Files of one open folder; its folders are appended to `waiting`."""
        entries = _entries(descriptor)
        chain += self._rules_in(folder, {entry.name for entry in entries if entry.name.startswith(".git")})
        start = f"{folder.rstrip('/')}/"
        for entry in entries:
            if entry.name == ".git":
                continue
            path = start + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if chain and is_ignored(chain, path, is_folder=is_folder):
                continue
            if is_folder:
                waiting.append((path, chain))
            elif entry.is_file(follow_symlinks=False) and (found := _file(entry, path)):
                yield found

    def _rules_in(self, folder: str, names: set[str]) -> tuple[RuleSet, ...]:
        """Rules of a folder's ignore files; only those in `names` are read, because most folders have none."""
        files = ((".git", ".git/info/exclude"), (".gitignore", ".gitignore"))
        texts = (self._read_text(f"{folder.rstrip('/')}/{path}") for name, path in files if name in names)
        return tuple(rules for text in texts if text and (rules := parse_rules(folder, text)))

    def _rules_above(self) -> tuple[RuleSet, ...]:
        """Rules of the parents of the root, up to the top of its repository."""
        chain: tuple[RuleSet, ...] = ()
        for folder in list(_upwards(self._root))[1:]:
            names = {name for name in (".git", ".gitignore") if os.path.lexists(f"{folder.rstrip('/')}/{name}")}
            chain = self._rules_in(folder, names) + chain
        return chain

    def _own_rules(self) -> tuple[RuleSet, ...]:
        path = own_ignore_file(self._root)
        rules = parse_rules(path.removesuffix(f"/{_OWN_IGNORE}"), self._read_text(path)) if path else None
        return (rules,) if rules else ()


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        return sorted(filter(_is_shown, found), key=lambda entry: entry.name)
    return []


def _is_shown(entry: os.DirEntry[str]) -> bool:
    return not is_temporary(entry.name)


def _file(entry: os.DirEntry[str], path: str) -> FileEntry | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # it may have been removed
        return None
    return FileEntry(path, status.st_mtime_ns, status.st_size)
