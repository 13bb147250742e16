"""The messages the model sees, as a fold over the log."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    Compacted,
    Envelope,
    Event,
    HeadMoved,
    NoteDelivered,
    NoteQueued,
    NoteWithdrawn,
    Pin,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestSent,
    ResultAmended,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Message,
    Note,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
    calls_of,
)
from bradawl.folds.compacted import compacted, without_thinking

_Shown = tuple[Text | Image | Document, ...]


class Transcript:
    """The state of the fold. `apply` changes it in place; each call costs amortised O(1)."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.open_calls: dict[str, ToolCall] = {}
        """Calls of the last reply without a result, in call order."""
        self.prepared: dict[str, CallPrepared] = {}
        """Calls of a reply that is not logged yet."""
        self.started: dict[str, Mapping[str, str]] = {}
        """Started calls without a result, with the previous content of the files they may write."""
        self.waiting_notes: dict[str, Note] = {}
        self.turn_is_open = False
        self.compactions = 0
        """Number of compactions so far."""
        self.pins: tuple[Pin, ...] = ()
        """Pins of the first message, if a compaction wrote it."""
        self.summary = ""
        """The summary in the first message; empty before the first one."""
        self.record_ref = ""
        """Blob with what the last compaction took out, as text; empty for none."""
        self.results: dict[str, ToolResult] = {}
        """Results of the last reply, until all of its calls have one."""
        self.held_notes: list[Note] = []
        """Notes delivered while calls are open; they are added to the results."""
        self.sent: dict[int, str] = {}
        """Maps a number of messages to the beginning of the prefix hash after them, from the requests of this
        prefix.
        """
        self.sent_to = 0
        """Number of messages in the last request; they never change."""
        self.replied_at = 0
        """Number of messages up to the last reply, which is included."""
        self.awaits_prefix = False
        """True after a compaction, until its prefix opens."""
        self.awaits_request = False
        """True after a compaction, until the next request. A reply that is logged meanwhile answers an earlier one."""

    def replace(self, other: "Transcript") -> None:
        """Become what `other` is, for all who hold this transcript; `other` must not be used any more."""
        vars(self).update(vars(other))


def apply(transcript: Transcript, envelope: Envelope) -> Transcript:
    """Apply one event; returns the same transcript."""
    event = envelope.event
    match event:
        case PromptSubmitted(parts):
            transcript.turn_is_open = True
            transcript.messages.append(User(parts))
        case NoteQueued(note):
            transcript.waiting_notes[note.id] = note
        case NoteWithdrawn(note_id):
            transcript.waiting_notes.pop(note_id, None)
        case NoteDelivered(note_id):
            _deliver(transcript, note_id)
        case AssistantReplied():
            _reply(transcript, event)
        case ReplyWithdrawn():
            transcript.prepared.clear()
            transcript.started.clear()
            transcript.results.clear()
        case Compacted():
            _compact(transcript, event)
        case TurnFinished():
            transcript.turn_is_open = False
        case _:
            _apply_other(transcript, event)
    return transcript


def _apply_other(transcript: Transcript, event: Event) -> None:
    match event:
        case PrefixOpened():
            transcript.sent.clear()
            transcript.awaits_prefix = False
        case RequestSent(prefix_hash=prefix_hash, marks=marks):
            count = len(transcript.messages)
            transcript.sent.update(zip(range(count + 1 - len(marks), count + 1), marks, strict=True))
            transcript.sent[count], transcript.sent_to = prefix_hash, count
            transcript.awaits_request = False
        case CallPrepared():
            if event.call_id not in transcript.open_calls:
                transcript.prepared[event.call_id] = event
        case ToolStarted(call_id, before):
            transcript.started[call_id] = before
        case ToolFinished(call_id, outcome, shown):
            _finish(transcript, call_id, shown, is_error=outcome != "ok")
        case ResultAmended(call_id, shown):
            _amend(transcript, call_id, shown)
        case _:
            pass  # all other events are not part of the transcript


