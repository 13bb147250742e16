"""The machine's `/tmp` for sessions with one of their own: what the user's prompts name is shown and written there.

Commands see existing files and folders that a prompt names, read-only. What a session writes at a named path where
nothing exists is copied there when the turn ends. Nothing of others is replaced, and no link is followed.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from bradawl.core.effects import is_within
from bradawl.sandbox.named_paths import named_in_tmp
from bradawl.sandbox.path_translation import TEMPORARY
from bradawl.sandbox.scratch import COPIED, SessionScratch
from bradawl.sandbox.shown_in_tmp import NotShown, check_named

MOST_BYTES: Final = 100_000_000
"""Bytes of all files that are copied at the end of one turn."""
MOST_FILES: Final = 1_000
_DEEPEST: Final = 20
_PIECE: Final = 1_048_576
_OWN: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | _OWN


class MachineTmp:
    """What the prompts of the present session name below `/tmp`."""

    def __init__(self, scratch: SessionScratch, kept_apart: Iterable[str], is_private: Callable[[], bool]) -> None:
        """`kept_apart` are the folders with rules of their own: workspace, home, bradawl's.

        `is_private` returns whether the session has a `/tmp` of its own; it may block while sandboxes are probed.
        """
        self._scratch = scratch
        self._kept_apart = tuple(each for each in kept_apart if each)
        self._is_private = is_private
        self._session = ""
        self._shown: tuple[str, ...] = ()
        self._not_shown: dict[str, str] = {}
        self._wanted: tuple[str, ...] = ()
        self._copied: dict[str, list[int]] = {}
        """By path: device, inode, size and time of what was copied there, then inode, size and time of its source."""

    def shown(self) -> tuple[str, ...]:
        """Existing files and folders of the machine's `/tmp` that commands may read."""
        return self._shown

    def not_shown(self) -> Mapping[str, str]:
        """Existing paths of the machine's `/tmp` that prompts name, and why commands may not read them."""
        return self._not_shown

    def copies(self, path: str) -> bool:
        """Whether a path below `/tmp` is copied to the machine's at the end of the turn, because a prompt named it."""
        return any(is_within(path, each) and not self._is_shown(each) for each in self._wanted)

    def writable(self) -> tuple[str, ...]:
        """Paths that file tools may write because a prompt named them where nothing existed, and `/tmp` is the
        machine's there.
        """
        return tuple(path for path in self._wanted if not self._is_private() or self._is_shown(path))

    def begin_turn(self, texts: Iterable[str]) -> None:
        """Take the paths that prompts of the user name into account."""
        self._begin_session()
        for readings in (each for text in texts for each in named_in_tmp(text)):
            names = [path for path in readings if not any(_overlap(path, each) for each in self._apart())]
            if existing := next((path for path in names if self._may_be_shown(path)), ""):
                self._shown = tuple(dict.fromkeys((*self._shown, existing)))
            elif names and not any(os.path.lexists(path) for path in names if path not in self._copied):
                self._not_shown.pop(names[0], None)
                self._wanted = tuple(dict.fromkeys((*self._wanted, names[0])))

    def end_turn(self) -> tuple[str, ...]:
        """Copy what the session wrote at named paths to the machine's `/tmp`. Returns sentences for the user."""
        scratch = self._scratch.known
        if not self._wanted or not scratch or scratch != self._session or not self._is_private():
            return ()
        turn = _Copying(scratch, self._copied)
        for path in self._wanted:
            if not self._is_shown(path):
                turn.copy(path)
        if turn.done:
            self._save()
        done = (f"written to the machine's /tmp: {', '.join(turn.done)}",) if turn.done else ()
        return (*done, *turn.failed)

    # ------------------------------------------------------------------ the session

    def _begin_session(self) -> None:
        if self._session and self._session == self._scratch.known:
            return
        self._session, self._shown, self._wanted, self._copied = self._scratch.place(), (), (), {}
        self._not_shown = {}
        if self._scratch.is_kept:
            with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
                saved = json.loads(Path(self._session + COPIED).read_text("utf-8"))
                self._copied = {str(path): [int(each) for each in of] for path, of in saved.items()}

    def _save(self) -> None:
        if self._scratch.is_kept:
            with contextlib.suppress(OSError):
                opened = os.open(self._session + COPIED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _OWN, 0o600)
                with os.fdopen(opened, "w", encoding="utf-8") as file:
                    json.dump(self._copied, file)

    def _apart(self) -> tuple[str, ...]:
        return (*self._kept_apart, self._session)

    def _is_shown(self, path: str) -> bool:
        return any(is_within(path, each) for each in self._shown)

    def _may_be_shown(self, path: str) -> bool:
        """Whether it is an existing file or folder, not by way of a link, that the session did not write itself."""
        self._not_shown.pop(path, None)
        try:
            status = check_named(path, self._session)
        except NotShown as why:
            self._not_shown[path] = str(why)
            return False
        except OSError:
            return False
        return not (path in self._copied and self._copied[path][:4] == _identity(status))


def _overlap(one: str, other: str) -> bool:
    return is_within(one, other) or is_within(other, one)


