"""Replaces settings files atomically, with their permissions, under a lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from bradawl.app.whole_files import mode_of_new, replace_whole
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


def replace_text(path: Path, text: str, mode: int, *, keeps_mode: bool = True) -> None:
    """Write a file as a whole; its permissions and the link that leads to it stay. A new one gets `mode`.

    Without `keeps_mode` it gets exactly `mode`, whatever it had. Raises `SettingsError`.
    """
    real = Path(os.path.realpath(path))
    try:
        copy = partial(_copy_permissions, real, mode=mode)
        permissions = copy if keeps_mode else partial(os.fchmod, mode=mode)
        replace_whole(real, text.encode(), permissions)
    except OSError as error:
        raise SettingsError(f"{path} can't be written: {error.strerror or error}.") from error


def _copy_permissions(path: Path, descriptor: int, *, mode: int) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, mode_of_new(mode))
        return
    with suppress(OSError):  # a file of another user, in a folder of this one
        os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, found.st_mode & 0o777)
