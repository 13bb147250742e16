"""Writes files so that other programs, and a machine that loses power, see the old content or the new one."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_OWNER_ONLY: Final = 0o600


@contextmanager
def written_beside(path: Path, data: bytes, prepare: Callable[[int], object] = lambda _: None) -> Iterator[Path]:
    """A complete new file in the folder of `path`, on the disk, to be renamed or linked; it is removed at the end.

    `prepare` gets its descriptor before anything is written, to set permissions: until then only the owner can read
    it. Raises `OSError`.
    """
    fresh = path.with_name(f".bradawl-{os.getpid()}-{os.urandom(4).hex()}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, _OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            prepare(descriptor)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def replace_whole(path: Path, data: bytes, prepare: Callable[[int], object] = lambda _: None) -> None:
    """Replace a file, or make it, and wait until it is on the disk; only its owner can read it, unless `prepare` says.

    A link is replaced, not followed. Raises `OSError`, and the file is as before.
    """
    with written_beside(path, data, prepare) as fresh:
        fresh.replace(path)
    sync_folder(path.parent)


def mode_of_new(mode: int = 0o666) -> int:
    """The permissions of a new file that may have `mode`, as the umask of the process leaves them."""
    umask = os.umask(0o077)
    os.umask(umask)
    return mode & ~umask


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
