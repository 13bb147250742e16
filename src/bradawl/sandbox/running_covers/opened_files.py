"""Finds which files and folders below given paths stopped processes have open, or mapped, at their current place."""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bradawl.core.effects import is_within

_WRITES = os.O_WRONLY | os.O_RDWR
_MAPPED = re.compile(rb"[0-9a-f]+-[0-9a-f]+ ...([ps]) [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ (\d+) +(/.*)")


class OpenedFile(NamedTuple):
    """A file or folder that a process has open."""

    path: str
    is_writable: bool
    """The process can write it, or in the folder, in spite of a later mount over its path."""


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
                found |= {*_by_descriptor(pid, below), *_mapped(pid, below), *_entered(pid, below)}
    return frozenset(found)


def sends_descriptors(pids: Iterable[int], namespace_of: int) -> bool:
    """Whether open files wait in a Unix socket (SCM_RIGHTS) of a process in the mount namespace of `namespace_of`.

    The kernel does not say which files. Linux says so from version 5.11.
    """
    namespace = _namespace(namespace_of)
    return any(_has_waiting_descriptors(pid) for pid in pids if _namespace(pid) == namespace)


def _has_waiting_descriptors(pid: int) -> bool:
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries]:
            with contextlib.suppress(OSError, ValueError):
                is_socket = os.readlink(f"{folder}/{name}").startswith("socket:")  # noqa: PTH115 - not a path
                if is_socket and any(int(value) > 0 for value in _fields(pid, name, "scm_fds:")):
                    return True
    return False


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
                place = f"/proc/{pid}/fd/{name}"
                if (there := _at_its_path(path, place)) is not None:
                    yield OpenedFile(path, is_writable=_can_write(there, pid, name))


def _entered(pid: int, below: Collection[str]) -> Iterator[OpenedFile]:
    """Its working directory and its root, if it can write there."""
    for place in (f"/proc/{pid}/cwd", f"/proc/{pid}/root"):
        with contextlib.suppress(OSError):
            path = os.readlink(place)  # noqa: PTH115 - it may be no path
            if any(is_within(path, each) for each in below) and _at_its_path(path, place) and _is_on_writable(place):
                yield OpenedFile(path, is_writable=True)


def _at_its_path(path: str, place: str) -> os.stat_result | None:
    """The status of what a link in /proc leads to; None if something else is at its path now. Raises `OSError`."""
    here, there = os.lstat(path), Path(place).stat()
    return there if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) else None


def _can_write(status: os.stat_result, pid: int, descriptor: str) -> bool:
    if stat.S_ISDIR(status.st_mode):
        return _is_on_writable(f"/proc/{pid}/fd/{descriptor}")
    flags = next(int(value, 8) for value in _fields(pid, descriptor, "flags:"))
    # A file that was opened as a mere place (O_PATH) can be opened anew through /proc/self/fd.
    return bool(flags & _WRITES) or bool(flags & os.O_PATH and _is_on_writable(f"/proc/{pid}/fd/{descriptor}"))


def _is_on_writable(place: str) -> bool:
    """Whether it was opened through a mount that is not read-only."""
    return not os.statvfs(place).f_flag & os.ST_RDONLY


def _fields(pid: int, descriptor: str, name: str) -> Iterator[str]:
    file = os.open(f"/proc/{pid}/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        lines = os.read(file, 4_096).decode().splitlines()
    finally:
        os.close(file)
    return (line.split()[1] for line in lines if line.startswith(name))


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
