"""Writes a file for the user: whole or not at all, readable by the user alone, never over another one unasked."""

import contextlib
import os
from pathlib import Path


def write_new_file(path: Path, text: str, *, replaces: bool = False) -> None:
    """Write a text; with `replaces` also over a file of that name. Raises `FileExistsError` and other `OSError`."""
    data = text.encode("utf-8", "backslashreplace")  # a file name in it may hold what UTF-8 can't
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replaces:
            new.replace(path)
        else:
            os.link(new, path)  # fails if the name is taken
    finally:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
