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


def save_interrupted(folder: Path, calls: dict[str, Paths], index: bytes) -> None:
    """Save the index as it was before these calls. Raises `OSError`."""
    kept = sorted(_named(folder, _INTERRUPTED), key=lambda path: path.stat().st_mtime_ns)
    for path in kept[: 1 - _MOST_INTERRUPTED]:
        path.unlink(missing_ok=True)
    _replace(folder, f"{os.urandom(8).hex()}{_INTERRUPTED}", msgspec.msgpack.encode(_Interrupted(calls, index)))


def interrupted_index(folder: Path, call_id: str) -> InterruptedIndex | None:
    """The index as it was before this call, which no search has used for it yet; None if there is none."""
    for path in _named(folder, _INTERRUPTED):
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.msgpack.decode(read(path) or b"", type=_Interrupted)
            if call_id in found.calls:
                return InterruptedIndex(path, found.calls, found.index, found.found)
    return None


def save_answers(folder: Path, answers: Sequence[Answer], name: str = "") -> None:
    """Save what the agent may not have received, after what was saved under the same name. Raises `OSError`."""
    path = folder / f"{name or os.urandom(8).hex()}{_ANSWERS}"
    kept = sorted(_named(folder, _ANSWERS), key=lambda path: path.stat().st_mtime_ns)
    for each in kept[: 1 - _MOST_INTERRUPTED] if path not in kept else ():
        each.unlink(missing_ok=True)
    _replace(folder, path.name, msgspec.msgpack.encode((*_answers_in(path), *answers)))


def saved_answers(folder: Path, call_id: str) -> tuple[Answer, ...]:
    """What the searches for a call found that an earlier agent may not have received, in order."""
    found: tuple[Answer, ...] = ()
    for path in _named(folder, _ANSWERS):
        of_call = tuple(each for each in _answers_in(path) if each.call_id == call_id)
        if any(each.answers_end for each in of_call):
            return of_call
        found = found or of_call
    return found


def _answers_in(path: Path) -> tuple[Answer, ...]:
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.msgpack.decode(read(path) or b"", type=tuple[Answer, ...])
    return ()


def _named(folder: Path, ending: str) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.name.endswith(ending)]
    return []


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
