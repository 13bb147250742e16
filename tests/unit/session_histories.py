"""Generated sessions: events of turns, in orders in which real sessions log them."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from bradawl.core.effects import Effects
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    Envelope,
    Event,
    NoteDelivered,
    NoteQueued,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestSent,
    ResultAmended,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import (
    Assistant,
    Message,
    Note,
    Origin,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)

ORIGIN = Origin("openai_chat", "openai", "gpt")
BROKEN = Failure("connection", "the connection broke", retryable=True)
OPENED = SessionOpened(1, "/p", "/p")


def prompt(text: str) -> PromptSubmitted:
    return PromptSubmitted((Text(text),))


def envelopes(events: list[Event], agent: str = "main", first: int = 0) -> list[Envelope]:
    """Envelopes of these events, each the child of the one before."""
    return [
        Envelope(seq, seq - 1 if seq > first else None, 0, agent, event)
        for seq, event in enumerate(events, start=first)
    ]


@dataclass
class History:
    """Events, and the messages that their transcript must equal."""

    events: list[Event] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    """Places of the events at which a request left: the transcript must be answerable there."""
    fresh: int = 0
    waiting: list[Note] = field(default_factory=list)

    def number(self) -> int:
        self.fresh += 1
        return self.fresh


@dataclass
class Call:
    """One call: the events it logs, and the result that the model must see."""

    call: ToolCall
    before: tuple[Part, ...]
    is_early: bool
    events: list[Event]
    result: ToolResult


@st.composite
def histories(draw: st.DrawFn, *, reused_ids: bool = False, fresh: int = 0) -> History:
    """One to three turns. With `reused_ids` every reply numbers its calls from zero, as some servers do.

    Ids and texts are numbered from `fresh`, so that one log can contain two histories.
    """
    history = History(events=[SessionOpened(1, "/p", "/p")], fresh=fresh)
    for _ in range(draw(st.integers(1, 3))):
        _turn(draw, history, reused_ids)
    return history


def _turn(draw: st.DrawFn, history: History, reused_ids: bool) -> None:
    prompt = (Text(f"prompt {history.number()}"),)
    history.events.append(PromptSubmitted(prompt))
    history.messages.append(User(prompt))
    for _ in range(draw(st.integers(0, 3))):
        _deliver(history)
        _step(draw, history, reused_ids, count=draw(st.integers(1, 3)))
    _deliver(history)
    _step(draw, history, reused_ids, count=0)
    history.events.append(TurnFinished("completed"))


def _deliver(history: History) -> None:
    for note in history.waiting:
        history.events.append(NoteDelivered(note.id))
        last = history.messages[-1]
        match last:
            case User(parts, notes):
                history.messages[-1] = User(parts, (*notes, note))
            case ToolResults(results, notes):
                history.messages[-1] = ToolResults(results, (*notes, note))
            case Assistant():
                history.messages.append(User((), (note,)))
    history.waiting.clear()


def _step(draw: st.DrawFn, history: History, reused_ids: bool, count: int) -> None:
    step = history.number()
    for _ in range(draw(st.integers(0, 1))):
        history.requests.append(len(history.events))
        history.events.append(RequestSent(step, "hash"))
        withdrawn = [_call(draw, history, step, index, reused_ids) for index in range(draw(st.integers(0, 2)))]
        _merge(draw, history, [call.events for call in withdrawn])
        history.events.append(ReplyWithdrawn(step, BROKEN))
    history.requests.append(len(history.events))
    history.events.append(RequestSent(step, "hash"))
    calls = [_call(draw, history, step, index, reused_ids) for index in range(count)]
    _merge(draw, history, [_early(draw, call) for call in calls])
    parts = [part for call in calls for part in (*call.before, call.call)] or [Text(f"answer {step}")]
    message = Assistant(tuple(parts), ORIGIN)
    history.events.append(AssistantReplied(step, message, "tool_use" if calls else "end_turn"))
    _merge(draw, history, [call.events for call in calls])
    history.messages.append(message)
    if calls:
        history.messages.append(ToolResults(tuple(call.result for call in calls)))


def _call(draw: st.DrawFn, history: History, step: int, index: int, reused_ids: bool) -> Call:
    number = history.number()
    call_id = f"call_{index}" if reused_ids else f"call_{number}"
    call = ToolCall(call_id, "read_file", f'{{"n": {number}}}')
    before = draw(
        st.sampled_from([(), (Text(f"text {number}"),), (Thinking(f"thought {number}"), Text(f"t {number}"))])
    )
    outcome = draw(st.sampled_from(["ok", "error", "refused", "cancelled"]))
    shown = (Text(f"result {number}"),)
    events: list[Event] = []
    if outcome != "refused" or draw(st.booleans()):
        events.append(CallPrepared(call_id, step, call.name, call.raw_arguments, Effects(), before))
    if outcome in ("ok", "error"):
        events.append(ToolStarted(call_id))
    events.append(ToolFinished(call_id, outcome, shown))
    if draw(st.booleans()):
        shown = (Text(f"amended {number}"),)
        events.append(ResultAmended(call_id, shown, "hook"))
    is_early = isinstance(events[0], CallPrepared)
    return Call(call, before, is_early, events, ToolResult(call_id, call.name, shown, outcome != "ok"))


def _early(draw: st.DrawFn, call: Call) -> list[Event]:
    """Removes and returns the events of a call that precede its logged reply; only prepared calls have them."""
    count = draw(st.integers(0, len(call.events))) if call.is_early else 0
    early, call.events = call.events[:count], call.events[count:]
    return early


def _merge(draw: st.DrawFn, history: History, lanes: list[list[Event]]) -> None:
    """Logs the interleaved events of several calls; calls are prepared in call order."""
    lanes = [lane for lane in lanes if lane]
    while lanes:
        first = next((lane for lane in lanes if isinstance(lane[0], CallPrepared)), None)
        ready = [lane for lane in lanes if lane is first or not isinstance(lane[0], CallPrepared)]
        lane = draw(st.sampled_from(ready))
        history.events.append(lane.pop(0))
        lanes = [lane for lane in lanes if lane]
        if draw(st.integers(0, 9)) == 0:
            note = Note(f"note {history.number()}", "look out", "user")
            history.events.append(NoteQueued(note))
            history.waiting.append(note)
