"""Puts new content into a file so that at every instant it holds the old or the new, whatever fails.

Everything is done from the file's folder, opened step by step without following a link: the path was resolved
before it was judged, so a link on the way is one that was put there meanwhile.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bradawl.core.errors import ToolError
from bradawl.workspace.temporary_names import temporary_name

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ODD_PARTS = frozenset({"", ".", ".."})
_WAIT_FOR_LOCK_S = 2.0
_LOCK_PAUSE_S = 0.005


@contextlib.contextmanager
def folder_of(path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder of a resolved path, open, and the name in it; `make` makes the folders that are missing.

    Raises `OSError`; `ToolError` for a link on the way and for a path that is not resolved.
    """
    *folders, name = _parts(path)
    descriptor = os.open("/", _FOLDER_FLAGS)
    try:
        for folder in folders:
            below = _step_into(descriptor, folder, path, make=make)
            os.close(descriptor)
            descriptor = below
        yield descriptor, name
    finally:
        os.close(descriptor)


def _parts(path: str) -> list[str]:
    if path == "/":
        return ["."]
    root, *parts = path.split("/")
    if root or not _ODD_PARTS.isdisjoint(parts):
        raise ToolError(f"{path} is no resolved path; give an absolute one without . and ..")
    return parts


def _step_into(above: int, folder: str, path: str, *, make: bool = False) -> int:
    try:
        return os.open(folder, _FOLDER_FLAGS, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:
        if is_link(above, folder):
            raise ToolError(f"{path}: changed since it was checked: {folder} became a link; try again") from None
        raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, dir_fd=above)
    return _step_into(above, folder, path)


def is_link(folder: int, name: str) -> bool:
    """Whether a name in an open folder is a link, wherever it leads."""
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def open_folder(path: str) -> int:
    """A folder for `os.scandir`, by its resolved path; the caller closes it. Raises like `folder_of`."""
    with folder_of(path) as (folder, name):
        try:
            return os.open(name, _LIST_FLAGS, dir_fd=folder)
        except NotADirectoryError:
            if is_link(folder, name):
                raise link_error(path) from None
            raise


