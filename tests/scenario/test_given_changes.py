"""A `WorkspaceChanges` of an embedding program with a defect fails closed, and does not stop the session."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scripted_agent import assert_valid, build, call, only, results

from bradawl.agent.given_changes import GivenChanges
from bradawl.core.errors import ToolError
from bradawl.core.events import CheckpointTaken, ToolStarted
from bradawl.core.permissions import Policy
from bradawl.core.workspace import Checkpoint
from bradawl.testing.fakes import RecordingEmit

EVERYWHERE = Policy("bypass")
SCRIPT = [{"tool_calls": [call("a", writes=["/p/a"])]}, {"text": "one"}, {"text": "two"}]
UNKNOWN = "The search for its changes failed: what it changed is not known."


@pytest.fixture
async def reported() -> AsyncIterator[list[str]]:
    """The messages that the event loop's exception handler got."""
    messages: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: messages.append(context["message"]))
    yield messages
    asyncio.get_running_loop().set_exception_handler(None)


async def raises(*_: object) -> Any:
    raise ValueError("disk")


async def awaits_a_cancelled_task(*_: object) -> Any:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


def returns(value: object) -> Any:
    async def answer(*_: object) -> Any:
        return value

    return answer


def raises_at_once(*_: object) -> Any:
    raise ValueError("disk")


DEFECTS = {
    "raises": raises,
    "awaits a cancelled task": awaits_a_cancelled_task,
    "is not async": raises_at_once,
    "returns None": returns(None),
    "returns a number": returns((1,)),
    "returns a checkpoint with wrong fields": returns((Checkpoint(1, 2),)),  # type: ignore[arg-type]  # the mistake under test
}


class Changes:
    """A `WorkspaceChanges` with one defect, which knows of each ended call that it changed something."""

    def __init__(self, method: str = "", defect: Any = None) -> None:
        self.ended: list[str] = []
        if method:
            setattr(self, method, defect)

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        return ()

    def end(self, call_id: str) -> None:
        self.ended.append(call_id.partition("/")[2])

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        found, self.ended = tuple(Checkpoint(name, f"r-{name}") for name in self.ended), []
        return found

    async def covers(self) -> bool:
        return True


async def two_turns(changes: Changes) -> tuple[Any, Any, list[Any], list[str]]:
    """The results of two turns, the checkpoints in the log, and what the model read about its calls."""
    agent, *_ = build(SCRIPT, policy=lambda: EVERYWHERE, changes=GivenChanges(changes))
    emit = RecordingEmit()
    async with agent.open() as session:
        first, second = await session.run("go", emit), await session.run("again", emit)
        assert_valid(session.transcript.messages)
        return first, second, only(emit.events, CheckpointTaken), results(session.transcript.messages)


async def test_without_a_defect_the_checkpoints_are_logged(reported):
    first, _, taken, _ = await two_turns(Changes())
    assert first.reason == "completed" and taken == [CheckpointTaken("id_a", "r-id_a")] and not reported


async def test_what_a_call_changed_is_logged_before_another_one_with_its_id_starts(reported):
    class Slow(Changes):
        async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
            await asyncio.sleep(0.05)
            return await super().settle(owner)

    same = call("a", writes=["/p/a"])
    agent, *_ = build(
        [{"tool_calls": [same]}, {"tool_calls": [same]}, {"text": "done"}],
        policy=lambda: EVERYWHERE,
        changes=GivenChanges(Slow()),
    )
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("go", emit)
    kinds = [type(each) for each in emit.events if isinstance(each, ToolStarted | CheckpointTaken)]
    assert kinds == [ToolStarted, CheckpointTaken, ToolStarted, CheckpointTaken] and not reported


@pytest.mark.parametrize("name", DEFECTS)
async def test_a_call_is_not_run_and_the_turn_fails_if_the_state_before_it_can_not_be_saved(name, reported):
    first, second, taken, shown = await two_turns(Changes("begin", DEFECTS[name]))
    assert first.failure is not None and first.failure.kind == "internal"
    assert first.failure.message.startswith("`changes.begin` failed: ") and reported == [first.failure.message]
    assert shown == ["Not run: the turn ended before this call started."] and not taken
    assert second.reason == "completed"


async def test_a_refusal_to_save_is_no_defect(reported):
    async def refuses(*_: object) -> Any:
        raise ToolError("the disk is full")

    first, _, _, shown = await two_turns(Changes("begin", refuses))
    assert first.reason == "completed" and not reported
    assert "what it would change could not be saved first: the disk is full" in shown[0]


