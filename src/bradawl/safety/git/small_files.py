"""Reads small files of projects and of git: text files, and the index."""

import os

_LARGEST = 65_536


def text_in(path: str) -> str | None:
    """A small file's text; None for one that is large or can't be read."""
    try:
        size = os.lstat(path).st_size
    except OSError:
        return None
    text = read_text(path)
    return text if text or not size else None


def read_text(path: str) -> str:
    """As `read_bytes`, decoded, of a file smaller than 64 KiB."""
    return os.fsdecode(read_bytes(path, _LARGEST))


def read_bytes(path: str, limit: int) -> bytes:
    """A file that is smaller; nothing of any other."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        with os.fdopen(opened, "rb", closefd=False) as file:
            data = file.read(limit)
    except OSError:
        return b""
    finally:
        os.close(opened)
    return data if len(data) < limit else b""


def named_in(path: str, before: str) -> str:
    """The one path in a file of git's; empty for another kind of file."""
    text = read_text(path)
    return text[len(before) :].strip(" \r\n") if text.startswith(before) else ""
