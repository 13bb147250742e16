"""Saved indexes of a workspace: the latest one, and those that were current when an agent ended while a call ran; also
what searches found that an agent may not have received.

Each is replaced as a whole. A damaged one is not used.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from bradawl.safety.private_folders import make_private_folder
from bradawl.safety.whole_writes import write_all

_LATEST: Final = "workspace.index"
_INTERRUPTED: Final = ".interrupted"
_ANSWERS: Final = ".answers"
_MOST_INTERRUPTED: Final = 8
_LIMIT_BYTES: Final = 200_000_000
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


Paths = tuple[str, ...] | None
"""Files that a call may change; None for any."""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a search found, as the agent may not have received it."""

    call_id: str
    ref: str
    uncovered: str
    answers_end: bool
    is_known: bool = True


class _Interrupted(msgspec.Struct, frozen=True, array_like=True):
    calls: dict[str, Paths]
    index: bytes
    found: tuple[Answer, ...] = ()


class InterruptedIndex(msgspec.Struct, frozen=True):
    """The index as it was before calls that an agent's end interrupted."""

    path: Path
    calls: dict[str, Paths]
    """The calls that were not searched yet, with their files."""
    index: bytes
    found: tuple[Answer, ...]
    """What the searches for the other calls found, the oldest first."""
    saved_ns: int
    """Unix time, in nanoseconds."""

    @property
    def process(self) -> str:
        """The name of the process that saved it."""
        return self.path.name.removesuffix(_INTERRUPTED)

    def answers(self, call_id: str) -> tuple[Answer, ...]:
        """What that process found of a call before it saved the index, in order."""
        saved = _answers_in(self.path.with_name(f"{self.process}{_ANSWERS}"))
        return tuple(each for each in saved if each.call_id == call_id)

    def add(self, answer: Answer) -> None:
        """Keep what the search for a call found, because it is no change of the other calls; removes the index after
        the last call. Raises `OSError`.
        """
        if calls := {name: paths for name, paths in self.calls.items() if name != answer.call_id}:
            left = _Interrupted(calls, self.index, (*self.found, answer))
            _replace(self.path.parent, self.path.name, msgspec.msgpack.encode(left))
        else:
            self.path.unlink(missing_ok=True)


def save(folder: Path, index: bytes, also_as: str = "") -> None:
    """Save the latest index, also under the name `also_as` if given. Raises `OSError`."""
    if not also_as:
        _replace(folder, _LATEST, index)
        return
    _replace(folder, also_as, index)
    temporary = folder / f"{_LATEST}-{os.urandom(6).hex()}.tmp"
    try:
        temporary.hardlink_to(folder / also_as)
        temporary.replace(folder / _LATEST)
    except OSError:  # a file system without hard links
        _replace(folder, _LATEST, index)


def load(folder: Path) -> bytes | None:
    """The latest index; None if there is none that can be read."""
    return read(folder / _LATEST)


def save_interrupted(folder: Path, process: str, calls: dict[str, Paths], index: bytes) -> None:
    """Save the index as it was before these calls, which a process did not search. Raises `OSError`."""
    _remove_all_but_newest(folder, _INTERRUPTED)
    _replace(folder, f"{process}{_INTERRUPTED}", msgspec.msgpack.encode(_Interrupted(calls, index)))


def interrupted_index(folder: Path, call_id: str) -> InterruptedIndex | None:
    """The last index as it was before this call, which no search has used for it yet; None if there is none."""
    for path in newest_first(folder, _INTERRUPTED):
        saved_ns = written_ns(path)
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.msgpack.decode(read(path) or b"", type=_Interrupted)
            if call_id in found.calls:
                return InterruptedIndex(path, found.calls, found.index, found.found, saved_ns)
    return None


def save_answers(folder: Path, process: str, answers: Sequence[Answer]) -> None:
    """Save what the agent of a process may not have received, after what is saved of that process already.

    Raises `OSError`.
    """
    path = folder / f"{process}{_ANSWERS}"
    all_of_it = (*_answers_in(path), *answers)
    _remove_all_but_newest(folder, _ANSWERS)
    _replace(folder, path.name, msgspec.msgpack.encode(all_of_it))


def saved_answers(folder: Path, call_id: str) -> tuple[tuple[Answer, ...], int]:
    """What the searches for a call found that an earlier agent may not have received, in order, and when it was saved:
    a Unix time in nanoseconds. Of several calls with one id, which some servers give, the last one counts.
    """
    for path in newest_first(folder, _ANSWERS):
        saved_ns = written_ns(path)
        if found := tuple(each for each in _answers_in(path) if each.call_id == call_id):
            return found, saved_ns
    return (), 0


def _remove_all_but_newest(folder: Path, ending: str) -> None:
    for path in newest_first(folder, ending)[_MOST_INTERRUPTED - 1 :]:
        path.unlink(missing_ok=True)


def _answers_in(path: Path) -> tuple[Answer, ...]:
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.msgpack.decode(read(path) or b"", type=tuple[Answer, ...])
    return ()


def newest_first(folder: Path, ending: str) -> list[Path]:
    """The files whose names end so, the last written first; empty if the folder can't be read."""
    with contextlib.suppress(OSError):
        return sorted((path for path in folder.iterdir() if path.name.endswith(ending)), key=written_ns, reverse=True)
    return []


def written_ns(path: Path) -> int:
    """Unix time of the last change of a file, in nanoseconds; 0 if it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _replace(folder: Path, name: str, data: bytes) -> None:
    make_private_folder(folder)
    temporary = folder / f"{name}-{os.urandom(6).hex()}.tmp"
    file = os.open(temporary, _NEW, 0o600)
    try:
        try:
            write_all(file, data)
        finally:
            os.close(file)
        temporary.replace(folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def read(path: Path) -> bytes | None:
    """The content of a file, links not followed; None if it can't be read, or is too large."""
    try:
        file = os.open(path, _READ)
    except OSError:
        return None
    try:
        pieces: list[bytes] = []
        left = _LIMIT_BYTES
        while left > 0 and (piece := os.read(file, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
    except OSError:
        return None
    finally:
        os.close(file)
    return b"".join(pieces) if left > 0 else None
