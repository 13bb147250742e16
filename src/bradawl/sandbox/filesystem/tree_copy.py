"""Copies files, folders and links to another file system, completely or not at all. No link is followed."""

import contextlib
import errno
import os
import shutil
import stat
from typing import Final

from bradawl.sandbox.filesystem.closed_folders import make_readable, open_with_access
from bradawl.sandbox.filesystem.tree_removal import remove_entry

_PIECE: Final = 1_048_576
_MOST_DEPTH: Final = 200
"""Each level holds two descriptors."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_tree(name: str, parent: int, goal: str, *, most_bytes: int) -> None:
    """Copy `name`, in the open folder `parent`, to the new path `goal`. Named pipes, sockets and devices are left out.

    When it returns, all contents are on the disk and were compared with the source; it raises `OSError` otherwise, also
    if they are more than `most_bytes` together, and what was copied until then is removed again.
    """
    folder, _, new = goal.rpartition("/")
    into = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _Copy(most_bytes).entry(name, parent, new, into, _MOST_DEPTH)
        os.fsync(into)
    except BaseException:
        with contextlib.suppress(OSError):  # why it could not be copied matters more
            remove_entry(new, into)
        raise
    finally:
        os.close(into)


class _Copy:
    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes

    def entry(self, name: str, source: int, new: str, goal: int, depth: int) -> None:
        found = os.lstat(name, dir_fd=source)
        if stat.S_ISDIR(found.st_mode):
            self._folder(name, source, new, goal, depth)
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=goal)
        elif stat.S_ISREG(found.st_mode):
            self._file(name, source, new, goal)

    def _folder(self, name: str, source: int, new: str, goal: int, depth: int) -> None:
        if depth <= 0:
            raise OSError(errno.ENAMETOOLONG, f"it has more than {_MOST_DEPTH} folders inside each other")
        inner = open_with_access(name, source)
        try:
            os.mkdir(new, 0o700, dir_fd=goal)
            into = open_with_access(new, goal)
            try:
                for each in _names_in(inner):
                    self.entry(each, inner, each, into, depth - 1)
                os.fsync(into)
            finally:
                os.close(into)
        finally:
            os.close(inner)

    def _file(self, name: str, source: int, new: str, goal: int) -> None:
        make_readable(name, source)
        file = os.open(name, _READ, dir_fd=source)
        try:
            size = os.fstat(file).st_size
            self._left -= size
            if self._left < 0:
                raise OSError(errno.EFBIG, "it is too large")
            copy = os.open(new, _NEW, 0o600, dir_fd=goal)
            try:
                _copy_content(file, copy, size)
                shutil.copystat(f"/proc/self/fd/{file}", f"/proc/self/fd/{copy}")
                os.fsync(copy)
            finally:
                os.close(copy)
        finally:
            os.close(file)


def _names_in(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _copy_content(file: int, copy: int, size: int) -> None:
    """Copy and compare; blocks of zeros become holes."""
    at = 0
    while piece := os.pread(file, min(_PIECE, size - at), at):
        if piece.count(0) != len(piece):
            _write(copy, piece, at)
        at += len(piece)
    os.ftruncate(copy, at)
    if at != size or os.fstat(file).st_size != size or not _is_equal(file, copy, size):
        raise OSError(errno.EAGAIN, "it changed while it was copied")


def _write(copy: int, piece: bytes, at: int) -> None:
    rest = memoryview(piece)
    while rest:
        written = os.pwrite(copy, rest, at)
        rest, at = rest[written:], at + written


def _is_equal(one: int, other: int, size: int) -> bool:
    return all(os.pread(one, _PIECE, at) == os.pread(other, _PIECE, at) for at in range(0, size, _PIECE))
