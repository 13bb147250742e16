"""Changes of the user's settings files: one at a time, and each file is replaced as a whole."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bradawl.app.whole_files import mode_of_new, sync_folder, written_beside
from bradawl.core.errors import SettingsError

_LIMIT_BYTES: Final = 1_000_000
OWNER_ONLY: Final = 0o600


def change_file(path: Path, change: Callable[[str], str], *, mode: int | None = None) -> None:
    """Replace the text of a file by `change(text)`; a missing file is empty. After an error it is as before.

    A link is followed, so that a file that the user keeps elsewhere stays there. `mode` replaces the permissions of
    the file; without it they stay, and a new file gets those of the umask. Raises `SettingsError`.
    """
    try:
        real = Path(os.path.realpath(path))
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(real.parent):
            before, old_mode = _read(real)
            after = change(before)
            if after != before or (mode is not None and old_mode != mode):
                _replace(real, after, old_mode if mode is None else mode)
    except OSError as error:
        raise SettingsError(f"{path} can't be written: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8, so it is left as it is.") from None
    except SettingsError as error:
        raise SettingsError(f"{path} is left as it is: {str(error).rstrip('.')}.") from None


def _read(path: Path) -> tuple[str, int | None]:
    """Text and permissions of a regular file; empty and None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return "", None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(_LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > _LIMIT_BYTES:
        raise OSError(0, f"it is larger than {_LIMIT_BYTES} bytes")
    return data.decode(), stat.S_IMODE(found.st_mode)


def _replace(path: Path, text: str, mode: int | None) -> None:
    def permissions(descriptor: int) -> None:
        os.fchmod(descriptor, mode_of_new() if mode is None else mode)

    with written_beside(path, text.encode(), permissions) as fresh:
        fresh.replace(path)
    sync_folder(path.parent)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other logins out. Where the file system has no locks, the last one wins."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
