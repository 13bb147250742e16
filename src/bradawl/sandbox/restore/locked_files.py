"""Files that an agent holds locked while programs run: an unlocked one belongs to an agent that was killed."""

import errno
import fcntl
import os

from bradawl.sandbox.check_failures import is_absent_or_closed


def open_locked(path: str, flags: int) -> int:
    """Descriptor of a file that no other agent uses; its caller closes it. Raises `OSError`."""
    opened = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(opened).st_nlink:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    except OSError:
        os.close(opened)
        raise
    return opened


def read_abandoned(path: str) -> bytes | None:
    """The content of a file; None if another agent holds it, and if there is none or it is closed. Raises `OSError`."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if is_absent_or_closed(error):
            return None
        raise
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # also on a file system without locks
            return None
        with open(opened, "rb", closefd=False) as file:
            return file.read() if os.fstat(opened).st_nlink else None
    finally:
        os.close(opened)
