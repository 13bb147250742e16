"""Records of what is watched in git's data while programs run: after a kill of bradawl, the next start compares it.

Each agent has a locked file that lists the repositories while programs run, and for each repository a file with its
state. The state is written only if it changed, and both stay between programs: creating files takes longer.
"""

import contextlib
import fcntl
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

import msgspec

from bradawl.safety.whole_writes import write_all
from bradawl.sandbox.check_failures import is_absent_or_closed
from bradawl.sandbox.restore.git_objects import ObjectFolder
from bradawl.sandbox.restore.locked_files import open_locked, read_abandoned
from bradawl.sandbox.restore.snapshot import Entry, Snapshot

_RUNNING: Final = "running-"
_Identity = tuple[int, int, int]
_NONE: Final[_Identity] = (0, 0, 0)
_GET_GENERATION: Final = 0x80087601
"""FS_IOC_GETVERSION of linux/fs.h."""
_INDEX_BYTES: Final = 1_048_576
"""Of the largest index that is recorded: git changes it often."""
_LIST: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL


class HistoryState(msgspec.Struct, frozen=True):
    """What a repository is compared with."""

    links: tuple[str, ...]
    """Names of git's folders that are links of the user."""
    references: Snapshot
    objects: dict[str, ObjectFolder]


class Recorded(Protocol):
    """A repository whose state is recorded."""

    @property
    def data(self) -> str:
        """The folder of git's data."""
        ...

    @property
    def place(self) -> str:
        """A folder that is or contains the data and that programs can't move."""
        ...

    @property
    def kept(self) -> str:
        """The folder of bradawl's state for this repository."""
        ...

    def state(self) -> HistoryState:
        """What it is compared with now."""
        ...


class AbandonedState(msgspec.Struct, frozen=True):
    """A repository that an agent watched when it was killed."""

    data: str
    place: str
    identity: _Identity
    state: HistoryState | None
    """None if it can't be read."""

    @property
    def is_replaced(self) -> bool:
        """Whether there is another folder in the place of the data now."""
        now = _identity_of(self.data)
        if _NONE in (now, self.identity):
            return False
        return now[:2] != self.identity[:2] or (0 not in (now[2], self.identity[2]) and now[2] != self.identity[2])


class _File(msgspec.Struct, frozen=True):
    links: tuple[str, ...]
    references: list[tuple[bytes, Entry]]
    objects: dict[str, ObjectFolder]


class _Line(msgspec.Struct, frozen=True, array_like=True):
    data: bytes
    place: bytes
    identity: _Identity
    file: bytes


