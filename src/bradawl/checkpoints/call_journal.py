"""What a search process writes down for the case that it is killed together with its agent, as by a loss of power.

A journal is two files: `NAME.base` with the index at some time, and `NAME.calls` with the calls that began since and
what searches found. The next process compares the workspace with that index, without what was found already.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bradawl.checkpoints import index_files
from bradawl.checkpoints.index_files import Answer, Paths
from bradawl.checkpoints.protocol import LENGTH_BYTES, take_frames
from bradawl.safety.whole_writes import write_all

_BASE: Final = ".base"
_CALLS: Final = ".calls"
_MOST: Final = 8
"""Journals of other processes that are kept."""
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class _Start(msgspec.Struct, frozen=True, array_like=True, tag="start"):
    """The first entry: what the index is the state before, and what was found before that."""

    running: dict[str, Paths]
    answers: tuple[Answer, ...]


class _Begun(msgspec.Struct, frozen=True, array_like=True, tag="begun"):
    call_id: str
    paths: Paths


class _Found(msgspec.Struct, frozen=True, array_like=True, tag="found"):
    answer: Answer


_Entry = _Start | _Begun | _Found
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Entry).decode


class CallJournal:
    """The journal of one process. `close` removes it: then the process ends in order.

    Errors of the disk end it: what happens then is not known to the next process.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """`folder` is that of the store. No other process has a journal of this name."""
        self._folder = folder
        self._process = name
        self._number = 0
        self._name = ""
        self._calls = -1
        self._unsynced: set[str] = set()

    @property
    def is_started(self) -> bool:
        """Whether calls can be written down."""
        return self._calls >= 0

    def start(self, index: bytes, running: Mapping[str, Paths], answers: Sequence[Answer]) -> None:
        """Save the index as the latest one, and begin a journal with it in place of the one before. Raises `OSError`.

        `running` are the calls that the index is the state before, and `answers` what was found until now.
        """
        self._number += 1
        name = f"{self._process}-{self._number}"
        index_files.save(self._folder, index, name + _BASE)
        calls = os.open(self._folder / (name + _CALLS), _APPEND, 0o600)
        if self._calls < 0:
            self._remove_old_ones()
        self.close()
        self._name, self._calls, self._unsynced = name, calls, {_BASE, _CALLS}
        self._append(_Start(dict(running), tuple(answers)))

    def begin(self, call_id: str, paths: Paths) -> None:
        """Write down that a call begins; the index has been brought up to date."""
        self._append(_Begun(call_id, paths))

    def found(self, answer: Answer) -> None:
        """Write down what a search found; the index includes it."""
        self._append(_Found(answer))

    def _append(self, entry: _Entry) -> None:
        if self._calls < 0:
            return
        try:
            write_all(self._calls, _framed(entry))
            self._unsynced.add(_CALLS)
        except OSError:
            self.close()

    def flush(self) -> None:
        """Wait until the journal is on the disk. Raises `OSError`."""
        if self._calls < 0:
            return
        for ending in sorted(self._unsynced):
            file = os.open(self._folder / (self._name + ending), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        self._unsynced.clear()

    def close(self) -> None:
        """Remove the journal; safe to call twice."""
        if self._calls >= 0:
            os.close(self._calls)
            self._calls = -1
            self._remove(self._name)

    def _remove(self, name: str) -> None:
        for ending in (_CALLS, _BASE):
            with contextlib.suppress(OSError):
                (self._folder / (name + ending)).unlink(missing_ok=True)

    def _remove_old_ones(self) -> None:
        for path in index_files.newest_first(self._folder, _CALLS)[_MOST:]:
            self._remove(path.name.removesuffix(_CALLS))


class LeftJournal(msgspec.Struct, frozen=True):
    """The journal of a process that was killed."""

    path: Path
    """Of the file with the calls."""
    start: _Start
    entries: tuple[_Begun | _Found, ...]
    written_ns: int
    """Unix time of the last entry, in nanoseconds."""

    def paths_of(self, call_id: str) -> Paths:
        """The files that a call may change; None for any."""
        begun = (each.paths for each in self.entries if isinstance(each, _Begun) and each.call_id == call_id)
        return self.start.running.get(call_id, next(begun, None))

    @property
    def process(self) -> str:
        """The name of the process."""
        return self.path.name.partition("-")[0]

    def has(self, call_id: str) -> bool:
        """Whether the call began, or something was found of it."""
        begun = {each.call_id if isinstance(each, _Begun) else each.answer.call_id for each in self.entries}
        return call_id in begun or call_id in self.start.running or bool(self.answers(call_id))

    def answers(self, call_id: str) -> tuple[Answer, ...]:
        """What was found of a call, oldest first; of the last one, if several have this id."""
        answers = [each for each in self.start.answers if each.call_id == call_id]
        for entry in self.entries:
            if isinstance(entry, _Begun) and entry.call_id == call_id:
                answers.clear()
            elif isinstance(entry, _Found) and entry.answer.call_id == call_id:
                answers.append(entry.answer)
        return tuple(answers)

    def found(self) -> tuple[Answer, ...]:
        """What was found since the index was saved, oldest first."""
        return tuple(each.answer for each in self.entries if isinstance(each, _Found))

    def index(self) -> bytes | None:
        """The index; None if it can't be read."""
        return index_files.read(self.path.with_name(self.path.name.removesuffix(_CALLS) + _BASE))

    def add(self, answer: Answer) -> None:
        """Add what was found by another process, so that it is not found once more. Raises `OSError`."""
        file = os.open(self.path, _APPEND)
        try:
            write_all(file, _framed(_Found(answer)))
        finally:
            os.close(file)


def left_journal(folder: Path, call_id: str) -> LeftJournal | None:
    """The newest journal with a call; None if there is none."""
    for path in index_files.newest_first(folder, _CALLS):
        journal = _read(path)
        if journal is not None and journal.has(call_id):
            return journal
    return None


def _read(path: Path) -> LeftJournal | None:
    """A journal as far as it is complete."""
    entries: list[_Entry] = []
    written_ns = index_files.written_ns(path)
    with contextlib.suppress(ValueError):  # also `DecodeError`: the end was not written
        for data in take_frames(bytearray(index_files.read(path) or b"")):
            entries.append(_decode(data))
    if not entries or not isinstance(start := entries[0], _Start):
        return None
    return LeftJournal(path, start, tuple(each for each in entries if not isinstance(each, _Start)), written_ns)


def _framed(entry: _Entry) -> bytes:
    data = _encode(entry)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data
