"""Replaces the content of a file so that it holds the old or the new content at every instant, whatever fails."""

import contextlib
import os
from collections.abc import Iterator

from bradawl.core.errors import ToolError
from bradawl.workspace.in_place_write import overwrite_in_place
from bradawl.workspace.new_files import sync_folder, temporary_file, write_to_disk
from bradawl.workspace.safe_open import folder_of, is_same_file
from bradawl.workspace.write_checks import below_a_file, not_created


def create_file(path: str, data: bytes) -> None:
    """Create a file and the folders above it. An existing file stays as it is. Raises `ToolError`."""
    try:
        _make(path, data)
    except FileExistsError:
        raise ToolError(f"{path} exists already: it was made meanwhile; read it first, then change it") from None
    except FileNotFoundError:
        raise ToolError(f"{path} can't be created: the system takes no new files there; use another place") from None
    except OSError as error:
        raise not_created(path, error.strerror or error) from None


def _make(path: str, data: bytes) -> None:
    with _made_folder_of(path) as (folder, name), temporary_file(folder, 0o666) as (temporary, descriptor):
        write_to_disk(descriptor, data)
        try:
            # Unlike a rename, a link never overwrites a file that was created meanwhile.
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        sync_folder(folder)


@contextlib.contextmanager
def _made_folder_of(path: str) -> Iterator[tuple[int, str]]:
    try:
        held = contextlib.ExitStack()
        found = held.enter_context(folder_of(path, make=True))
    except NotADirectoryError:
        raise below_a_file(path) from None
    with held:
        yield found


# ------------------------------------------------------------------ a file that is there


def replace_content(folder: int, name: str, descriptor: int, data: bytes, status: os.stat_result) -> None:
    """Replace the content of an open, locked file, known as of `status`. Returns when it is on disk.

    Raises `OSError`; `ToolError` if the file has changed since.

    A new file takes the place of the old one, with its owner, mode and extended attributes: after a crash the file is
    the old or the new one. A file with several hard links is overwritten in place, because replacing it would separate
    the links; `undo_interrupted_write` recovers from a crash. If the folder takes no new file, or the owner can't be
    kept, the file is overwritten in place, too.
    """
    if status.st_nlink > 1:
        overwrite_in_place(folder, name, descriptor, data)
        return
    try:
        _swap_in(folder, name, descriptor, data, status)
    except PermissionError:
        overwrite_in_place(folder, name, descriptor, data)


def _swap_in(folder: int, name: str, descriptor: int, data: bytes, status: os.stat_result) -> None:
    with temporary_file(folder, 0o600) as (temporary, new):
        _copy_attributes(new, descriptor, status)
        write_to_disk(new, data)
        _check_unchanged(folder, name, descriptor, status)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    sync_folder(folder)


def _check_unchanged(folder: int, name: str, descriptor: int, before: os.stat_result) -> None:
    """Last check before the old content is lost: programs that ignore the lock may have written meanwhile."""
    now = os.fstat(descriptor)
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or not is_same_file(
        descriptor, folder, name
    ):
        raise ToolError(
            f"{name} has changed at this very moment; read it again and repeat the change on what it is now"
        )


def _copy_attributes(new: int, old: int, status: os.stat_result) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    own = os.fstat(new)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(new, status.st_uid, status.st_gid)
    os.fchmod(new, status.st_mode & 0o7777)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(old):
                with contextlib.suppress(OSError):  # only the system sets security labels
                    os.setxattr(new, name, os.getxattr(old, name))
