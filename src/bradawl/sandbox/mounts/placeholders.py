"""Creates placeholder files as mount points for missing paths, and removes them also after a kill."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bradawl.core.errors import ToolError
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.mounts.placeholder_records import RECORD_PREFIX, placeholder_identity, record_entries
from bradawl.sandbox.mounts.spare_placeholders import SpareFiles, SpareFolders

_SPARE = "spare"
_SPARE_FILES = "spare-files"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_FOR_US = {errno.EACCES, errno.EPERM, errno.EROFS}


class Placeholder(msgspec.Struct, frozen=True):
    """An empty file or folder at a missing path, so that something can be mounted there."""

    path: str
    is_folder: bool


class _HeldPlaceholder(msgspec.Struct):
    """A placeholder that exists now. Its users hold a shared lock on it, so that no other agent removes it."""

    lock: int
    identity: str
    needed_by: int = 1
    is_ours: bool = True


class PlaceholderStore:
    """The placeholders and temporary folders of one agent. A locked record lists them; after a kill, the next agent
    cleans up.
    """

    def __init__(self, state: str) -> None:
        """`state` is the folder for records; without one nothing is cleaned up after a kill."""
        self._state = state
        self._record = -1
        self._path = ""
        self._held: dict[str, _HeldPlaceholder] = {}
        self._waiting: dict[str, str] = {}
        """Our placeholders that another agent still needed when we did not: path and identity."""
        self._folders: set[str] = set()
        self._spare = SpareFolders(f"{state}/{_SPARE}" if state else "")
        self._spare_files = SpareFiles(f"{state}/{_SPARE_FILES}" if state else "")

    # ------------------------------------------------------------------ placeholders

    def acquire(self, placeholders: Iterable[Placeholder]) -> tuple[str, ...]:
        """Create missing placeholders. Returns the paths that exist now; pass each to `release` once.

        A path that can't be created for lack of permission is skipped: no program can create it either. Raises
        `ToolError` for other failures.
        """
        held: list[str] = []
        for placeholder in placeholders:
            try:
                if self._acquire(placeholder):
                    held.append(placeholder.path)
            except OSError as error:
                self.release(held)
                raise ToolError(f"the sandbox can't protect {placeholder.path}: {error.strerror or error}") from error
        return tuple(held)

    def _acquire(self, placeholder: Placeholder) -> bool:
        if held := self._held.get(placeholder.path):
            held.needed_by += 1
            return True
        is_ours = False
        try:
            is_ours = self._make(placeholder)
            lock = os.open(placeholder.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if is_ours:
                _remove_just_made(placeholder)
            if error.errno in _NOT_FOR_US:
                return False
            raise
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        placed = _HeldPlaceholder(lock, _identity(os.fstat(lock)), is_ours=is_ours)
        self._held[placeholder.path] = placed
        if is_ours:
            self._record_entry("placeholder", placed.identity, placeholder.path)
        return True

    def renew(self, placeholder: Placeholder) -> bool:
        """Create a placeholder at a path where another program has removed what was there. True if the caller has to
        `release` the path once more.
        """
        held = self._held.get(placeholder.path)
        if held is not None and not os.path.lexists(placeholder.path):
            del self._held[placeholder.path]
            os.close(held.lock)
        try:
            is_held = self._acquire(placeholder)
        except OSError:
            is_held = False
        if is_held and held is not None and self._held[placeholder.path] is not held:
            self._held[placeholder.path].needed_by += held.needed_by
        return is_held

    def _make(self, placeholder: Placeholder) -> bool:
        """Create it; False if something exists already, which may be another agent's placeholder."""
        try:
            if placeholder.is_folder:
                self._spare.put_at(placeholder.path)
            else:
                self._spare_files.put_at(placeholder.path)
        except FileExistsError:
            return placeholder.path in self._waiting
        return True

    def release(self, paths: Iterable[str]) -> None:
        """Remove placeholders with no more users, if they are still the same and empty."""
        for path in paths:
            if held := self._held.get(path):
                held.needed_by -= 1
                if held.needed_by == 0:
                    del self._held[path]
                    self._drop(path, held)
        for path, identity in tuple(self._waiting.items()):
            if path not in self._held and _remove_if_unlocked(path, identity, self._spare):
                del self._waiting[path]
        if not self._held and not self._waiting:
            self._truncate_record()

    def _drop(self, path: str, held: _HeldPlaceholder) -> None:
        try:
            if held.is_ours and _is_unlocked(held.lock):
                _remove_placeholder(path, held.identity, self._spare)
                self._waiting.pop(path, None)
            elif held.is_ours:
                self._waiting[path] = held.identity
        finally:
            os.close(held.lock)

    # ------------------------------------------------------------------ folders

    def make_folder(self, path: str) -> None:
        """Create a folder that only this user may enter; `close` removes it with its contents. Raises `OSError`."""
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(path).mkdir(0o700)
        self._folders.add(path)
        self._record_entry("folder", "-", path)

    def close(self) -> None:
        """Remove everything, except what another agent needs. Safe to call twice."""
        self.release([path for path, held in self._held.items() for _ in range(held.needed_by)])
        for path in self._folders:
            remove_folder(path)
        self._folders.clear()
        self._spare_files.close()
        if self._record >= 0:
            with contextlib.suppress(OSError):
                if not self._waiting:
                    Path(self._path).unlink()
            os.close(self._record)
            self._record = -1

    # ------------------------------------------------------------------ the record

    def _record_entry(self, what: str, identity: str, path: str) -> None:
        """Without a record everything works; only a kill leaves placeholders behind."""
        with contextlib.suppress(OSError):
            if self._record < 0 and self._state:
                self._open_record()
            if self._record >= 0:
                os.write(self._record, os.fsencode(f"{what}\0{identity}\0{path}\0"))

    def _open_record(self) -> None:
        Path(self._state).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = f"{self._state}/{RECORD_PREFIX}{os.urandom(8).hex()}"
        record = os.open(self._path, _NEW | os.O_APPEND, 0o600)
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._record = record

    def _truncate_record(self) -> None:
        if self._record >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._record, 0)
            for path in self._folders:
                self._record_entry("folder", "-", path)

    def clean_up_after_others(self) -> None:
        """Remove what killed agents left behind."""
        with contextlib.suppress(OSError):
            for path in Path(self._state).glob(f"{RECORD_PREFIX}*") if self._state else ():
                if str(path) != self._path:
                    _clean_up(path)


