"""Overwrites a file in place, with a backup from which an interrupted write is undone.

Needed for files with several hard links: replacing the file would separate the links.
"""

import contextlib
import os

from bradawl.safety.whole_writes import write_all
from bradawl.workspace.new_files import sync_folder, temporary_file, write_to_disk
from bradawl.workspace.safe_open import READ_FLAGS, read_all
from bradawl.workspace.temporary_names import temporary_name


def overwrite_in_place(folder: int, name: str, descriptor: int, data: bytes) -> None:
    """Overwrite an open, locked file. Raises `OSError`; the old content is back then.

    A backup of both contents is beside the file while it is written. A folder that takes no new file gets none: then a
    crash may leave a mixture of both contents.
    """
    os.lseek(descriptor, 0, os.SEEK_SET)
    before = read_all(descriptor, os.fstat(descriptor).st_size + 1)
    backup = _backup_name(descriptor)
    target = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    try:
        with contextlib.suppress(PermissionError):
            _save(folder, backup, before, data)
        try:
            _overwrite(target, data)
        except OSError:
            with contextlib.suppress(OSError):
                _overwrite(target, before)
            raise
        with contextlib.suppress(FileNotFoundError):
            os.unlink(backup, dir_fd=folder)
    finally:
        os.close(target)


def is_being_overwritten(folder: int, descriptor: int) -> bool:
    """Whether a backup of the file exists: a write is in progress, or a crash has interrupted one."""
    if os.fstat(descriptor).st_nlink < 2:
        return False
    try:
        os.stat(_backup_name(descriptor), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def undo_interrupted_write(folder: int, name: str, descriptor: int) -> None:
    """Restore the old content after a crash; without a backup nothing happens. The file must be locked.

    Only a beginning of the new content with the rest of the old one is overwritten: what another program has written
    since stays.
    """
    backup = _backup_name(descriptor)
    try:
        saved = os.open(backup, READ_FLAGS, dir_fd=folder)
    except OSError:
        return
    try:
        length, _, both = read_all(saved, os.fstat(saved).st_size + 1).partition(b"\n")
    finally:
        os.close(saved)
    size = int(length[:18]) if length.isdigit() else len(both)
    before, after = both[:size], both[size:]
    os.lseek(descriptor, 0, os.SEEK_SET)
    now = read_all(descriptor, max(len(before), len(after)) + 1)
    differing = (place for place, pair in enumerate(zip(now, after, strict=False)) if pair[0] != pair[1])
    written = next(differing, min(len(now), len(after)))
    if now not in (before, after) and now[written:] == before[written:]:
        target = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
        try:
            _overwrite(target, before)
        finally:
            os.close(target)
    os.unlink(backup, dir_fd=folder)


def _backup_name(descriptor: int) -> str:
    """The same for each hard link of a file in the folder."""
    status = os.fstat(descriptor)
    return temporary_name(f"undo-{status.st_dev:x}-{status.st_ino:x}")


def _save(folder: int, backup: str, before: bytes, after: bytes) -> None:
    """The backup is complete as soon as it has its name."""
    with temporary_file(folder, 0o600) as (temporary, descriptor):
        write_to_disk(descriptor, b"%d\n" % len(before) + before + after)
        os.replace(temporary, backup, src_dir_fd=folder, dst_dir_fd=folder)
    sync_folder(folder)


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)
