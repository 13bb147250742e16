"""Makes, replaces and removes single files and links in open folders, atomically and without following links."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final

from bradawl.checkpoints.file_states import open_readable
from bradawl.checkpoints.opened_folders import change_mode
from bradawl.checkpoints.owners import give_owner
from bradawl.checkpoints.record import FileState, Owner
from bradawl.checkpoints.restore_intent import new_temporary_name
from bradawl.checkpoints.store import ContentStore
from bradawl.sandbox.filesystem.time_bits import NS_BITS

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_AT: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC


Check = Callable[[], bool]
"""Called before a name is taken: whether a file has it now. Raises `OSError` if that may not be replaced."""


def place_file(
    parent: int,
    name: bytes,
    wanted: FileState,
    store: ContentStore,
    temporary: bytes,
    *,
    check: Check,
    lock: bool = False,
) -> bool:
    """Make or replace a file; at every instant there is the old or the new one. Returns whether it has its owner: the
    recorded one, else that of the file that it replaces.

    The new file is written under the name `temporary`, or another one if that exists. With `lock` it is written to the
    disk, and gets the name by which git locks the file. Raises `OSError`, `StoreError`, and `FileExistsError` if git
    holds the lock, or another program has made the file meanwhile.
    """
    with _new_file(parent, temporary) as (file, made):
        store.copy_to(wanted.content, file)
        _copy_owner(parent, name, file)
        has_owner = wanted.owner is None or give_owner(parent, made, wanted.owner)
        os.fchmod(file, wanted.mode)
        if lock:
            os.fsync(file)
            _rename_with_lock(parent, made, name, check)
        else:
            _take_name(parent, made, name, check)
    return has_owner


def _take_name(parent: int, temporary: bytes, name: bytes, check: Check) -> None:
    """Give a new file or link its name; a file that was made meanwhile under this name is not replaced."""
    if not check():
        try:
            os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError:
            raise _replaced() from None
        except OSError:  # a file system without hard links
            check()
        else:
            os.unlink(temporary, dir_fd=parent)
            return
    os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)


def _rename_with_lock(parent: int, temporary: bytes, name: bytes, check: Check) -> None:
    """Rename a file over one of git's while git can't lock that. The temporary name may be left.

    The lock is a second name of the temporary file, so that the lock of a killed restore can be told from git's.
    """
    lock = name + b".lock"
    try:
        os.link(temporary, lock, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(lock, _NEW, 0o600, dir_fd=parent))
        try:
            check()
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        finally:
            os.unlink(lock, dir_fd=parent)
        return
    try:
        check()
        os.rename(lock, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        os.unlink(lock, dir_fd=parent)
        raise


@contextlib.contextmanager
def _new_file(parent: int, temporary: bytes) -> Iterator[tuple[int, bytes]]:
    """A new file and its name, which is removed at the end unless it was renamed."""
    try:
        file, name = os.open(temporary, _NEW, 0o600, dir_fd=parent), temporary
    except FileExistsError:
        name = new_temporary_name()
        file = os.open(name, _NEW, 0o600, dir_fd=parent)
    inode = os.fstat(file).st_ino
    try:
        yield file, name
    finally:
        os.close(file)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(name, dir_fd=parent, follow_symlinks=False).st_ino == inode:
                os.unlink(name, dir_fd=parent)


def _copy_owner(parent: int, name: bytes, file: int) -> None:
    """Give a new file owner and extended attributes of the file that it replaces, or the owner of its folder."""
    with contextlib.suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISREG(old.st_mode):
            _own(file, old)
            _copy_attributes(parent, name, file)
            return
    if os.geteuid() == 0:
        _own(file, os.fstat(parent))


def _own(file: int, like: os.stat_result) -> None:
    own = os.fstat(file)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(PermissionError):  # only root may change the owner
            os.fchown(file, like.st_uid, like.st_gid)


def _copy_attributes(parent: int, name: bytes, file: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        old = open_readable(parent, name)
        try:
            for attribute in os.listxattr(old):
                with contextlib.suppress(OSError):  # only the system sets security labels
                    os.setxattr(file, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)


def place_link(
    parent: int, name: bytes, target: bytes, temporary: bytes, check: Check, owner: Owner | None = None
) -> bool:
    """Make a link, or replace a file or link by it; first under the name `temporary`. Raises `OSError`.

    Returns whether it has the recorded owner.
    """
    try:
        os.symlink(target, temporary, dir_fd=parent)
    except FileExistsError:
        temporary = new_temporary_name()
        os.symlink(target, temporary, dir_fd=parent)
    try:
        has_owner = give_owner(parent, temporary, owner)
        _take_name(parent, temporary, name, check)
    except BaseException:
        os.unlink(temporary, dir_fd=parent)
        raise
    return has_owner


def place_name(source: tuple[int, bytes], target: tuple[int, bytes], wanted: FileState, temporary: bytes) -> None:
    """Give the file `source` a further name, in place of what has it; both are an open folder and a name in it.

    Raises `OSError`, also if the source is not the wanted file any more.
    """
    found = os.stat(source[1], dir_fd=source[0], follow_symlinks=False)
    identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns & NS_BITS)
    if wanted.identity is None or identity != (*wanted.identity[:2], wanted.size, wanted.identity[3]):
        raise _replaced()
    os.link(source[1], temporary, src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
    try:
        os.rename(temporary, target[1], src_dir_fd=target[0], dst_dir_fd=target[0])
    except BaseException:
        os.unlink(temporary, dir_fd=target[0])
        raise


def overwrite_file(parent: int, name: bytes, wanted: FileState, store: ContentStore, inode: tuple[int, int]) -> None:
    """Write a content into a file with other names, which keeps its inode. A crash may leave a mixture.

    Raises `OSError`, also if the name leads to another file by now, and `StoreError`.
    """
    data = store.read(wanted.content)
    place = _open_inode(parent, name, inode)
    try:
        change_mode(place, wanted.mode | stat.S_IWUSR)
        file = os.open(name, _WRITE, dir_fd=parent)
        try:
            if _inode(file) != inode:
                raise _replaced()
            rest, at = memoryview(data), 0
            while rest:
                at += (written := os.pwrite(file, rest, at))
                rest = rest[written:]
            os.ftruncate(file, len(data))
        finally:
            os.close(file)
            change_mode(place, wanted.mode)
    finally:
        os.close(place)


def set_file_mode(parent: int, name: bytes, mode: int, inode: tuple[int, int]) -> None:
    """Change the mode of a file. Raises `OSError`, also if the name leads to another file by now."""
    place = _open_inode(parent, name, inode)
    try:
        change_mode(place, mode)
    finally:
        os.close(place)


def _open_inode(parent: int, name: bytes, inode: tuple[int, int]) -> int:
    place = os.open(name, _AT, dir_fd=parent)
    if _inode(place) != inode:
        os.close(place)
        raise _replaced()
    return place


def _inode(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return (found.st_dev, found.st_ino)


def _replaced() -> OSError:
    return OSError(errno.ESTALE, "it was replaced at this very moment")
