"""Reads the state of single paths, without following links, and compares states."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from typing import Final

from bradawl.checkpoints.opened_folders import FolderWalk, change_mode
from bradawl.checkpoints.owners import owner_of
from bradawl.checkpoints.record import FileState

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_AT: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE: Final = 1_048_576
_GROWTH_BYTES: Final = 67_108_864
"""A program can write faster than a file is read, so that reading would never end."""

Digest = Callable[[int, int], str]
"""Takes an open file and its size; returns the sha256 of its content in hex."""


def digest_of(descriptor: int, size: int) -> str:
    """The sha256 of an open file's content in hex; of one that grows meanwhile, not much more than of its size."""
    digest, at = hashlib.sha256(), 0
    while at <= size + _GROWTH_BYTES and (piece := os.pread(descriptor, _PIECE, at)):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def read_state(walk: FolderWalk, path: bytes, digest: Digest = digest_of) -> FileState | None:
    """The present state of a path; None if it does not exist or a folder above it is none. Raises `OSError`."""
    try:
        parent, name = walk.parent(path)
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = stat.S_IMODE(found.st_mode)
    owner = owner_of(found, parent)
    if stat.S_ISDIR(found.st_mode):
        return FileState("folder", walk.mode_of(path, found), owner=owner)
    if stat.S_ISLNK(found.st_mode):
        return FileState("link", mode, target=os.readlink(name, dir_fd=parent), owner=owner)
    if not stat.S_ISREG(found.st_mode):
        return FileState("other", mode)
    with contextlib.ExitStack() as held:
        file = open_readable(parent, name)
        held.callback(os.close, file)
        opened = os.fstat(file)
        if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
            raise OSError(f"it was replaced while it was read: {os.fsdecode(path)}")
        return FileState("file", mode, digest(file, opened.st_size), opened.st_size, owner=owner)


def read_content(walk: FolderWalk, path: bytes) -> bytes:
    """The content of a regular file. Raises `OSError`."""
    parent, name = walk.parent(path)
    file = open_readable(parent, name)
    try:
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)


def open_readable(parent: int, name: bytes) -> int:
    """Descriptor of a file for reading, also of this user's file without the right to read. The caller closes it.

    Raises `OSError`.
    """
    try:
        return os.open(name, _READ, dir_fd=parent)
    except PermissionError:
        place = os.open(name, _AT, dir_fd=parent)
    try:
        found = os.fstat(place)
        if not stat.S_ISREG(found.st_mode) or os.geteuid() != found.st_uid:
            raise PermissionError(13, os.strerror(13))
        mode = stat.S_IMODE(found.st_mode)
        change_mode(place, mode | stat.S_IRUSR)
        try:
            return os.open(name, _READ, dir_fd=parent)
        finally:
            change_mode(place, mode)
    finally:
        os.close(place)


def has_same_content(now: FileState, wanted: FileState) -> bool:
    """Whether a file still has the content that was not saved: it is the same file, with the same size."""
    is_known = now.identity is not None and wanted.identity is not None
    return is_known and now.kind == wanted.kind == "file" and now.size == wanted.size and _may_be_one(now, wanted)


def _may_be_one(one: FileState, other: FileState) -> bool:
    """False if the identities of both are known, and differ."""
    return one.identity is None or other.identity is None or one.identity[:2] == other.identity[:2]


def is_same(one: FileState | None, other: FileState | None) -> bool:
    """Whether two states restore to the same file. Files whose contents are not saved are compared by size."""
    if one is None or other is None or one.kind != other.kind:
        return one is other
    if one.kind == "link":
        return one.target == other.target
    if one.kind == "other":
        return True
    if one.mode != other.mode or not _may_be_one(one, other):
        return False
    if one.content and other.content:
        return one.content == other.content
    return one.size == other.size
