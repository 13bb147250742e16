"""A closed session does nothing any more, and a session that is closed during a turn ends the turn first."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from scripted_agent import build, call

from bradawl.agent.session import Session
from bradawl.core.errors import SessionError
from bradawl.core.events import TurnFinished

SCRIPT = [{"text": "one"}, {"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "two"}]
USES: dict[str, Callable[[Session], Any]] = {
    "send": lambda session: session.send("more"),
    "choose_mode": lambda session: session.choose_mode("plan"),
    "change_tools": lambda session: session.change_tools([]),
}


@pytest.mark.parametrize("is_begun", [True, False])
async def test_a_closed_session_runs_no_turn(is_begun: bool) -> None:
    agent, model, probe = build(SCRIPT)
    async with agent.open() as session:
        if is_begun:
            await session.run("one")
    entries = list(session.log.entries)
    with pytest.raises(SessionError, match="is closed"):
        await session.run("two")
    assert probe.log == [] and len(model.requests) == is_begun and list(session.log.entries) == entries


@pytest.mark.parametrize("use", USES)
async def test_a_closed_session_takes_no_change(use: str) -> None:
    agent, *_ = build(SCRIPT)
    async with agent.open() as session:
        await session.run("one")
    entries = list(session.log.entries)
    with pytest.raises(SessionError, match=r"is closed; .*open"):
        USES[use](session)
    session.cancel()
    assert list(session.log.entries) == entries


async def test_a_closed_session_can_not_be_entered_again() -> None:
    agent, *_ = build(SCRIPT)
    async with agent.open() as session:
        pass
    with pytest.raises(SessionError, match="is closed"):
        await session.__aenter__()


async def test_closing_a_session_ends_its_running_turn_before_the_log_is_closed() -> None:
    agent, model, probe = build([{"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "never"}])
    probe.gate("w")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("w").wait()
    assert turn.done()
    result = await turn
    assert (result.reason, result.saved, len(model.requests)) == ("cancelled", True, 1)
    assert probe.log == ["+w"] and session.log.entries[-1].event == TurnFinished("cancelled")
