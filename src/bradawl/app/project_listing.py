"""The files of a project for the system prompt: all of a small project, the top and some folders of a larger one."""

from collections.abc import Iterable, Iterator

from bradawl.app.project_survey import Survey, joined, lines_of

_MOST_LINES = 60
_MOST_BYTES = 1_200
_MOST_BYTES_OF_PART = 700
"""Bytes for a project that is not listed whole."""
_MOST_NAMES = 60
_MOST_IN_OPENED = 40
"""Files of a folder that is opened in a larger project: a folder with more holds data rather than code."""
_MOST_BYTES_OF_NAMES = 1_500
_FOLDERS_TRIED = 20
_LONG = 100
"""Lines from which on a file's length is said."""
_LATER = frozenset({"doc", "docs", "examples", "example", "test", "tests", "benchmarks", "scripts"})


def listing(survey: Survey, end: float) -> list[str]:
    """Lines with the names of files and folders. `end` is the time of the clock `monotonic` until which files may be
    read, for the number of their lines.
    """
    found = _Listing(survey, survey.folders)
    if not survey.is_whole or not found.fits(_MOST_BYTES):
        found = _Listing(survey, _opened(survey))
    files = [joined(path, name) for path in found.opened for name in survey.folders[path].files]
    counted = _Listing(survey, found.opened, lines_of(survey.root, files, end))
    return counted.lines if counted.fits(_MOST_BYTES) else found.lines


def _opened(survey: Survey) -> list[str]:
    """The folders to open of a project that can't be listed whole."""
    opened = [""]
    for path in _likely_first(survey):
        above = path.rpartition("/")[0]
        if len(survey.folders[path].files) > _MOST_IN_OPENED:
            continue
        if above in opened and _Listing(survey, [*opened, path]).fits(_MOST_BYTES_OF_PART):
            opened.append(path)
    return opened


def _likely_first(survey: Survey) -> list[str]:
    def key(path: str) -> tuple[bool, int, str]:
        return path.partition("/")[0] in _LATER, path.count("/"), path

    return sorted(filter(None, survey.folders), key=key)[:_FOLDERS_TRIED]


class _Listing:
    """The text of a listing in which some folders are opened, and the others only named."""

    def __init__(self, survey: Survey, opened: Iterable[str], lengths: dict[str, int] | None = None) -> None:
        self._survey = survey
        self.opened = frozenset(path for path in opened if not path or survey.files_below(path) != (0, True))
        self._lengths = lengths or {}
        self.lines = list(self._lines())

    def fits(self, most_bytes: int) -> bool:
        """Whether it is short enough."""
        size = sum(len(line.encode("utf-8", "replace")) + 1 for line in self.lines)
        return len(self.lines) <= _MOST_LINES and size <= most_bytes

    def _lines(self) -> Iterator[str]:
        for path in sorted(self.opened, key=lambda path: path.replace("/", "\0")):
            names = list(self._names(path))
            if path and names:
                yield f"{path}/: {_first(names, is_cut=False)}"
            elif not path:
                lengths = f" (number: lines, from {_LONG} on)" if self._has_lengths() else ""
                said = _first(names, is_cut=self._survey.folders[path].is_cut)
                yield f"files here{lengths}: {said or ('only folders' if len(self.opened) > 1 else 'none')}"

    def _has_lengths(self) -> bool:
        return any(lines >= _LONG for lines in self._lengths.values())

    def _names(self, path: str) -> Iterator[str]:
        folder = self._survey.folders[path]
        shown = {name: f"{name}{self._length(joined(path, name))}" for name in folder.files}
        for name in folder.folders:
            below = joined(path, name)
            if below not in self.opened:
                shown[name] = f"{name}/{self._size(below)}"
        yield from (shown[name] for name in sorted(shown))

    def _length(self, path: str) -> str:
        lines = self._lengths.get(path, 0)
        return f" {lines}" if lines >= _LONG else " (large)" if lines < 0 else ""

    def _size(self, path: str) -> str:
        count, is_all = self._survey.files_below(path)
        if not count:
            return ""
        return f" ({count}{'' if is_all else '+'} file{'s' if count > 1 or not is_all else ''})"


def _first(names: list[str], *, is_cut: bool) -> str:
    shown: list[str] = []
    left = _MOST_BYTES_OF_NAMES
    for name in names[:_MOST_NAMES]:
        left -= len(name.encode("utf-8", "replace")) + 2
        if left < 0:
            break
        shown.append(name)
    if more := len(names) - len(shown):
        return f"{', '.join(shown)} and {'at least ' if is_cut else ''}{more} more"
    return ", ".join(shown)