def open_file(folder: int, name: str, path: str) -> int:
    """Open for reading; never waits, never follows a link, never opens a device.

    Raises `OSError`; `ToolError` for what is no regular file.
    """
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    check_regular(path, status)  # to open a device or a pipe may set it off
    try:
        return os.open(name, READ_FLAGS, dir_fd=folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            check_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        raise error from None


def check_regular(path: str, status: os.stat_result) -> None:
    """Raises `ToolError` that says what it is instead."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISLNK(status.st_mode):
        raise link_error(path)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a folder, not a file; use glob to see what is in it")
    raise ToolError(f"{path} is not a regular file (a device, pipe or socket); use bash if you really need it")


def link_error(path: str) -> ToolError:
    """Of a path that was resolved, and yet ends in a link."""
    return ToolError(f"{path} is a link that leads nowhere, or has changed since it was checked; try again")


@contextlib.contextmanager
def locked(folder: int, name: str, path: str) -> Iterator[tuple[int, bool]]:
    """The file, open for reading and locked against everyone who writes it through this function; and whether it is.

    The lock is the system's, on the file itself: it holds between processes, and through every link to the file.
    Where the file system has none, or another program keeps one, the work goes on without.
    """
    end = time.monotonic() + _WAIT_FOR_LOCK_S
    while True:
        descriptor = open_file(folder, name, path)
        try:
            is_locked = _lock(descriptor, end)
            if _is_still(descriptor, folder, name):
                yield descriptor, is_locked
                return
        finally:
            os.close(descriptor)


def _lock(descriptor: int, end: float) -> bool:
    try:
        import fcntl
    except ImportError:  # another system than those with flock
        return False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_LOCK_PAUSE_S)
        except OSError:
            return False
        else:
            return True


def _is_still(descriptor: int, folder: int, name: str) -> bool:
    """False when another file has taken the name since it was opened."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def read_all(descriptor: int, most: int) -> bytes:
    """Up to so many bytes from the beginning."""
    size = os.fstat(descriptor).st_size
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(descriptor, min(most, max(size + 1, 65_536)))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


# ------------------------------------------------------------------ a new file


def create(path: str, data: bytes) -> None:
    """Make the file and the folders above it; what is there already stays. Raises `ToolError`."""
    try:
        _make(path, data)
    except FileExistsError:
        raise ToolError(f"{path} exists already: it was made meanwhile; read it first, then change it") from None
    except FileNotFoundError:
        raise ToolError(f"{path} can't be created: the system takes no new files there; use another place") from None
    except OSError as error:
        reason = error.strerror or error
        raise ToolError(f"{path} can't be created: {reason}; use another place or ask the user") from None


def _make(path: str, data: bytes) -> None:
    with _made_folder_of(path) as (folder, name), _temporary(folder, 0o666) as (temporary, descriptor):
        _write_all(descriptor, data)
        try:
            # Unlike a rename it never overwrites a file that came meanwhile.
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        _sync_folder(folder)


@contextlib.contextmanager
def _made_folder_of(path: str) -> Iterator[tuple[int, str]]:
    try:
        held = contextlib.ExitStack()
        found = held.enter_context(folder_of(path, make=True))
    except NotADirectoryError:
        raise ToolError(
            f"{path} can't be created: {_file_above(path)} is a file, not a folder; check the path"
        ) from None
    with held:
        yield found


def _file_above(path: str) -> str:
    """What stands where one of the folders of a path would have to be."""
    above = [folder for folder in Path(path).parents if not folder.is_dir()]
    return str(next((folder for folder in reversed(above) if os.path.lexists(folder)), Path(path).parent))


# ------------------------------------------------------------------ a file that is there


def put(folder: int, name: str, descriptor: int, data: bytes, status: os.stat_result) -> None:
    """Replace the content of an open, locked file, known as of `status`; returns when it is on disk.

    Raises `OSError`; `ToolError` when it has changed since.

    A new file takes its place, with owner, mode and extended attributes of the old one: a crash leaves the old or
    the new one. A file with several hard links is written in place, or the links would part: both contents are
    saved beside it first, and after a crash `recover` finishes the job. Where the folder takes no new file, or the
    owner can't be kept, it is written in place as well; without the copy, when the folder takes none, a crash of the
    machine may leave it half written (an error does not: then the old content is put back).
    """
    if status.st_nlink > 1:
        _write_in_place(folder, name, descriptor, data)
        return
    try:
        _swap(folder, name, descriptor, data, status)
    except PermissionError:
        _write_in_place(folder, name, descriptor, data)


def _swap(folder: int, name: str, descriptor: int, data: bytes, status: os.stat_result) -> None:
    with _temporary(folder, 0o600) as (temporary, new):
        _dress(new, descriptor, status)
        _write_all(new, data)
        _check_untouched(folder, name, descriptor, status)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    _sync_folder(folder)


def _check_untouched(folder: int, name: str, descriptor: int, before: os.stat_result) -> None:
    """A last look before the old content is gone: programs that know of no lock may have written meanwhile."""
    now = os.fstat(descriptor)
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or not _is_still(
        descriptor, folder, name
    ):
        raise ToolError(
            f"{name} has changed at this very moment; read it again and repeat the change on what it is now"
        )


@contextlib.contextmanager
def _temporary(folder: int, mode: int) -> Iterator[tuple[str, int]]:
    temporary = temporary_name(os.urandom(8).hex())
    descriptor = os.open(temporary, _NEW_FLAGS, mode, dir_fd=folder)
    try:
        yield temporary, descriptor
    finally:
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def _dress(new: int, old: int, status: os.stat_result) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    own = os.fstat(new)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(new, status.st_uid, status.st_gid)
    os.fchmod(new, status.st_mode & 0o7777)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(old):
                with contextlib.suppress(OSError):  # security labels are the system's to set
                    os.setxattr(new, name, os.getxattr(old, name))


def _write_all(descriptor: int, data: bytes) -> None:
    _write(descriptor, data)
    os.fsync(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: int) -> None:
    with contextlib.suppress(OSError):  # some file systems can't, and the content is safe already
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ------------------------------------------------------------------ in place


def _saved_name(descriptor: int) -> str:
    """Of the copy that is kept while a file is written in place; the same through each of its links."""
    status = os.fstat(descriptor)
    return temporary_name(f"undo-{status.st_dev:x}-{status.st_ino:x}")


def _write_in_place(folder: int, name: str, descriptor: int, data: bytes) -> None:
    """What was in it is put back if the new content does not fit."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    before = read_all(descriptor, os.fstat(descriptor).st_size + 1)
    saved = _saved_name(descriptor)
    target = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    try:
        with contextlib.suppress(PermissionError):
            _save(folder, saved, before, data)
        _or_undo(lambda: _overwrite(target, data), lambda: _overwrite(target, before))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(saved, dir_fd=folder)
    finally:
        os.close(target)


def _save(folder: int, saved: str, before: bytes, after: bytes) -> None:
    """Both contents, complete as soon as they bear the name."""
    digest = hashlib.sha256(before).hexdigest()
    with _temporary(folder, 0o600) as (temporary, descriptor):
        _write_all(descriptor, f"{len(before)} {digest}\n".encode() + before + after)
        os.replace(temporary, saved, src_dir_fd=folder, dst_dir_fd=folder)
    _sync_folder(folder)


def _or_undo(action: Callable[[], None], undo: Callable[[], None]) -> None:
    try:
        action()
    except OSError:
        with contextlib.suppress(OSError):
            undo()
        raise


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def recover(folder: int, name: str, descriptor: int) -> bool:
    """Finish what a crash left half done in a file with hard links; true if there was something to look at.

    The file must be locked. Only a mixture of the two contents that were saved is touched: what anybody has written
    since stays.
    """
    saved = _saved_name(descriptor)
    try:
        copy = os.open(saved, READ_FLAGS, dir_fd=folder)
    except OSError:
        return False
    try:
        head, _, both = read_all(copy, os.fstat(copy).st_size + 1).partition(b"\n")
    finally:
        os.close(copy)
    length, _, digest = head.decode("ascii", "replace").partition(" ")
    before = both[: int(length)] if length.isdecimal() else b""
    after = both[len(before) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    now = read_all(descriptor, max(len(before), len(after)) + 1)
    is_sound = hashlib.sha256(before).hexdigest() == digest
    if is_sound and now not in (before, after) and _is_mixture(now, before, after):
        target = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
        try:
            _overwrite(target, before)
        finally:
            os.close(target)
    os.unlink(saved, dir_fd=folder)
    return True


def has_saved(folder: int, descriptor: int) -> bool:
    """True when a file with hard links was being written in place, now or when something crashed."""
    if os.fstat(descriptor).st_nlink < 2:
        return False
    try:
        os.stat(_saved_name(descriptor), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _is_mixture(now: bytes, before: bytes, after: bytes) -> bool:
    """True when each byte is from one of the two contents, or one that the disk had not yet got."""
    longest = max(len(before), len(after))
    if not min(len(before), len(after)) <= len(now) <= longest:
        return False
    ours, theirs = before.ljust(longest, b"\0"), after.ljust(longest, b"\0")
    return all(byte in {one, other, 0} for byte, one, other in zip(now, ours, theirs, strict=False))
