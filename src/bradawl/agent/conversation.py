"""A session's log, the folds over it, the notes that wait for the model, and the callback that shows events.

Everything that works on a session takes a `Conversation`; this module imports no other one of `agent` but the inbox.
"""

from collections.abc import Callable
from typing import Final, Literal

from bradawl.agent.inbox import QueueInbox
from bradawl.core.deltas import CallDelta, Notice, RetryScheduled, TextDelta, ThinkingDelta, ToolProgress
from bradawl.core.errors import SessionError
from bradawl.core.events import Envelope, Event, HeadMoved, Live, NoteDelivered, NoteQueued, NoteWithdrawn
from bradawl.core.messages import Note
from bradawl.core.ports import Blobs, Clock, Emit, Ids, OpenSession, SessionLog
from bradawl.folds.choices import choices_in
from bradawl.folds.session_state import SessionState, add_spending, remember
from bradawl.folds.transcript import Transcript, apply, branch

_NOT_WRITTEN: Final = (
    "Part of the history of this session is not on the disk, which may be full, so nothing can be undone. Free some"
    " space, then try again before you close the session: that part is lost with it."
)


def ignore(_: Envelope | Live) -> None:
    """An `Emit` that shows nothing."""


_UNDO_AT_RISK: Final = (
    "The history of this session can't be written to the disk. If that stays so until you leave the session, undo does"
    " not know what calls change from now on: free some space on the disk, or make it writable."
)


class Conversation:
    """The durable part of a session. Only `record` changes it; the folds follow."""

    def __init__(self, opened: OpenSession, ids: Ids, clock: Clock, name: str = "main") -> None:
        """`name` selects the entries of one agent: sub-agents write to the log of the session that started them."""
        self.name, self.is_sub_agent = name, name != "main"
        self.ids, self.clock = ids, clock
        self.log: SessionLog = opened.log
        self.blobs: Blobs = opened.blobs
        self.records: Blobs = opened.records or opened.blobs
        self._waiting_warnings = opened.notices
        """Warnings that nothing has shown yet."""
        self.transcript = Transcript()
        self.state = SessionState()
        self.turn_state = SessionState()
        """The same fold, over the events since the turn began."""
        self.inbox = QueueInbox()
        self.emit: Emit = ignore
        self._last: Envelope | None = None
        self._listeners: list[Callable[[Event], None]] = []
        self._read = opened.read
        self._reaches_disk = False
        """Whether the last entry that was waited for reached the disk."""
        self._fold(opened.entries)

    @property
    def last_event(self) -> Event | None:
        """The last event of the log; None in a session whose log is empty."""
        return self._last.event if self._last else None

    @property
    def last_seq(self) -> int:
        """The number of the last entry; -1 in a session whose log is empty."""
        return self._last.seq if self._last else -1

    def begin_turn(self, emit: Emit) -> None:
        """Show events with `emit` from now on, and start `turn_state` anew."""
        self.turn_state = SessionState()
        self.show_with(emit)

    def show_with(self, emit: Emit) -> None:
        """Show events with `emit` from now on. It first gets the warnings that nothing has shown yet."""
        self.emit = emit
        waiting, self._waiting_warnings = self._waiting_warnings, ()
        for text in waiting:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Show the user a warning, for example that the history can't be saved. It waits until events are shown."""
        if self.emit is ignore:
            self._waiting_warnings += (text,)
        else:
            self.show(Notice(text))

    def record(self, event: Event) -> Envelope:
        """Append an event to the log, fold it, and show it. Does not wait for the disk."""
        envelope = self.log.append(event)
        self._take(envelope)
        self.emit(envelope)
        return envelope

    async def is_on_disk(self) -> bool:
        """Wait until everything recorded is on the disk; false if that failed."""
        return self._last is None or await self.log.durable(self._last)

    async def reach_disk(self, entry: Envelope) -> bool:
        """Wait until an entry is on the disk; false if that failed. Warns the user when that begins to fail."""
        reached_before, self._reaches_disk = self._reaches_disk, await self.log.durable(entry)
        if reached_before and not self._reaches_disk:
            self.warn(_UNDO_AT_RISK)
        return self._reaches_disk

    def entries(self) -> tuple[Envelope, ...]:
        """All entries of the log, those of sub-agents and of abandoned branches too. Raises `SessionError`."""
        if self._last is None:
            return ()
        if self._read is None:
            raise SessionError("The history of this session can't be read again, so nothing in it can be undone.")
        entries = self._read()
        if self._last.seq != max((entry.seq for entry in entries if entry.agent == self.name), default=-1):
            raise SessionError(_NOT_WRITTEN)
        return entries

    def move_head(self, moved: HeadMoved) -> Envelope:
        """Log the move, and fold the branch that it leads to anew. No call may be open.

        After a move of the conversation the prefix must be reopened. Raises `SessionError`, with nothing done, for
        an entry that does not exist and for a history that can't be read.
        """
        entries = () if moved.restore == "code" else self.entries()
        if entries and not any(entry.seq == moved.to and entry.agent == self.name for entry in entries):
            raise SessionError(f"There is no entry {moved.to} in this session's history.")
        envelope = self.log.append(moved)
        if entries:
            self._fold((*entries, envelope))
        self._tell(envelope)
        self.emit(envelope)
        return envelope

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with each event that is recorded from now on, after the folds and before it is shown."""
        self._listeners.append(listener)

    def show(self, item: TextDelta | ThinkingDelta | CallDelta | ToolProgress | RetryScheduled | Notice) -> None:
        """Show something that is not stored."""
        self.emit(Live(self.name, self.last_seq, item))

    def note(self, text: str, source: Literal["user", "mode", "instructions", "system"] = "system") -> None:
        """Queue text for the model; it is delivered at the next step boundary."""
        note = Note(self.ids.ulid(), text, source)
        self.inbox.put(note)
        if self._last is not None:  # `SessionOpened` must be the first event of a log
            self.record(NoteQueued(note))

    def take_back_note(self) -> str:
        """Withdraw the latest message of the user that waits; its text, empty if there is none."""
        note = self.inbox.take_back()
        if note is not None and self._last is not None:
            self.record(NoteWithdrawn(note.id))
        return note.text if note else ""

    def deliver_notes(self) -> None:
        """Put all waiting notes into the transcript."""
        for note in self.inbox.drain():
            self.record(NoteDelivered(note.id))

    def _fold(self, entries: tuple[Envelope, ...]) -> None:
        """Fold the branch at the head, in place of what was folded before."""
        transcript, state = Transcript(), SessionState()
        chain = branch(entries, self.name)
        for envelope in chain:
            apply(transcript, envelope)
            remember(state, envelope)
        kept = {envelope.seq for envelope in chain}
        own = tuple(each for each in entries if each.agent == self.name)
        add_spending(state, (each for each in own if each.seq not in kept))
        state.choices = choices_in(own)
        self.transcript.replace(transcript)
        self.state.replace(state)
        self._last = chain[-1] if chain else None
        self.inbox.drain()
        for note in transcript.waiting_notes.values():
            self.inbox.put(note)

    def _take(self, envelope: Envelope) -> None:
        apply(self.transcript, envelope)
        remember(self.state, envelope)
        remember(self.turn_state, envelope)
        self._tell(envelope)

    def _tell(self, envelope: Envelope) -> None:
        self._last = envelope
        for listener in self._listeners:
            listener(envelope.event)
