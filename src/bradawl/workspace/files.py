"""The files of the workspace on the local disk."""

import asyncio
import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from bradawl.core.errors import ToolError
from bradawl.core.ports import FileContent, FileEntry
from bradawl.workspace.walk import Walk, is_temporary, temporary_name

_LONGEST_PATH = 4096
_LONGEST_NAME = 255
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_IGNORE_FILE_LIMIT = 1_000_000
_NAMES_LOOKED_AT = 2_000
_NAMES_SUGGESTED = 5
_LEAST_SIMILARITY = 0.75
T = TypeVar("T")


class LocalFiles:
    """`Files` on the local disk. One object may serve many sessions, loops and threads."""

    def __init__(self, home: str | None = None) -> None:
        """`home` is what `~` stands for; without it `~` is refused."""
        self._home = home
        self._locks = tuple(threading.Lock() for _ in range(64))

    def resolve(self, path: str, cwd: str) -> str:
        """Absolute path with `~` and symlinks resolved; the file need not exist. Raises `ToolError`."""
        _check_path(path)
        if path == "~" or path.startswith("~/"):
            if not self._home:
                raise ToolError(f"{path}: there is no home folder here; give an absolute path")
            path = self._home + path[1:]
        real = os.path.realpath(Path(cwd, path))
        if not real.isprintable() and real != real.encode("utf-8", "replace").decode("utf-8"):
            raise ToolError(f"{real!r}: the name is not valid UTF-8; use bash for such files")
        return real

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """A whole regular file. Raises `ToolError`: missing, denied, not a regular file, larger than the limit."""
        _check_path(path)
        return await _in_thread(lambda: _read(path, limit_bytes))

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Put `data` in place of the file, atomically, creating folders; gives back its sha256.

        With `expected_sha256` the file must still have that content; None means that it must not exist. Mode, owner
        and symlinks are kept. A file with several hard links, or one whose folder or owner doesn't allow a new file
        in its place, is written in place instead. When cancelled it finishes first, so that nobody is left in doubt
        for longer than one write takes. Raises `ToolError`.
        """
        _check_path(path)
        return await _in_thread(lambda: self._replace(path, data, expected_sha256))

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Regular files below `root`, ignored ones left out, and whether the limit cut the walk.

        Nearest folders first. Of a root that is a regular file, that file. Raises `ToolError`.
        """
        _check_path(root)
        return await _in_thread(lambda: _list(root, limit))

    def _replace(self, path: str, data: bytes, expected: str | None) -> str:
        real = os.path.realpath(path)
        with self._locks[hash(real) % len(self._locks)], _told_as_tool_error(real, "write"):
            status = _status(real)
            _check_expected(real, status, expected)
            _put(real, data, status)
        return hashlib.sha256(data).hexdigest()


async def _in_thread(work: Callable[[], T]) -> T:
    """Run blocking work; a cancelled caller gets its cancellation only once the work has ended."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled = False
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            cancelled = True
        except (ToolError, OSError):
            break
    if cancelled:
        future.exception()
        raise asyncio.CancelledError
    return future.result()


def _check_path(path: str) -> None:
    if not path:
        raise ToolError("the path is empty; give a file or a folder")
    if "\0" in path:
        raise ToolError(f"{path!r}: a path can't hold a NUL character")
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError(f"{path!r}: this can't be the name of a file here") from None
    if len(encoded) > _LONGEST_PATH or max(map(len, encoded.split(b"/"))) > _LONGEST_NAME:
        raise ToolError(f"{path[:60]}...: the path is too long ({len(encoded)} bytes); give a shorter one")


@contextlib.contextmanager
def _told_as_tool_error(path: str, verb: str) -> Iterator[None]:
    """What the system refused, in words that say what to do next."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(_missing(path)) from None
    except NotADirectoryError:
        raise ToolError(f"{path}: a part of this path is a file, not a folder; check the path") from None
    except IsADirectoryError:
        raise ToolError(f"{path} is a folder, not a file") from None
    except PermissionError as error:
        raise ToolError(
            f"{path}: no permission to {verb} it ({error.strerror}); use another file or ask the user"
        ) from None
    except OSError as error:
        raise ToolError(f"{path}: can't {verb} it: {error.strerror or error}") from None


def _missing(path: str) -> str:
    folder = Path(path).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    if folder != Path(path).parent:
        return f"{path} does not exist, nor does its folder; the nearest that does is {folder}{_names_in(folder, '')}"
    return f"{path} does not exist{_names_in(folder, Path(path).name)}"


def _names_in(folder: Path, wanted: str) -> str:
    """The names in a folder, the ones like `wanted` first, as the end of a sentence."""
    try:
        with os.scandir(folder) as found:
            names = [
                entry.name.encode("utf-8", "backslashreplace").decode()
                for entry, _ in zip(found, range(_NAMES_LOOKED_AT), strict=False)
                if not is_temporary(entry.name)
            ]
    except OSError:
        return ""
    if wanted and (similar := _similar(wanted, names)):
        return f"; did you mean {', '.join(similar)}?"
    if not names:
        return "; the folder is empty"
    rest = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"; in that folder: {', '.join(sorted(names)[:12])}{rest}"


