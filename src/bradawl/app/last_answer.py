"""Saves the last answer of a run in the file that `--output-last-message` names."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bradawl.app.exit_code import NOT_SAVED, Result, with_code
from bradawl.app.whole_files import mode_of_new, written_beside

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


def replace_file(path: Path, text: str) -> None:
    """Replace the content of a file so that no other program sees a part of it. Raises `OSError` and `ValueError`.

    A link stays a link, an existing file keeps its mode. What is no regular file, such as a FIFO, is written to.
    """
    path, data = Path(os.path.realpath(path)), text.encode("utf-8", "replace")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | mode_of_new()
    if not stat.S_ISREG(mode):
        path.write_bytes(data)
        return
    with written_beside(path, data, lambda descriptor: os.fchmod(descriptor, stat.S_IMODE(mode))) as new:
        new.replace(path)
