"""The record of what a session wrote to the machine's `/tmp`: by it the session knows its own files and folders again.
It also keeps which named paths were to be written, and which entries of the session's folder are mount points.

Each step is a line of its own, written before the next step is done. So a program that was killed leaves at most one
file under a temporary name, which the next one removes.
"""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.core.effects import is_within
from bradawl.sandbox.filesystem.atomic_exchange import exchange

OWN: Final = os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | OWN
_PIECE: Final = 1_048_576


class Copied(NamedTuple):
    """A file that the session made in the machine's `/tmp`."""

    device: int
    inode: int
    mode: int
    size: int
    sha256: str
    source: int = 0
    """Inode of the session's version."""
    source_ns: int = 0
    """Its time of change, which no program can set."""
    source_mode: int = 0


class CopyRecord:
    """What a session wrote to the machine's `/tmp`, and which failures it was told."""

    def __init__(self, path: str = "") -> None:
        """`path` is the file of the record; without it nothing is kept. Raises nothing."""
        self._path = path
        self.files: dict[str, Copied] = {}
        self._folders: dict[str, tuple[int, int]] = {}
        self._named: dict[str, bool] = {}
        self._mount_points: dict[str, None] = {}
        self._told: set[tuple[str, str, str]] = set()
        self._temporary: dict[str, str] = {}
        """By path the temporary name under which it is being written."""
        self._made: dict[str, Copied] = {}
        """Files that are complete, but perhaps not in their place yet."""
        self._checked: dict[str, tuple[int, int, bool]] = {}
        if path:
            self._load()

    def begin(self, path: str, temporary: str) -> None:
        """A file is going to be written under a temporary name beside its path. Raises `OSError`."""
        self._append("begin", path, temporary)

    def made(self, path: str, made: Copied) -> None:
        """The file is complete, and is going to be moved to its path. Raises `OSError`."""
        self._append("made", path, *made)

    def done(self, path: str) -> None:
        """The file is at its path. Raises `OSError`."""
        self._append("done", path)

    def dropped(self, path: str) -> None:
        """The file was not moved to its path, and the temporary one is gone. Raises `OSError`."""
        self._append("dropped", path)

    def folder(self, path: str, status: os.stat_result) -> None:
        """The session made this folder. Raises `OSError`."""
        self._append("folder", path, status.st_dev, status.st_ino)

    def made_folder(self, path: str) -> bool:
        """Whether the session has made a folder at this path."""
        return path in self._folders

    def forget(self, path: str) -> None:
        """From now on nothing at this path or in it was made by the session. Raises `OSError`."""
        if any(is_within(each, path) for each in (*self.files, *self._folders)):
            self._append("forgotten", path)

    def named(self, path: str, *, is_wanted: bool) -> None:
        """A prompt named a path, which is to be written or not. A later False changes nothing. Raises nothing."""
        if path not in self._named or (is_wanted and not self._named[path]):
            self._note("named", [(path, is_wanted)])

    def was_wanted(self, path: str) -> bool:
        """Whether a path of an earlier prompt was to be written, as far as that is known."""
        return self._named.get(path, True)

    @property
    def mount_points(self) -> tuple[str, ...]:
        """Paths of entries that exist in the session's folder only for mounts, outermost first."""
        return tuple(sorted(self._mount_points, key=lambda each: each.split("/")))

    def mounted(self, paths: Iterable[str]) -> None:
        """Entries are going to be made in the session's folder for mounts on these paths. Raises nothing."""
        self._note("mounted", [(path,) for path in paths if path not in self._mount_points])

    def released(self, paths: Iterable[str]) -> None:
        """At these paths nothing in the session's folder is a mount point any more. Raises nothing."""
        self._note("released", [(path,) for path in paths])

    def is_news(self, path: str, why: str, version: str) -> bool:
        """Whether this failure of this version was not told yet. From now on it was."""
        is_new = (path, why, version) not in self._told
        with contextlib.suppress(OSError):
            if is_new:
                self._append("told", path, why, version)
        return is_new

    def is_own(self, path: str) -> bool:
        """Whether a file or folder of the machine's `/tmp` is one that the session made, with the content that it gave
        it. Raises nothing.
        """
        if path not in self.files and path not in self._folders:
            return False
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                return self._folders.get(path) == (status.st_dev, status.st_ino)
            if self._checked.get(path, ())[:2] != (status.st_ino, status.st_ctime_ns):
                with opened_folder(path.rpartition("/")[0]) as folder:
                    is_same = self.is_unchanged(path, path.rpartition("/")[2], folder)
                self._checked[path] = (status.st_ino, status.st_ctime_ns, is_same)
            return self._checked[path][2]
        return False

    def is_unchanged(self, path: str, name: str, folder: int) -> bool:
        """Whether an entry of an open folder is the file that the session wrote at `path`, unchanged."""
        known = self.files.get(path)
        return known is not None and is_file(known, name, folder)

    # ------------------------------------------------------------------ the lines

    def _append(self, step: str, *values: str | int) -> None:
        self._write([(step, *values)])
        self._take(step, *values)

    def _note(self, step: str, lines: Iterable[tuple[str | int, ...]]) -> None:
        """Add lines, if that is possible. In this run they hold in any case."""
        steps = [(step, *line) for line in lines]
        with contextlib.suppress(OSError):
            if steps and self._path:
                Path(self._path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._write(steps)
        for each in steps:
            self._take(*each)

    def _write(self, steps: Iterable[tuple[str | int, ...]]) -> None:
        if self._path:
            opened = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | OWN, 0o600)
            try:
                os.write(opened, b"".join(json.dumps(each).encode() + b"\n" for each in steps))
            finally:
                os.close(opened)

    def _take(self, step: str | int, *values: str | int) -> None:
        match step, values:
            case "begin", (str(path), str(temporary)):
                self._temporary[path] = temporary
            case "made", (str(path), *made):
                self._made[path] = Copied(*made)  # pyright: ignore[reportArgumentType] - the lines are bradawl's own
            case "done", (str(path),):
                self.files[path] = self._made.pop(path)
                self._temporary.pop(path, None)
            case "dropped", (str(path),):
                self._made.pop(path, None)
                self._temporary.pop(path, None)
            case "folder", (str(path), int(device), int(inode)):
                self._folders[path] = (device, inode)
            case "told", (str(path), str(why), str(version)):
                self._told.add((path, why, version))
            case _:
                self._take_other(step, *values)

    def _take_other(self, step: str | int, *values: str | int) -> None:
        match step, values:
            case "forgotten", (str(path),):
                for known in (self.files, self._folders):
                    for each in [each for each in known if is_within(each, path)]:
                        del known[each]
            case "named", (str(path), is_wanted):
                self._named[path] = bool(is_wanted)
            case "mounted", (str(path),):
                self._mount_points[path] = None
            case "released", (str(path),):
                self._mount_points.pop(path, None)
            case _:
                raise ValueError(step)

    def _load(self) -> None:
        with contextlib.suppress(OSError):
            for line in Path(self._path).read_text("utf-8", "replace").splitlines():
                with contextlib.suppress(ValueError, TypeError, KeyError):  # the last line may be cut
                    self._take(*json.loads(line))
            for path in tuple(self._temporary):
                self._finish(path)
            self._shorten()

    def _shorten(self) -> None:
        """Write the file of the record anew, without lines that later ones replaced. Raises `OSError`."""
        steps: list[tuple[str | int, ...]] = []
        for path, made in self.files.items():
            steps += (("made", path, *made), ("done", path))
        steps += (("folder", path, *place) for path, place in self._folders.items())
        steps += (("named", *named) for named in self._named.items())
        steps += (("mounted", path) for path in self._mount_points)
        steps += (("told", *told) for told in self._told)
        new = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            Path(new).unlink()
        opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN, 0o600)
        with os.fdopen(opened, "w", encoding="ascii") as file:
            file.writelines(json.dumps(step) + "\n" for step in steps)
        Path(new).replace(self._path)

    def _finish(self, path: str) -> None:
        """Finish or undo the step in which a program was killed."""
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(OSError), opened_folder(folder) as opened:
            self._clear(path, name, self._temporary[path], opened)
            made = self._made.get(path)
            if made is not None and is_file(made, name, opened):
                self.done(path)
                return
        with contextlib.suppress(OSError):
            self.dropped(path)

    def _clear(self, path: str, name: str, temporary: str, folder: int) -> None:
        """Remove what is under the temporary name. If that is not of this session, it was exchanged with the session's
        new file a moment ago, and goes back.
        """
        made = self._made.get(path)
        status = status_of(temporary, folder)
        if status is None:
            return
        is_own = made is None or status.st_ino == made.inode or self.is_unchanged(path, temporary, folder)
        if is_own or (made is not None and is_file(made, name, folder) and exchange(temporary, name, folder)):
            os.unlink(temporary, dir_fd=folder)