def _similar(wanted: str, names: list[str]) -> list[str]:
    """Names that differ in a slip or in what follows the dot; only the stem counts, or all short names were alike."""
    import difflib

    by_stem: dict[str, list[str]] = {}
    for name in names:
        by_stem.setdefault(_stem(name), []).append(name)
    stems = difflib.get_close_matches(_stem(wanted), by_stem, n=_NAMES_SUGGESTED, cutoff=_LEAST_SIMILARITY)
    return [name for stem in stems for name in sorted(by_stem[stem])][:_NAMES_SUGGESTED]


def _stem(name: str) -> str:
    return Path(name).stem.lower()


def _read(path: str, limit_bytes: int) -> FileContent:
    with _told_as_tool_error(path, "read"):
        descriptor = os.open(path, _READ_FLAGS)
        try:
            data = _read_regular(path, descriptor, limit_bytes)
        finally:
            os.close(descriptor)
    return FileContent(os.path.realpath(path), data, hashlib.sha256(data).hexdigest())


def _read_regular(path: str, descriptor: int, limit_bytes: int) -> bytes:
    status = os.fstat(descriptor)
    _check_regular(path, status)
    pieces: list[bytes] = []
    room = limit_bytes + 1
    if status.st_size <= limit_bytes:
        while room > 0 and (piece := os.read(descriptor, min(room, max(status.st_size + 1, 65_536)))):
            pieces.append(piece)
            room -= len(piece)
    if status.st_size > limit_bytes or room <= 0:
        size = max(status.st_size, limit_bytes + 1)
        raise ToolError(
            f"{path} has {size:,} bytes, more than the {limit_bytes:,} that can be read at once; "
            "look at a part of it with bash (head, tail, sed -n '1,200p')"
        )
    return b"".join(pieces)


def _check_regular(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a folder, not a file; use glob to see what is in it")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{path} is not a regular file (a device, pipe or socket); use bash if you really need it")


def _status(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except FileNotFoundError:
        return None


def _check_expected(path: str, status: os.stat_result | None, expected: str | None) -> None:
    if status is not None:
        _check_regular(path, status)
    if status is None:
        if expected is not None:
            raise ToolError(f"{path} does not exist any more: it was deleted since it was read")
        return
    if expected is None:
        raise ToolError(f"{path} exists already; read it first, then change it")
    if not os.access(path, os.W_OK):
        raise ToolError(f"{path} is read-only; use another file or ask the user")
    if _read(path, status.st_size + 1).sha256 != expected:
        raise ToolError(f"{path} has changed since it was read; read it again and repeat the change on what it is now")


def _list(root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
    with _told_as_tool_error(root, "list"):
        status = Path(root).stat()
        if stat.S_ISREG(status.st_mode):
            return (FileEntry(root, status.st_mtime_ns, status.st_size),), False
        os.scandir(root).close()
    if limit == 0:  # only whether there is such a folder: no walk
        return (), True
    found: list[FileEntry] = []
    for entry in Walk(root, _small_text).files():
        if len(found) >= limit:
            return tuple(found), True
        found.append(entry)
    return tuple(found), False


def _small_text(path: str) -> str:
    try:
        return _read(path, _IGNORE_FILE_LIMIT).data.decode("utf-8", "surrogateescape")
    except ToolError:
        return ""


def _put(path: str, data: bytes, status: os.stat_result | None) -> None:
    """Write a file whose state was `status` (None: it does not exist). Blocks until it is on disk.

    Whatever happens, no temporary file stays behind. Raises `OSError`.
    """
    if status is None:
        _create(path, data)
    elif status.st_nlink > 1:
        _write_in_place(path, data)
    else:
        try:
            _swap(path, data, status)
        except PermissionError:
            _write_in_place(path, data)  # the folder takes no new file, or the owner can't be kept


def _create(path: str, data: bytes) -> None:
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
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with _temporary(path, 0o666) as (temporary, descriptor):
        _write_all(descriptor, data)
        try:
            os.link(temporary, path)  # unlike a rename it never overwrites a file that came meanwhile
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            temporary.rename(path)
    _sync_folder(path)


def _swap(path: str, data: bytes, status: os.stat_result) -> None:
    with _temporary(path, 0o600) as (temporary, descriptor):
        _dress(descriptor, path, status)
        _write_all(descriptor, data)
        temporary.replace(path)
    _sync_folder(path)


@contextlib.contextmanager
def _temporary(path: str, mode: int) -> Iterator[tuple[Path, int]]:
    temporary = Path(path).parent / temporary_name(os.urandom(8).hex())
    descriptor = os.open(temporary, _NEW_FLAGS, mode)
    try:
        yield temporary, descriptor
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _dress(descriptor: int, path: str, status: os.stat_result) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & 0o7777)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(path):
                _copy_attribute(descriptor, path, name)


def _copy_attribute(descriptor: int, path: str, name: str) -> None:
    with contextlib.suppress(OSError):  # security labels are the system's to set
        os.setxattr(descriptor, name, os.getxattr(path, name))


def _write_all(descriptor: int, data: bytes) -> None:
    _write(descriptor, data)
    os.fsync(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _write_in_place(path: str, data: bytes) -> None:
    """Overwrite the file itself; what was in it is put back if the new content does not fit."""
    before = Path(path).read_bytes()
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _or_undo(lambda: _overwrite(descriptor, data), lambda: _overwrite(descriptor, before))
    finally:
        os.close(descriptor)


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


def _sync_folder(path: str) -> None:
    with contextlib.suppress(OSError):  # some file systems can't, and the content is safe already
        descriptor = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
