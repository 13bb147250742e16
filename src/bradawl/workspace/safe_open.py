"""Opens files and folders by resolved paths without following links, and locks files.

Folders are opened one by one from the root: the path was resolved before it was checked, so a link on the way was
put there meanwhile and is refused.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator

from bradawl.core.errors import ToolError

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ODD_PARTS = frozenset({"", ".", ".."})
_WAIT_FOR_LOCK_S = 2.0
_LOCK_PAUSE_S = 0.005


@contextlib.contextmanager
def folder_of(path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Descriptor of a resolved path's folder, and the name in it. `make` creates missing folders.

    Raises `OSError`; `ToolError` for a link on the way and for a path that is not resolved.
    """
    *folders, name = _parts(path)
    descriptor = os.open("/", _FOLDER_FLAGS)
    try:
        for folder in folders:
            below = _step_into(descriptor, folder, path, make=make)
            os.close(descriptor)
            descriptor = below
        yield descriptor, name
    finally:
        os.close(descriptor)


def _parts(path: str) -> list[str]:
    if path == "/":
        return ["."]
    root, *parts = path.split("/")
    if root or not _ODD_PARTS.isdisjoint(parts):
        raise ToolError(f"{path} is not a resolved path; give an absolute one without . and ..")
    return parts


def _step_into(above: int, folder: str, path: str, *, make: bool = False) -> int:
    try:
        return os.open(folder, _FOLDER_FLAGS, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:
        if is_link(above, folder):
            raise ToolError(f"{path}: changed since it was checked: {folder} became a link; try again") from None
        raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, dir_fd=above)
    return _step_into(above, folder, path)


def is_link(folder: int, name: str) -> bool:
    """Whether a name in an open folder is a link."""
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def open_folder(path: str) -> int:
    """Descriptor of a folder for `os.scandir`; the caller closes it. Raises like `folder_of`."""
    with folder_of(path) as (folder, name):
        try:
            return os.open(name, _LIST_FLAGS, dir_fd=folder)
        except NotADirectoryError:
            if is_link(folder, name):
                raise link_error(path) from None
            raise


def open_file(folder: int, name: str, path: str) -> int:
    """Open for reading without blocking, following links or opening devices. The caller closes the descriptor.

    Raises `OSError`; `ToolError` if it is not a regular file.
    """
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    check_regular(path, status)  # opening a device or a pipe may have effects
    try:
        return os.open(name, READ_FLAGS, dir_fd=folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            check_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        raise error from None


def check_regular(path: str, status: os.stat_result) -> None:
    """Raises `ToolError` that names the type of a file that is not regular."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISLNK(status.st_mode):
        raise link_error(path)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a folder, not a file; use glob to see what is in it")
    raise ToolError(f"{path} is not a regular file (a device, pipe or socket); use bash if you really need it")


def link_error(path: str) -> ToolError:
    """The error for a resolved path that ends in a link."""
    return ToolError(f"{path} is a link that leads nowhere, or has changed since it was checked; try again")


@contextlib.contextmanager
def locked(folder: int, name: str, path: str) -> Iterator[tuple[int, bool]]:
    """Descriptor of a file, open for reading, and whether it is locked against other callers of this function.

    The lock is on the file itself (flock): it works across processes and through every link. If the file system has no
    locks, or another program holds the lock for long, the body runs without.
    """
    end = time.monotonic() + _WAIT_FOR_LOCK_S
    while True:
        descriptor = open_file(folder, name, path)
        try:
            is_locked = _lock(descriptor, end)
            if is_same_file(descriptor, folder, name):
                yield descriptor, is_locked
                return
        finally:
            os.close(descriptor)


def _lock(descriptor: int, end: float) -> bool:
    try:
        import fcntl
    except ImportError:  # a system without flock
        return False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_LOCK_PAUSE_S)
        except OSError:
            return False
        else:
            return True


def is_same_file(descriptor: int, folder: int, name: str) -> bool:
    """Whether the name still refers to the open file."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def read_all(descriptor: int, most: int) -> bytes:
    """Up to `most` bytes from the current position."""
    size = os.fstat(descriptor).st_size
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(descriptor, min(most, max(size + 1, 65_536)))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
