"""Resolves symbolic links on the disk together with links that a line creates before it uses them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from posixpath import basename, dirname, join

MOST_NAMES = 2_000
_MOST_LINKS = 50
_MOST_TURNS = 64


class Links:
    """The links on the disk, and those that the line creates: paths are resolved through both.

    `ProtectedTargets.links` has the links of a line for the deny layer, which resolves paths with a function of its
    caller and ends its scan if there are too many; here further links are ignored, and the disk is read.
    """

    def __init__(self) -> None:
        self._created: dict[str, dict[str, None]] = {}

    def add(self, link: str, target: str) -> None:
        """Record that `link` becomes a link to `target`. Both are absolute."""
        link = link.rstrip("/")
        if not link or len(self._created) >= _MOST_LINKS:
            return
        for folder in self.real_paths(dirname(link)):
            place = join(folder, basename(link))
            if place != target.rstrip("/"):
                self._created.setdefault(place, {})[target] = None

    def targets(self, path: str) -> tuple[str, ...]:
        """The targets of a link as its text gives them; empty if the path is no link."""
        found = [
            target
            for folder in self.real_paths(dirname(path))
            for target in self._targets_of(join(folder, basename(path)))
        ]
        return tuple(found)

    def _targets_of(self, place: str) -> Iterator[str]:
        yield from self._created.get(place, ())
        if (target := _link_target(place)) is not None:
            yield join(dirname(place), target)

    def real_paths(self, path: str) -> tuple[str, ...]:
        """Every real path that an absolute path may have. The first ignores the links that the line creates."""
        if not self._created:
            return (resolved(path),)
        found: dict[str, None] = {}
        waiting, seen = [path], set[str]()
        while waiting and len(seen) < _MOST_TURNS:
            each = waiting.pop(0)
            if each not in seen:
                seen.add(each)
                real, others = self._follow(each)
                found[real] = None
                waiting += others
        return tuple(found)

    def is_created(self, path: str) -> bool:
        """Whether a path exists only because of links that the line creates."""
        return bool(self._created) and (path in self._created or any(map(os.path.lexists, self.real_paths(path))))

    def _follow(self, path: str) -> tuple[str, list[str]]:
        """The real path, and the paths that result from following links of the line instead."""
        pending = path.split("/")[::-1]
        current, others, turns = "/", list[str](), 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            place = dirname(current) if part == ".." else join(current, part)
            rest = "/".join(pending[::-1])
            others += [join(target, rest) for target in self._created.get(place, ())]
            target = _link_target(place) if part != ".." else None
            if target is None or (turns := turns + 1) > _MOST_TURNS:
                current = place
                continue
            current = "/" if target.startswith("/") else current
            pending += target.split("/")[::-1]
        return current, others

    def names(self, folder: str) -> list[str]:
        """The names in a folder, including links that the line creates there."""
        made = [basename(place) for place in self._created if dirname(place) == folder]
        return [*_listed_names(folder), *made]

    def folders(self, path: str) -> tuple[str, ...]:
        """The folders that a path may resolve to, in which the next part of a pattern is matched."""
        return self.real_paths(path or "/") if self._created else (path or "/",)


def resolved(path: str) -> str:
    """An absolute path with all links followed; as it is if a link may not be read."""
    try:
        return os.path.realpath(path)
    except OSError:  # before Python 3.13, for `/proc/1/root`
        return path


def _link_target(place: str) -> str | None:
    try:
        return os.readlink(place)  # noqa: PTH115 - pathlib takes ten times as long
    except OSError:
        return None


def is_folder(path: str) -> bool:
    """Whether a path leads to a folder; False if it can't be examined."""
    return _test(path, Path.is_dir)


def is_file(path: str) -> bool:
    """Whether a path leads to a file; False if it can't be examined."""
    return _test(path, Path.is_file)


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link; False if it can't be examined."""
    return _test(path, Path.is_symlink)


def _test(path: str, test: Callable[[Path], bool]) -> bool:
    try:
        return test(Path(path))
    except OSError:
        return False


def names_in(folder: str) -> Iterator[str]:
    """Yield the names of a folder's entries; one empty name if the folder can't be listed."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        yield ""


def _listed_names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(MOST_NAMES), strict=False)]
    except OSError:
        return []


def files_below(folder: str, most: int) -> Iterator[str]:
    """Yield the paths of up to `most` files and folders below a folder."""
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            most -= 1
            if most < 0:
                return
            yield join(top, name)
