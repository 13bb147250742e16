"""Sessions of the real agent on a scripted model: notes, resuming, and the library interface."""

import asyncio

import pytest
from scripted_agent import build, call

from bradawl.core.errors import SessionError
from bradawl.core.events import Live, NoteDelivered, PromptSubmitted, SessionOpened, ToolStarted, TurnFinished
from bradawl.testing.fakes import FakeIds, MemoryStore, RecordingEmit


async def test_a_note_sent_while_calls_run_is_delivered_with_their_results() -> None:
    agent, model, probe = build([{"tool_calls": [call("a")]}, {"text": "I see"}])

    gate = probe.gate("a")
    emit = RecordingEmit()
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go", emit))
        await probe.has_started("a").wait()
        session.send("use tabs")
        gate.set()
        await turn
    events = emit.events
    assert any(isinstance(e, NoteDelivered) for e in events)
    assert [note.text for note in model.requests[1][-1].notes] == ["use tabs"]


async def test_a_note_sent_during_the_last_reply_continues_the_turn() -> None:
    agent, model, _ = build([{"text": "all done here"}, {"text": "and now that too"}])

    async with agent.open() as session:

        def emit(item):
            if isinstance(item, Live) and len(model.requests) == 1 and not session.transcript.waiting_notes:
                session.send("one more thing")

        result = await session.run("go", emit)
    assert (result.reason, result.text, result.steps) == ("completed", "and now that too", 2)
    assert [note.text for note in model.requests[1][-1].notes] == ["one more thing"]


async def test_a_note_sent_before_the_first_prompt_is_delivered_with_it() -> None:
    agent, model, _ = build([{"text": "ok"}])

    async with agent.open() as session:
        session.send("be brief")
        await session.run("go")
        events = [entry.event for entry in session.log.entries]
    assert isinstance(events[0], SessionOpened)
    assert [note.text for note in model.requests[0][0].notes] == ["be brief"]


async def test_a_note_that_was_never_delivered_is_delivered_once_after_a_resume() -> None:
    store, ids = MemoryStore(), FakeIds()
    agent, *_ = build([{"text": "one"}], store=store, ids=ids)
    again, model, _ = build([{"text": "two"}], store=store, ids=ids)

    async with agent.open() as session:
        await session.run("first")
        session.send("late")
        session_id = session.id
    async with again.open(session_id) as session:
        session.send("later")
        await session.run("second")
    assert [note.text for note in model.requests[0][-1].notes] == ["late", "later"]


async def test_the_log_of_a_turn_folds_to_the_transcript_and_a_resumed_session_continues_it() -> None:
    store = MemoryStore()
    agent, first_model, _ = build([{"tool_calls": [call("a")]}, {"text": "one"}], store=store)
    again, second_model, _ = build([{"text": "two"}], store=store)

    async with agent.open() as session:
        await session.run("first")
        kept = list(session.transcript.messages)
        session_id = session.id
    async with again.open(session_id) as resumed:
        assert resumed.transcript.messages == kept
        result = await resumed.run("second")
        state = resumed.state
    assert result.text == "two" and state.steps == 3
    assert second_model.requests[0][: len(first_model.requests[-1])] == first_model.requests[-1]
    assert second_model.prefixes == first_model.prefixes, "a resumed session keeps its prefix"


async def test_two_turns_in_one_session_do_not_run_at_once() -> None:
    agent, _, probe = build([{"tool_calls": [call("a")]}, {"text": "ok"}])

    gate = probe.gate("a")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("a").wait()
        with pytest.raises(SessionError, match="already running"):
            await session.run("me too")
        gate.set()
        assert (await turn).reason == "completed"


async def test_stream_yields_every_event_in_order() -> None:
    agent, *_ = build([{"text": "hello"}])

    items = [item async for item in agent.stream("go")]
    assert isinstance(items[0].event, SessionOpened) and isinstance(items[2].event, PromptSubmitted)
    assert items[-1].event == TurnFinished("completed")
    assert "".join(item.item.text for item in items if isinstance(item, Live)) == "hello"


async def test_closing_a_stream_early_cancels_the_turn() -> None:
    agent, _, probe = build([{"tool_calls": [call("a")]}, {"text": "ok"}])

    probe.gate("a")
    events = agent.stream("go")
    async for item in events:
        if not isinstance(item, Live) and isinstance(item.event, ToolStarted):
            break
    await events.aclose()
    assert "-a" not in probe.log and probe.running == 0


def test_run_sync_gives_the_result() -> None:
    agent, *_ = build([{"text": "hello"}])
    assert agent.run_sync("go").text == "hello"
