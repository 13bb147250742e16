"""A private temporary folder for output that exceeds memory."""

import contextlib
import os
import stat
import weakref
from pathlib import Path

_SPILL = "output-"


class PrivateFolder:
    """Created when first needed, and again after a cleaner of temporary files removed it. Its owner calls `close()`."""

    def __init__(self, temporary: str) -> None:
        """`temporary` is the parent folder."""
        self._temporary = os.path.realpath(temporary)
        self._removal: weakref.finalize[[str], PrivateFolder] | None = None
        self.place = self._new_place()
        """Path of the folder, whether it exists already or not."""

    def _new_place(self) -> str:
        return f"{self._temporary}/bradawl-{os.urandom(8).hex()}"

    def new_file(self) -> tuple[int, str]:
        """Descriptor and path of a new empty file. Raises `OSError`."""
        path = f"{self._made()}/{_SPILL}{os.urandom(8).hex()}"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), path

    def _made(self) -> str:
        """Path of the folder. Checks its owner: in a shared folder, another user may have taken a removed name."""
        if not _is_ours(self.place):
            if os.path.lexists(self.place):
                self.place = self._new_place()
            Path(self.place).mkdir(mode=0o700)
            if self._removal is not None:
                self._removal.detach()
            self._removal = weakref.finalize(self, _remove, self.place)
        return self.place

    def close(self) -> None:
        """Remove the folder with its contents; safe to call twice."""
        if self._removal is not None:
            self._removal()


def _is_ours(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        for path in Path(folder).iterdir():
            if path.name.startswith(_SPILL):
                path.unlink(missing_ok=True)
        Path(folder).rmdir()


class SpillFile:
    """Output that is written to a file once it exceeds a size."""

    def __init__(self, folder: PrivateFolder, begins_after: int, limit_bytes: int) -> None:
        self._folder = folder
        self._begins_after = begins_after
        self._room = limit_bytes
        self._waiting = bytearray()
        self._descriptor = -1
        self._path = ""
        self._has_failed = False

    def add(self, data: bytes) -> None:
        """Append the next piece. What does not fit, or can't be written, is dropped."""
        if self._descriptor < 0 and not self._path and not self._has_failed:
            self._waiting += data
            if len(self._waiting) <= self._begins_after:
                return
            data = bytes(self._waiting)
            self._waiting.clear()
            self._begin()
        self._write(data[: self._room])

    def _begin(self) -> None:
        try:
            self._descriptor, self._path = self._folder.new_file()
        except OSError:
            self._has_failed = True

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while self._descriptor >= 0 and view:
                written = os.write(self._descriptor, view)
                view = view[written:]
                self._room -= written
        except OSError:  # the disk is full: a part must not be taken for the whole
            self.discard()
        if self._room <= 0:
            self.close()

    def finish(self) -> str:
        """Path of the file, empty if there is none; the caller owns it now."""
        self.close()
        path, self._path = self._path, ""
        self._has_failed = True
        return path

    def discard(self) -> None:
        """Remove the file and accept no more output."""
        path = self.finish()
        self._waiting.clear()
        if path:
            with contextlib.suppress(OSError):
                Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Accept no more output; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
