"""An agent whose model answers what it is asked, so that a session can be continued at any point; and its tools."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from scripted_agent import assert_valid, build

from bradawl.agent.agent import Agent
from bradawl.core.deltas import Delta
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import Envelope, HeadMoved, PrefixOpened, RequestParams, RequestSent, Todo, TodosSet
from bradawl.core.messages import Message, Origin, Text
from bradawl.core.ports import CallContext, ModelInfo, Prefix, ToolOutput, Window
from bradawl.core.retry import RetryBudget
from bradawl.core.tools import ToolSpec
from bradawl.shaping.compaction.summary import SYSTEM
from bradawl.testing.script import Entry
from bradawl.testing.scripted import ScriptedModel, ScriptedSession, deltas_of

NOTES = "## Goal and state\nThe parser is being made faster; the tokenizer is done and tests/test_tokens.py passes."
PROMPT = "Make the parser faster. Never change the wire format, and keep the module free of dependencies."
Answer = Callable[[Sequence[Message]], dict[str, Any]]


class Sent(NamedTuple):
    """A request of a conversation, and the number of entries that the log had."""

    session: int
    """Number of the conversation with the model, from 0."""
    messages: tuple[Message, ...]


class AnsweringModel:
    """`Model` that computes each answer from the messages; requests for a summary get `notes`, or fail without."""

    def __init__(
        self, answer: Answer, *, notes: str = NOTES, window: int | None = None, name: str = "answering"
    ) -> None:
        self._answer, self._notes = answer, notes
        self._scripted = ScriptedModel(b"[]")
        self.info = ModelInfo(Origin("scripted", "scripted", name), window)
        self.sent: list[Sent] = []
        self.summaries: list[tuple[Message, ...]] = []
        self.opened = 0
        """Conversations that were opened, those for summaries not counted."""

    def open(self, prefix: Prefix, session_id: str = "") -> "AnsweringSession":
        is_summary = prefix.system == SYSTEM
        number = self.opened
        self.opened += not is_summary
        return AnsweringSession(self, self._scripted, prefix, None if is_summary else number)

    def answer(self, messages: list[Message], session: int | None) -> dict[str, Any]:
        assert_valid(messages)
        if session is None:
            self.summaries.append(tuple(messages))
            return {"text": self._notes} if self._notes else {"faults": {"status": 500}}
        self.sent.append(Sent(session, tuple(messages)))
        return self._answer(messages)

    async def window(self) -> Window:
        known = self.info.context_window
        return Window(known or 128_000, "settings" if known else "assumed")

    async def aclose(self) -> None:
        """Nothing to close."""


class AnsweringSession(ScriptedSession):
    """One conversation with an `AnsweringModel`."""

    def __init__(self, model: AnsweringModel, scripted: ScriptedModel, prefix: Prefix, number: int | None) -> None:
        super().__init__(scripted, prefix, None, None)  # pyright: ignore[reportArgumentType] no script is read
        self._answering, self._number = model, number

    @property
    def info(self) -> ModelInfo:
        return self._answering.info

    async def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        entry = msgspec.convert(self._answering.answer(self._messages, self._number), Entry)
        for delta in deltas_of(entry, 1, self.info.origin.model):
            await asyncio.sleep(0)  # other tasks run while a real reply arrives
            yield delta


class LinesParams(msgspec.Struct, frozen=True):
    """What to print."""

    name: str
    lines: int = 40
    fails: bool = False
    todos: int = 0


class Lines:
    """A tool with long results; its calls with one name replace each other, as those of a listing do."""

    spec = ToolSpec("glob")
    params = LinesParams

    def effects(self, params: LinesParams, context: CallContext) -> Effects:
        return Effects()

    async def run(self, params: LinesParams, context: CallContext) -> ToolOutput:
        if params.todos:
            context.change(TodosSet(tuple(Todo(f"todo {number}") for number in range(params.todos))))
        if params.fails:
            raise ToolError("It failed.")
        lines = [f"line {number} of {params.name} says nothing in particular" for number in range(params.lines)]
        return ToolOutput((Text("\n".join([f"first of {params.name}", *lines, f"last of {params.name}"])),), limit=None)


def lines(call_id: str, name: str, count: int = 40, **more: Any) -> dict[str, Any]:
    """A call of `Lines`."""
    return {"id": call_id, "name": "glob", "arguments": json.dumps({"name": name, "lines": count, **more})}


def agent_of(model: Any, **changes: Any) -> Agent:
    agent, *_ = build([], **{"model": model, "tools": (Lines(),), **changes})
    return agent


# ------------------------------------------------------------------ what must hold of every log


def requests_in(entries: Sequence[Envelope]) -> list[bool]:
    """For each request of one agent, whether a new prefix may begin with it: one opened, or the head moved."""
    found: list[bool] = []
    is_new = True
    for entry in entries:
        if isinstance(entry.event, PrefixOpened | HeadMoved):
            is_new = True
        elif isinstance(entry.event, RequestSent):
            found.append(is_new)
            is_new = False
    return found


def assert_only_extended(sent: Sequence[tuple[Message, ...]], is_new: Sequence[bool]) -> None:
    """No message that was sent changes before the next prefix opens."""
    assert len(sent) == len(is_new)
    for (before, after), new in zip(pairwise(sent), is_new[1:], strict=True):
        assert new or after[: len(before)] == before


def count(entries: Sequence[Envelope], kind: type, agent: str = "main") -> int:
    return sum(isinstance(entry.event, kind) and entry.agent == agent for entry in entries)
