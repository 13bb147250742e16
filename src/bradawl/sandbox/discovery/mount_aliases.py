"""Finds the other paths of files: a file system that is mounted twice shows each of its files twice.

Home folders are often bound to a second place (`/data/home` as `/home`, the root of a btrfs volume, a chroot). A mount
that hides `~/.ssh` covers one of the paths only.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from bradawl.core.effects import is_within
from bradawl.safety.git.small_files import read_start

_TABLE: Final = "/proc/self/mountinfo"
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_MOST: Final = 1_000
_MOST_BYTES: Final = 1 << 24


class _Place(NamedTuple):
    """A mounted part of a file system."""

    device: bytes
    root: str
    """Path in the file system, without a slash at the end."""
    path: str
    """Where it is mounted, without a slash at the end."""


class MountAliases:
    """The mount table of this process; it is read again for each question, and parsed again when it has changed."""

    def __init__(self, table: str = _TABLE) -> None:
        self._table = table
        self._text = b""
        self._places: tuple[_Place, ...] = ()
        self._shared: frozenset[bytes] = frozenset()

    def of(self, paths: Iterable[str], unseen: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Other paths of these files and folders, or of parts of them, that are in none of the folders `unseen`.

        `paths` are real. Results exist, are not in each other, and in none of `paths`. At most 1,000.
        """
        self._read()
        given = tuple(paths) if self._shared else ()
        found: dict[str, None] = {}
        for path in given:
            for other in self._others(path):
                if not any(is_within(other, each) for each in (*given, *unseen, *found)) and len(found) < _MOST:
                    found[other] = None
        return tuple(found)

    def _read(self) -> None:
        text = read_start(self._table, _MOST_BYTES)
        if text == self._text:
            return
        self._text = text
        self._places = tuple(place for line in text.splitlines() if (place := _parsed(line)) is not None)
        devices = [place.device for place in self._places]
        self._shared = frozenset(device for device in devices if devices.count(device) > 1)

    def _others(self, path: str) -> Iterator[str]:
        own = self._place_of(path)
        if own is None or own.device not in self._shared:
            return
        inner = own.root + path[len(own.path) :]
        for place in self._places:
            if place.device != own.device:
                continue
            if is_within(inner, place.root or "/"):
                other = place.path + inner[len(place.root) :]
                if other != path and _is_same(other, path):
                    yield other
            elif is_within(place.root, inner):
                shown = path + place.root[len(inner) :]
                if place.path != shown and _is_same(place.path, shown):
                    yield place.path

    def _place_of(self, path: str) -> _Place | None:
        """The mount that a path lies in: the innermost one, of several at one place the last."""
        return max(
            (place for place in self._places if is_within(path, place.path or "/")),
            key=lambda place: len(place.path),
            default=None,
        )


def _parsed(line: bytes) -> _Place | None:
    fields = line.split(b" ", 5)
    if len(fields) < 6:
        return None
    root, path = (os.fsdecode(_ESCAPED.sub(_unescaped, field)).rstrip("/") for field in fields[3:5])
    return _Place(fields[2], root, path)


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8) & 0xFF])


def _is_same(path: str, other: str) -> bool:
    """Whether two paths lead to one file: another mount may be above one of them."""
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
    except (OSError, ValueError):
        return False
