"""Renames files and folders in open folders, without replacing anything and without following links."""

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from bradawl.checkpoints.opened_folders import FolderWalk

PARKED: Final = re.compile(rb"\.bradawl-[0-9a-f]{16}\.renamed")
"""Temporary names of files and folders that are renamed."""

OnError = Callable[[bytes, OSError], None]
"""Called with the target of a rename that failed."""


def rename_all(
    walk: FolderWalk, renames: dict[bytes, bytes], present: dict[bytes, bytes], on_error: OnError
) -> Iterator[tuple[bytes, bytes]]:
    """Rename what is given as source by target; chains and swapped names too. Yields target and source of each.

    `present` has the present path of each source that was parked. A rename that fails, also because the target exists,
    leaves the file where it is.
    """
    waiting = dict(renames)
    present = {source: present.get(source, source) for source in renames.values()}
    occupied = set(present.values())
    free = deque(target for target in waiting if target not in occupied)
    while waiting:
        if not free:
            target = next(iter(waiting))  # the names form a ring
            try:
                present[target] = park(walk, target, target)
            except OSError as error:
                on_error(target, error)
                del waiting[target]
            else:
                free.append(target)
            continue
        source = waiting.pop(target := free.popleft())
        now = present.pop(source)
        try:
            rename(walk, now, target)
        except OSError as error:
            on_error(target, error if now == source else unparked(walk, now, source, error))
        else:
            yield target, source
        if now in waiting:
            free.append(now)


def park(walk: FolderWalk, source: bytes, beside: bytes) -> bytes:
    """Rename a file or folder to a temporary name in the folder of the path `beside`; returns it. Raises `OSError`."""
    parked = b"%s/.bradawl-%s.renamed" % (beside.rpartition(b"/")[0], os.urandom(8).hex().encode())
    rename(walk, source, parked)
    return parked


def unparked(walk: FolderWalk, parked: bytes, source: bytes, error: OSError) -> OSError:
    """Give a parked file or folder its name back after an error. The error returned says where it is if that fails."""
    try:
        rename(walk, parked, source)
    except OSError:
        return OSError(error.errno, f"{error.strerror or error}; what belongs there is {os.fsdecode(parked)!r} now")
    return error


def rename(walk: FolderWalk, source: bytes, target: bytes) -> None:
    """Rename a file or folder. Raises `OSError`, among them `FileExistsError` if the target is a file or link, or a
    folder that is not empty.
    """
    parent, name = walk.parent(source)
    is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    if is_folder:
        walk.folder(source)  # a folder without rights can't be moved
    parent, name = walk.parent(source)
    parent = os.dup(parent)
    try:
        below, new = walk.parent(target)
        if is_folder:
            _refuse_existing(below, new)
            os.rename(name, new, src_dir_fd=parent, dst_dir_fd=below)
        else:
            _rename_file(parent, name, below, new)
    finally:
        os.close(parent)
    walk.moved(source, target)


def _rename_file(parent: int, name: bytes, below: int, new: bytes) -> None:
    """Give the file its new name before the old one goes: `link` never replaces a file."""
    try:
        os.link(name, new, src_dir_fd=parent, dst_dir_fd=below, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, or a file that this user must not link to
        _refuse_existing(below, new)
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=below)
    else:
        os.unlink(name, dir_fd=parent)


def _refuse_existing(folder: int, name: bytes) -> None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
