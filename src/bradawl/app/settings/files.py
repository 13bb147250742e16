"""Reading of settings files: regular files of bounded size, parsed as TOML."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    import os

FILE_LIMIT_BYTES: Final = 1_000_000


def read_user_file(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> dict[str, object]:
    """The table in a settings file; empty if there is no file. Raises `SettingsError`.

    `check` is called with the status of the open file and may raise.
    """
    try:
        return _read_toml(path, check)
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror or error}.") from error


def is_there(path: Path) -> bool:
    """Whether a path exists. False if that can't be determined."""
    try:
        return path.exists()
    except OSError:
        return False


def read_small_file(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> bytes | None:
    """The bytes of a regular file, at most `FILE_LIMIT_BYTES` + 1; None if there is no file. Raises `OSError`.

    `check` is called with the status of the open file and may raise.
    """
    import os
    import stat

    try:
        # Non-blocking, because a checkout may hold a FIFO of that name.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        if check is not None:
            check(found)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)


def _read_toml(path: Path, check: Callable[["os.stat_result"], None] | None = None) -> dict[str, object]:
    """The table; empty if there is no file. Raises `OSError`, or `SettingsError` if the file is not TOML."""
    data = read_small_file(path, check)
    if data is None:
        return {}
    if len(data) > FILE_LIMIT_BYTES:
        raise SettingsError(f"{path} is larger than {FILE_LIMIT_BYTES} bytes, too large for a settings file.")
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path} is not UTF-8, see line {line}.") from error
    except (ValueError, RecursionError) as error:
        why = str(error).replace("at end of document", f"at the end, line {len(data.splitlines())}")
        raise SettingsError(f"{path} is not valid TOML: {why}.") from error


def why_foreign(found: "os.stat_result") -> str:
    """Why another user could have written a file; empty if only the user and root could."""
    import os

    if os.geteuid() and found.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid != os.getegid()):
        return "can be written by others"
    return ""