def fold(envelopes: Iterable[Envelope], agent: str = "main") -> Transcript:
    """The transcript of one agent at the head of its branch."""
    transcript = Transcript()
    for envelope in branch(envelopes, agent):
        apply(transcript, envelope)
    return transcript


def branch(envelopes: Iterable[Envelope], agent: str = "main") -> Sequence[Envelope]:
    """The entries from the root to the head of one agent, in order."""
    by_seq: dict[int, Envelope] = {}
    head: int | None = None
    for envelope in envelopes:
        if envelope.agent == agent:
            by_seq[envelope.seq] = envelope
            head = envelope.seq
    chain: list[Envelope] = []
    while head is not None and (entry := by_seq.get(head)) is not None:
        chain.append(entry)
        event = entry.event
        following = event.to if isinstance(event, HeadMoved) and event.restore != "code" else entry.parent
        head = following if following is None or following < head else None
    return chain[::-1]


def _compact(transcript: Transcript, event: Compacted) -> None:
    transcript.messages[:] = compacted(transcript.messages, event)
    transcript.sent_to = transcript.replied_at = 0
    transcript.sent.clear()
    transcript.awaits_prefix = transcript.awaits_request = True
    transcript.compactions += 1
    if event.pins or event.summary:
        transcript.pins, transcript.summary = event.pins, event.summary
    transcript.record_ref = event.record_ref or transcript.record_ref


def _reply(transcript: Transcript, replied: AssistantReplied) -> None:
    transcript.prepared.clear()
    transcript.replied_at = len(transcript.messages)
    message = without_thinking(replied.message) if transcript.awaits_request else replied.message
    if not message.parts:
        return
    transcript.messages.append(message)
    transcript.replied_at += 1
    transcript.open_calls = {call.id: call for call in calls_of(message)}
    for call_id in [call_id for call_id in transcript.open_calls if call_id in transcript.results]:
        del transcript.open_calls[call_id]
    _close_batch(transcript)


def _finish(transcript: Transcript, call_id: str, shown: _Shown, *, is_error: bool) -> None:
    transcript.started.pop(call_id, None)
    call = transcript.open_calls.pop(call_id, None) or transcript.prepared.get(call_id)
    name = call.name if call else ""
    transcript.results[call_id] = ToolResult(call_id, name, shown, is_error)
    if not transcript.prepared:
        _close_batch(transcript)


def _close_batch(transcript: Transcript) -> None:
    """When every call of the last reply has a result, add them as one message, in call order."""
    last = transcript.messages[-1] if transcript.messages else None
    if transcript.open_calls or not isinstance(last, Assistant):
        return
    results = tuple(transcript.results[call.id] for call in calls_of(last) if call.id in transcript.results)
    transcript.results.clear()
    if results:
        transcript.messages.append(ToolResults(results, tuple(transcript.held_notes)))
        transcript.held_notes.clear()


def _amend(transcript: Transcript, call_id: str, shown: _Shown) -> None:
    if (waiting := transcript.results.get(call_id)) is not None:
        transcript.results[call_id] = msgspec.structs.replace(waiting, parts=shown)
        return
    last = transcript.messages[-1] if transcript.messages else None
    if isinstance(last, ToolResults):
        results = tuple(
            msgspec.structs.replace(result, parts=shown) if result.call_id == call_id else result
            for result in last.results
        )
        transcript.messages[-1] = msgspec.structs.replace(last, results=results)


def _deliver(transcript: Transcript, note_id: str) -> None:
    note = transcript.waiting_notes.pop(note_id, None)
    if note is None:
        return
    last = transcript.messages[-1] if transcript.messages else None
    if transcript.open_calls:
        transcript.held_notes.append(note)
    elif last is None or isinstance(last, Assistant) or len(transcript.messages) <= transcript.sent_to:
        transcript.messages.append(User((), (note,)))
    else:
        transcript.messages[-1] = msgspec.structs.replace(last, notes=(*last.notes, note))
