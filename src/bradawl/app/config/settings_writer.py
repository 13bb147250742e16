"""Replaces settings files atomically, with their permissions, under a lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bradawl.core.errors import SettingsError

PRIVATE: Final = 0o600
SHARED: Final = 0o644
_PRIVATE_FOLDER: Final = 0o700
_PATIENCE_S: Final = 5.0
_PAUSE_S: Final = 0.02


@contextmanager
def locked_folder(folder: Path, *, is_private: bool) -> Iterator[None]:
    """The folder, made if it is missing, and locked against other processes that change a file in it.

    Waits at most five seconds. Raises `SettingsError`.
    """
    import fcntl
    import time

    try:
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER if is_private else 0o777)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SettingsError(f"{folder} can't be used: {error.strerror or error}.") from error
    try:
        end = time.monotonic() + _PATIENCE_S
        while not _is_locked(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() > end:
                raise SettingsError(f"Another bradawl is changing {folder}; try again.")
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int, operation: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def replace_text(path: Path, text: str, mode_of_new: int) -> None:
    """Write a file as a whole; its permissions and the link that leads to it stay. Raises `SettingsError`."""
    real = Path(os.path.realpath(path))
    try:
        _replace(real, text.encode(), mode_of_new)
    except OSError as error:
        raise SettingsError(f"{path} can't be written: {error.strerror or error}.") from error


def _replace(path: Path, data: bytes, mode_of_new: int) -> None:
    from tempfile import mkstemp

    descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _copy_permissions(path, file.fileno(), mode_of_new)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _copy_permissions(path: Path, descriptor: int, mode_of_new: int) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(descriptor, mode_of_new & ~umask)
        return
    with suppress(OSError):  # a file of another user, in a folder of this one
        os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, found.st_mode & 0o777)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