# ------------------------------------------------------------------ files and folders, without following links


def status_of(name: str, folder: int) -> os.stat_result | None:
    """Status of an entry of an open folder; None if there is none. Raises `OSError`."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def opened_folder(path: str) -> Iterator[int]:
    """A descriptor of a folder to which no link leads. Raises `OSError`."""
    folder = os.open("/", FOLDER)
    try:
        for name in filter(None, path.split("/")):
            inside = os.open(name, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inside
        yield folder
    finally:
        os.close(folder)


def is_file(known: Copied, name: str, folder: int) -> bool:
    """Whether an entry of an open folder is this file, with this content and mode. Raises nothing."""
    with contextlib.suppress(OSError):
        opened = os.open(name, os.O_RDONLY | os.O_NONBLOCK | OWN, dir_fd=folder)
        try:
            status = os.fstat(opened)
            place = (status.st_dev, status.st_ino, stat.S_IMODE(status.st_mode), status.st_size)
            return stat.S_ISREG(status.st_mode) and place == known[:4] and digest(opened, known.size) == known.sha256
        finally:
            os.close(opened)
    return False


def digest(source: int, limit: int) -> str:
    """sha256 of an open file; empty if it has more bytes than `limit`. Raises `OSError`."""
    found = hashlib.sha256()
    for piece in pieces(source):
        limit -= len(piece)
        if limit < 0:
            return ""
        found.update(piece)
    return found.hexdigest()


def pieces(source: int) -> Iterator[bytes]:
    """The content of an open file. Raises `OSError`."""
    os.lseek(source, 0, os.SEEK_SET)
    while piece := os.read(source, _PIECE):
        yield piece
