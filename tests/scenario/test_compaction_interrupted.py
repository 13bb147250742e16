"""A compaction that a crash, a cancellation, the end of the session or a rewind interrupts leaves a valid session."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from compacting_agent import PROMPT, AnsweringModel, agent_of, assert_only_extended, count, lines, requests_in
from scripted_agent import assert_valid, only
from test_cancellation import Waits

from bradawl.agent.session import Session
from bradawl.core.errors import SessionError
from bradawl.core.events import Compacted, Envelope, HeadMoved, PrefixOpened, RequestSent
from bradawl.core.messages import Assistant, Message, Text, User
from bradawl.folds.transcript import fold
from bradawl.session.store import LocalStore
from bradawl.shaping.compaction.limits import CompactionLimits
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore

pytestmark = pytest.mark.slow
TIERS: dict[str, dict[str, Any]] = {
    "snip": {"window": 5_000, "compaction": CompactionLimits(True, 0.5, 1.0, 1.0)},
    "keep": {"window": None, "compaction": CompactionLimits(keep_results=1)},
    "summarise": {"window": 5_000, "compaction": CompactionLimits(True, 0.6, 0.6, 1.0)},
    "without": {"window": 5_000, "compaction": CompactionLimits(True, 0.6, 0.6, 1.0), "notes": ""},
    "collapse": {"window": 5_000, "compaction": CompactionLimits(True, 0.6, 0.6, 0.6)},
    "overflow": {"window": None},
}
"""Agents that compact during a turn, in one tier each."""


class Work:
    """The answers of a turn with `steps` steps that print; the request with 2,000 tokens may be too long."""

    def __init__(self, steps: int = 12, *, overflows: bool = False) -> None:
        self._left, self._overflows = steps, overflows
        self._made = 0

    def __call__(self, messages: Sequence[Message]) -> dict[str, Any]:
        if self._overflows and len(messages) > 8:
            return {"text": "too long", "faults": {"status": 413}}
        if self._left <= 0 or "Go on" in str(messages[-1])[-200:]:
            return {"text": "done"}
        self._left -= 1
        self._made += 1
        return {"thinking": "hm", "text": "I print.", "tool_calls": [lines(f"c{self._made}", f"p{self._made}")]}


def compacting(tier: str, store: Any, steps: int = 12) -> tuple[Any, AnsweringModel]:
    given = {**TIERS[tier]}
    model = AnsweringModel(
        Work(steps, overflows=tier == "overflow"),
        window=given.pop("window"),
        notes=given.pop("notes", "## Goal\n" * 20),
    )
    return agent_of(model, store=store, **given), model


def local(folder: Path, ids: FakeIds | None = None) -> LocalStore:
    return LocalStore(str(folder / "home"), str(folder), FakeClock(), ids or FakeIds())


def log_file(folder: Path) -> Path:
    (found,) = folder.glob("home/projects/*/sessions/*.jsonl")
    return found


# ------------------------------------------------------------------ crashes


def places_around(entries: Sequence[Envelope]) -> list[int]:
    """Numbers of entries to keep: from before each compaction to after the first request that follows."""
    found: set[int] = set()
    for place, entry in enumerate(entries):
        if isinstance(entry.event, Compacted):
            end = next(n for n in range(place, len(entries)) if isinstance(entries[n].event, RequestSent))
            found |= set(range(place, end + 2))
    return sorted(found)


@pytest.mark.parametrize("tier", TIERS)
async def test_after_a_crash_around_a_compaction_the_session_goes_on_where_it_was(tmp_path: Path, tier: str) -> None:
    agent, model = compacting(tier, local(tmp_path))
    async with agent.open() as session:
        await session.run(PROMPT)
    log = log_file(tmp_path)
    whole, entries = log.read_bytes(), agent.store.entries(session.id)
    rows = whole.splitlines(keepends=True)
    assert len(rows) == len(entries) and count(entries, Compacted)
    sent = [each.messages for each in model.sent]
    assert_only_extended(sent, requests_in(entries))
    checked = 0
    for kept in places_around(entries):
        for torn in (b"", rows[kept][: len(rows[kept]) // 2] if kept < len(rows) else b""):
            log.write_bytes(b"".join(rows[:kept]) + torn)
            await goes_on(tier, local(tmp_path, FakeIds()), session.id, entries[:kept], sent)
            checked += 1
    assert checked >= 6
    log.write_bytes(whole)


async def goes_on(
    tier: str, store: LocalStore, session_id: str, kept: Sequence[Envelope], sent: Sequence[tuple[Message, ...]]
) -> None:
    """The session with the entries that a crash left has their context, and continues it."""
    before = fold(kept).messages
    agent, model = compacting(tier, store, steps=0)
    async with agent.open(session_id) as session:
        assert session.transcript.messages == before
        await session.run("Go on, please.")
        entries = session.conversation.entries()
        assert session.transcript.messages == fold(entries).messages
    before_crash = count(kept, RequestSent)
    is_new = requests_in(entries)[before_crash:]
    own = [each.messages for each in model.sent]
    assert own and len(own) == len(is_new)
    if before_crash:
        assert_only_extended([sent[before_crash - 1], *own], [False, *is_new])
    if any(isinstance(entry.event, Compacted) for entry in kept[-3:]):
        assert count(entries, Compacted) == count(kept, Compacted), "it is not compacted again"
        assert len(before) <= len(own[0])
    for event in only([entry.event for entry in entries], Compacted):
        assert_record_holds_what_was_taken_out(event, entries)
    compactions = [n for n, entry in enumerate(entries) if isinstance(entry.event, Compacted)]
    for place, following in zip(compactions, [*compactions[1:], len(entries)], strict=True):
        opened = [entry.event for entry in entries[place:following] if isinstance(entry.event, PrefixOpened)]
        assert [each.reason for each in opened] == ["compaction"], "one new prefix for each compaction"


def assert_record_holds_what_was_taken_out(event: Compacted, entries: Sequence[Envelope]) -> None:
    at = next(n for n, entry in enumerate(entries) if entry.event is event)
    before = fold(entries[:at]).messages
    texts = [event.summary, *(each.text for each in event.shortened)]
    files = {
        word.rstrip(":.]") for text in texts for word in text.split() if word.startswith("/") and "records" in word
    }
    assert files
    named = "".join(Path(file).read_text() for file in files)
    for number in {*range(event.kept_from), *(each.message for each in event.shortened)}:
        message = before[number]
        parts = message.parts if isinstance(message, User | Assistant) else message.results[0].parts
        for part in parts:
            assert not isinstance(part, Text) or part.text.strip() in named


# ------------------------------------------------------------------ cancellation


async def cancelled_turn(folder: Path, tier: str, cancel_at: int | None) -> tuple[int, str]:
    """Run a turn that compacts, cancelled at one of its awaits, and another one. Returns the awaits and the reason."""
    agent, model = compacting(tier, local(folder), steps=12 if tier == "keep" else 8)
    waits = Waits(cancel_at)
    async with agent.open() as session:
        waits.install(session)
        result = await session.run(PROMPT)
        asyncio.get_running_loop().set_task_factory(None)
        assert_valid(session.transcript.messages)
        again = await session.run("Go on, please.")
        assert again.text == "done"
        entries = session.conversation.entries()
        assert cancel_at is not None or count(entries, Compacted)
        assert session.transcript.messages == fold(entries).messages
    assert_only_extended([each.messages for each in model.sent], requests_in(entries))
    assert model.opened == count(entries, PrefixOpened)
    assert len(asyncio.all_tasks()) == 1
    return waits.count, result.reason


@pytest.mark.parametrize("tier", TIERS)
async def test_cancelled_at_any_await_of_a_turn_that_compacts_the_session_goes_on(tmp_path: Path, tier: str) -> None:
    waits, reason = await cancelled_turn(tmp_path / "whole", tier, None)
    assert reason == "completed" and waits > 100, "a run with few awaits would test little"
    reasons = [(await cancelled_turn(tmp_path / str(n), tier, n))[1] for n in range(1, waits + 1)]
    assert set(reasons) <= {"cancelled", "completed"} and reasons.count("cancelled") > waits * 0.8


class Gated(AnsweringModel):
    """A model whose summary waits until the test lets it go on."""

    def __init__(self, answer: Any) -> None:
        super().__init__(answer, window=100_000)
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    def open(self, prefix: Any, session_id: str = "") -> Any:
        session = super().open(prefix, session_id)
        if session._number is None:
            stream = session.stream

            async def gated(params: Any, budget: Any) -> Any:
                self.asked.set()
                await self.may_answer.wait()
                async for delta in stream(params, budget):
                    yield delta

            session.stream = gated
        return session


async def summarising(store: Any = None) -> tuple[Any, Gated]:
    model = Gated(Work(3))
    return agent_of(model, store=store or MemoryStore()), model


@pytest.mark.parametrize("how", ["cancel", "cancel twice", "task", "close"])
async def test_an_asked_for_compaction_that_is_cancelled_changes_nothing(how: str) -> None:
    agent, model = await summarising()
    session = agent.open()
    await session.__aenter__()
    await session.run(PROMPT)
    before, entries = list(session.transcript.messages), len(session.conversation.entries())
    compaction = asyncio.ensure_future(session.compact())
    async with asyncio.timeout(5):
        await model.asked.wait()
        session.send("Said meanwhile.")
        match how:
            case "cancel" | "cancel twice":
                session.cancel()
                session.cancel()
            case "task":
                compaction.cancel()
            case _:
                await session.__aexit__(None, None, None)
        with pytest.raises(asyncio.CancelledError if how == "task" else SessionError):
            await compaction
        assert session.transcript.messages == before and len(session.conversation.entries()) == entries + 1
        if how == "close":
            session = agent.open(session.id)
            await session.__aenter__()
        model.may_answer.set()
        result = await session.run("Go on, please.")
        assert result.text == "done" and "Said meanwhile." in str(model.sent[-1].messages[-1])
        assert model.sent[-1].messages[: len(before)] == tuple(before)
        assert (await session.compact()) is not None
        await session.run("Go on, please.")
        entries = session.conversation.entries()
        assert session.transcript.messages == fold(entries).messages
        await session.__aexit__(None, None, None)
    assert_only_extended([each.messages for each in model.sent], requests_in(entries))
    assert not session.is_running


async def test_what_is_said_while_a_summary_is_written_reaches_the_model_with_the_next_prompt() -> None:
    agent, model = await summarising()
    async with agent.open() as session:
        await session.run(PROMPT)
        compaction = asyncio.ensure_future(session.compact())
        await model.asked.wait()
        session.send("Said meanwhile.")
        with pytest.raises(SessionError, match="running"):
            await session.run("too early")
        with pytest.raises(SessionError, match="running"):
            await session.compact()
        model.may_answer.set()
        assert await compaction is not None
        await session.run("Go on, please.")
    last = model.sent[-1].messages[-1]
    assert isinstance(last, User) and [note.text for note in last.notes] == ["Said meanwhile."]


# ------------------------------------------------------------------ rewinding


def seq_before(session: Session, kind: type, number: int = 0) -> int:
    found = [entry for entry in session.conversation.entries() if isinstance(entry.event, kind)]
    parent = found[number].parent
    assert parent is not None
    return parent


@pytest.mark.parametrize("tier", [*TIERS, "asked"])
@pytest.mark.parametrize("is_resumed", [False, True])
async def test_rewinding_before_a_compaction_brings_the_conversation_back_and_forward(
    tmp_path: Path, tier: str, is_resumed: bool
) -> None:
    agent, model = compacting("snip" if tier == "asked" else tier, local(tmp_path), steps=3 if tier == "asked" else 12)
    session = agent.open()
    await session.__aenter__()
    await session.run(PROMPT)
    if tier == "asked":
        assert await session.compact() is not None
        await session.run("Go on, please.")
    after, head = list(session.transcript.messages), session.conversation.entries()[-1].seq
    if is_resumed:
        await session.__aexit__(None, None, None)
        session = agent.open(session.id)
        await session.__aenter__()
    target = seq_before(session, Compacted)
    kept = [entry for entry in session.conversation.entries() if entry.seq <= target]
    whole = fold(kept).messages
    await session.rewind(target, "talk")
    assert session.transcript.messages == whole and session.transcript.summary == ""
    back = session.conversation.entries()[-1].seq
    await session.rewind(head, "talk")
    assert session.transcript.messages == after, "undone"
    await session.rewind(back, "talk")
    assert session.transcript.messages == whole, "and redone"
    await session.run("Go on, please.")
    entries = session.conversation.entries()
    assert session.transcript.messages == fold(entries).messages
    await session.__aexit__(None, None, None)
    assert_only_extended([each.messages for each in model.sent], requests_in(entries))
    assert count(entries, HeadMoved) == 3
