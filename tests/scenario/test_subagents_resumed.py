"""A session with sub-agents is resumed from a complete log, and from a log that ends at any entry."""

from collections.abc import Callable
from typing import Any

from scripted_agent import assert_valid, call, results
from scripted_subagents import entries_of, events_of, family, task

from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    Envelope,
    PromptSubmitted,
    RequestSent,
    ToolFinished,
)
from bradawl.core.messages import text_of
from bradawl.folds.transcript import fold
from bradawl.testing.fakes import MemoryStore

MAIN = [{"tool_calls": [task("a")]}, {"text": "done"}]
SUB = [
    {"text": "A clue.", "tool_calls": [call("w", writes=["/p/a"])], "usage": {"input": 7, "output": 1}},
    {"text": "found", "usage": {"input": 9, "output": 2}},
]
WENT_ON = [{"text": "went on"}]


async def kept(length: Callable[[list[Envelope]], int]) -> MemoryStore:
    """A store whose session's log is cut after `length(entries)` entries."""
    store = MemoryStore()
    agent, *_ = family(MAIN, SUB, store=store)
    name = (await agent.run("go")).session_id
    entries = store.logs[name].entries
    del entries[length(entries) :]
    return store


async def resumed(store: MemoryStore, main: list[dict[str, Any]], sub: list[dict[str, Any]] = SUB) -> Any:
    """The session after one more turn."""
    agent, model, _ = family(main, sub, store=store)

    async with agent.open(next(iter(store.logs))) as session:
        await session.run("go on")
        assert_valid(session.transcript.messages)
        assert not model.main.failures
    return session


async def test_after_a_kill_at_any_entry_the_session_continues_and_usage_is_counted_once():
    whole = len(entries_of(await kept(len)))
    ends = [await after_a_kill_at(length) for length in range(1, whole + 1)]
    assert ends.count("interrupted") > 10 and ends[0] is None and ends[-1] == "completed"


async def after_a_kill_at(length: int) -> str | None:
    """Reason for which the sub-agent ended after the resume; None if it was never started."""
    store = await kept(lambda _: length)
    was_running = len(events_of(store, AgentSpawned)) > len(events_of(store, AgentEnded))
    session = await resumed(store, WENT_ON)
    spawned, ended = events_of(store, AgentSpawned), events_of(store, AgentEnded)
    assert [one.spawned for one in spawned] == [one.spawned for one in ended]
    own = fold(entries_of(store), "agent-1")
    assert_valid(own.messages)
    assert not own.turn_is_open and not own.started
    replies = events_of(store, AssistantReplied, "agent-1")
    assert sum(one.usage.input for one in ended) == sum(reply.usage.input for reply in replies if reply.usage)
    if was_running:
        assert [one.reason for one in ended] == ["interrupted"]
        assert any("may or may not have happened" in text for text in results(session.transcript.messages))
    return ended[0].reason if ended else None


async def test_after_a_kill_the_result_reports_the_progress_of_the_sub_agent():
    def second_request(entries: list[Envelope]) -> int:
        return [n for n, e in enumerate(entries) if isinstance(e.event, RequestSent) and e.agent == "agent-1"][1] + 1

    store = await kept(second_request)
    (text,) = results((await resumed(store, WENT_ON)).transcript.messages)
    assert "may or may not have happened" in text and "What it had said: A clue." in text
    assert 'probe({"name":"w"' in text
    (finished,) = (event for event in events_of(store, ToolFinished) if event.call_id == "a")
    assert finished.outcome == "interrupted"


async def test_a_resumed_session_gives_its_next_sub_agent_a_new_name():
    store = await kept(len)
    again = [{"tool_calls": [task("z", "again")]}, {"text": "done"}]
    session = await resumed(store, again, [{"text": "second"}])
    assert results(session.transcript.messages) == ["found", "second"]
    assert [event.spawned for event in events_of(store, AgentSpawned)] == ["agent-1", "agent-2"]
    assert len(events_of(store, PromptSubmitted, "agent-2")) == 1
    assert text_of(fold(entries_of(store), "agent-2").messages[0].parts) == "again"
