"""Symbolic links on the disk and links that a line would make, and tests of paths that never raise."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from posixpath import basename, dirname, join

MOST_NAMES = 2_000
_MOST_LINKS = 50
_MOST_TURNS = 64


class Links:
    """Links on the disk, and those that a line makes before it uses them."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, None]] = {}

    def add(self, link: str, target: str) -> None:
        """Count `link` as a link to `target`; both absolute."""
        if len(self._made) >= _MOST_LINKS:
            return
        for folder in self.places(dirname(link)):
            place = join(folder, basename(link))
            if place != target.rstrip("/"):
                self._made.setdefault(place, {})[target] = None

    def targets(self, path: str) -> tuple[str, ...]:
        """Where a link leads by its own text, made or existing; empty for anything else."""
        found = [target for folder in self.places(dirname(path)) for target in self._of(join(folder, basename(path)))]
        return tuple(found)

    def _of(self, place: str) -> Iterator[str]:
        yield from self._made.get(place, ())
        if (target := _read(place)) is not None:
            yield join(dirname(place), target)

    def places(self, path: str) -> tuple[str, ...]:
        """Every place that an absolute path may lead to; the first is the one without links that the line makes."""
        if not self._made:
            return (os.path.realpath(path),)
        found: dict[str, None] = {}
        waiting, seen = [path], set[str]()
        while waiting and len(seen) < _MOST_TURNS:
            each = waiting.pop(0)
            if each not in seen:
                seen.add(each)
                real, others = self._followed(each)
                found[real] = None
                waiting += others
        return tuple(found)

    def is_made(self, path: str) -> bool:
        """Whether a path is there only by links that the line makes."""
        return bool(self._made) and (path in self._made or any(map(os.path.lexists, self.places(path))))

    def _followed(self, path: str) -> tuple[str, list[str]]:
        """The real path, and the paths that links of the line make of it."""
        pending = path.split("/")[::-1]
        current, others, turns = "/", list[str](), 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            place = dirname(current) if part == ".." else join(current, part)
            rest = "/".join(pending[::-1])
            others += [join(target, rest) for target in self._made.get(place, ())]
            target = _read(place) if part != ".." else None
            if target is None or (turns := turns + 1) > _MOST_TURNS:
                current = place
                continue
            current = "/" if target.startswith("/") else current
            pending += target.split("/")[::-1]
        return current, others

    def names(self, folder: str) -> list[str]:
        """Names in a folder, with those of links that the line makes there."""
        made = [basename(place) for place in self._made if dirname(place) == folder]
        return [*_names(folder), *made]

    def folders(self, path: str) -> tuple[str, ...]:
        """The folders that a path may lead to, for patterns behind it."""
        return self.places(path or "/") if self._made else (path or "/",)


def _read(place: str) -> str | None:
    try:
        return os.readlink(place)  # noqa: PTH115 - pathlib takes ten times as long
    except OSError:
        return None


def is_folder(path: str) -> bool:
    """Whether a path leads to a folder; false where that may not be seen."""
    return _is(path, Path.is_dir)


def is_file(path: str) -> bool:
    """Whether a path leads to a file; false where that may not be seen."""
    return _is(path, Path.is_file)


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link; false where that may not be seen."""
    return _is(path, Path.is_symlink)


def _is(path: str, test: Callable[[Path], bool]) -> bool:
    try:
        return test(Path(path))
    except OSError:
        return False


def files_in(folder: str) -> Iterator[str]:
    """Names of what lies directly in a folder; one that may not be listed counts as full."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        yield ""


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(MOST_NAMES), strict=False)]
    except OSError:
        return []
