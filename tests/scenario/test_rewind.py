"""A session goes back to an earlier entry of its log and forward again: messages, state, prefix and notes follow."""

import asyncio
from typing import Any

import pytest
from scripted_agent import assert_valid, build, call, only, results

from bradawl.agent.session import Session
from bradawl.core.errors import SessionError
from bradawl.core.events import (
    CheckpointTaken,
    Envelope,
    Event,
    FileSeen,
    HeadMoved,
    ModeChosen,
    PrefixOpened,
    PromptSubmitted,
    RequestSent,
    StateChanged,
    Todo,
    TodosSet,
    TurnFinished,
)
from bradawl.core.messages import User, text_of
from bradawl.core.permissions import Policy
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore, RecordingEmit, ScriptedApprover


def talk(*replies: str) -> list[dict[str, Any]]:
    return [{"text": reply, "usage": {"input": 100, "output": 10}} for reply in replies]


def prompts(session: Session) -> list[str]:
    return [text_of(each.parts) for each in session.transcript.messages if isinstance(each, User)]


def before_prompt(session: Session, number: int) -> int:
    """The entry before a prompt, counted from 1."""
    found = [entry for entry in session.conversation.entries() if isinstance(entry.event, PromptSubmitted)]
    parent = found[number - 1].parent
    assert parent is not None
    return parent


def events(session: Session) -> list[Event]:
    return [entry.event for entry in session.conversation.entries()]


async def test_the_model_no_longer_sees_what_came_after_the_entry() -> None:
    agent, model, _ = build(talk("a", "b", "c", "d"))
    async with agent.open() as session:
        for prompt in ("one", "two", "three"):
            await session.run(prompt)
        await session.rewind(before_prompt(session, 2), "talk")
        assert prompts(session) == ["one"]
        await session.run("other")
        assert prompts(session) == ["one", "other"]
    seen = [text_of(each.parts) for each in model.requests[-1]]
    assert seen == ["one", "a", "other"]


async def test_going_forward_again_is_another_move() -> None:
    agent, *_ = build(talk("a", "b", "c"))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        messages, head = list(session.transcript.messages), session.conversation.entries()[-1].seq
        await session.rewind(before_prompt(session, 1), "both", "record")
        assert session.transcript.messages == []
        await session.rewind(head, "both")
        assert session.transcript.messages == messages
    assert [(each.restore, each.checkpoint_ref) for each in only(events(session), HeadMoved)] == [
        ("both", "record"),
        ("both", ""),
    ]


@pytest.mark.parametrize("is_on_disk", [False, True])
async def test_a_resumed_session_continues_on_the_branch_it_was_left_on(tmp_path, is_on_disk: bool) -> None:
    store = LocalStore(tmp_path, "/project", FakeClock(), FakeIds()) if is_on_disk else MemoryStore()
    agent, *_ = build(talk("a", "b", "c"), store=store)
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
    async with agent.open(session.id) as resumed:
        await resumed.rewind(before_prompt(resumed, 2), "both", "record")
    async with agent.open(session.id) as again:
        assert prompts(again) == ["one"]
        await again.run("three")
        assert prompts(again) == ["one", "three"]
        assert only(events(again), HeadMoved)[0].checkpoint_ref == "record"


async def test_a_new_prefix_says_why_and_its_first_request_has_the_shorter_conversation() -> None:
    agent, *_ = build(talk("a", "b", "c"))
    emit = RecordingEmit()
    async with agent.open() as session:
        session.show_with(emit)
        await session.run("one", emit)
        await session.run("two", emit)
        await session.rewind(before_prompt(session, 2), "talk")
        await session.run("three", emit)
    assert [each.reason for each in only(list(emit.events), PrefixOpened)] == ["start", "rewound"]
    hashes = [each.prefix_hash for each in only(list(emit.events), RequestSent)]
    assert len(set(hashes)) == 3


async def test_the_middle_of_a_turn_is_closed() -> None:
    script = [{"tool_calls": [call("a")]}, {"tool_calls": [call("b")]}, *talk("done", "more")]
    agent, *_ = build(script)
    async with agent.open() as session:
        await session.run("go")
        second = only_envelopes(session, RequestSent)[1]
        await session.rewind(second.parent, "talk")
        assert results(session.transcript.messages) == ["did a"]
        assert isinstance(events(session)[-2], TurnFinished)
        await session.run("on")
        assert_valid(session.transcript.messages)


def only_envelopes(session: Session, kind: type[Event]) -> list[Envelope]:
    return [each for each in session.conversation.entries() if isinstance(each.event, kind)]


async def test_an_entry_with_open_calls_gets_their_results() -> None:
    agent, *_ = build([{"tool_calls": [call("a"), call("b")]}, *talk("done", "more")])
    async with agent.open() as session:
        await session.run("go")
        replied = next(each for each in session.conversation.entries() if type(each.event).__name__ == "ToolFinished")
        await session.rewind(replied.seq, "talk")
        assert_valid(session.transcript.messages)
        await session.run("on")
        assert_valid(session.transcript.messages)


