"""Todos: kept in the session's state, repeated in reminders when they are not updated, and kept after a compaction."""

from typing import Any

from scripted_agent import Probe, assert_valid, build, call

from bradawl.agent.configuration import Limits
from bradawl.agent.middleware.reminders import REMIND_AFTER
from bradawl.core.events import NoteQueued
from bradawl.core.messages import ToolResults, User, text_of
from bradawl.shaping.reminder_notes import LAST_STEP
from bradawl.testing.fakes import MemoryStore, RecordingEmit
from bradawl.tools.todo_write import TodoWrite


def write(*todos: tuple[str, str]) -> dict[str, Any]:
    """A script entry: one call that sets the todos."""
    listed = [{"content": content, "status": status} for content, status in todos]
    return {"tool_calls": [{"name": "todo_write", "arguments": {"todos": listed}}]}


def work(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Script entries without a todo call."""
    return [{"tool_calls": [call(f"w{start + n}")]} for n in range(count)]


def notes_of(message: Any) -> list[str]:
    return [note.text for note in message.notes] if isinstance(message, User | ToolResults) else []


async def run(script: list[dict[str, Any]], **changes: Any) -> tuple[list[list[str]], Any]:
    """The new notes of each request, and the session."""
    agent, model, _ = build([*script, {"text": "done"}], **{"tools": (TodoWrite(), Probe()), **changes})

    async with agent.open() as session:
        await session.run("go")
        assert_valid(session.transcript.messages)
    return [notes_of(request[-1]) for request in model.requests], session


OPEN = write(("look", "completed"), ("mend", "in_progress"), ("test", "pending"))


async def test_open_todos_are_repeated_after_a_number_of_steps_without_an_update():
    notes, session = await run([OPEN, *work(2 * REMIND_AFTER + 1)])
    recalled = [number for number, told in enumerate(notes) if told]
    assert recalled == [1 + REMIND_AFTER, 1 + 2 * REMIND_AFTER]
    (text,) = notes[recalled[0]]
    assert "[completed] look\n[in_progress] mend\n[pending] test" in text and "todo_write" in text
    assert [todo.content for todo in session.state.todos] == ["look", "mend", "test"]


async def test_an_update_resets_the_count_even_if_nothing_changed():
    notes, _ = await run([OPEN, *work(REMIND_AFTER - 2), OPEN, *work(REMIND_AFTER - 1, 50)])
    assert not any(notes)


async def test_a_completed_empty_or_missing_list_is_not_repeated():
    assert not any((await run([write(("look", "completed")), *work(2 * REMIND_AFTER)]))[0])
    assert not any((await run([OPEN, write(), *work(2 * REMIND_AFTER)]))[0])
    assert not any((await run(work(2 * REMIND_AFTER)))[0])


async def test_a_reminder_follows_the_last_results_and_sent_messages_stay_unchanged():
    emit = RecordingEmit()
    agent, model, _ = build([OPEN, *work(REMIND_AFTER + 3), {"text": "done"}], tools=(TodoWrite(), Probe()))

    async with agent.open() as session:
        await session.run("go", emit)
    assert sum(isinstance(event, NoteQueued) for event in emit.events) == 1
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert later[: len(earlier)] == earlier


async def test_a_compaction_keeps_the_todos_and_repeats_them_in_its_message():
    texts = ["one " * 300, "two " * 300, "three"]
    agent, *_ = build([OPEN, *({"text": text} for text in texts), {"text": "notes " * 40}], tools=(TodoWrite(),))

    async with agent.open() as session:
        for prompt in ("go", "go on", "and on"):
            await session.run(prompt)
        assert await session.compact() is not None
        head = text_of(session.transcript.messages[0].parts)
    assert [todo.content for todo in session.state.todos] == ["look", "mend", "test"]
    assert "<todos>\n" in head and "[in_progress] mend" in head
    assert not any(notes_of(message) for message in session.transcript.messages), "not said twice"


async def test_a_resumed_session_still_has_its_todos():
    store = MemoryStore()
    _, session = await run([OPEN], store=store)
    agent, model, _ = build([*work(REMIND_AFTER + 1), {"text": "done"}], store=store, tools=(TodoWrite(), Probe()))

    async with agent.open(session.id) as again:
        assert again.state.todos == session.state.todos
        await again.run("go on")
    assert [bool(notes_of(request[-1])) for request in model.requests].index(True) == REMIND_AFTER


async def test_without_the_todo_tool_there_are_no_reminders():
    store = MemoryStore()
    _, session = await run([OPEN], store=store)
    agent, model, _ = build([*work(REMIND_AFTER + 1), {"text": "done"}], store=store, tools=(Probe(),))

    async with agent.open(session.id) as again:
        await again.run("go on")
    assert not any(notes_of(message) for request in model.requests for message in request)


async def test_a_run_without_a_user_is_asked_for_its_conclusion_before_the_last_step_of_each_turn():
    agent, model, _ = build([*work(2), *work(2, 2)], limits=Limits(max_steps=2, tells_last_step=True))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
    assert [notes_of(request[-1]) for request in model.requests] == [[], [LAST_STEP], [], [LAST_STEP]]


async def test_a_user_can_let_the_turn_go_on_and_no_conclusion_is_asked_for():
    assert not any((await run(work(2), limits=Limits(max_steps=2)))[0])
