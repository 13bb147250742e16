"""Writes a file for the user: whole or not at all, readable by the user alone, never over another one unasked."""

import os
from pathlib import Path

from bradawl.app.whole_files import written_beside


def write_new_file(path: Path, text: str, *, replaces: bool = False) -> None:
    """Write a text; with `replaces` also over a file of that name. Raises `FileExistsError` and other `OSError`."""
    data = text.encode("utf-8", "backslashreplace")  # a file name in it may hold what UTF-8 can't
    with written_beside(path, data) as new:
        if replaces:
            new.replace(path)
        else:
            os.link(new, path)  # fails if the name is taken
