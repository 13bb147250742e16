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
_DEEPEST = 10_000
_GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)
_MAPPED = re.compile(rb"[0-9a-f]+-[0-9a-f]+ ...([ps]) [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ (\d+) +(/.*)")


class OpenedFile(NamedTuple):
    """A file or folder that a process has open."""

    path: str
    is_writable: bool
    """The process can write it, or in the folder, in spite of a later mount over its path."""


class OpenedFiles(NamedTuple):
    """What the processes of one sandbox have open."""

    files: frozenset[OpenedFile]
    is_complete: bool
    """False if the system does not show all: for a process that forbids it (`PR_SET_DUMPABLE`), or without a free
    descriptor.
    """


def opened_files(pids: Iterable[int], namespace_of: int, below: Collection[str]) -> OpenedFiles:
    """The files at or below paths that processes in the mount namespace of `namespace_of`, its init, have open.

    Only files count that are at their path now: an earlier file of that name, or one that is mounted over it in the
    namespace, is another file. Processes that end meanwhile are left out. Threads count alone: each can have its own
    descriptors and working directory.
    """
    found: set[OpenedFile] = set()
    is_complete = True
    for pid in _in_sandbox(pids, namespace_of):
        has_maps = False  # threads share them
        for thread in _threads(pid):
            try:
                found |= {*_by_descriptor(thread, below), *_entered(thread, below)}
                maps = b"" if has_maps else _maps(thread)
                has_maps = has_maps or bool(maps)
                found.update(_mapped(maps, below))
            except OSError:
                is_complete = is_complete and not _runs(thread)
    return OpenedFiles(frozenset(found), is_complete)


def sends_descriptors(pids: Iterable[int], namespace_of: int) -> bool:
    """Whether open files wait in a Unix socket (SCM_RIGHTS) of a process in the mount namespace of `namespace_of`.

    The kernel does not say which files. Linux says so from version 5.11. Processes that can't be examined don't count.
    """
    for pid in _in_sandbox(pids, namespace_of):
        for thread in _threads(pid):
            with contextlib.suppress(OSError):
                if _has_waiting_descriptors(thread):
                    return True
    return False


def _in_sandbox(pids: Iterable[int], init: int) -> Iterator[int]:
    """The processes in the mount namespace of its init, and those that don't show theirs and descend from it."""
    namespace = _namespace(init)
    for pid in pids:
        if (own := _namespace(pid)) == namespace or (not own and _descends(pid, init)):
            yield pid


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")  # noqa: PTH115 - not a path
    except OSError:
        return ""


def _descends(pid: int, init: int) -> bool:
    """Whether a process is its init or below it. Orphans of a sandbox are children of its init."""
    for _ in range(_DEEPEST):
        if pid == init:
            return True
        pid = int(_status(f"/proc/{pid}")[1] or 0)
        if pid <= 1:
            return False
    return True


def _runs(thread: str) -> bool:
    """Whether a thread exists and has not ended."""
    return _status(thread)[0] not in (b"", b"Z", b"X", b"x")


def _status(thread: str) -> tuple[bytes, bytes]:
    """State of a thread and parent of its process; both empty if it is gone. Readable for everyone."""
    try:
        words = Path(f"{thread}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return b"", b""
    return words[0], words[1]


def _threads(pid: int) -> list[str]:
    """Folders in /proc of its threads. If they can't be listed, that of its first thread."""
    try:
        return [f"/proc/{pid}/task/{name}" for name in _names_in(f"/proc/{pid}/task")]
    except OSError:
        return [f"/proc/{pid}/task/{pid}"]


def _has_waiting_descriptors(thread: str) -> bool:
    for name in _names_in(f"{thread}/fd"):
        with contextlib.suppress(OSError, ValueError):
            is_socket = os.readlink(f"{thread}/fd/{name}").startswith("socket:")  # noqa: PTH115 - not a path
            if is_socket and any(int(value) > 0 for value in _fields(thread, name, "scm_fds:")):
                return True
    return False


def _names_in(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _by_descriptor(thread: str, below: Collection[str]) -> Iterator[OpenedFile]:
    for name in _names_in(f"{thread}/fd"):
        place = f"{thread}/fd/{name}"
        with contextlib.suppress(*_GONE, ValueError):
            path = os.readlink(place)  # noqa: PTH115 - it may be no path
            if any(is_within(path, each) for each in below) and (there := _at_its_path(path, place)) is not None:
                yield OpenedFile(path, is_writable=_can_write(there, thread, name))


def _entered(thread: str, below: Collection[str]) -> Iterator[OpenedFile]:
    """Its working directory and its root, if it can write there."""
    for place in (f"{thread}/cwd", f"{thread}/root"):
        with contextlib.suppress(*_GONE):
            path = os.readlink(place)  # noqa: PTH115 - it may be no path
            if any(is_within(path, each) for each in below) and _at_its_path(path, place) and _is_on_writable(place):
                yield OpenedFile(path, is_writable=True)


def _at_its_path(path: str, place: str) -> os.stat_result | None:
    """The status of what a link in /proc leads to; None if something else is at its path now. Raises `OSError`."""
    here, there = os.lstat(path), Path(place).stat()
    return there if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) else None


def _can_write(status: os.stat_result, thread: str, descriptor: str) -> bool:
    place = f"{thread}/fd/{descriptor}"
    if stat.S_ISDIR(status.st_mode):
        return _is_on_writable(place)
    flags = next(int(value, 8) for value in _fields(thread, descriptor, "flags:"))
    # A file that was opened as a mere place (O_PATH) can be opened anew through /proc/self/fd.
    return bool(flags & _WRITES) or bool(flags & os.O_PATH and _is_on_writable(place))


def _is_on_writable(place: str) -> bool:
    """Whether it was opened through a mount that is not read-only."""
    return not os.statvfs(place).f_flag & os.ST_RDONLY


def _fields(thread: str, descriptor: str, name: str) -> Iterator[str]:
    file = os.open(f"{thread}/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        lines = os.read(file, 4_096).decode().splitlines()
    finally:
        os.close(file)
    return (line.split()[1] for line in lines if line.startswith(name))


def _maps(thread: str) -> bytes:
    file = os.open(f"{thread}/maps", os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as lines:
        return lines.read()


def _mapped(maps: bytes, below: Collection[str]) -> Iterator[OpenedFile]:
    for line in filter(None, map(_MAPPED.match, maps.splitlines())):
        path = os.fsdecode(line[3])
        if any(is_within(path, each) for each in below):
            with contextlib.suppress(OSError, ValueError):
                if os.lstat(path).st_ino == int(line[2]):
                    # A shared mapping of a file that was opened for writing can be made writable later.
                    yield OpenedFile(path, is_writable=line[1] == b"s")
