"""The records of placeholders: the empty files and folders that the sandboxes of all agents of a project have made."""

import contextlib
import os
import stat
from collections.abc import Iterator

RECORD_PREFIX = "sandbox-"
"""Names of records in the state folder begin with it. Each agent has one."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def placeholder_identity(mode: int, device: int, inode: int, modified_ns: int) -> str:
    """Identifies a file or folder; inode numbers alone are soon reused."""
    if stat.S_ISDIR(mode):
        return f"folder {device} {inode}"
    return f"file {device} {inode} {modified_ns}"


def record_entries(record: int) -> Iterator[tuple[str, str, str]]:
    """What an open record lists: `placeholder` or `folder`, identity, and path. Raises `OSError`."""
    data = b""
    while piece := os.read(record, 65_536):
        data += piece
    fields = os.fsdecode(data).split("\0")
    return zip(fields[0::3], fields[1::3], fields[2:-1:3], strict=False)


def recorded_placeholders(state: str) -> set[tuple[str, str]]:
    """Path and identity of all placeholders in the records of a state folder, also of removed ones."""
    found: set[tuple[str, str]] = set()
    with contextlib.suppress(OSError), os.scandir(state) as entries:
        for entry in entries:
            if entry.name.startswith(RECORD_PREFIX):
                with contextlib.suppress(OSError):
                    found |= _placeholders_in(entry.path)
    return found


def _placeholders_in(path: str) -> set[tuple[str, str]]:
    record = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(record).st_mode):
            return set()
        return {(place, identity) for what, identity, place in record_entries(record) if what == "placeholder"}
    finally:
        os.close(record)
