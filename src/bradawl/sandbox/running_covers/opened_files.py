"""Finds which files below given paths stopped processes have open, or mapped, at their current place."""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bradawl.core.effects import is_within

_WRITES = os.O_WRONLY | os.O_RDWR
_MAPPED = re.compile(rb"[0-9a-f]+-[0-9a-f]+ ...([ps]) [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ (\d+) +(/.*)")


class OpenedFile(NamedTuple):
    """A file that a process has open."""

    path: str
    is_writable: bool


def opened_files(pids: Iterable[int], namespace_of: int, below: Collection[str]) -> frozenset[OpenedFile]:
    """The files at or below paths that processes in the mount namespace of `namespace_of` have open.

    Only files count that are at their path now: an earlier file of that name, or one that is mounted over it in the
    namespace, is another file. Processes that end meanwhile are left out.
    """
    namespace = _namespace(namespace_of)
    found: set[OpenedFile] = set()
    for pid in pids:
        if _namespace(pid) == namespace:
            with contextlib.suppress(OSError):
                found |= {*_by_descriptor(pid, below), *_mapped(pid, below)}
    return frozenset(found)


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")  # noqa: PTH115 - not a path
    except OSError:
        return ""


def _by_descriptor(pid: int, below: Collection[str]) -> Iterator[OpenedFile]:
    with os.scandir(f"/proc/{pid}/fd") as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            path = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115 - it may be no path
            if any(is_within(path, each) for each in below):
                here, there = os.lstat(path), Path(f"/proc/{pid}/fd/{name}").stat()
                if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                    yield OpenedFile(path, is_writable=bool(_flags(pid, name) & _WRITES))


def _flags(pid: int, descriptor: str) -> int:
    file = os.open(f"/proc/{pid}/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        lines = os.read(file, 4_096).decode().splitlines()
    finally:
        os.close(file)
    return next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))


def _mapped(pid: int, below: Collection[str]) -> Iterator[OpenedFile]:
    file = os.open(f"/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as lines:
        found = [line for line in map(_MAPPED.match, lines.read().splitlines()) if line]
    for line in found:
        path = os.fsdecode(line[3])
        if any(is_within(path, each) for each in below):
            with contextlib.suppress(OSError, ValueError):
                if os.lstat(path).st_ino == int(line[2]):
                    # A shared mapping of a file that was opened for writing can be made writable later.
                    yield OpenedFile(path, is_writable=line[1] == b"s")
