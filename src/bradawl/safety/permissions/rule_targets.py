"""Finds the existing files and folders that permission rules match."""

import errno
import os
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from bradawl.core.effects import is_within
from bradawl.core.rules import Rule, speaks_of

MOST_FOLDERS: Final = 10_000
"""The number of folders that are searched for all rules together."""
_SETTLED_NS: Final = 50_000_000
_PASSED_OVER: Final = frozenset(
    {".git", "node_modules", "__pycache__", "site-packages", ".tox", ".nox"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
"""Folders of packages and caches: searched only for a rule that starts inside one."""

_ABSENT_OR_CLOSED: Final = frozenset(
    (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EINVAL)
)

Kind = Literal["file", "folder", "link"]


class IncompleteSearch(Exception):
    """Not all matches could be found. Callers catch it."""


class TooManyFolders(IncompleteSearch):
    """A rule applies to more folders than can be searched; the text is the rule's."""


class UnreadablePath(IncompleteSearch):
    """A path could not be examined, although it may exist and this user may read it; the text says why."""


class Match(NamedTuple):
    """A matching path; no path above it matches. A link is reported itself, not its target."""

    rule: Rule
    path: str
    kind: Kind


class _Folder(NamedTuple):
    changed_ns: int
    matches: tuple[Match, ...]
    inner: tuple[str, ...]


class _Group(NamedTuple):
    """Rules that start at the same place and are searched together."""

    place: str
    rules: tuple[Rule, ...]


class RuleMatcher:
    """Finds the paths that rules match. Folders that have not changed are not read again."""

    def __init__(self, rules: tuple[Rule, ...], exact: tuple[str, ...] = ()) -> None:
        """Names on the way to `exact` are compared literally, all others without regard to case or Unicode spelling."""
        self.rules = rules
        self._exact = exact
        self._groups = tuple(_grouped(rules))
        self._folders: dict[tuple[int, str], _Folder] = {}
        self._names: dict[str, tuple[int, dict[str, list[str]]]] = {}
        self._left = 0

    def matches(self, top: str = "/") -> Iterator[Match]:
        """All matches at or below a folder. Raises `TooManyFolders` and `UnreadablePath`."""
        self._left = MOST_FOLDERS
        for number, group in enumerate(self._groups):
            for start in self._existing_spellings(group.place):
                real = os.path.realpath(start)
                if is_within(start, top) or is_within(real, top):
                    yield from _matches_at_start(group, start, real)
                if real == start and (is_within(start, top) or is_within(top, start)):
                    yield from self._below(number, group, start if is_within(start, top) else top)

    def _below(self, number: int, group: _Group, start: str) -> Iterator[Match]:
        waiting = [] if all(speaks_of(rule, start) for rule in group.rules) else [start]
        while waiting:
            if self._left <= 0:
                raise TooManyFolders(group.rules[0].text)
            self._left -= 1
            if (folder := self._scanned(number, group, waiting.pop())) is not None:
                yield from folder.matches
                waiting += folder.inner

    def _scanned(self, number: int, group: _Group, path: str) -> _Folder | None:
        try:
            changed_ns = os.lstat(path).st_ctime_ns
            known = self._folders.get((number, path))
            if known is None or known.changed_ns != changed_ns:
                known = _read(path, group, changed_ns)
                self._folders[number, path] = known
        except OSError as error:
            _check_absent(path, error)
            return None
        return known

    # -------------------------------------------------------------- the literal beginning

    def _existing_spellings(self, place: str) -> Iterator[str]:
        """The existing spellings of a path, and the path itself."""
        found = [""]
        for name in filter(None, place.split("/")):
            found = [f"{parent}/{each}" for parent in found for each in self._spellings(parent or "/", name)]
        yield from dict.fromkeys(each or "/" for each in found)

    def _spellings(self, parent: str, name: str) -> list[str]:
        path = f"{parent.rstrip('/')}/{name}"
        if not name or any(is_within(each, path) for each in self._exact):
            return [name] if name else []
        try:
            changed_ns = os.lstat(parent).st_ctime_ns
            known = self._names.get(parent)
            if known is None or known[0] != changed_ns:
                names: dict[str, list[str]] = {}
                with os.scandir(parent) as entries:
                    for entry in entries:
                        names.setdefault(folded(entry.name), []).append(entry.name)
                known = self._names[parent] = (_if_settled(changed_ns), names)
        except OSError as error:
            _check_absent(parent, error)
            return [name]
        return list(dict.fromkeys((name, *known[1].get(folded(name), ()))))


def _matches_at_start(group: _Group, start: str, real: str) -> Iterator[Match]:
    """Matches of the literal prefix itself, and of its real path."""
    for path in dict.fromkeys((start, real)):
        if kind := _kind(path):
            yield from (Match(rule, path, kind) for rule in group.rules if speaks_of(rule, start))


def folded(name: str) -> str:
    """A name as file systems without regard to case and Unicode spelling compare it."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFC", name).casefold()


def _grouped(rules: tuple[Rule, ...]) -> Iterator[_Group]:
    places = dict.fromkeys(place for rule in rules for place in rule.places)
    for place in places:
        yield _Group(place, tuple(rule for rule in rules if place in rule.places))


def _if_settled(changed_ns: int) -> int:
    """0 for a folder that changed just now: it may change again without a new timestamp."""
    import time

    return changed_ns if time.time_ns() - changed_ns > _SETTLED_NS else 0


def _read(path: str, group: _Group, changed_ns: int) -> _Folder:
    matches: list[Match] = []
    inner: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            kind: Kind = "link" if entry.is_symlink() else "folder" if entry.is_dir() else "file"
            speaking = [rule for rule in group.rules if speaks_of(rule, entry.path)]
            matches += [Match(rule, entry.path, kind) for rule in speaking]
            if kind == "folder" and len(speaking) < len(group.rules) and entry.name not in _PASSED_OVER:
                inner.append(entry.path)
    return _Folder(_if_settled(changed_ns), tuple(matches), tuple(inner))


def _check_absent(path: str, error: OSError) -> None:
    """Raises `UnreadablePath` unless the error says that there is nothing at a path, or that this user can't open it:
    of too many open files, for instance, nothing follows.
    """
    if error.errno not in _ABSENT_OR_CLOSED:
        raise UnreadablePath(f"{path} could not be examined: {error.strerror}") from error


def _kind(path: str) -> Kind | None:
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        _check_absent(path, error)
        return None
    import stat

    return "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "file"
