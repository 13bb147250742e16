"""Waits until restored files are on the disk, so that a loss of power does not leave them empty."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bradawl.checkpoints.file_states import open_readable
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.opened_notes import noted_walk
from bradawl.checkpoints.record import Change
from bradawl.checkpoints.store_folder import StoreFolder

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NO_SYNC: Final = (errno.EINVAL, errno.ENOTSUP, errno.EROFS, errno.EBADF)
"""Errors of file systems that can't be told to write, or that need not."""


def sync_changes(changes: Sequence[Change], store: StoreFolder, roots: Sequence[bytes]) -> None:
    """Wait until the files, folders and links of changes are on the disk, as they are now. Blocks.

    What is gone, or may not be read, is left out. Raises `OSError` with the path of what could not be written.
    """
    with noted_walk(store, roots) as walk:
        paths = [change.path for change in changes if walk.root_of(change.path) is not None]
        files = [change.path for change in changes if change.after is not None and change.after.kind == "file"]
        files = [path for path in files if walk.root_of(path) is not None]
        for file, _ in _opened(walk, files):
            _start(file)
        for file, path in _opened(walk, files):
            _sync(file, path)
        made = {each.path for each in changes if each.after is not None and each.after.kind == "folder"}
        for folder in sorted({os.path.dirname(path) for path in paths} | made):  # noqa: PTH120 names are bytes
            if walk.root_of(folder) is not None:
                _sync_folder(walk, folder)


def _opened(walk: FolderWalk, paths: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Descriptors of the files that exist; each is valid until the next one."""
    for path in paths:
        try:
            file = open_readable(*walk.parent(path))
        except OSError as error:
            if error.errno in (*_GONE, errno.EACCES, errno.EPERM, errno.ENXIO):
                continue
            raise OSError(error.errno, error.strerror, os.fsdecode(path)) from error
        try:
            yield file, path
        finally:
            os.close(file)


def _start(file: int) -> None:
    """Let the system begin to write a file, without waiting: then the waits for all files take about half the time."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync_folder(walk: FolderWalk, path: bytes) -> None:
    try:
        folder = os.open(b".", _FOLDER, dir_fd=walk.folder(path))
    except OSError as error:
        if error.errno in (*_GONE, errno.EACCES, errno.EPERM):
            return
        raise OSError(error.errno, error.strerror, os.fsdecode(path)) from error
    try:
        _sync(folder, path)
    finally:
        os.close(folder)


def _sync(descriptor: int, path: bytes) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise OSError(error.errno, error.strerror, os.fsdecode(path)) from error
