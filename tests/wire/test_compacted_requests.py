"""After a compaction of any tier, at any step, every server accepts the next requests.

`binding_servers` sign thinking for the exact beginning of a request and bind items to their reasoning, so a request
that holds thinking from before the new prefix, or an item without its reasoning, is refused.
"""

import json
from typing import Any

import msgspec
import pytest

from bradawl.agent.compaction.compactor import Compactor
from bradawl.agent.conversation import Conversation
from bradawl.agent.prefix import PrefixLedger
from bradawl.core.deltas import PartClosed, ReplyEnded, StreamFailed
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Pin,
    PrefixOpened,
    PromptSubmitted,
    RequestParams,
    SessionOpened,
    ToolFinished,
)
from bradawl.core.messages import Document, Image, Text, ToolResults, calls_of
from bradawl.core.permissions import Policy
from bradawl.core.ports import ModelInfo, Prefix, Window
from bradawl.folds.transcript import Transcript, apply
from bradawl.shaping.compaction.limits import Room
from bradawl.shaping.compaction.summary import SYSTEM, summary_text
from bradawl.testing.fakes import FakeClock, FakeIds, FakeTool, MemoryFiles, MemoryStore
from wire.binding_servers import SERVERS, Said, Server

pytestmark = pytest.mark.slow
NOTES = "## Goal and state\nThe parser is being made faster; the tokenizer is done and tests/test_tokens.py passes."
PIXEL = Image("image/png", b"\x89PNG\r\n")
MOST_OUTPUT = RequestParams(max_output_tokens=20_000, effort="high")


