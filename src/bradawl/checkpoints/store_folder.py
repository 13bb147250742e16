"""The folder of a content store, shared by processes: each names its files after itself, and names what it relies on.

A process that uses the store has a file `ID.user`, locked while it lives. All files that it writes begin with its id.
Of other files it writes those down in its `.user` file that it needs. Garbage collection keeps both.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from bradawl.safety.private_folders import make_private_folder
from bradawl.safety.whole_writes import write_all

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_USER: Final = ".user"
_LOCK: Final = "lock"
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WAIT_S: Final = 0.5
_PAUSE_S: Final = 0.005


class StoreFolder:
    """One process's view of the folder. Not thread-safe; `close` closes its descriptors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.user = os.urandom(8).hex()
        """Beginning of the names of this process's files."""
        self.young_s = 60.0
        """Age in seconds up to which a `.user` file belongs to a live process, though it is not locked yet."""
        self._folder = -1
        self._user_file = -1
        self._pinned: set[str] = set()

    def descriptor(self) -> int:
        """The open folder, or -1 if there is none yet. Raises `OSError`, also if the path leads to a link."""
        if self._folder < 0:
            with contextlib.suppress(FileNotFoundError):
                self._folder = os.open(self.path, _FOLDER)
        return self._folder

    def made(self) -> int:
        """The open folder, made with this process's `.user` file if they are missing. Raises `OSError`."""
        if self.descriptor() < 0:
            make_private_folder(self.path)
            self._folder = os.open(self.path, _FOLDER)
        if self._user_file < 0:
            self._user_file = os.open(self.user + _USER, _NEW, 0o600, dir_fd=self._folder)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._user_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return self._folder

    def names(self) -> list[str]:
        """Names of all files, empty without a folder. Raises `OSError`."""
        folder = self.descriptor()
        if folder < 0:
            return []
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]

    def size(self, name: str) -> int:
        """Bytes of a file. Raises `OSError`."""
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_size

    def open(self, name: str) -> int:
        """Descriptor of a file for reading; the caller closes it. Raises `OSError`."""
        return os.open(name, _READ, dir_fd=self._folder)

    def new(self, name: str) -> int:
        """Descriptor of a new file for reading and writing; the caller closes it. Raises `OSError`."""
        return os.open(name, _NEW, 0o600, dir_fd=self.made())

    def space_error(self, size: int) -> OSError | None:
        """Write this many bytes to the disk and remove them again; the error if there is no room for them."""
        name = f"{self.user}-{os.urandom(8).hex()}.space"
        try:
            file = self.new(name)
            try:
                self.remove(name)
                write_all(file, bytes(size))
                os.fsync(file)  # some file systems notice only now that there is no room
            finally:
                os.close(file)
        except OSError as error:
            return error
        return None

    def rename(self, name: str, to: str) -> None:
        """Give a file its final name. Raises `OSError`."""
        os.rename(name, to, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove(self, name: str) -> None:
        """Remove a file if it exists. Raises `OSError`."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)

    def sync(self) -> None:
        """Wait until new names are on the disk. Raises `OSError`."""
        if self._folder >= 0:
            os.fsync(self._folder)

    def pin(self, name: str) -> bool:
        """Keep a file of another process while this one lives. False if the file is gone, or pinning is impossible."""
        if name.startswith(self.user) or name in self._pinned:
            return True
        try:
            self.made()
            with self.locked(fcntl.LOCK_SH) as is_locked:
                if not is_locked:
                    return False
                self.size(name)
                write_all(self._user_file, f"{name}\n".encode())
        except OSError:
            return False
        self._pinned.add(name)
        return True

    def pin_only(self, names: Iterable[str]) -> None:
        """Give up all pins but those of these files. The caller holds the lock. Raises `OSError`."""
        self._pinned = {name for name in names if not name.startswith(self.user)}
        self.made()
        os.ftruncate(self._user_file, 0)
        os.lseek(self._user_file, 0, os.SEEK_SET)
        write_all(self._user_file, "".join(f"{name}\n" for name in sorted(self._pinned)).encode())

    @contextlib.contextmanager
    def locked(self, how: int = fcntl.LOCK_EX) -> Iterator[bool]:
        """Hold the lock of the store's folder; False if another process did not free it in 0.5 s. Raises `OSError`."""
        lock = os.open(_LOCK, _LOCK_FILE, 0o600, dir_fd=self._folder)
        try:
            yield _lock(lock, how)
        finally:
            os.close(lock)

    def others(self) -> tuple[set[str], set[str]]:
        """Ids of the other live processes, and the files that they pinned. Raises `OSError`.

        Removes the `.user` files of dead processes. The caller holds the lock.
        """
        alive: set[str] = set()
        pinned: set[str] = set()
        for name in self.names():
            user = name.removesuffix(_USER)
            if user in (name, self.user):
                continue
            with contextlib.suppress(FileNotFoundError):
                if (pins := self._pins_of(name)) is None:
                    self.remove(name)
                else:
                    alive.add(user)
                    pinned |= pins
        return alive, pinned

    def _pins_of(self, name: str) -> set[str] | None:
        """Files that a live process pinned; None for a dead one."""
        file = self.open(name)
        try:
            found = os.fstat(file)
            if abs(time.time() - found.st_ctime) > self.young_s and _lock(file, fcntl.LOCK_SH, wait_s=0):
                return None
            return set(os.pread(file, found.st_size, 0).decode(errors="replace").split("\n"))
        finally:
            os.close(file)

    def close(self) -> None:
        """Close the descriptors and give up the pins; safe to call twice."""
        if self._user_file >= 0:
            with contextlib.suppress(OSError):
                self.remove(self.user + _USER)
            os.close(self._user_file)
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = self._user_file = -1
        self._pinned.clear()


def wait_for_end(folder: Path, user: str, timeout_s: float) -> None:
    """Wait until the process of this id does not use a store's folder any more, or the time is over."""
    with contextlib.suppress(OSError):
        file = os.open(folder / (user + _USER), _READ)
        try:
            _lock(file, fcntl.LOCK_SH, timeout_s)
        finally:
            os.close(file)


def _lock(file: int, how: int, wait_s: float = _WAIT_S) -> bool:
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True
