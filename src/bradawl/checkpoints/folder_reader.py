"""Reads folders and files through descriptors: no link is followed, nothing blocks, no special file is read."""

import errno
import os
import stat
from itertools import islice
from typing import Final, Protocol

from bradawl.checkpoints.coverage import CACHE_TAG, CACHE_TAG_START
from bradawl.checkpoints.folder import Folder, Signature, signature
from bradawl.sandbox.filesystem.time_bits import NS_BITS

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READ_ERRORS: Final = frozenset({errno.EIO, errno.EINVAL, errno.EISDIR, errno.EAGAIN, errno.EACCES, errno.ESTALE})
"""Errors of the file that is read; others are those of the store."""


class Contents(Protocol):
    """The part of a content store that a search uses."""

    def add(self, descriptor: int, size: int, previous: str = "") -> str:
        """Save the whole content of an open file; returns its sha256 in hex. Raises `OSError`.

        `previous` is the sha256 of a similar content.
        """
        ...

    def has(self, sha256: str) -> bool:
        """Whether a content is saved."""
        ...

    def flush(self) -> None:
        """Make what was added durable."""
        ...


class NotAFile(OSError):
    """The name does not lead to a regular file any more."""


class NotSaved(OSError):
    """The store could not write a content."""


def open_child(parent: int | None, name: str | bytes) -> int:
    """Descriptor of a folder in an open folder; a root has no parent. The caller closes it. Raises `OSError`."""
    return os.open(name, _FOLDER, dir_fd=parent)


def open_folder(folder: Folder) -> int:
    """Descriptor of a folder of the index, opened component by component from its root. Raises `OSError`."""
    root, *inner = folder.chain()
    reached = open_child(None, root.path)
    for part in inner:
        try:
            below = open_child(reached, part.name)
        finally:
            os.close(reached)
        reached = below
    return reached


def list_entries(descriptor: int, most: int) -> dict[str, Signature] | None:
    """Signatures of a folder's entries by name; None if there are more than `most`.

    Raises `OSError` if the folder can't be listed, or its entries can't be reached.
    """
    found: dict[str, Signature] = {}
    with os.scandir(descriptor) as entries:
        for entry in islice(entries, most + 1):
            try:
                at = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            # like `signature`, without the cost of a call
            found[entry.name] = (at.st_mode, at.st_ino, at.st_size, at.st_ctime_ns, at.st_mtime_ns & NS_BITS, at.st_dev)
    return found if len(found) <= most else None


def entry_signature(descriptor: int | None, name: str | bytes) -> Signature | None:
    """Signature of one entry of an open folder, or of an absolute path; None if there is none. Raises `OSError`."""
    try:
        return signature(os.stat(name, dir_fd=descriptor, follow_symlinks=False))
    except FileNotFoundError:
        return None


def save_file(contents: Contents, folder: int, name: str, previous: str = "") -> tuple[str, Signature]:
    """Save the content of a file; returns its sha256 and the signature at the time of reading.

    A file that changes meanwhile is read a second time. Raises `NotAFile`, `NotSaved`, and `OSError` if it can't be
    read.
    """
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFile(errno.EINVAL, "not a regular file", name)
        before = signature(status)
        content = _saved(contents, descriptor, status.st_size, previous)
        after = signature(os.fstat(descriptor))
        if after != before:
            content = _saved(contents, descriptor, after[2], previous)
        return content, after
    finally:
        os.close(descriptor)


def _saved(contents: Contents, descriptor: int, size: int, previous: str) -> str:
    try:
        return contents.add(descriptor, size, previous)
    except OSError as error:
        if error.errno in _READ_ERRORS:
            raise
        raise NotSaved(error.errno, error.strerror) from error


def link_target(folder: int, name: str) -> bytes:
    """The target of a link. Raises `OSError`."""
    return os.readlink(os.fsencode(name), dir_fd=folder)


def read_start(folder: int | None, name: str | bytes, most: int) -> bytes:
    """The first bytes of a regular file, links not followed; empty if it can't be read."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(descriptor, most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def has_cache_tag(folder: int) -> bool:
    """Whether an open folder holds a valid CACHEDIR.TAG."""
    return read_start(folder, CACHE_TAG, len(CACHE_TAG_START)) == CACHE_TAG_START
