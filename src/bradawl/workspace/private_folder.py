"""A temporary folder only we can enter: what bash reads before a line, and output that is too much for the memory."""

import contextlib
import os
import stat
import weakref
from pathlib import Path

from bradawl.workspace.shell_prelude import PRELUDE

_PRELUDE_NAME = "prelude.bash"
_SPILL = "output-"


class NoTemporaryFolder(OSError):
    """The folder for temporary files is missing, or can't be written; `filename` names it."""


class PrivateFolder:
    """Made when first needed, and again when a cleaner of temporary files was here. Its maker calls `close()`."""

    def __init__(self, temporary: str) -> None:
        """`temporary` is the folder it is made in."""
        self._temporary = os.path.realpath(temporary)
        self._removal: weakref.finalize[[str], PrivateFolder] | None = None
        self._folder = ""

    @property
    def place(self) -> str:
        """Where it is; empty while there is none."""
        return self._folder

    def prelude(self) -> str:
        """The file bash reads before a shell line. Raises `OSError`."""
        path = Path(self._made(), _PRELUDE_NAME)
        if not os.access(path, os.R_OK):
            path.write_text(PRELUDE)
        return str(path)

    def new_file(self) -> tuple[int, str]:
        """An empty file, open for writing, and its path. Raises `OSError`."""
        path = f"{self._made()}/{_SPILL}{os.urandom(8).hex()}"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), path

    def _made(self) -> str:
        """The folder, which must still be ours: where all may write, a name that is free is anybody's."""
        if not self._folder or not _is_ours(self._folder):
            folder = Path(self._temporary, f"bradawl-{os.urandom(8).hex()}")
            try:
                folder.mkdir(mode=0o700)
            except OSError as error:
                raise NoTemporaryFolder(error.errno, error.strerror, self._temporary) from error
            if self._removal is not None:
                self._removal.detach()
            self._removal = weakref.finalize(self, _remove, str(folder))
            self._folder = str(folder)
        return self._folder

    def close(self) -> None:
        """Remove it with all that is in it; safe to call twice."""
        if self._removal is not None:
            self._removal()
        self._folder = ""


def _is_ours(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        for path in Path(folder).iterdir():
            if path.name == _PRELUDE_NAME or path.name.startswith(_SPILL):
                path.unlink(missing_ok=True)
        Path(folder).rmdir()


class SpillFile:
    """Output on its way to a file, once it is too much to be kept in memory."""

    def __init__(self, folder: PrivateFolder, begins_after: int, limit_bytes: int) -> None:
        self._folder = folder
        self._begins_after = begins_after
        self._room = limit_bytes
        self._waiting = bytearray()
        self._descriptor = -1
        self._path = ""
        self._has_failed = False

    def add(self, data: bytes) -> None:
        """Take the next piece; what does not fit, or can't be written, is left out."""
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
        except OSError:  # the disk is full: half of it, taken for the whole, would be worse than none
            self.discard()
        if self._room <= 0:
            self.close()

    def finish(self) -> str:
        """The file's path, empty if there is none; it is the caller's now."""
        self.close()
        path, self._path = self._path, ""
        self._has_failed = True
        return path

    def discard(self) -> None:
        """Remove the file, and take no more."""
        path = self.finish()
        self._waiting.clear()
        if path:
            with contextlib.suppress(OSError):
                Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Take no more; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