@pytest.mark.parametrize("name", DEFECTS)
async def test_a_failed_search_is_reported_and_logged_as_unknown(name, reported):
    first, second, taken, shown = await two_turns(Changes("settle", DEFECTS[name]))
    assert (first.reason, second.reason, shown) == ("completed", "completed", ["did a"])
    assert reported and all(each.startswith("`changes.settle` failed: ") for each in reported)
    assert taken == [CheckpointTaken("id_a", "", UNKNOWN, is_known=False)]


async def test_a_search_that_does_not_end_is_cancelled_and_its_changes_are_not_known(reported):
    was_cancelled = []

    async def hangs(*_: object) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.append(True)

    agent, *_ = build(SCRIPT, policy=lambda: EVERYWHERE, changes=GivenChanges(Changes("settle", hangs), 0.02))
    emit = RecordingEmit()
    async with asyncio.timeout(60), agent.open() as session:
        assert (await session.run("go", emit)).reason == "completed"
    assert only(emit.events, CheckpointTaken) == [CheckpointTaken("id_a", "", UNKNOWN, is_known=False)]
    assert was_cancelled and reported[0] == "`changes.settle` failed: TimeoutError: it did not end within 0.02 s"


async def test_a_turn_that_waits_for_a_search_can_be_cancelled(reported):
    is_waiting = asyncio.Event()

    async def hangs(*_: object) -> Any:
        is_waiting.set()
        await asyncio.Event().wait()

    agent, *_ = build(SCRIPT, policy=lambda: EVERYWHERE, changes=GivenChanges(Changes("settle", hangs), 1))

    async def run() -> None:
        async with agent.open() as session:
            await session.run("go")

    async with asyncio.timeout(60):
        task = asyncio.create_task(run())
        await is_waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_call_waits_for_the_save_and_is_not_run_if_the_turn_is_cancelled_meanwhile():
    is_saving, ended = asyncio.Event(), []

    async def hangs(*_: object) -> Any:
        is_saving.set()
        await asyncio.Event().wait()

    changes = Changes("begin", hangs)
    vars(changes)["end"] = ended.append
    agent, *_ = build(SCRIPT, policy=lambda: EVERYWHERE, changes=changes)
    async with agent.open() as session, asyncio.timeout(60):
        task = asyncio.create_task(session.run("go"))
        await is_saving.wait()
        while "id_a" not in session.transcript.started:  # noqa: ASYNC110 - the start is logged while the state is saved
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert results(session.transcript.messages) == ["Not run: the turn ended before this call started."]
    assert [each.partition("/")[2] for each in ended] == ["id_a"]


async def test_a_call_that_is_cancelled_while_its_start_is_logged_is_ended(monkeypatch):
    is_logging, ended = asyncio.Event(), []

    async def hangs(*_: object) -> Any:
        is_logging.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("bradawl.agent.calls.execute._log_start", hangs)
    changes = Changes("end", ended.append)
    agent, *_ = build(SCRIPT, policy=lambda: EVERYWHERE, changes=changes)
    async with agent.open() as session, asyncio.timeout(60):
        task = asyncio.create_task(session.run("go"))
        await is_logging.wait()
        await asyncio.sleep(0.01)  # the save has ended
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [each.partition("/")[2] for each in ended] == ["id_a"]


async def test_a_failed_end_is_reported_and_the_call_keeps_its_result(reported):
    first, _, _, shown = await two_turns(Changes("end", raises_at_once))
    assert (first.reason, shown, reported) == ("completed", ["did a"], ["`changes.end` failed: ValueError: disk"])


@pytest.mark.parametrize("defect", [raises, awaits_a_cancelled_task, returns(None), returns(1), returns("yes")])
async def test_a_failed_answer_about_coverage_covers_nothing(defect, reported):
    assert not await GivenChanges(Changes("covers", defect)).covers()  # type: ignore[arg-type]  # it has a defect
    assert reported and reported[0].startswith("`changes.covers` failed: ")
    assert await GivenChanges(Changes()).covers()


async def test_a_started_call_that_a_defect_cut_off_is_not_said_to_have_been_not_run(reported):
    agent, *_ = build(SCRIPT, policy=lambda: EVERYWHERE, changes=Changes("end", raises_at_once))
    async with agent.open() as session:
        first = await session.run("go")
        assert first.failure is not None and reported == ["internal error: ValueError: disk"]
        (shown,) = results(session.transcript.messages)
    assert shown == "[the turn ended while it was running; it may have done part of its work, or all of it]"
