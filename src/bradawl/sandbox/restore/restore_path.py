"""Restores single files, folders and links, safely against programs that tamper with the path.

No link is followed on the way down. Nothing is overwritten: a file or folder in the way is moved aside. Closed folders
on the way are opened and stay open.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bradawl.safety.whole_writes import write_all
from bradawl.sandbox.filesystem.closed_folders import open_with_access
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.restore.git_objects import copy
from bradawl.sandbox.restore.set_aside import MOST_COPIED_BYTES, SetAsideFolder
from bradawl.sandbox.restore.snapshot import Entry

_COPIED_BYTES = 16_777_216
_KEPT_BYTES = MOST_COPIED_BYTES
_KEPT_S = 30 * 86_400
_NAME_BYTES = 4_096
_OBJECT_MODE = 0o444
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of file systems without hard links."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def forget_old(kept: str) -> None:
    """Remove the folders in `kept` that are older than 30 days, and the largest ones if they are too large together.
    The last one stays. Blocks while it reads the folder.
    """
    folders: list[tuple[float, str]] = []
    with contextlib.suppress(OSError), os.scandir(kept) as entries:
        folders += [
            (e.stat(follow_symlinks=False).st_mtime, e.path) for e in entries if e.is_dir(follow_symlinks=False)
        ]
    left, oldest, last = _KEPT_BYTES, time.time() - _KEPT_S, max(folders, default=None)
    sizes = ((_bytes_in(each[1], _KEPT_BYTES), each) for each in folders)
    for size, each in sorted(sizes):  # the small ones first: a large one must not drive out what the user was told of
        left -= size if each[0] >= oldest else 0
        if each[0] < oldest or (left < 0 and each != last):
            remove_folder(each[1])


def _bytes_in(folder: str, limit: int) -> int:
    """Bytes on disk, counted up to `limit`; each name counts as well."""
    total = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if total > limit:
                return total
            with contextlib.suppress(OSError):
                total += _NAME_BYTES + 512 * os.lstat(f"{place}/{name}").st_blocks
    return total


def put_back(path: str, place: str, entry: Entry | None, aside: SetAsideFolder) -> None:
    """Restore `path` to an earlier state; None means that it did not exist. Raises `OSError`.

    Nothing above `place` is created or moved.
    """
    if entry is not None and entry.kind == "other":
        raise OSError(errno.EINVAL, "it is neither file, folder nor link")
    if entry is not None and entry.kind == "file" and entry.content is None:
        raise OSError(errno.EFBIG, "it is too large for a copy")
    folder, name = os.path.split(path)
    with _entered(folder, place, aside) as parent:
        is_folder = _kind(name, parent) == stat.S_IFDIR
        if entry is not None and entry.kind in ("folder", "parent") and is_folder:
            return
        if entry is not None and entry.kind == "file":
            _replace(name, parent, path, place, aside, partial(_make_file, parent=parent, entry=entry))
            return
        aside.move_in(name, parent, path, place)
        if entry is not None:
            _make(name, parent, entry)


def is_without_copy(entry: Entry) -> bool:
    """Whether `put_back` can't restore an entry, because it has no content to restore."""
    return entry.kind == "other" or (entry.kind == "file" and entry.content is None)


def put_copy_back(path: str, place: str, kept: str, aside: SetAsideFolder) -> None:
    """Restore `path` from a copy, without sharing data with the copy if possible. Raises `OSError`.

    Nothing above `place` is created or moved.
    """
    folder, name = os.path.split(path)
    with _entered(folder, place, aside) as parent:
        _replace(name, parent, path, place, aside, partial(_make_copy, parent=parent, kept=kept))


def _replace(name: str, parent: int, path: str, place: str, aside: SetAsideFolder, make: Callable[[str], None]) -> None:
    """Put a new file in the place of whatever is there. It is complete when it gets its name, also if bradawl is killed
    or the disk is full. If it can't be made, what may not stay is moved away all the same.
    """
    temporary = f".bradawl-{os.urandom(8).hex()}.tmp"
    try:
        try:
            make(temporary)
        finally:
            aside.move_in(name, parent, path, place)
        try:
            os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise  # such as a new file, by another program
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=parent)


def _make_copy(name: str, parent: int, kept: str) -> None:
    large = os.lstat(kept).st_size > _COPIED_BYTES
    failure: OSError | None = None
    try:
        if copy(kept, name, only_shared=large, parent=parent):
            return
    except OSError as error:  # such as a full disk, on which a hard link needs no place
        failure = error
    try:
        Path(kept).chmod(_OBJECT_MODE)
        os.link(kept, name, dst_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise failure or error from None


def _make(name: str, parent: int, entry: Entry) -> None:
    if entry.kind in ("folder", "parent"):
        os.mkdir(name, entry.mode, dir_fd=parent)
    else:
        os.symlink(entry.content or b"", os.fsencode(name), dir_fd=parent)


def _make_file(name: str, parent: int, entry: Entry) -> None:
    made = os.open(name, _NEW_FILE, 0o600, dir_fd=parent)
    try:
        write_all(made, entry.content or b"")
        with contextlib.suppress(PermissionError):  # only root may change the owner
            os.fchown(made, entry.user, entry.group)
        os.fchmod(made, entry.mode)
    finally:
        os.close(made)


@contextlib.contextmanager
def _entered(path: str, place: str, aside: SetAsideFolder) -> Iterator[int]:
    """Descriptor of a folder; missing or replaced folders on the way from `place` are created."""
    held = open_with_access(place)
    try:
        reached = place
        for name in path[len(place) :].split("/"):
            if name:
                reached = f"{reached.rstrip('/')}/{name}"
                inner = _enter(name, held, reached, place, aside)
                os.close(held)
                held = inner
        yield held
    finally:
        os.close(held)


def _enter(name: str, parent: int, path: str, place: str, aside: SetAsideFolder) -> int:
    if _kind(name, parent) != stat.S_IFDIR:
        aside.move_in(name, parent, path, place)
        os.mkdir(name, 0o755, dir_fd=parent)
    return open_with_access(name, parent)


def _kind(name: str, parent: int) -> int | None:
    try:
        return stat.S_IFMT(os.lstat(name, dir_fd=parent).st_mode)
    except FileNotFoundError:
        return None