class HistoryRecords:
    """The records of one agent. Its owner calls `close`.

    Failures to write are ignored: then less is compared at the next start, if bradawl is killed.
    """

    def __init__(self, kept: str) -> None:
        """`kept` is a folder in bradawl's state, created when first needed."""
        self._kept = kept
        self._list = -1
        """Open while programs run."""
        self._name = ""
        self._written: dict[str, HistoryState] = {}
        """What the files hold."""

    def begin(self, repositories: Iterable[Recorded]) -> None:
        """Record the states of all repositories that are watched from now on."""
        with contextlib.suppress(OSError):
            if self._list < 0:
                self._list = self._open_list()
            lines = [self._line(each) for each in repositories]
            os.ftruncate(self._list, 0)
            write_all(self._list, msgspec.msgpack.encode(lines))

    def _open_list(self) -> int:
        """The list, locked: that of the last program, unless another agent took it for abandoned. Raises `OSError`."""
        if self._name:
            with contextlib.suppress(OSError):
                return open_locked(f"{self._kept}/{self._name}", os.O_RDWR | os.O_APPEND)
        Path(self._kept).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._name = f"{_RUNNING}{os.urandom(8).hex()}"
        return open_locked(f"{self._kept}/{self._name}", _LIST)

    def _line(self, repository: Recorded) -> _Line:
        file = f"{repository.kept}/{self._name}"
        state = repository.state()
        if self._written.get(file) != state:
            self._written.pop(file, None)
            _write_state(file, state)
            self._written[file] = state
        data, place = os.fsencode(repository.data), os.fsencode(repository.place)
        return _Line(data, place, _identity_of(repository.data), os.fsencode(file))

    def end(self, *, keeps: bool = False) -> None:
        """Call when no program runs any more. With `keeps` not everything could be compared, and after a kill it is
        compared at the next start.
        """
        if self._list >= 0 and not keeps:
            with contextlib.suppress(OSError):
                os.ftruncate(self._list, 0)
            os.close(self._list)
            self._list = -1

    def close(self, *, keeps: bool = False) -> None:
        """Remove the records; with `keeps` everything is compared at the next start. Safe to call twice."""
        if self._list >= 0:
            os.close(self._list)
            self._list = -1
        if self._name and not keeps:
            self.forget(self._name)
        self._name = ""
        self._written.clear()

    def abandoned(self) -> Iterator[tuple[str, tuple[AbandonedState, ...]]]:
        """The repositories that killed agents watched, with a name for `forget`. No agent that lives is among them.

        Raises `OSError` if that can't be determined.
        """
        try:
            names = os.listdir(self._kept)  # noqa: PTH208 - strings are enough
        except OSError as error:
            if is_absent_or_closed(error):
                return
            raise
        for name in names:
            if name.startswith(_RUNNING) and name != self._name:
                found = _abandoned(f"{self._kept}/{name}")
                if found is not None:
                    yield name, found

    def forget(self, name: str) -> None:
        """Remove the record of a killed agent, unless another agent uses it."""
        with contextlib.suppress(OSError):
            held = open_locked(f"{self._kept}/{name}", os.O_RDONLY)
            try:
                for path in (*Path(self._kept).glob(f"*/{name}*"), Path(self._kept, name)):
                    path.unlink()
            finally:
                os.close(held)


def _identity_of(folder: str) -> _Identity:
    """Device, inode and generation of a folder, or of a file in its place; zeros for a link, and if there is none."""
    try:
        found = os.lstat(folder)
    except OSError:
        return _NONE
    if stat.S_ISLNK(found.st_mode):
        return _NONE
    return found.st_dev, found.st_ino, _generation(folder)


def _generation(path: str) -> int:
    """What tells a file from a later one with the same inode number; 0 if it is closed, or the file system has none."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int.from_bytes(fcntl.ioctl(opened, _GET_GENERATION, bytes(8))[:4], sys.byteorder)
    except OSError:
        return 0
    finally:
        os.close(opened)


def _abandoned(path: str) -> tuple[AbandonedState, ...] | None:
    """What a list names; None if its agent lives. Raises `OSError`."""
    data = read_abandoned(path)
    if data is None:
        return None
    lines: list[_Line] = []
    if data:
        with contextlib.suppress(msgspec.DecodeError):
            lines = msgspec.msgpack.decode(data, type=list[_Line])
    return tuple(
        AbandonedState(os.fsdecode(each.data), os.fsdecode(each.place), each.identity, _read_state(each.file))
        for each in lines
    )


def _write_state(path: str, state: HistoryState) -> None:
    references = [(os.fsencode(name), _without_large_index(name, entry)) for name, entry in state.references.items()]
    data = msgspec.msgpack.encode(_File(state.links, references, state.objects))
    unfinished = f"{path}.new"
    Path(unfinished).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(made, data)
    finally:
        os.close(made)
    Path(unfinished).rename(path)


def _without_large_index(name: str, entry: Entry) -> Entry:
    if name.endswith("/index") and len(entry.content or b"") > _INDEX_BYTES:
        return msgspec.structs.replace(entry, content=None)
    return entry


def _read_state(path: bytes) -> HistoryState | None:
    try:
        found = msgspec.msgpack.decode(Path(os.fsdecode(path)).read_bytes(), type=_File)
    except (OSError, msgspec.DecodeError):
        return None
    return HistoryState(found.links, {os.fsdecode(name): entry for name, entry in found.references}, found.objects)