async def test_files_seen_and_todos_are_those_of_the_entry() -> None:
    agent, *_ = build(talk("a", "b", "c"))
    async with agent.open() as session:
        await session.run("one")
        record = session.conversation.record
        record(StateChanged(FileSeen("/project/a", "1" * 64)))
        await session.run("two")
        record(StateChanged(FileSeen("/project/a", "2" * 64)))
        record(StateChanged(FileSeen("/project/b", "3" * 64)))
        record(StateChanged(TodosSet((Todo("x"),))))
        await session.rewind(before_prompt(session, 2), "both")
        assert session.calls.seen.sha256("/project/a") == "1" * 64
        assert session.calls.seen.sha256("/project/b") is None
        assert session.state.todos == ()
        record(StateChanged(FileSeen("/project/c", "4" * 64)))
        assert session.calls.seen.sha256("/project/c") == "4" * 64


async def test_tokens_and_cost_of_what_was_taken_back_are_still_counted() -> None:
    agent, *_ = build(talk("a", "b", "c"))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        before = session.state.usage, session.state.replies, session.state.cost
        await session.rewind(before_prompt(session, 1), "both")
        assert (session.state.usage, session.state.replies, session.state.cost) == before
    async with agent.open(session.id) as again:
        assert (again.state.usage, again.state.replies, again.state.cost) == before


@pytest.mark.parametrize(
    ("chosen", "now", "expected"),
    [
        ("auto", "default", "default"),
        ("plan", "auto", "plan"),
        ("auto", "plan", "plan"),
        ("default", "auto", "default"),
    ],
)
async def test_the_mode_only_becomes_stricter(chosen: Any, now: Any, expected: str) -> None:
    agent, *_ = build(talk("a", "b"), policy=lambda: Policy("default"))
    async with agent.open() as session:
        await session.run("one")
        session.choose_mode(chosen)
        await session.run("two")
        session.choose_mode(now)
        await session.rewind(before_prompt(session, 2), "talk")
        assert session.mode == expected
    async with agent.open(session.id) as again:
        assert again.mode == expected


async def test_code_alone_leaves_the_conversation() -> None:
    agent, *_ = build(talk("a", "b", "c"))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        messages, place = list(session.transcript.messages), before_prompt(session, 1)
        await session.rewind(place, "code", "record")
        assert session.transcript.messages == messages
    async with agent.open(session.id) as again:
        assert again.transcript.messages == messages
        await again.run("three")
        assert prompts(again) == ["one", "two", "three"]


async def test_notes_that_waited_on_the_left_branch_are_gone() -> None:
    agent, model, _ = build(talk("a", "b", "c"))
    async with agent.open() as session:
        await session.run("one")
        place = session.conversation.entries()[-1].seq
        session.send("never mind")
        await session.rewind(place, "talk")
        await session.run("two")
    assert all("never mind" not in str(each) for each in model.requests[-1])


async def test_it_is_refused_during_a_turn_when_closed_and_for_unknown_entries() -> None:
    agent, _, probe = build([{"tool_calls": [call("a")]}, *talk("b")])
    gate = probe.gate("a")
    async with agent.open() as session:
        with pytest.raises(SessionError, match="Nothing has happened"):
            await session.rewind(0, "talk")
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(session.run("go"))
            await probe.has_started("a").wait()
            with pytest.raises(SessionError, match="A turn is running"):
                await session.rewind(0, "talk")
            gate.set()
            await turn
        count = len(session.conversation.entries())
        with pytest.raises(SessionError, match="no entry 999"):
            await session.rewind(999, "talk")
        for part in ("zzz", "", "files", None, ["both"]):
            with pytest.raises(SessionError, match="What to restore is"):
                await session.rewind(0, part)  # pyright: ignore[reportArgumentType] wrong on purpose
        assert len(session.conversation.entries()) == count
    with pytest.raises(SessionError, match="closed"):
        await session.rewind(0, "talk")


async def test_a_listener_and_the_front_end_get_the_move() -> None:
    agent, *_ = build(talk("a"), approver=ScriptedApprover())
    heard: list[Event] = []
    async with agent.open() as session:
        emit = RecordingEmit()
        session.show_with(emit)
        await session.run("one", emit)
        session.conversation.listen(heard.append)
        session.conversation.record(CheckpointTaken("x", "record"))
        await session.rewind(before_prompt(session, 1), "both", "undo")
    assert HeadMoved in map(type, heard)
    assert HeadMoved in map(type, emit.events)


async def test_plan_mode_is_announced_again_when_its_note_was_left_behind() -> None:
    agent, model, _ = build(talk("a", "b", "c"), policy=lambda: Policy("default"))
    async with agent.open() as session:
        await session.run("one")
        session.choose_mode("plan")
        await session.run("two")
        await session.rewind(before_prompt(session, 1), "talk")
        assert session.state.mode == "plan" and ModeChosen("plan") in [
            each.state for each in only(events(session), StateChanged)
        ]
        await session.run("three")
    notes = [note.text for each in model.requests[-1] if isinstance(each, User) for note in each.notes]
    assert len(notes) == 1 and "plan" in notes[0].lower()
