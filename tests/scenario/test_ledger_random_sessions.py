"""Random sessions: what was sent never changes before the next prefix, and the log says all of it.

`BRADAWL_LEDGER_SESSIONS` is the number of sessions, 100 by default; 1,000 take a few minutes. `BRADAWL_LEDGER_SEED`
is the first seed: with it and one session a failure is repeated.

A session has prompts, notes of every kind, todos, switches of the mode, changes of the tools, failed and repeated
requests, replies that break off, sub-agents, messages of the user during a turn, cancelled turns, crashes and resumes,
rewinds, another model that takes over, and compactions of every tier, at random places.
"""

import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import pytest
from compacting_agent import AnsweringModel, Lines, agent_of, assert_only_extended, lines, requests_in
from scripted_agent import assert_valid

from bradawl.agent.middleware import Middleware, MiddlewareContext
from bradawl.core.events import (
    AgentSpawned,
    Compacted,
    Envelope,
    HeadMoved,
    NoteDelivered,
    NoteQueued,
    PrefixOpened,
    RequestSent,
)
from bradawl.core.messages import Assistant, Message, Note, Thinking
from bradawl.core.ports import Prefix
from bradawl.core.tools import ToolSpec
from bradawl.folds.transcript import fold
from bradawl.providers.fallback import FallbackModel
from bradawl.shaping.compaction.limits import CompactionLimits
from bradawl.shaping.compaction.summary import SYSTEM
from bradawl.testing.fakes import FakeIds, MemoryStore
from bradawl.tools.agent import AgentTool

pytestmark = pytest.mark.slow
SESSIONS = int(os.environ.get("BRADAWL_LEDGER_SESSIONS", "100"))
SEED = int(os.environ.get("BRADAWL_LEDGER_SEED", "0"))
_CHUNKS = 10
_MARK = r"\[\[sub-\d+\]\]"
"""A word in the request of each sub-agent, by which its conversation is recognised."""
_SUB_AGENT: ContextVar[list[str] | None] = ContextVar("sub-agent", default=None)
"""The mark of the sub-agent that the task works for; empty before its first request."""


class OtherLines(Lines):
    """A second tool of this kind."""

    spec = ToolSpec("lines")


class RandomNotes(Middleware):
    """Queues notes between steps, as jobs and instruction files do."""

    def __init__(self, context: MiddlewareContext, rng: random.Random) -> None:
        self._conversation, self._rng = context.conversation, rng

    async def before_step(self) -> None:
        for source in ("instructions", "job", "hook"):
            if self._rng.random() < 0.08:
                text = f"{source} note {self._rng.randrange(10**6)}: keep the names. " * self._rng.choice([1, 1, 20])
                note = Note(self._conversation.ids.ulid(), text, source)
                self._conversation.inbox.put(note)
                self._conversation.record(NoteQueued(note))


class RandomModel(AnsweringModel):
    """A model with random answers; each has a thought of its own."""

    def __init__(self, rng: random.Random, world: "World", name: str, window: int | None) -> None:
        super().__init__(self.random_answer, window=window, name=name, notes=rng.choice(["", "## Goal\n" * 20]))
        self._rng, self._world = rng, world

    def open(self, prefix: Prefix, session_id: str = "") -> Any:
        if "You are a sub-agent" in prefix.system:
            if _SUB_AGENT.get() is None:
                _SUB_AGENT.set([])
        elif prefix.system != SYSTEM:
            self._world.opened += 1
        return super().open(prefix, session_id)

    def answer(self, messages: list[Message], session: int | None) -> dict[str, Any]:
        if session is not None:
            mark = _SUB_AGENT.get()
            if mark == []:  # its first request, before any compaction
                mark += re.findall(_MARK, str(messages[0]))
            name = mark[0] if mark else "main"
            self._world.sent[name].append(tuple(messages))
            self._world.thoughts[name].append(f"thought-{self._world.answers + 1}.")
        return super().answer(messages, session)

    def random_answer(self, messages: Sequence[Message]) -> dict[str, Any]:
        rng, world = self._rng, self._world
        world.answers += 1
        thought = {"thinking": f"thought-{world.answers}."} if rng.random() < 0.7 else {}
        usage = {"usage": {"input": 100, "output": 10}} if rng.random() < 0.3 else {}
        draw, text = rng.random(), f"I say {world.answers}. " * rng.choice([1, 5, 60])
        reply: dict[str, Any] = {"text": text, **thought, **usage}
        if draw < 0.03:
            if rng.random() < 0.5:
                world.meddle_once("send")  # an empty reply leaves no message between the request and this note
            return {"stop": rng.choice(["end_turn", "max_tokens"]), **rng.choice([thought, {}])}
        if draw < 0.06:
            return {**reply, "faults": {"cut_at_byte": rng.randrange(1, 60)}}
        if draw < 0.10:
            return {"text": "failed", "faults": {"status": rng.choice([429, 500, 503, 529, 413, 413, 400])}}
        if draw < 0.14:
            return {**reply, "stop": rng.choice(["max_tokens", "context_overflow", "context_overflow", "refusal"])}
        if draw < 0.92 and world.left > 0:
            world.left -= 1
            calls = [self._call() for _ in range(rng.choice([1, 1, 2, 3]))]
            cut = {"faults": {"cut_at_byte": rng.randrange(60, 200)}} if rng.random() < 0.08 else {}
            return {**reply, "tool_calls": calls, **cut}
        return reply

    def _call(self) -> dict[str, Any]:
        rng, world = self._rng, self._world
        world.calls += 1
        call_id = f"call-{world.calls}"
        if rng.random() < 0.08:
            arguments = {"prompt": f"Look into [[sub-{world.calls}]] and say what you find."}
            return {"id": call_id, "name": "agent", "arguments": arguments}
        more = {"fails": rng.random() < 0.1, "todos": rng.choice([0, 0, 0, 0, 0, 2])}
        call = lines(call_id, f"p{rng.randrange(4)}", rng.choice([2, 40, 120]), **more)
        return {**call, "name": rng.choice(["glob", "glob", "glob", "lines", "missing"])}