def _identity(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


class _Refused(Exception):
    """A file was not copied; the text says why."""


def _reason(error: OSError) -> str:
    return "there is a link in the way" if error.errno in (errno.ELOOP, errno.ENOTDIR) else error.strerror or str(error)


class _Copying:
    """The copies at the end of one turn."""

    def __init__(self, scratch: str, copied: dict[str, list[int]]) -> None:
        self._scratch, self._copied = scratch, copied
        self._files, self._bytes = MOST_FILES, MOST_BYTES
        self.done: list[str] = []
        self.failed: list[str] = []

    def copy(self, path: str) -> None:
        """Copy a file or folder of the session to the same place in the machine's `/tmp`, if the session has one."""
        rest = path[len(TEMPORARY) + 1 :]
        folder, _, name = rest.rpartition("/")
        try:
            with contextlib.ExitStack() as opened:
                source = _descend(self._scratch, folder, opened, makes=False)
                if source >= 0 and _exists(name, source):
                    target = _descend(TEMPORARY, folder, opened, makes=True)
                    self._copy(name, source, target, path, _DEEPEST)
        except (OSError, _Refused) as error:
            self._fail(path, error)

    def _fail(self, path: str, error: OSError | _Refused) -> None:
        why = str(error) if isinstance(error, _Refused) else _reason(error)
        own = self._scratch + path[len(TEMPORARY) :]
        self.failed.append(f"{path} was not written to the machine's /tmp: {why}. The session's version is {own}")

    def _copy(self, name: str, source: int, target: int, path: str, levels: int) -> None:
        opened = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _OWN, dir_fd=source)
        try:
            status = os.fstat(opened)
            if stat.S_ISREG(status.st_mode):
                self._copy_file(opened, status, name, target, path)
            elif stat.S_ISDIR(status.st_mode) and levels:
                self._copy_folder(opened, name, target, path, levels)
            else:
                raise _Refused("it is not a regular file" if levels else "its folders are too deep")
        finally:
            os.close(opened)

    def _copy_folder(self, source: int, name: str, target: int, path: str, levels: int) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=target)
        inside = os.open(name, _FOLDER, dir_fd=target)
        try:
            for each in sorted(os.listdir(source)):
                try:
                    self._copy(each, source, inside, f"{path}/{each}", levels - 1)
                except (OSError, _Refused) as error:
                    self._fail(f"{path}/{each}", error)
                    if self._files <= 0 or self._bytes <= 0:
                        return
        finally:
            os.close(inside)

    def _copy_file(self, source: int, status: os.stat_result, name: str, target: int, path: str) -> None:
        known = self._copied.get(path, [])
        origin = _identity(status)[1:]
        there = _status(name, target)
        if known[4:] == origin:
            return  # nothing new; the user may have removed or changed it meanwhile
        if there is not None and known[:4] != _identity(there):
            if _has_content(name, target, source):
                return
            raise _Refused("there is a file of that name that this session did not make")
        self._files -= 1
        self._bytes -= status.st_size
        if self._files < 0 or self._bytes < 0:
            raise _Refused(f"more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes are not copied")
        mode = 0o777 if status.st_mode & stat.S_IXUSR else 0o666
        _write(source, status.st_size, name, target, mode, replaces=there is not None)
        made = _status(name, target)
        self._copied[path] = [*(_identity(made) if made else []), *origin]
        self.done.append(path)


def _exists(name: str, folder: int) -> bool:
    return _status(name, folder) is not None


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _descend(top: str, names: str, opened: contextlib.ExitStack, *, makes: bool) -> int:
    """A descriptor of a folder below `top`, to which no link leads; -1 if it is missing. Raises `OSError`."""
    folder = os.open(top, _FOLDER)
    opened.callback(os.close, folder)
    for name in filter(None, names.split("/")):
        if makes:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        try:
            folder = os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            return -1
        opened.callback(os.close, folder)
    return folder


def _pieces(source: int, limit: int) -> Iterator[bytes]:
    """The content of a file. Raises `_Refused` if it has grown beyond the limit."""
    os.lseek(source, 0, os.SEEK_SET)
    while piece := os.read(source, _PIECE):
        limit -= len(piece)
        if limit < 0:
            raise _Refused("it is still being written")
        yield piece


def _has_content(name: str, folder: int, source: int) -> bool:
    """Whether a regular file has the same content as an open one."""
    opened = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _OWN, dir_fd=folder)
    try:
        size = os.fstat(source).st_size
        is_alike = stat.S_ISREG(os.fstat(opened).st_mode) and os.fstat(opened).st_size == size <= MOST_BYTES
        return is_alike and _digest(opened, size) == _digest(source, size)
    finally:
        os.close(opened)


def _digest(source: int, size: int) -> bytes:
    digest = hashlib.sha256()
    for piece in _pieces(source, size):
        digest.update(piece)
    return digest.digest()


def _write(source: int, size: int, name: str, folder: int, mode: int, *, replaces: bool) -> None:
    """Write a new file, or replace one of this session at once. Raises `OSError` and `_Refused`."""
    made = f".bradawl-{os.urandom(8).hex()}.tmp" if replaces else name
    target = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OWN, mode, dir_fd=folder)
    try:
        try:
            for piece in _pieces(source, size):
                view = memoryview(piece)
                while view:
                    view = view[os.write(target, view) :]
        finally:
            os.close(target)
        if replaces:
            os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made, dir_fd=folder)
        raise
