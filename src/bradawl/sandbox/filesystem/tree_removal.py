"""Removes folder trees that programs made hard to remove: closed folders, very deep nesting."""

import contextlib
import os
import stat
from pathlib import Path

from bradawl.sandbox.filesystem.closed_folders import open_with_access


def remove_folder(path: str) -> None:
    """Remove a folder with all its contents, whatever permissions programs set. No link is followed.

    Works at any depth: contents of inner folders are moved up until there is nothing to move.
    """
    with contextlib.suppress(OSError):
        top = open_with_access(path)
        try:
            while _remove_one_level(top):
                pass
        finally:
            os.close(top)
        Path(path).rmdir()


def remove_entry(name: str, parent: int) -> None:
    """Remove a file, link or folder of an open folder, as `remove_folder` does. Raises `OSError` for a file or link."""
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        remove_folder(f"/proc/self/fd/{parent}/{name}")


def _remove_one_level(top: int) -> bool:
    """Remove a folder's files and move up the contents of its folders; True as long as something was moved."""
    has_moved = False
    for name in _names_in(top):
        with contextlib.suppress(OSError):
            if _unlink(name, top):
                continue
            inner = open_with_access(name, top)
            try:
                for each in _names_in(inner):
                    if not _unlink(each, inner):
                        # Moving a folder changes its entry "..", so it must be writable.
                        os.close(open_with_access(each, inner))
                        os.rename(each, f"moved-{os.urandom(8).hex()}", src_dir_fd=inner, dst_dir_fd=top)
                        has_moved = True
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    return has_moved


def _names_in(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _unlink(name: str, folder: int) -> bool:
    """Remove a file; False for a folder."""
    if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True