class World:
    """One random session, and what the model got of it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)  # noqa: S311 - no secret
        self.sent: defaultdict[str, list[tuple[Message, ...]]] = defaultdict(list)
        """The messages of each request, by the conversation that it belongs to."""
        self.thoughts: defaultdict[str, list[str]] = defaultdict(list)
        """The thought in the reply to each request."""
        self.answers = self.calls = self.left = 0
        self.opened = self.lives = 0
        """Conversations that the main agent has opened in this life, and its lives: each resume begins one."""
        window = rng.choice([None, 3_000, 5_000, 9_000])
        names = ["first", "second"] if rng.random() < 0.25 else ["first"]
        self.models = [RandomModel(rng, self, name, window) for name in names]
        self.model: Any = FallbackModel(self.models) if len(names) > 1 else self.models[0]
        self.ids = FakeIds()
        self.store = MemoryStore(ids=self.ids)
        shares = sorted(rng.choices([0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1.0], k=3))
        self.limits = CompactionLimits(rng.random() < 0.95, *shares, rng.choice([None, None, 0, 3]))
        self.tools: tuple[Any, ...] = (Lines(), OtherLines(), AgentTool())
        self.session: Any = None
        self.done: Counter[str] = Counter()

    # -------------------------------------------------------------- what happens

    async def play(self) -> None:
        await self.open(None)
        await self.act("prompt")
        for _ in range(self.rng.randrange(3, 9)):
            actions = ["prompt"] * 5 + ["compact", "rewind", "resume", "crash", "send", "tools", "mode"]
            await self.act(self.rng.choice(actions))
        await self.act("prompt")
        self.check()
        await self.end_life()
        self.check_folds(self.entries(), self.session)

    async def act(self, action: str) -> None:
        rng, session = self.rng, self.session
        self.done[action] += 1
        match action:
            case "prompt":
                self.left = rng.randrange(25)
                await session.run(
                    f"Prompt {self.done[action]}. Never touch the tests." * rng.choice([1, 1, 40]), self.meddle
                )
            case "compact":
                await session.compact(rng.choice(["", "the tests"]))
            case "rewind":
                main = [entry for entry in self.entries() if entry.agent == "main"]
                await session.rewind(rng.choice(main[1:]).seq, rng.choice(["talk", "both", "code"]))
            case "resume" | "crash":
                await self.end_life()
                if action == "crash":
                    self.lose_entries()
                await self.open(session.id)
            case _:
                self.meddle_once(action)

    async def open(self, session_id: str | None) -> None:
        agent = agent_of(
            self.model,
            store=self.store,
            ids=self.ids,
            tools=self.tools,
            compaction=self.limits,
            middleware=(lambda context: RandomNotes(context, self.rng),),
        )
        self.session = agent.open(session_id)
        await self.session.__aenter__()

    async def end_life(self) -> None:
        """Close the session. Each conversation with the model has its `PrefixOpened`, but one that was continued."""
        await self.session.__aexit__(None, None, None)
        new = self.store.logs[self.session.id].entries
        logged = sum(isinstance(entry.event, PrefixOpened) and entry.agent == "main" for entry in new)
        if len(self.models) == 1:
            assert self.opened - logged in ((0, 1) if self.lives else (0,))
        self.opened, self.lives = 0, self.lives + 1

    def meddle(self, item: Any) -> None:
        """Something that the user does during a turn."""
        if self.rng.random() < 0.004 or (isinstance(item, Envelope) and self.rng.random() < 0.01):
            self.meddle_once(self.rng.choice(["send", "send", "send", "send", "tools", "mode", "cancel"]))

    def meddle_once(self, action: str) -> None:
        rng, session = self.rng, self.session
        self.done[f"{action}, in a turn" if session.is_running else action] += 1
        match action:
            case "send":
                session.send(f"By the way {rng.randrange(10**6)}: be quick." * rng.choice([1, 1, 30]))
            case "mode":
                session.choose_mode(rng.choice(["plan", "default", "bypass", "bypass"]))
            case "tools":
                self.tools = rng.choice([(Lines(), AgentTool()), (Lines(), OtherLines(), AgentTool()), self.tools])
                session.change_tools(self.tools)
            case _:
                session.cancel()

    def lose_entries(self) -> None:
        """The last entries of the log never reached the disk."""
        log = self.store.logs[self.session.id]
        compactions = [n for n, entry in enumerate(log.entries, 1) if isinstance(entry.event, Compacted)]
        keep = len(log.entries) - self.rng.randrange(0, 40)
        if compactions and self.rng.random() < 0.5:
            keep = self.rng.choice(compactions) + self.rng.randrange(0, 2)
        if keep + len(self.store.history[self.session.id]) < 3:
            return
        del log.entries[max(0, keep) :]
        entries = self.entries()
        for name, agent in self.agents(entries).items():
            kept = sum(isinstance(entry.event, RequestSent) and entry.agent == agent for entry in entries)
            del self.sent[name][kept:], self.thoughts[name][kept:]

    # -------------------------------------------------------------- what must hold

    def entries(self) -> list[Envelope]:
        name = self.session.id
        return [*self.store.history[name], *self.store.logs[name].entries]

    def agents(self, entries: Sequence[Envelope]) -> dict[str, str]:
        """The name in the log of each conversation that sent requests."""
        known = {"main": "main"}
        for entry in entries:
            if isinstance(event := entry.event, AgentSpawned) and (found := re.search(_MARK, event.prompt)):
                known[found[0]] = event.spawned
        return {name: known.get(name, "") for name in self.sent}

    def check(self) -> None:
        entries = self.entries()
        for name, agent in self.agents(entries).items():
            own = [entry for entry in entries if entry.agent == agent]
            sent = self.sent[name]
            for messages in sent:
                assert_valid(list(messages))
            assert_only_extended(sent, requests_in(own))
            assert_notes_arrived(own, sent)
            assert_thoughts_are_of_their_prefix(own, sent, self.thoughts[name])
            self.done["requests"] += len(sent)
            self.done["prefixes"] += sum(isinstance(entry.event, PrefixOpened) for entry in own)
            if agent != "main":
                self.done["sub-agents"] += 1
                self.done["compacted sub-agents"] += any(isinstance(entry.event, Compacted) for entry in own)
            for entry in own:
                if isinstance(entry.event, Compacted):
                    self.done[entry.event.tier] += 1
        self.check_folds(entries, self.session)

    def check_folds(self, entries: Sequence[Envelope], session: Any) -> None:
        assert vars(fold(entries)) == vars(session.transcript)
        waiting = [note.id for note in session.inbox.waiting]
        assert waiting == list(session.transcript.waiting_notes)


def assert_notes_arrived(own: Sequence[Envelope], sent: Sequence[tuple[Message, ...]]) -> None:
    """Each delivered note is in the messages of the next request."""
    number, delivered = 0, list[str]()
    for entry in own:
        match entry.event:
            case NoteDelivered(note_id):
                delivered.append(note_id)
            case Compacted() | HeadMoved():
                delivered.clear()
            case RequestSent():
                there = Counter(
                    note.id for message in sent[number] if not isinstance(message, Assistant) for note in message.notes
                )
                assert [there[note_id] for note_id in delivered] == [1] * len(delivered)
                delivered.clear()
                number += 1
            case _:
                pass


def assert_thoughts_are_of_their_prefix(
    own: Sequence[Envelope], sent: Sequence[tuple[Message, ...]], thoughts: Sequence[str]
) -> None:
    """After a compaction no request has a thought from before it."""
    number, old = 0, set[str]()
    for entry in own:
        if isinstance(entry.event, HeadMoved):
            old.clear()
        elif isinstance(entry.event, Compacted):
            old |= set(thoughts[:number])
        elif isinstance(entry.event, RequestSent):
            assert not old & thoughts_in(sent[number])
            number += 1


def thoughts_in(messages: Sequence[Message]) -> set[str]:
    replies = [message for message in messages if isinstance(message, Assistant)]
    return {part.text for reply in replies for part in reply.parts if isinstance(part, Thinking)}


async def played(seed: int) -> World:
    world = World(seed)
    try:
        await world.play()
    except BaseException as error:
        error.add_note(f"BRADAWL_LEDGER_SEED={seed} BRADAWL_LEDGER_SESSIONS=1")
        raise
    return world


@pytest.mark.parametrize("chunk", range(_CHUNKS))
async def test_what_was_sent_never_changes_before_the_next_prefix(chunk: int) -> None:
    for seed in range(SEED + chunk, SEED + SESSIONS, _CHUNKS):
        await played(seed)
