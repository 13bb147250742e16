"""Notes of the closed folders that this process has opened, so that the next one closes them if this one is killed.

A file `ID.opened` in the store's folder, locked while its writer lives.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.protocol import LENGTH_BYTES, take_frames
from bradawl.checkpoints.store_folder import StoreFolder
from bradawl.safety.whole_writes import write_all

_SUFFIX: Final = ".opened"
_MOST_BYTES: Final = 64_000_000


class _Note(msgspec.Struct, frozen=True, array_like=True):
    roots: tuple[bytes, ...]
    path: bytes
    mode: int


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Note).decode


@contextlib.contextmanager
def noted_walk(folder: StoreFolder, roots: Sequence[bytes]) -> Iterator[FolderWalk]:
    """A walk that notes each folder before it opens it; first closes what killed walks left open.

    A folder that can't be noted is not opened: to use it raises `OSError`.
    """
    close_left_open(folder)
    notes = _Notes(folder, tuple(roots))
    try:
        with FolderWalk(roots, notes.add) as walk:
            yield walk
    finally:
        notes.remove()


def close_left_open(folder: StoreFolder) -> None:
    """Give the folders that killed walks opened their modes again, unless they have another mode by now."""
    with contextlib.suppress(OSError):
        for name in [name for name in folder.names() if name.endswith(_SUFFIX)]:
            with contextlib.suppress(OSError):
                _close_noted(folder, name)


def _close_noted(folder: StoreFolder, name: str) -> None:
    file = folder.open(name)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if the writer lives
        notes: list[_Note] = []
        with contextlib.suppress(ValueError):  # also `DecodeError`: the end was not written
            for data in take_frames(bytearray(os.pread(file, _MOST_BYTES, 0))):
                notes.append(_decode(data))
        for roots in dict.fromkeys(note.roots for note in notes):
            modes: dict[bytes, list[int]] = {}
            for note in notes:
                if note.roots == roots:
                    modes.setdefault(note.path, []).append(note.mode)
            # A folder that was to get the mode that it has now stays as it is.
            opened = {path: mode for path, (mode, *later) in modes.items() if mode | stat.S_IRWXU not in later}
            close_again(opened.items(), roots)
        folder.remove(name)
    finally:
        os.close(file)


def close_again(opened: Iterable[tuple[bytes, int]], roots: Sequence[bytes]) -> None:
    """Give folders that were opened the modes that they had, unless they have another one by now."""
    with FolderWalk(tuple(roots)) as walk:
        for path, mode in opened:
            with contextlib.suppress(OSError):
                if stat.S_IMODE(os.fstat(walk.folder(path)).st_mode) == mode | stat.S_IRWXU:
                    walk.set_mode(path, mode)


class _Notes:
    """The notes of one walk."""

    def __init__(self, folder: StoreFolder, roots: tuple[bytes, ...]) -> None:
        self._folder = folder
        self._roots = roots
        self._name = f"{os.urandom(8).hex()}{_SUFFIX}"
        self._file = -1

    def add(self, path: bytes, mode: int) -> None:
        """Note the mode of a folder that is opened next. Raises `OSError`."""
        data = _encode(_Note(self._roots, path, mode))
        file = self._file if self._file >= 0 else self._made()
        write_all(file, len(data).to_bytes(LENGTH_BYTES, "big") + data)

    def _made(self) -> int:
        """The file, which no other process sees before it is locked."""
        temporary = f"{self._name}.tmp"
        file = self._folder.new(temporary)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._folder.rename(temporary, self._name)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return file

    def remove(self) -> None:
        """Forget the folders, which are closed again."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                self._folder.remove(self._name)
            os.close(self._file)
        self._file = -1
