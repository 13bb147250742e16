"""A turn with sub-agents can be cancelled at any await, and every sub-agent is closed afterwards."""

import asyncio
from pathlib import Path

from scripted_agent import assert_valid, call, results
from scripted_subagents import Crowd, entries_of, events_of, family, task
from test_cancellation import Waits, cancelled_turn

from bradawl.core.events import AgentEnded, AgentSpawned, AssistantReplied, ToolFinished
from bradawl.folds.transcript import fold
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore, RecordingEmit

MAIN = [
    {"text": "Two at once.", "tool_calls": [task("one"), task("two", kind="explore")]},
    {"text": "done"},
]
SUB = [
    {"text": "A clue.", "tool_calls": [call("r", reads=["/p/a"]), call("w", writes=["/p/a"])]},
    {"text": "a conclusion"},
]


async def cancelled_run(cancel_at: int | None) -> tuple[int, str, MemoryStore]:
    store = MemoryStore()
    agent, *_ = family(MAIN, SUB, store=store)
    waits = Waits(cancel_at)
    reason = await cancelled_turn(agent, waits)
    return waits.count, reason, store


def assert_closed(store: MemoryStore) -> None:
    entries = entries_of(store)
    spawned, ended = events_of(store, AgentSpawned), events_of(store, AgentEnded)
    assert sorted(one.spawned for one in spawned) == sorted(one.spawned for one in ended)
    for one in spawned:
        own = fold(entries, one.spawned)
        assert_valid(own.messages)
        assert not own.open_calls and not own.started and not own.turn_is_open
    for agent in ("main", *(one.spawned for one in spawned)):
        answered = [event.call_id for event in events_of(store, ToolFinished, agent)]
        assert len(answered) == len(set(answered))


async def test_cancelled_at_any_await_all_sub_agents_are_closed_and_all_calls_have_results() -> None:
    total, reason, _ = await cancelled_run(None)
    assert reason == "completed" and total > 50
    reasons = set()
    for cancel_at in range(1, total + 1):
        _, reason, store = await cancelled_run(cancel_at)
        reasons.add(reason)
        if store.logs:
            assert_closed(store)
            reasons |= {one.reason for one in events_of(store, AgentEnded)}
    assert reasons == {"cancelled", "completed"}


async def test_cancelling_the_parent_ends_all_sub_agents_and_every_call_has_a_result():
    main = [{"tool_calls": [task(f"t{n}") for n in range(10)]}, {"text": "never"}]
    sub = [
        {"text": "A first clue.", "tool_calls": [call("r", writes=["/p/a"]), call("w", writes=["/p/a"])]},
        {"text": "never"},
    ]
    store = MemoryStore()
    crowd = Crowd(10)
    agent, *_ = family(main, sub, store=store, probe=crowd)
    crowd.gate("r")

    async with asyncio.timeout(60), agent.open() as session, asyncio.TaskGroup() as group:
        turn = group.create_task(session.run("go"))
        await crowd.is_full.wait()
        session.cancel()
        result = await turn
        assert_valid(session.transcript.messages)
    assert len(asyncio.all_tasks()) == 1
    assert result.reason == "cancelled"
    told = results(session.transcript.messages)
    assert len(told) == 10 and all(
        "A first clue." in text and "cancelled while it was running" in text for text in told
    )
    assert [event.reason for event in events_of(store, AgentEnded)] == ["cancelled"] * 10
    for number in range(1, 11):
        own = fold(entries_of(store), f"agent-{number}")
        assert_valid(own.messages)
        assert not own.open_calls and not own.started and not own.turn_is_open


async def test_a_session_with_sub_agents_is_resumed_from_its_file(tmp_path: Path) -> None:
    clock, ids = FakeClock(is_eager=True), FakeIds()
    agent, *_ = family(MAIN, SUB, store=LocalStore(tmp_path, tmp_path, clock, ids), clock=clock, ids=ids)

    async with agent.open() as session:
        await session.run("go")
        name, before, messages = session.id, session.state, session.transcript.messages
    store = LocalStore(tmp_path, tmp_path, clock, ids)
    again, *_ = family([{"tool_calls": [task("three")]}, {"text": "done"}], SUB, store=store, clock=clock, ids=ids)

    async with again.open(name) as session:
        assert session.transcript.messages == messages
        assert (session.state.usage, session.state.cost) == (before.usage, before.cost)
        emit = RecordingEmit()
        await session.run("once more", emit)
        assert not emit.warnings
        assert_valid(session.transcript.messages)
    opened = LocalStore(tmp_path, tmp_path, clock, ids).open(name)
    opened.log.close()
    replies = [entry.agent for entry in opened.entries if isinstance(entry.event, AssistantReplied)]
    assert sorted(set(replies)) == ["agent-1", "agent-2", "agent-3", "main"]
    assert len([entry for entry in opened.entries if isinstance(entry.event, AgentEnded)]) == 3
