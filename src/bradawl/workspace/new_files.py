"""Writes new files under temporary names and syncs them to disk."""

import contextlib
import os
from collections.abc import Iterator

from bradawl.safety.whole_writes import write_all
from bradawl.workspace.temporary_names import temporary_name

_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def temporary_file(folder: int, mode: int) -> Iterator[tuple[str, int]]:
    """Name and descriptor of a new file in the folder; removed at the end unless it was renamed."""
    temporary = temporary_name(os.urandom(8).hex())
    descriptor = os.open(temporary, _NEW_FLAGS, mode, dir_fd=folder)
    try:
        yield temporary, descriptor
    finally:
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def write_to_disk(descriptor: int, data: bytes) -> None:
    """Write all data and wait until they are on disk. Raises `OSError`."""
    write_all(descriptor, data)
    os.fsync(descriptor)


def sync_folder(folder: int) -> None:
    """Wait until the folder's entries are on disk, where the file system can do that."""
    with contextlib.suppress(OSError):  # some file systems can't; the content itself is already on disk
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
