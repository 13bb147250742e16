"""Encodes and decodes the lines of a session's file: one envelope as JSON on each line.

Entries of unknown kinds (from a newer version) and damaged lines are counted and reported. The entries after
them are linked to the ones before, so that a chain of parents has no gap.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from bradawl.core.errors import SessionDamaged
from bradawl.core.events import FORMAT_VERSION, Envelope, HeadMoved
from bradawl.safety.name_lists import first_of

Plain = dict[str, object]
Upcaster = Callable[[Plain], Plain]

UPCASTERS: Mapping[int, Upcaster] = {}
"""By format version, the function that converts a line, as plain JSON, to the next version."""

MAIN = "main"
_SHOWN_LINES = 10
_START = b'{"seq":'

_encoder = msgspec.json.Encoder()


class _OpeningEvent(msgspec.Struct):
    type: str
    version: int


class _Opening(msgspec.Struct):
    event: _OpeningEvent


class _Unknown(msgspec.Struct):
    """The fields that the entries of all versions have."""

    seq: int
    parent: int | None
    at: int
    agent: str
    event: Plain


@cache
def _envelope_decoder() -> msgspec.json.Decoder[Envelope]:
    # Creating it takes a millisecond, so it is created when a session is first read.
    return msgspec.json.Decoder(Envelope)


def encode(envelope: Envelope) -> bytes:
    """One line with its newline. Any `str`, also with lone surrogates, can be decoded again."""
    try:
        line = _encoder.encode(envelope)
    except UnicodeEncodeError:
        # A file name that is not UTF-8 has lone surrogates, which JSON can only hold as escapes.
        line = json.dumps(msgspec.to_builtins(envelope), separators=(",", ":")).encode("ascii")
    return line + b"\n"


class Reader:
    """Reads the lines of one session in order; gives the number and parents of the next entry."""

    def __init__(self, upcasters: Mapping[int, Upcaster] = UPCASTERS, current: int = FORMAT_VERSION) -> None:
        self._upcasters = upcasters
        self._current = current
        self._agents: dict[int, str] = {}
        self._stand_ins: dict[int, int | None] = {}
        self._first = 0
        self._damaged: list[int] = []
        self._newest = 0
        self.lines = 0
        """Lines read."""
        self.version = 0
        """Format version of the last line read; 0 before the first."""
        self.next_seq = 0
        self.last: dict[str, int] = {}
        """By agent, the seq of its last readable entry."""

    def feed(self, line: bytes) -> tuple[Envelope, ...]:
        """The entries of one line: one; none if it can't be read; more if lines were joined by damage.

        Raises `SessionDamaged` if the first line does not open a session.
        """
        self.lines += 1
        if not line.strip():
            return ()
        if self.version == 0 or b'"type":"Session' in line[:200]:
            self._read_version(line)
        entry = self._decode(line)
        if entry is not None and self._is_new(entry):
            return self._take(entry)
        self._damaged.append(self.lines)
        return self._salvage(line)

    def can_read(self, line: bytes) -> bool:
        """True if the line is one complete entry, of a known kind or not."""
        return self._decode(line) is not None

    def notices(self) -> tuple[str, ...]:
        """Messages for the user about entries that could not be read."""
        notices: list[str] = []
        if self._newest > self._current:
            notices.append(
                f"This session was written by a newer bradawl (format {self._newest}; this one knows {self._current})."
            )
        if count := len(self._stand_ins):
            what = "entry of a kind" if count == 1 else "entries of kinds"
            notices.append(f"{count} {what} this version does not know stayed in the file and is not used.")
        if self._damaged:
            shown = first_of(self._damaged, _SHOWN_LINES)
            notices.append(f"Damaged lines of the session's file were skipped: {shown}. What follows them is kept.")
        return tuple(notices)

    def nearest(self, seq: int | None, agent: str = MAIN) -> int | None:
        """The entry itself if it could be read, else its parent, else the entry before it."""
        if seq is None or seq in self._agents or seq < self._first:
            return seq
        if seq in self._stand_ins:
            return self._stand_ins[seq]
        last = self.last.get(agent, self.last.get(MAIN))
        if last is None or last < seq:
            return last
        before = (known for known, owner in self._agents.items() if known < seq and owner == agent)
        return max(before, default=None)

    def _read_version(self, line: bytes) -> None:
        try:
            event = msgspec.json.decode(line, type=_Opening).event
        except (msgspec.DecodeError, UnicodeDecodeError):
            event = None
        if event is not None and event.type in ("SessionOpened", "SessionForked") and event.version > 0:
            self.version = event.version
            self._newest = max(self._newest, event.version)
        elif self.version == 0:
            raise SessionDamaged("The first line of the session's file does not open a session.")

    def _decode(self, line: bytes) -> Envelope | _Unknown | None:
        if 0 < self.version < self._current:
            return self._decode_plain(line)
        try:
            return _envelope_decoder().decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._decode_plain(line)

    def _decode_plain(self, line: bytes) -> Envelope | _Unknown | None:
        try:
            plain = json.loads(line)
            if not isinstance(plain, dict):
                return None
            for version in range(self.version or self._current, self._current):
                plain = self._upcasters[version](plain)
        except (ValueError, RecursionError):
            return None
        try:
            return msgspec.convert(plain, Envelope)
        except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):
            return _unknown(plain)

    def _is_new(self, entry: Envelope | _Unknown) -> bool:
        return entry.seq >= 0 and entry.seq not in self._agents and entry.seq not in self._stand_ins

    def _take(self, entry: Envelope | _Unknown) -> tuple[Envelope, ...]:
        if not self._agents and not self._stand_ins:
            self._first = entry.seq
        parent = self.nearest(entry.parent, entry.agent)
        self.next_seq = max(self.next_seq, entry.seq + 1, self.lines)
        if isinstance(entry, _Unknown):
            self._stand_ins[entry.seq] = parent
            return ()
        event = entry.event
        if isinstance(event, HeadMoved) and (to := self.nearest(event.to, entry.agent)) is not None:
            event = event if to == event.to else msgspec.structs.replace(event, to=to)
        self._agents[entry.seq] = entry.agent
        self.last[entry.agent] = entry.seq
        if parent == entry.parent and event is entry.event:
            return (entry,)
        return (Envelope(entry.seq, parent, entry.at, entry.agent, event),)

    def _salvage(self, line: bytes) -> tuple[Envelope, ...]:
        """Complete entries in a damaged line: after a block of NULs, or joined to a torn entry."""
        self.next_seq = max(self.next_seq, self.lines)
        found: list[Envelope] = []
        # In a JSON string the quotes would be escaped, so this can't be part of a text.
        for piece in line.split(_START)[1:]:
            entry = self._decode((_START + piece).strip(b"\0 \r\n"))
            if entry is not None and self._is_new(entry):
                found.extend(self._take(entry))
        return tuple(found)


def _unknown(plain: Plain) -> _Unknown | None:
    try:
        entry = msgspec.convert(plain, _Unknown)
    except msgspec.ValidationError:
        return None
    return entry if isinstance(entry.event.get("type"), str) else None
