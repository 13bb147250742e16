"""Blobs: data too large for a line of the log, in files named by the sha256 of their content."""

import asyncio
import contextlib
import hashlib
import os
from pathlib import Path

from bradawl.core.errors import SessionError
from bradawl.safety.private_folders import make_private_folder

_PIECE = 1_048_576
_HEX = frozenset("0123456789abcdef")


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that new names in it are durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _checked(ref: str) -> str:
    if len(ref) != 64 or not _HEX.issuperset(ref):
        raise SessionError(f"{ref[:80]!r} does not name a blob: a sha256 in hex was expected.")
    return ref


class LocalBlobs:
    """`Blobs` in one folder, shared by all sessions of a project.

    A blob that can't be written is kept in memory, so that the session can go on, and written again with the
    next one; see `is_saved`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._durable: set[str] = set()
        self._waiting: dict[str, bytes] = {}

    @property
    def is_saved(self) -> bool:
        """False while a blob is only in memory, because writing it failed."""
        return not self._waiting

    async def put(self, data: bytes) -> str:
        """Store data and return its name; durable on return unless `is_saved` turns false."""
        ref = hashlib.sha256(data).hexdigest()
        if ref not in self._durable:
            self._waiting[ref] = data
            try:
                await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self.save_waiting))
            except RuntimeError:  # no thread can be started; an older one may do it again later, which is harmless
                self.save_waiting()
        return ref

    async def adopt(self, file: str) -> str:
        """Move a file into the store and return its name; durable on return. Raises `SessionError`."""
        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._adopt, Path(file)))
        except RuntimeError as error:
            raise SessionError(f"A long result could not be kept in {self._folder}: {error}") from error

    def _adopt(self, file: Path) -> str:
        try:
            ref = _sha256_of(file)
            make_private_folder(self._folder)
            _move(file, self._folder / ref)
            sync_folder(self._folder)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise SessionError(f"A long result could not be kept in {self._folder}: {error.strerror}") from error
        self._durable.add(ref)
        return ref

    def save_waiting(self) -> bool:
        """Write the blobs that are only in memory; true if none is left."""
        for ref, data in list(self._waiting.items()):
            with contextlib.suppress(OSError):
                self._save(ref, data)
                self._durable.add(ref)
                self._waiting.pop(ref, None)
        return not self._waiting

    def _save(self, ref: str, data: bytes) -> None:
        make_private_folder(self._folder)
        place = self._folder / ref
        if not _has_size(place, len(data)):
            _write(self._folder / f".{ref}.{os.urandom(6).hex()}", data, place)
        sync_folder(self._folder)
        if not self._durable:
            sync_folder(self._folder.parent)

    def get(self, ref: str) -> bytes:
        """The data, checked against its name. Raises `SessionError` if it is missing or damaged."""
        waiting = self._waiting.get(_checked(ref))
        if waiting is not None:
            return waiting
        place = self._folder / ref
        try:
            data = place.read_bytes()
        except OSError as error:
            raise SessionError(f"A part of the session's history can't be read: {error.strerror}: {place}") from error
        if hashlib.sha256(data).hexdigest() != ref:
            raise SessionError(f"A part of the session's history is damaged: {place} is not what was saved.")
        return data

    def path(self, ref: str) -> str:
        """The path of the file, for tools. Raises `SessionError` if it is not on the disk."""
        place = self._folder / _checked(ref)
        if not place.is_file():
            raise SessionError(f"This part of the session's history is not on disk: {place}")
        return str(place)


def _has_size(place: Path, size: int) -> bool:
    try:
        return place.stat().st_size == size
    except FileNotFoundError:
        return False


def _sha256_of(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _move(file: Path, place: Path) -> None:
    """Move a file, also from another file system, without reading all of it into memory."""
    temporary = place.with_name(f".{place.name}.{os.urandom(6).hex()}")
    try:
        with file.open("rb") as source, os.fdopen(_private(temporary), "wb") as target:
            while piece := source.read(_PIECE):
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
        temporary.replace(place)
        file.unlink()
    finally:
        temporary.unlink(missing_ok=True)


def _private(place: Path) -> int:
    return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _write(temporary: Path, data: bytes, place: Path) -> None:
    fd = _private(temporary)
    try:
        with os.fdopen(fd, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(fd)
        temporary.replace(place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def _remove(file: str) -> None:
    Path(file).unlink(missing_ok=True)


class MemoryBlobs:
    """`Blobs` in memory."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        """Keep data and return its name."""
        ref = hashlib.sha256(data).hexdigest()
        self._blobs[ref] = data
        return ref

    async def adopt(self, file: str) -> str:
        """Remove the file and raise `SessionError`: files are too large to keep in memory."""
        _remove(file)
        raise SessionError("This session lives in memory only, where there is no room for it.")

    def get(self, ref: str) -> bytes:
        """The data. Raises `SessionError` for an unknown name."""
        try:
            return self._blobs[_checked(ref)]
        except KeyError:
            raise SessionError(f"No blob {ref} in this session.") from None

    def path(self, ref: str) -> str:
        """Raises `SessionError`: there is no file."""
        raise SessionError("This session lives in memory only, so there is no file to read it from.")
