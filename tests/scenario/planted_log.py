"""Writes the events of a session in the order in which the agent logs them."""

import json
from typing import Literal, NamedTuple

from planted_words import Words

from bradawl.core.effects import Effects
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    CheckpointTaken,
    Event,
    NoteDelivered,
    NoteQueued,
    Outcome,
    PermissionAsked,
    PermissionDecided,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestSent,
    SessionOpened,
    State,
    StateChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnReason,
)
from bradawl.core.messages import Assistant, Document, Image, Note, Origin, Part, Text, Thinking, ToolCall
from bradawl.core.usage import Usage
from bradawl.shaping.context_size import part_tokens
from bradawl.shaping.tokens import estimate

_ORIGINS = (
    Origin("anthropic_messages", "anthropic", "claude-x"),
    Origin("openai_chat", "openai", "gpt-x"),
    Origin("openai_responses", "openai", "gpt-x"),
)
_OVERLOADED = Failure("overloaded", "busy", retryable=True, status=529)
Source = Literal["user", "job", "mode", "instructions"]
Shown = tuple[Text | Image | Document, ...]


class Call(NamedTuple):
    """A call of a reply, and how it ends."""

    name: str
    arguments: dict[str, object]
    shown: Shown
    outcome: Outcome = "ok"
    states: tuple[State, ...] = ()


class SessionLog:
    """The events so far, and about how many tokens the model sees in them."""

    def __init__(self, words: Words) -> None:
        chance = words.chance
        self._words, self._chance = words, chance
        self._origin = chance.choice(_ORIGINS)
        self._escapes = chance.random() < 0.5
        """Whether the model escapes characters outside of ASCII in arguments."""
        self._calls = self._notes = self.steps = 0
        self.tokens = 0
        self.project = f"/srv/{words.fill('{kebab}')}"
        reference = words.hexadecimal(64)
        self.events: list[Event] = [
            SessionOpened(1, self.project, self.project, "0.1.0"),
            PrefixOpened(reference, words.hexadecimal(64), self._origin.provider, self._origin.model),
        ]
        self._waiting: list[Note] = []

    @property
    def last_call(self) -> str:
        """Id of the last call."""
        return f"call_{self._calls:04}"

    def prompt(self, *parts: Text | Image) -> None:
        """The user's prompt."""
        self.tokens += 4 + sum(map(part_tokens, parts))
        self.events.append(PromptSubmitted(parts))

    def note(self, note_text: str, source: Source) -> None:
        """A note that is delivered before the next request."""
        self._notes += 1
        self.tokens += 10 + estimate(note_text)
        note = Note(f"note-{self._notes}", note_text, source)
        self._waiting.append(note)
        self.events.append(NoteQueued(note))

    def state(self, state: State) -> None:
        """The session's state changed."""
        self.events.append(StateChanged(state))

    def step(self, text: str, *calls: Call, thought: str = "") -> None:
        """A request, the reply, and the results of its calls."""
        self.steps += 1
        self._send()
        parts: list[Part] = []
        if thought:
            parts.append(Thinking(thought, self._words.hexadecimal(48)))
        if text:
            parts.append(Text(text))
        made = [self._made(call) for call in calls]
        parts += [tool_call for tool_call, _ in made]
        events = [self._events(tool_call, call) for tool_call, call in made]
        early = self._chance.randint(0, 2) if len(calls) == 1 and self._chance.random() < 0.2 else 0
        if early:
            before = tuple(part for part in parts if not isinstance(part, ToolCall))
            prepared, *rest = events[0]
            assert isinstance(prepared, CallPrepared)
            events[0] = [
                CallPrepared(
                    prepared.call_id, prepared.step, prepared.name, prepared.raw_arguments, prepared.effects, before
                ),
                *rest,
            ]
            self.events += events[0][:early]
            events[0] = events[0][early:]
        usage = Usage(self._chance.randint(100, 4_000), self._chance.randint(20, 900), self._chance.randint(0, 60_000))
        reply = Assistant(tuple(parts), self._origin)
        self.events.append(AssistantReplied(self.steps, reply, "tool_use" if calls else "end_turn", usage=usage))
        self.tokens += 4 + sum(map(part_tokens, parts))
        self._merge(events)

    def finish(self, reason: TurnReason = "completed") -> None:
        """The turn ended."""
        self.events.append(TurnFinished(reason))

    def _send(self) -> None:
        for note in self._waiting:
            self.events.append(NoteDelivered(note.id))
        self._waiting.clear()
        if self._chance.random() < 0.03:
            self.events += [
                RequestSent(self.steps, self._words.hexadecimal(64)),
                ReplyWithdrawn(self.steps, _OVERLOADED),
            ]
        self.events.append(RequestSent(self.steps, self._words.hexadecimal(64)))

    def _made(self, call: Call) -> tuple[ToolCall, Call]:
        self._calls += 1
        raw = json.dumps(call.arguments, ensure_ascii=self._escapes)
        self.tokens += 4 + sum(map(part_tokens, call.shown))
        return ToolCall(f"call_{self._calls:04}", call.name, raw), call

    def _events(self, tool_call: ToolCall, call: Call) -> list[Event]:
        call_id = tool_call.id
        effects = Effects(unknown=True) if call.name == "bash" else Effects()
        events: list[Event] = [
            CallPrepared(call_id, self.steps, call.name, tool_call.raw_arguments, effects),
        ]
        if call.name == "bash" and self._chance.random() < 0.1:
            events += [PermissionAsked(call_id, "it changes something"), PermissionDecided(call_id, "allow", "user")]
        if call.outcome in ("ok", "error", "interrupted"):
            events.append(ToolStarted(call_id))
        events += [StateChanged(state) for state in call.states]
        events.append(ToolFinished(call_id, call.outcome, call.shown))
        if call.name in ("edit_file", "write_file"):
            events.append(CheckpointTaken(call_id, self._words.hexadecimal(40)))
        return events

    def _merge(self, lanes: list[list[Event]]) -> None:
        """Calls are prepared in call order, and end in any order."""
        for lane in lanes:
            while lane and not isinstance(lane[0], ToolFinished):
                self.events.append(lane.pop(0))
        self._chance.shuffle(lanes)
        for lane in lanes:
            self.events += lane
