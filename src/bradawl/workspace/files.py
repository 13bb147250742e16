"""Reads, replaces and lists files on the local disk (the port `Files`)."""

import asyncio
import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from posixpath import join
from typing import TypeVar

from bradawl.core.errors import ToolError
from bradawl.core.workspace import FileContent, FileEntry
from bradawl.safety.name_lists import first_of
from bradawl.workspace.atomic_write import create_file, replace_content
from bradawl.workspace.in_place_write import is_being_overwritten, undo_interrupted_write
from bradawl.workspace.other_thread import begin_in_other_thread
from bradawl.workspace.safe_open import check_regular, folder_of, locked, open_file, open_folder, read_all
from bradawl.workspace.temporary_names import is_temporary
from bradawl.workspace.write_checks import check_writable, read_only

_LONGEST_PATH = 4096
_LONGEST_NAME = 255
_IGNORE_FILE_LIMIT = 1_000_000
_MOST_LINKS = 40
_NAMES_LOOKED_AT = 2_000
_NAMES_SUGGESTED = 5
_MOST_NAMED = 12
_LEAST_SIMILARITY = 0.75
T = TypeVar("T")


class LocalFiles:
    """`Files` on the local disk. Safe for several sessions, event loops and threads."""

    def __init__(
        self,
        home: str | None = None,
        real: Callable[[str], str] | None = None,
        about_missing: Callable[[str], str] | None = None,
        writing: Callable[[str], AbstractContextManager[None]] = contextlib.nullcontext,
        name_of: Callable[[str], str] = str,
    ) -> None:
        """`home` replaces `~`; without it `~` is refused.

        `real` translates a path that programs use to the path on the host, for a sandbox with its own `/tmp`.
        `about_missing` returns a remark on a resolved path that does not exist, such as one about the host's `/tmp`;
        empty for none. `writing` is entered around each write of a resolved path. `name_of` returns how programs call a
        resolved path.
        """
        self.name_of = name_of
        self._home = home
        self._real = real
        self._about_missing = about_missing
        self._writing = writing

    def resolve(self, path: str, cwd: str) -> str:
        """Absolute path with `~` and symlinks resolved; the file need not exist. Raises `ToolError`."""
        _check_path(path)
        if path == "~" or path.startswith("~/"):
            if not self._home:
                raise ToolError(f"{path}: there is no home folder here; give an absolute path")
            path = self._home + path[1:]
        elif path.startswith("~"):
            path = os.path.expanduser(path)  # noqa: PTH111 - pathlib raises where there is no such user
        try:
            real = self._place(join(cwd, path))
        except OSError as error:  # a link that may not be followed, such as another user's in /proc
            raise ToolError(f"{path}: its target can't be determined: {error.strerror}; use another path") from error
        if not real.isprintable() and real != real.encode("utf-8", "replace").decode("utf-8"):
            raise ToolError(f"{real!r}: the name is not valid UTF-8; use bash for such files")
        return real

    def _place(self, path: str) -> str:
        """Real path on the host."""
        if self._real is None:
            return os.path.realpath(path)
        for _ in range(_MOST_LINKS):  # links made by programs are resolved with their view of /tmp
            path = os.path.realpath(self._real(path))
            if self._real(path) == path:
                return path
        raise ToolError(f"{path}: too many symbolic links lead on from there")

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """Content of a regular file. Raises `ToolError`: missing, denied, not a regular file, larger than the limit.

        Here and in all other methods the path is a result of `resolve`: a link in it was put there since, and is
        refused.
        """
        _check_path(path)
        try:
            return await _in_thread(lambda: _read(path, limit_bytes))
        except ToolError as error:
            if self._about_missing is not None and (remark := self._about_missing(path)):
                raise ToolError(f"{path} does not exist: {remark}") from error
            raise

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Replace a file's content with `data` atomically, creating folders. Returns the sha256 of the new content.

        `expected_sha256` is that of the current content; None means that the file must not exist. Writers that use this
        method wait for each other, across processes and through every link, so that no update is lost. Changes by other
        programs are detected up to the last moment. Mode, owner, attributes and hard links are kept (see
        `replace_content`, also for crashes). A cancelled call finishes the write first. Raises `ToolError`.
        """
        _check_path(path)
        return await _in_thread(lambda: self._replace(path, data, expected_sha256))

    def _replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        with self._writing(path):
            return _replace(path, data, expected_sha256)

    async def check_writable(self, path: str) -> None:
        """Raises `ToolError` for a resolved path that `replace` can't write now, whatever the content."""
        _check_path(path)
        await _in_thread(lambda: check_writable(path))

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Regular files below `root` without ignored ones, nearest folders first, and whether `limit` cut the list.

        If `root` is a regular file, that file. Raises `ToolError`.
        """
        _check_path(root)
        stop = threading.Event()
        return await _in_thread(lambda: _list(root, limit, stop), stop.set)


async def _in_thread(work: Callable[[], T], on_cancel: Callable[[], None] = lambda: None) -> T:
    """Run blocking work in a thread if there is one. A cancelled caller gets its cancellation when the work has ended.

    `on_cancel` may make the work stop early.
    """
    future = begin_in_other_thread(work)
    cancelled = False
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            cancelled = True
            on_cancel()
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
def _translated_errors(path: str, verb: str) -> Iterator[None]:
    """Translate `OSError` to `ToolError` with advice."""
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
    while not os.path.isdir(folder) and folder != folder.parent:  # noqa: PTH112 - `is_dir` raises for a long path
        folder = folder.parent
    if folder != Path(path).parent:
        return f"{path} does not exist, nor does its folder; the nearest that does is {folder}{_names_in(folder, '')}"
    return f"{path} does not exist{_names_in(folder, Path(path).name)}"


def _names_in(folder: Path, wanted: str) -> str:
    """Names in a folder, similar ones to `wanted` first, as the end of a sentence."""
    if (descriptor := _folder(str(folder))) is None:
        return ""
    try:
        with os.scandir(descriptor) as found:
            names = [
                _on_one_line(entry.name.encode("utf-8", "backslashreplace").decode())
                for entry, _ in zip(found, range(_NAMES_LOOKED_AT), strict=False)
                if not is_temporary(entry.name)
            ]
    finally:
        os.close(descriptor)
    if wanted and (similar := _similar(wanted, names)):
        return f"; did you mean {', '.join(similar)}?"
    if not names:
        return "; the folder is empty"
    return f"; in that folder: {first_of(sorted(names), _MOST_NAMED)}"


def _on_one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)[1:-1]


def _similar(wanted: str, names: list[str]) -> list[str]:
    """Names with a similar stem. The suffix does not count: among short names it would make all similar."""
    import difflib

    by_stem: dict[str, list[str]] = {}
    for name in names:
        by_stem.setdefault(_stem(name), []).append(name)
    stems = difflib.get_close_matches(_stem(wanted), by_stem, n=_NAMES_SUGGESTED, cutoff=_LEAST_SIMILARITY)
    return [name for stem in stems for name in sorted(by_stem[stem])][:_NAMES_SUGGESTED]


def _stem(name: str) -> str:
    return Path(name).stem.lower()


def _read(path: str, limit_bytes: int) -> FileContent:
    with _translated_errors(path, "read"), folder_of(path) as (folder, name):
        descriptor = open_file(folder, name, path)
        try:
            _check_size(path, os.fstat(descriptor), limit_bytes)
            if is_being_overwritten(folder, descriptor):
                _undo_or_wait(folder, name, path)
            data = read_all(descriptor, limit_bytes + 1)
        finally:
            os.close(descriptor)
    if len(data) > limit_bytes:
        raise _too_large(path, len(data), limit_bytes)
    return FileContent(path, data, hashlib.sha256(data).hexdigest())


def _undo_or_wait(folder: int, name: str, path: str) -> None:
    """Wait for a write in place to finish, or undo it if a crash interrupted it."""
    with contextlib.suppress(OSError), locked(folder, name, path) as (descriptor, is_locked):
        if is_locked:
            undo_interrupted_write(folder, name, descriptor)


def _check_size(path: str, status: os.stat_result, limit_bytes: int) -> None:
    check_regular(path, status)
    if status.st_size > limit_bytes:
        raise _too_large(path, status.st_size, limit_bytes)


def _too_large(path: str, size: int, limit_bytes: int) -> ToolError:
    return ToolError(
        f"{path} has {size:,} bytes, more than the {limit_bytes:,} that can be read at once; "
        "look at a part of it with bash (head, tail, sed -n '1,200p')"
    )


def _replace(path: str, data: bytes, expected: str | None) -> str:
    with _translated_errors(path, "write"):
        if (status := _status(path)) is None:
            if expected is not None:
                raise ToolError(f"{path} does not exist any more: it was deleted since it was read")
            create_file(path, data)
        elif expected is None:
            check_regular(path, status)
            raise ToolError(f"{path} exists already; read it first, then change it")
        else:
            _replace_existing(path, data, expected)
    return hashlib.sha256(data).hexdigest()


def _status(path: str) -> os.stat_result | None:
    """Status of a path, links not followed; None if it does not exist. Raises `ToolError` for a link on the way."""
    try:
        with folder_of(path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace_existing(path: str, data: bytes, expected: str) -> None:
    with folder_of(path) as (folder, name), locked(folder, name, path) as (descriptor, is_locked):
        status = os.fstat(descriptor)
        check_regular(path, status)
        if not os.access(name, os.W_OK, dir_fd=folder):
            raise read_only(path)
        if status.st_nlink > 1 and is_locked:
            undo_interrupted_write(folder, name, descriptor)
            os.lseek(descriptor, 0, os.SEEK_SET)
            status = os.fstat(descriptor)
        if hashlib.sha256(read_all(descriptor, status.st_size + 1)).hexdigest() != expected:
            raise ToolError(
                f"{path} has changed since it was read; read it again and repeat the change on what it is now"
            )
        replace_content(folder, name, descriptor, data, status)


def _list(root: str, limit: int, stop: threading.Event) -> tuple[tuple[FileEntry, ...], bool]:
    with _translated_errors(root, "list"):
        with folder_of(root) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return (FileEntry(root, status.st_mtime_ns, status.st_size),), False
        os.close(open_folder(root))
    if limit == 0:  # only checks that the folder exists
        return (), True
    from bradawl.workspace.folder_walk import Walk  # most runs list nothing

    found: list[FileEntry] = []
    for entry in Walk(root, _small_text, _folder).files():
        if len(found) >= limit or stop.is_set():
            return tuple(found), True
        found.append(entry)
    return tuple(found), False


def _folder(path: str) -> int | None:
    try:
        return open_folder(path)
    except (OSError, ToolError):
        return None


def _small_text(path: str) -> str:
    try:
        return _read(path, _IGNORE_FILE_LIMIT).data.decode("utf-8", "surrogateescape")
    except ToolError:
        return ""
