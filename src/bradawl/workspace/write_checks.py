"""Tells before a write that it can only fail, as for a read-only file or below a folder that takes no new files."""

import errno
import os
from pathlib import Path

from bradawl.core.errors import ToolError


def read_only(path: str) -> ToolError:
    """The error for an existing file that may not be written."""
    return ToolError(f"{path} is read-only; use another file or ask the user")


def not_created(path: str, reason: object) -> ToolError:
    """The error for a file that the system does not create."""
    return ToolError(f"{path} can't be created: {reason}; use another place or ask the user")


def below_a_file(path: str) -> ToolError:
    """The error for a path with a file in place of one of its folders."""
    above = [folder for folder in Path(path).parents if not folder.is_dir()]
    file = next((folder for folder in reversed(above) if os.path.lexists(folder)), Path(path).parent)
    return ToolError(f"{path} can't be created: {file} is a file, not a folder; check the path")


def check_writable(path: str) -> None:
    """Raises `ToolError` for a resolved path that can't be written now. What it accepts can fail all the same."""
    if os.path.lexists(path):
        if not _may(path, os.W_OK):
            raise read_only(path)
        return
    folder = next(above for above in Path(path).parents if os.path.lexists(above))
    if not folder.is_dir():
        raise below_a_file(path)
    if not _may(folder, os.W_OK | os.X_OK):
        raise not_created(path, os.strerror(errno.EACCES))


def _may(path: str | Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
