"""Questions of the model to the user are asked after the reply has ended, one at a time, and only once."""

import asyncio
from typing import Any

from scripted_agent import Probe, assert_valid, build, call, results

from bradawl.core.permissions import Answer, Choice, Policy
from bradawl.testing.fakes import ScriptedApprover
from bradawl.tools.ask_user import AskUser


def ask(call_id: str, question: str = "Which?") -> dict[str, Any]:
    return {"id": call_id, "name": "ask_user", "arguments": {"question": question}}


class SlowUser:
    """An approver that answers after a delay and logs the start and end of each question."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate: asyncio.Event | None = None
        self.is_asked = asyncio.Event()

    async def _wait(self, name: str) -> None:
        self.log.append(f"+{name}")
        self.is_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        self.log.append(f"-{name}")

    async def ask(self, question: Any) -> Answer:
        await self._wait(question.call.id)
        return Answer(True, "user")

    async def choose(self, choice: Choice) -> str | None:
        await self._wait(choice.question)
        return "this one"


async def run(agent: Any, allowed: tuple[str, ...] = ()) -> Any:
    async with asyncio.timeout(60), agent.open() as session:
        session.calls.allowed.update(allowed)
        await session.run("go")
        assert_valid(session.transcript.messages)
    return session


async def test_the_answer_is_the_result_and_other_calls_do_not_wait_for_it():
    user, probe = SlowUser(), Probe()
    user.gate = probe.has_ended("later")
    script = [{"tool_calls": [ask("q"), call("later", writes=["/p/a"])]}, {"text": "done"}]
    agent, *_ = build(script, approver=user, tools=(AskUser(), probe))
    session = await run(agent)
    assert results(session.transcript.messages) == ["The user says: this one", "did later"]


async def test_questions_of_the_model_and_permission_requests_never_overlap():
    user, probe = SlowUser(), Probe()
    script = [
        {"tool_calls": [ask("q1", "first"), call("w", writes=["/p/a"]), ask("q2", "second")]},
        {"text": "done"},
    ]
    agent, *_ = build(script, approver=user, tools=(AskUser(), probe), policy=lambda: Policy(roots=("/",)))
    await run(agent, ("ask_user",))
    names = [line[1:] for line in user.log]
    assert names[::2] == names[1::2] and sorted(names[::2]) == ["first", "id_w", "second"]
    assert names.index("first") < names.index("second")


async def test_a_question_of_a_broken_reply_is_not_asked():
    approver = ScriptedApprover(words=["once"])
    calls = {"text": "Let me ask.", "tool_calls": [ask("q"), {"name": "probe", "arguments": {"name": "x" * 200}}]}
    script = [{**calls, "faults": {"cut_at_byte": 100}}, {**calls}, {"text": "done"}]
    agent, model, _ = build(script, approver=approver, tools=(AskUser(), Probe()))
    session = await run(agent)
    assert len(model.requests) == 3
    assert [choice.question for choice in approver.choices] == ["Which?"]
    assert results(session.transcript.messages)[0] == "The user says: once"


async def test_cancelling_the_turn_ends_an_open_question():
    user = SlowUser()
    user.gate = asyncio.Event()
    agent, *_ = build([{"tool_calls": [ask("q")]}, {"text": "never"}], approver=user, tools=(AskUser(),))

    async with asyncio.timeout(60), agent.open() as session, asyncio.TaskGroup() as group:
        turn = group.create_task(session.run("go"))
        await user.is_asked.wait()
        session.cancel()
        result = await turn
        assert_valid(session.transcript.messages)
        assert not session.calls.asking.locked()
    assert result.reason == "cancelled"
    assert "cancelled while it was running" in results(session.transcript.messages)[0]
