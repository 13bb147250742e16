"""A quick survey of a project: which files are where, and how long they are. Bounded in time, entries and bytes."""

import os
from collections import deque
from collections.abc import Iterable
from time import monotonic

import msgspec

from bradawl.app.ignored_names import IgnoredNames, bytes_of, is_ignored, rules_above, rules_in

_MOST_ENTRIES = 1_000
_MOST_IN_FOLDER = 500
_MOST_READ = 150
_LARGEST_BYTES = 400_000
_DEEPEST = 15
_NOT_LISTED = frozenset({"node_modules", "__pycache__", "venv"})
_NOT_ENTERED = frozenset({"vendor", "vendored", "third_party", "dist", "build", "target", "site-packages"})
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class Folder(msgspec.Struct):
    """A folder without the names that are hidden, ignored or generated."""

    files: list[str]
    folders: list[str]
    is_cut: bool
    """It has more than that."""
    hidden: frozenset[str]
    """The names that begin with a dot."""


class Survey(msgspec.Struct, frozen=True):
    """The folders of a project, those near its top first."""

    root: str
    folders: dict[str, Folder]
    """By path relative to the root, which is empty for the root. Those that were not reached are missing."""
    is_whole: bool
    """All folders were reached, and all names in them are known."""
    known: dict[str, tuple[int, bool]] = {}
    """Answers of `files_below`."""

    def files_below(self, path: str) -> tuple[int, bool]:
        """Number of known files below a folder, and whether these are all."""
        if path not in self.known:
            self.known[path] = self._count(path)
        return self.known[path]

    def _count(self, path: str) -> tuple[int, bool]:
        if (folder := self.folders.get(path)) is None:
            return 0, False
        below = [self.files_below(joined(path, name)) for name in folder.folders]
        return len(folder.files) + sum(count for count, _ in below), not folder.is_cut and all(
            all_ for _, all_ in below
        )


def joined(path: str, name: str) -> str:
    """The relative path of a name in a folder."""
    return f"{path}/{name}" if path else name


def survey_of(root: str, end: float, *, enters: bool = True, most: int = _MOST_ENTRIES) -> Survey | None:
    """Read folders until all, or enough, are known, or the clock `monotonic` shows `end`. The top folder is read in any
    case; None if that is impossible. Unless it `enters` folders it reads no other; `most` bounds the entries.
    """
    folders: dict[str, Folder] = {}
    left = most
    waiting: deque[tuple[str, tuple[IgnoredNames, ...]]] = deque([("", rules_above(root))])
    while waiting and left > 0 and (monotonic() < end or not folders):
        path, chain = waiting.popleft()
        place = f"{root.rstrip('/')}/{path}".rstrip("/") or "/"
        chain += rules_in(place)
        listed = _listed(place, chain, min(left, _MOST_IN_FOLDER))
        if listed is None and not path:
            return None
        folders[path], enter = listed or (Folder([], [], False, frozenset()), [])
        left -= len(folders[path].files) + len(folders[path].folders)
        if enters and path.count("/") < _DEEPEST:
            waiting.extend((joined(path, name), chain) for name in enter)
    return Survey(root, folders, enters and not waiting and not any(one.is_cut for one in folders.values()))


def _listed(place: str, chain: tuple[IgnoredNames, ...], most: int) -> tuple[Folder, list[str]] | None:
    """A folder, and the folders in it to enter. None if it can't be read."""
    found = Folder([], [], False, frozenset())
    enter: list[str] = []
    try:
        with os.scandir(place) as entries:
            for number, entry in enumerate(entries):
                if number >= most:
                    found.is_cut = True
                    break
                if entry.name[0] == ".":
                    found.hidden |= {entry.name}
                    continue
                is_folder = entry.is_dir()
                if _is_left_out(entry, place, chain, is_folder=is_folder):
                    continue
                (found.folders if is_folder else found.files).append(entry.name)
                if is_folder and entry.name not in _NOT_ENTERED and not entry.is_symlink():
                    enter.append(entry.name)
    except OSError:
        return None
    if _VIRTUAL_ENVIRONMENT in found.files:
        return Folder([], [], False, frozenset()), []
    found.files.sort()
    found.folders.sort()
    return found, sorted(enter)


def _is_left_out(entry: os.DirEntry[str], place: str, chain: tuple[IgnoredNames, ...], *, is_folder: bool) -> bool:
    if entry.name in _NOT_LISTED or (is_folder and entry.name.endswith(".egg-info")):
        return True
    return bool(chain) and is_ignored(chain, f"{place.rstrip('/')}/{entry.name}", entry.name, is_folder=is_folder)


def lines_of(root: str, paths: Iterable[str], end: float) -> dict[str, int]:
    """Number of lines of each file that is text; -1 for a larger file than is read. Empty if there is not the time."""
    lines: dict[str, int] = {}
    for number, path in enumerate(paths):
        if monotonic() > end or number >= _MOST_READ:
            return {}
        data = bytes_of(f"{root.rstrip('/')}/{path}", _LARGEST_BYTES)
        if b"\0" not in data[:1_000]:
            lines[path] = data.count(b"\n") if len(data) < _LARGEST_BYTES else -1
    return lines
