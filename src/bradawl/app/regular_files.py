"""Reads files whose kind may change meanwhile: never waits for a pipe, never follows a link at the end of a path."""

import os
import stat
from pathlib import Path


def read_regular(path: str | Path, limit_bytes: int) -> bytes:
    """At most so many bytes of a regular file, by its real path. Raises `OSError` for anything else.

    A folder on the way that is replaced by a link while the file is opened is an error too.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        opened = Path(f"/proc/self/fd/{descriptor}")
        if opened.is_symlink() and str(opened.readlink()) != os.fspath(path):
            raise OSError(f"{path} was replaced while it was opened")
        data = b""
        while len(data) < limit_bytes and (more := os.read(descriptor, limit_bytes - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)
