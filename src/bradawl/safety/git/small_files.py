"""Reads small text files of projects, and git's own files, without following a link."""

import os

_LARGEST = 65_536
LARGEST_SETTINGS = 1_048_577
"""Limit for configurations of git: one with a thousand branches has more than 64 KiB."""


def text_in(path: str, limit: int = _LARGEST) -> str | None:
    """The text of a file smaller than `limit`, 64 KiB; None if it is larger or can't be read."""
    try:
        size = os.lstat(path).st_size
    except OSError:
        return None
    text = os.fsdecode(read_bytes(path, limit))
    return text if text or not size else None


def read_text(path: str) -> str:
    """As `read_bytes`, decoded, of a file smaller than 64 KiB."""
    return os.fsdecode(read_bytes(path, _LARGEST))


def read_bytes(path: str, limit: int) -> bytes:
    """The contents of a file smaller than `limit`; empty for any other file."""
    data = read_start(path, limit)
    return data if len(data) < limit else b""


def read_start(path: str, most_bytes: int) -> bytes:
    """The beginning of a file; empty if it can't be read."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(most_bytes)
    except OSError:
        return b""
    finally:
        os.close(opened)


def named_in(path: str, before: str) -> str:
    """The path behind the prefix `before` in a one-line file of git, with its blanks, as git reads it; empty for any
    other file.
    """
    text = read_text(path)
    return text[len(before) :].rstrip("\r\n") if text.startswith(before) else ""