class Step(msgspec.Struct, frozen=True):
    """What comes before a request, and the reply to it."""

    reply: Said
    prompt: tuple[Any, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def read(call_id: str, path: str) -> tuple[str, str]:
    return call_id, json.dumps({"file_path": path})


STEPS = (
    Step(
        Said(["thinking", "redacted", "text", read("c1", "a.py"), read("c2", "b.py")]),
        (Text("Make the parser faster. Never change the wire format."), PIXEL),
        (("Be brief.", "instructions"), ("The mode is plan.", "mode")),
    ),
    Step(Said(["thinking", read("functions.read_file:0", "picture.png")]), notes=(("Job 1 ended.", "job"),)),
    Step(Said([read("c4", "a.py"), read("c5", "missing.py"), read("c6", "b.py")])),
    Step(Said(["thinking", "text"]), notes=(("Leave the tests alone, please.", "user"),)),
    Step(Said(["thinking", "text"], is_cut=True), (Text("And the lexer?"), Document("text/plain", b"notes", "n.txt"))),
    Step(Said(["thinking", "text", read("c7", "a.py"), "text"], is_cut=True), notes=(("Go on.", "system"),)),
    Step(Said(["text", read("c" * 60, "c.py"), "text"])),
    Step(Said(["thinking", "opaque", read("c9", "c.py")])),
    Step(Said(["thinking"])),
    Step(Said(["thinking", "text", read("c10", "d.py"), "thinking", read("c11", "b.py")]), (Text("Still there?"),)),
    Step(Said([read("c12", "picture.png")])),
    Step(Said(["refusal"])),
    Step(Said(["thinking", read("c13", "a.py")]), (Text("Then only the lexer."),)),
    Step(Said(["thinking", "text"])),
)


class BindingModel:
    """A model behind a server; it writes summaries itself, all other replies are given by the test."""

    def __init__(self, server: Server, summary: str) -> None:
        self.server, self._summary = server, summary
        self.codec = server.codec()

    @property
    def info(self) -> ModelInfo:
        return self.server.info

    def open(self, prefix: Prefix, session_id: str = "") -> "BindingSession":
        return BindingSession(self, self.codec.encoder(prefix, self.info, session_id), prefix, self._summary)

    async def window(self) -> Window:
        return Window(128_000, "assumed")

    async def aclose(self) -> None:
        """Nothing to close."""


class BindingSession:
    """One conversation with a `BindingModel`."""

    def __init__(self, model: BindingModel, encoder: Any, prefix: Prefix, summary: str) -> None:
        self.info, self.append, self.prefix_hash = model.info, encoder.append, encoder.prefix_hash
        self._server, self._encoder, self._prefix, self._summary = model.server, encoder, prefix, summary

    def body(self, params: RequestParams) -> bytes:
        return b"".join(self._encoder.body(params))

    async def stream(self, params: RequestParams, budget: Any) -> Any:
        assert self._prefix.system == SYSTEM
        assert self._server.check(self.body(params)) == []
        if self._summary:
            yield PartClosed(0, Text(self._summary))
            yield ReplyEnded("end_turn")
        else:
            yield StreamFailed(Failure("server", "no summary today"))


class Talk:
    """A conversation whose requests the server checks; `old` are the thoughts that no request may hold."""

    def __init__(self, server: Server, summary: str = NOTES) -> None:
        self.server = server
        self.conversation = Conversation(MemoryStore().create(), FakeIds(), FakeClock())
        model = BindingModel(server, summary)
        self.prefix = PrefixLedger(self.conversation, model, (FakeTool("read_file"),), self._system)
        self.compactor = Compactor(self.conversation, self.prefix, MemoryFiles(), lambda: Policy("bypass"), model, None)
        self.prefix.economise = self.compactor.economise
        self.old: list[str] = []
        self.is_checking = True
        self.requests = 0
        self.compactions: list[Compacted] = []
        self.conversation.listen(self._follow)

    @staticmethod
    async def _system() -> str:
        return "You are a careful engineer."

    @classmethod
    async def at(cls, number: int, server: Server, summary: str = NOTES) -> "Talk":
        """The conversation before the request of a step, with its prompt or results, and its notes waiting."""
        talk = cls(server, summary)
        talk.is_checking = False  # what is sent without a compaction has a test of its own
        talk.conversation.record(SessionOpened(1, "/project", "/project"))
        await talk.prefix.open()
        for step in STEPS[:number]:
            talk.take(step)
        talk.prepare(STEPS[number])
        talk.is_checking = True
        return talk

    def _follow(self, event: Any) -> None:
        if isinstance(event, Compacted):
            self.compactions.append(event)
            self.old = list(self.server.thoughts)

    def take(self, step: Step) -> None:
        self.prepare(step)
        self.answer(step)

    def prepare(self, step: Step) -> None:
        if step.prompt:
            self.conversation.record(PromptSubmitted(step.prompt))
        for text, source in step.notes:
            self.conversation.note(text, source)  # pyright: ignore[reportArgumentType] the sources of jobs too

    def answer(self, step: Step) -> None:
        body = self.request()
        message = self.server.reply(body, step.reply)
        stop = "error" if step.reply.is_cut else "tool_use" if calls_of(message) else "end_turn"
        number = self.conversation.state.steps
        self.conversation.record(AssistantReplied(number, message, stop, cut=step.reply.is_cut))
        for call in calls_of(message):
            path = json.loads(call.raw_arguments)["file_path"]
            shown = (Text(f"one of {path}\n" * 130),)
            shown = (PIXEL,) if "picture" in path else (Text("No such file."),) if "missing" in path else shown
            self.conversation.record(ToolFinished(call.id, "error" if "missing" in path else "ok", shown))

    def request(self) -> bytes:
        self.conversation.deliver_notes()
        self.prefix.request(self.conversation.state.steps + 1, MOST_OUTPUT)
        session: Any = self.prefix.model_session
        body = session.body(MOST_OUTPUT)
        assert not self.is_checking or self.server.check(body) == []
        assert [thought for thought in self.old if thought.encode() in body] == []
        self.requests += 1
        return body


async def compact(talk: Talk, tier: str) -> None:
    messages = talk.conversation.transcript.messages
    room = Room(6_000, 6_000, 100)
    match tier:
        case "economy":
            await talk.prefix.reopen("rewound")
        case "all":
            pins = (Pin("request-1", "request", "<request>Make it faster.</request>"),)
            covers, kept = talk.conversation.last_seq, len(messages)
            summary = summary_text(NOTES, "", is_by_model=True)
            talk.conversation.record(Compacted("collapse", covers, pins=pins, summary=summary, kept_from=kept))
            talk.prefix.open_compacted()
        case "snip":
            await talk.compactor.compact("snip", room, keep_results=1)
        case "long":
            await talk.compactor.compact("snip", Room(600, 600, 100), requests=50)
        case "collapse":
            await talk.compactor.compact("collapse", room, is_asked=True)
        case _:
            await talk.compactor.compact("summarise", room, is_asked=True)


TIERS = ("snip", "long", "economy", "summarise", "without", "collapse", "all")


def summary_of(tier: str) -> str:
    return "" if tier == "without" else NOTES


def numbers_for(name: str) -> list[int]:
    """The steps at which a server's conversation is compacted: all, or for minor variants where replies differ most."""
    is_variant = name in ("openai", "glm", "gemini", "minimax", "local", "messages-elsewhere", "kimi")
    return [2, 5, 7, 9] if is_variant else list(range(len(STEPS)))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", SERVERS)
async def test_the_requests_after_a_compaction_at_any_step_are_accepted(name: str, tier: str) -> None:
    compacted = 0
    numbers = numbers_for(name)
    for number in numbers:
        talk = await Talk.at(number, SERVERS[name](), summary_of(tier))
        before = talk.requests
        await compact(talk, tier)
        compacted += bool(talk.compactions)
        assert len([e for e in talk.conversation.entries() if isinstance(e.event, PrefixOpened)]) == 1 + (
            tier == "economy" or len(talk.compactions)
        )
        talk.answer(STEPS[number])
        following = STEPS[number + 1 : number + 3]
        for step in following:
            talk.take(step)
        talk.prepare(Step(Said([]), (Text("Thanks."),)))
        talk.request()
        assert talk.requests == before + len(following) + 2
    assert compacted >= len(numbers) // 2, "the conversation has something to compact at most of its steps"


@pytest.mark.parametrize("second", TIERS)
@pytest.mark.parametrize("name", ["claude", "claude-budget", "responses", "chat", "mistral", "openrouter"])
async def test_the_requests_between_and_after_two_compactions_are_accepted(name: str, second: str) -> None:
    for first in TIERS:
        for number in (1, 5, 7, 10):
            talk = await Talk.at(number, SERVERS[name](), summary_of(second))
            await compact(talk, first)
            talk.answer(STEPS[number])
            talk.prepare(STEPS[number + 1])
            await compact(talk, second)
            talk.answer(STEPS[number + 1])
            for step in STEPS[number + 2 : number + 4]:
                talk.take(step)


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("name", SERVERS)
async def test_a_reply_to_a_request_before_the_compaction_is_logged_without_its_thinking(
    name: str, is_cut: bool
) -> None:
    """A reply that was cut because the window was full is logged after the compaction that it made necessary."""
    talk = await Talk.at(4, SERVERS[name]())
    talk.conversation.deliver_notes()
    reply = talk.server.reply(talk.request(), Said(["thinking", "redacted", "text"], is_cut))
    await compact(talk, "collapse")
    talk.conversation.record(AssistantReplied(talk.conversation.state.steps, reply, "context_overflow"))
    talk.conversation.note("Go on where you stopped.")
    for step in STEPS[5:8]:
        talk.take(step)
    folded = Transcript()
    for entry in talk.conversation.entries():
        apply(folded, entry)
    assert folded.messages == talk.conversation.transcript.messages


@pytest.mark.parametrize("name", SERVERS)
async def test_without_a_compaction_every_request_is_accepted(name: str) -> None:
    talk = await Talk.at(0, SERVERS[name]())
    talk.answer(STEPS[0])
    for step in STEPS[1:]:
        talk.take(step)


@pytest.mark.parametrize("name", SERVERS)
async def test_without_a_compaction_the_thinking_that_a_server_wants_goes_back_to_it(name: str) -> None:
    talk = await Talk.at(2, SERVERS[name]())
    body = talk.request()
    never = ("openai", "gemini")  # their profiles send no reasoning back
    assert [thought.encode() in body for thought in (talk.server.thoughts[0], talk.server.thoughts[-1])] == [
        name not in never
    ] * 2
    assert isinstance(talk.conversation.transcript.messages[-1], ToolResults)
