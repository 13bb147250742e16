"""A session as a list of blocks to be read: prompts, texts, thinking, calls with their results, remarks."""

from collections.abc import Iterable

import msgspec

from bradawl.app.rendering import compaction_text
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Envelope,
    Event,
    ModelChosen,
    NoteDelivered,
    NoteQueued,
    Outcome,
    PromptSubmitted,
    ResultAmended,
    StateChanged,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Document, Image, Opaque, Part, Refusal, Text, Thinking, ToolCall
from bradawl.folds.answers import Answers
from bradawl.folds.transcript import branch


class Prompt(msgspec.Struct, frozen=True):
    """A prompt or a message of the user; `number` is 0 for a message during a turn."""

    number: int
    text: str


class Said(msgspec.Struct, frozen=True):
    """Text of the model."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """Reasoning of the model."""

    text: str


class Remark(msgspec.Struct, frozen=True):
    """What happened besides: a compaction, another model, the end of a turn that did not complete."""

    text: str


class Called(msgspec.Struct):
    """A call, with its result as soon as that is known."""

    name: str
    raw_arguments: str
    outcome: Outcome | None = None
    result: str = ""
    finished: ToolFinished | None = None
    """Its end as it was logged."""


Block = Prompt | Said | Thought | Remark | Called


def blocks_of(entries: Iterable[Envelope]) -> list[Block]:
    """The blocks of the conversation as it is now; what was taken back is left out, what was compacted is in it."""
    fold = _Fold()
    for entry in branch(entries):
        fold.take(entry.event)
    return fold.blocks


class _Fold:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._answers = Answers()
        self._prompts = 0
        self._notes: dict[str, str] = {}
        self._calls: dict[str, Called] = {}
        """The last call with each id."""
        self._early: dict[str, ToolFinished] = {}
        """Results of calls whose reply is not in the log yet."""

    def take(self, event: Event) -> None:
        if answer := self._answers.take(event):
            self.blocks.append(Said(answer))
        match event:
            case PromptSubmitted(parts):
                self._prompts += 1
                self.blocks.append(Prompt(self._prompts, text_with_files(parts)))
            case AssistantReplied(message=message):
                self._reply(message.parts)
            case ToolFinished():
                self._finish(event)
            case ResultAmended(call_id, shown) if call_id in self._calls:
                self._calls[call_id].result = text_with_files(shown)
            case NoteQueued(note) if note.source == "user":
                self._notes[note.id] = note.text
            case NoteDelivered(note_id) if note_id in self._notes:
                self.blocks.append(Prompt(0, self._notes.pop(note_id)))
            case _:
                self._remark(event)

    def _remark(self, event: Event) -> None:
        match event:
            case Compacted():
                self.blocks.append(Remark(compaction_text(event)))
            case StateChanged(ModelChosen(provider, model)):
                self.blocks.append(Remark(f"{provider}/{model} answers from here on"))
            case TurnFinished(reason, failure) if reason != "completed":
                self.blocks.append(Remark(f"the turn ended: {failure or reason}"))
            case _:
                pass

    def _reply(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            match part:
                case Text(text) | Refusal(text):
                    self.blocks += [Said(text)] if text.strip() else []
                case Thinking(text):
                    self.blocks += [Thought(text)] if text.strip() else []
                case ToolCall(call_id, name, raw_arguments):
                    self._calls[call_id] = call = Called(name, raw_arguments)
                    self.blocks.append(call)
                    if (early := self._early.pop(call_id, None)) is not None:
                        self._finish(early)
                case Image() | Document() | Opaque():
                    pass

    def _finish(self, event: ToolFinished) -> None:
        call = self._calls.get(event.call_id)
        if call is None or call.outcome is not None:  # servers use ids again
            self._early[event.call_id] = event
            return
        call.outcome, call.result, call.finished = event.outcome, text_with_files(event.shown), event


def text_with_files(parts: Iterable[Text | Image | Document]) -> str:
    """The texts of some parts; other kinds as `[image/png, 12,345 bytes]`."""
    return "".join(
        part.text if isinstance(part, Text) else f"[{part.media_type}, {len(part.data):,} bytes]" for part in parts
    )
