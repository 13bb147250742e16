"""Saves the last answer of a run in the file that `--output-last-message` names."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.app.exit_code import NOT_SAVED, Result, with_code

if TYPE_CHECKING:
    from bradawl.app.settings.settings import Settings


def with_answer_saved(settings: "Settings", result: Result, text: str) -> Result:
    """The result after `text` was written to the file that the settings name.

    A run that did not complete leaves the file as it was, and the result says so. If the file can't be written, the
    result's code says that.
    """
    name = settings.values.get("output_last_message")
    if not isinstance(name, str):
        return result
    if result.reason != "completed":
        said = f"{name} is left as it was: only the answer of a completed run is written."
        return msgspec.structs.replace(result, errors=(*result.errors, said))
    try:
        replace_file(Path(settings.cwd, name), text)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        said = f"{name} is left as it was: it can't be written: {why}."
        return with_code(msgspec.structs.replace(result, errors=(*result.errors, said)), NOT_SAVED)
    return result


_NEW_FILE: Final = 0o666


def replace_file(path: Path, text: str) -> None:
    """Replace the content of a file so that no other program sees a part of it. Raises `OSError` and `ValueError`.

    A link stays a link, an existing file keeps its mode. What is no regular file, such as a FIFO, is written to.
    """
    path, data = Path(os.path.realpath(path)), text.encode("utf-8", "replace")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | (_NEW_FILE & ~_umask())
    if not stat.S_ISREG(mode):
        path.write_bytes(data)
        return
    new = path.with_name(f".{path.name[:100]}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now
