"""A turn can be cancelled at any await, and the conversation can continue afterwards."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import Probe, assert_valid, build, call

from bradawl.core.events import TurnFinished
from bradawl.core.messages import Assistant, Text, ToolCall, ToolResult
from bradawl.core.permissions import Answer, Policy, Question
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds


class _Counted:
    """A coroutine that calls `on_wait` each time it suspends."""

    def __init__(self, coroutine: Generator[Any, Any, Any], on_wait: Any) -> None:
        self._coroutine = coroutine
        self._on_wait = on_wait

    def __await__(self) -> Generator[Any, Any, Any]:
        value, error = None, None
        while True:
            try:
                waits_for = self._coroutine.throw(error) if error else self._coroutine.send(value)
            except StopIteration as end:
                return end.value
            self._on_wait()
            value, error = None, None
            try:
                value = yield waits_for
            except BaseException as raised:  # noqa: BLE001 - handed on to the coroutine as it is
                error = raised


class Waits:
    """Counts every suspension of the turn and of its child tasks, and cancels the turn at one of them."""

    def __init__(self, cancel_at: int | None) -> None:
        self.count = 0
        self._cancel_at = cancel_at
        self._session: Any = None

    def install(self, session: Any) -> None:
        self._session = session
        asyncio.get_running_loop().set_task_factory(self._make_task)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, context: Any = None) -> Any:
        async def counted() -> Any:
            return await _Counted(coroutine, self._on_wait)

        return asyncio.Task(counted(), loop=loop, context=context)

    def _on_wait(self) -> None:
        self.count += 1
        if self.count == self._cancel_at:
            # Immediately, before this task has suspended.
            self._session.cancel()


SCRIPT = [
    {
        "text": "I read and change.",
        "thinking": "hm",
        "tool_calls": [call("r", reads=["/p/a"]), call("w", writes=["/p/a"]), call("x", unknown=True)],
    },
    {"text": "cut here and there", "faults": {"cut_at_byte": 5}},
    {"text": "again", "tool_calls": [call("last", unknown=True)]},
    {"text": "done"},
]


class _SlowGuard:
    """A hook that suspends before and after each call."""

    name = "slow"

    async def before_call(self, call: ToolCall) -> ToolCall | str:
        await asyncio.sleep(0)
        return call

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        await asyncio.sleep(0)
        return result


class _SlowApprover:
    """An approver that suspends before it permits a call."""

    async def ask(self, question: Question) -> Answer:
        await asyncio.sleep(0)
        return Answer(True, "user")


async def cancelled_turn(agent: Any, waits: Waits) -> str:
    """Run a turn that `waits` may cancel. Returns its reason, after checking that the conversation is valid."""
    async with agent.open() as session:
        waits.install(session)
        result = await session.run("go")
        asyncio.get_running_loop().set_task_factory(None)
        assert_valid(session.transcript.messages)
        assert not session.transcript.turn_is_open and not session.transcript.started
        assert (session.state.project == "") or isinstance(session.conversation.last_event, TurnFinished)
        assert len(asyncio.all_tasks()) == 1
    return result.reason


async def cancelled_run(cancel_at: int | None, folder: Path) -> tuple[int, str, Probe]:
    clock, ids = FakeClock(is_eager=True), FakeIds()
    store = LocalStore(folder, folder, clock, ids)
    slow = {"hooks": (_SlowGuard(),), "approver": _SlowApprover(), "policy": Policy}
    agent, _, probe = build(SCRIPT, store=store, clock=clock, ids=ids, **slow)
    waits = Waits(cancel_at)
    reason = await cancelled_turn(agent, waits)
    return waits.count, reason, probe


async def test_cancelled_at_any_await_the_conversation_stays_valid(tmp_path: Path) -> None:
    waits, reason, _ = await cancelled_run(None, tmp_path / "whole")
    assert reason == "completed" and waits > 60, "a run with few awaits would test little"
    reasons: list[str] = []
    for index in range(1, waits + 1):
        _, reason, probe = await cancelled_run(index, tmp_path / str(index))
        assert probe.running == 0
        reasons.append(reason)
    assert set(reasons) <= {"cancelled", "completed"}
    assert reasons.count("cancelled") > waits * 0.9, reasons


async def test_text_received_before_the_cancellation_is_kept() -> None:
    agent, *_ = build([{"text": "one two three four"}])

    async with agent.open() as session:

        def emit(item: Any) -> None:
            if getattr(getattr(item, "item", None), "text", "").strip() == "two":
                session.cancel()

        result = await session.run("go", emit)
        assert (result.reason, result.text) == ("cancelled", "one two")
        last = session.transcript.messages[-1]
    assert isinstance(last, Assistant) and not last.complete and last.parts == (Text("one two"),)


async def test_cancelling_the_caller_cancels_the_turn_and_closes_the_log() -> None:
    agent, _, probe = build([{"tool_calls": [call("a")]}, {"text": "ok"}])

    probe.gate("a")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("a").wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert_valid(session.transcript.messages)
        events = [entry.event for entry in session.log.entries]
    assert events[-1] == TurnFinished("cancelled")


async def test_a_cancelled_session_accepts_the_next_prompt() -> None:
    agent, model, probe = build([{"tool_calls": [call("a")]}, {"text": "hello again"}])

    probe.gate("a")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("a").wait()
        session.cancel()
        assert (await turn).reason == "cancelled"
        assert (await session.run("and now?")).text == "hello again"
        assert_valid(session.transcript.messages)
    assert_valid(list(model.requests[1]))
