"""A message to the running turn can be taken back until the model has seen it; the log says so."""

import asyncio

from scripted_agent import build, call, only

from bradawl.core.events import NoteDelivered, NoteQueued, NoteWithdrawn
from bradawl.core.messages import User


async def test_the_latest_message_that_was_not_seen_is_taken_back_and_does_not_reach_the_model():
    agent, model, probe = build([{"tool_calls": [call("a")]}, {"text": "Done."}, {"text": "Again."}])
    gate = probe.gate("a")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("a").wait()
        session.send("first")
        session.send("second")
        assert session.conversation.take_back_note() == "second"
        gate.set()
        await turn
        assert session.conversation.take_back_note() == ""  # the model has seen the first
        events = [entry.event for entry in session.conversation.entries()]
    assert [event.note.text for event in only(events, NoteQueued)] == ["first", "second"]
    assert len(only(events, NoteDelivered)) == len(only(events, NoteWithdrawn)) == 1
    assert "first" in str(model.requests[-1]) and "second" not in str(model.requests[-1])


async def test_a_message_that_was_taken_back_stays_away_when_the_session_is_continued():
    agent, model, probe = build([{"tool_calls": [call("a")]}, {"text": "Later."}])
    probe.gate("a")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("a").wait()
        session.send("stays")
        session.send("goes")
        session.conversation.take_back_note()
        session.cancel()
        await turn
    async with agent.open(session.id) as again:
        assert [note.text for note in again.inbox.waiting] == ["stays"]
        await again.run("go on")
        last = [message for message in again.transcript.messages if isinstance(message, User)][-1]
    assert [note.text for note in last.notes] == ["stays"]
    assert "goes" not in str(model.requests[-1])


async def test_only_messages_of_the_user_are_taken_back():
    agent, _, _ = build([{"text": "Done."}])
    async with agent.open() as session:
        await session.run("go")
        session.conversation.note("of the system")
        assert session.conversation.take_back_note() == ""
        assert [note.text for note in session.inbox.waiting] == ["of the system"]