def _clean_up(path: Path) -> None:
    with contextlib.suppress(OSError):
        record = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its agent lives
            left = False
            for what, identity, place in record_entries(record):
                if what == "folder":
                    remove_folder(place)
                else:
                    left = not _remove_if_unlocked(place, identity) or left
            if not left:
                path.unlink()
        finally:
            os.close(record)


def _remove_just_made(placeholder: Placeholder) -> None:
    """Remove a placeholder that no record lists yet. Needs no descriptor, which may be what is missing."""
    path = Path(placeholder.path)
    with contextlib.suppress(OSError):
        if placeholder.is_folder:
            path.rmdir()
        elif path.lstat().st_size == 0:
            path.unlink()


def _identity(status: os.stat_result) -> str:
    return placeholder_identity(status.st_mode, status.st_dev, status.st_ino, status.st_mtime_ns)


def _is_unlocked(lock: int) -> bool:
    """Whether no other agent holds a lock on it; our lock becomes exclusive."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _remove_if_unlocked(path: str, identity: str, spare: SpareFolders | None = None) -> bool:
    """Remove it; False if another agent needs it."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        if not _is_unlocked(lock):
            return False
        _remove_placeholder(path, identity, spare)
    finally:
        os.close(lock)
    return True


def _remove_placeholder(path: str, identity: str, spare: SpareFolders | None = None) -> None:
    with contextlib.suppress(OSError):
        now = os.lstat(path)
        if _identity(now) != identity:
            return
        if not stat.S_ISDIR(now.st_mode):
            if now.st_size == 0:
                Path(path).unlink()
        elif spare is None or not spare.take_back(path):
            Path(path).rmdir()  # refused unless it is empty
