"""An approver that raises or returns no answer ends the turn with a failure, whatever was asked; nothing is granted."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from scripted_agent import assert_valid, build, only, results
from scripted_subagents import TwoScripts, task
from test_connections import AUTO, CommandParams, CommandTool, run_of

from bradawl.core.errors import SettingsError, ToolError
from bradawl.core.events import PermissionDecided, ToolFinished
from bradawl.core.messages import Text, text_of
from bradawl.core.permissions import Answer, Choice, Policy, Question
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.testing.fakes import RecordingEmit
from bradawl.tools.agent import AgentTool
from bradawl.tools.ask_user import AskUser


@pytest.fixture
async def reported() -> AsyncIterator[list[Any]]:
    """What the event loop's exception handler got."""
    contexts: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    yield contexts
    asyncio.get_running_loop().set_exception_handler(None)


async def raises(_: object) -> Any:
    raise RuntimeError("boom")


async def raises_tool_error(_: object) -> Any:
    raise ToolError("boom")


async def awaits_a_cancelled_task(_: object) -> Any:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


async def raises_cancelled(_: object) -> Any:
    raise asyncio.CancelledError


def is_not_async(_: object) -> Any:
    return Answer(True, "user")


def returns(value: object) -> Any:
    async def answer(_: object) -> Any:
        return value

    return answer


BROKEN = {
    "raises": (raises, "RuntimeError: boom"),
    "raises ToolError": (raises_tool_error, "ToolError: boom"),
    "raises CancelledError": (raises_cancelled, "RuntimeError: what it waited for was cancelled"),
    "awaits a cancelled task": (awaits_a_cancelled_task, "RuntimeError: what it waited for was cancelled"),
    "is not async": (is_not_async, "TypeError: object Answer can't be used in 'await' expression"),
    "returns None": (returns(None), "TypeError: ask returned an object of the type NoneType, not an Answer"),
    "returns True": (returns(True), "TypeError: ask returned an object of the type bool, not an Answer"),
    "returns a text as `allowed`": (
        returns(Answer("no", "user")),
        "ValidationError: Expected `bool`, got `str` - at `$.allowed`",
    ),  # type: ignore[arg-type]  # the mistake under test
    "returns an unknown scope": (
        returns(Answer(True, "user", "forever")),  # type: ignore[arg-type]  # the mistake under test
        "ValidationError: Invalid enum value 'forever' - at `$.scope`",
    ),
    "returns an unknown `by`": (
        returns(Answer(True, "me", "session")),  # type: ignore[arg-type]  # the mistake under test
        "ValidationError: Invalid enum value 'me' - at `$.by`",
    ),
}


class Approver:
    """An approver made of one function, which answers only the questions that `breaks_at` selects."""

    def __init__(self, answer: Any, breaks_at: str) -> None:
        self._answer, self._breaks_at = answer, breaks_at
        self.asked: list[Question] = []

    def ask(self, question: Question) -> Any:
        self.asked.append(question)
        if self._breaks_at in (question.request.tool, "any"):
            return self._answer(question)
        return returns(Answer(True, "user"))(question)

    def choose(self, choice: Choice) -> Any:
        return self._answer(choice)


class CatchingTool(CommandTool):
    """A command whose tool catches every exception of its connections."""

    async def run(self, params: CommandParams, context: CallContext) -> ToolOutput:
        try:
            return await super().run(params, context)
        except Exception as error:  # noqa: BLE001 - the mistake under test
            return ToolOutput((Text(f"went on after {type(error).__name__}"),))


class GroupingTool(CommandTool):
    """A command whose tool waits for its connections in a task group, as the tool `bash` does."""

    async def run(self, params: CommandParams, context: CallContext) -> ToolOutput:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(super().run(params, context))
        return waiting.result()


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("tool", [CommandTool, CatchingTool, GroupingTool])
@pytest.mark.parametrize("question", ["bash", "network"])
async def test_a_defect_at_a_question_about_a_host_is_one_at_a_question_about_a_call(name, tool, question, reported):
    answer, text = BROKEN[name]
    approver, emit = Approver(answer, question), RecordingEmit()
    agent, *_ = build(
        [run_of("a.example"), run_of("a.example", name="d"), {"text": "two"}],
        tools=(made := tool(),),
        policy=lambda: msgspec.structs.replace(AUTO, mode="default"),
        approver=approver,
    )
    async with agent.open() as session:
        first = await session.run("go", emit)
        assert (first.reason, first.text) == ("error", "")
        assert first.failure is not None
        assert (first.failure.kind, first.failure.message) == ("internal", f"The approver failed: {text}")
        assert [each["message"] for each in reported] == [first.failure.message] and reported[0]["ends_turn"]
        assert not any(found.endswith("reached") for found in made.found), "nothing was granted"
        assert [each.request.tool for each in approver.asked] == ["bash", "network"][: 1 + (question == "network")]
        finished = only(emit.events, ToolFinished)[0]
        started = question == "network"
        assert finished.outcome == "cancelled"
        assert ("cancelled while it was running" in text_of(finished.shown)) == started
        granted = [each for each in only(emit.events, PermissionDecided) if each.decision == "allow"]
        assert len(granted) == int(started), "the command alone"

        approver._answer = returns(Answer(True, "user"))
        second = await session.run("again", emit)
        assert second.reason == "completed" and made.found == ["a.example: reached"]
        asked = [each.request.tool for each in approver.asked]
        assert asked[-2:] == ["bash", "network"], "no answer of the broken turn was kept"
        assert_valid(session.transcript.messages)


@pytest.mark.parametrize("name", ["raises", "awaits a cancelled task", "is not async"])
async def test_a_defect_at_a_question_of_the_model_ends_the_turn_too(name, reported):
    answer, text = BROKEN[name]
    ask = {"tool_calls": [{"id": "q", "name": "ask_user", "arguments": {"question": "which?"}}]}
    agent, *_ = build([ask, {"text": "two"}], tools=(AskUser(),), approver=Approver(answer, "any"), policy=Policy)
    async with agent.open() as session:
        first = await session.run("go")
        assert first.failure is not None
        assert first.failure.message == f"The approver failed: {text}" and len(reported) == 1
        assert (await session.run("again")).text == "two"


async def test_a_choice_of_a_wrong_type_is_a_defect(reported):
    ask = {"tool_calls": [{"id": "q", "name": "ask_user", "arguments": {"question": "which?"}}]}
    agent, *_ = build([ask], tools=(AskUser(),), approver=Approver(returns(1), "any"), policy=Policy)
    result = await agent.run("go")
    assert result.failure is not None and len(reported) == 1
    text = "The approver failed: TypeError: choose returned an object of the type int, not a str or None"
    assert result.failure.message == text


class AskingWrongly(CommandTool):
    """A tool that gives `permit` and the approver what they don't take."""

    def __init__(self, ask: Any) -> None:
        super().__init__()
        self._ask = ask

    async def run(self, params: CommandParams, context: CallContext) -> ToolOutput:
        await self._ask(context)
        return ToolOutput(())


@pytest.mark.parametrize(
    "ask",
    [
        lambda context: context.permit("a.example"),
        lambda context: context.approver.choose("which?"),
        lambda context: context.approver.ask("may I?"),
    ],
)
async def test_a_tool_that_asks_wrongly_is_at_fault_and_the_turn_goes_on(ask, reported):
    agent, *_ = build(
        [run_of(), {"text": "ok"}], tools=(AskingWrongly(ask),), policy=lambda: AUTO, approver=Approver(raises, "any")
    )
    async with agent.open() as session:
        result = await session.run("go")
        (shown,) = results(session.transcript.messages)
    assert result.text == "ok" and not reported
    assert shown.startswith("bash broke: ") and "The tool is at fault" in shown


async def test_an_error_for_the_caller_of_the_turn_reaches_it_also_from_a_question_about_a_host():
    async def refuses(_: object) -> Answer:
        raise SettingsError("the window is closed")

    agent, *_ = build(
        [run_of("a.example")], tools=(GroupingTool(),), policy=lambda: AUTO, approver=Approver(refuses, "network")
    )
    async with agent.open() as session:
        with pytest.raises(SettingsError, match="the window is closed"):
            await session.run("go")


async def test_cancelling_the_turn_while_a_host_is_asked_about_is_no_defect(reported):
    asked = asyncio.Event()

    async def waits(_: object) -> Answer:
        asked.set()
        await asyncio.sleep(60)
        return Answer(True, "user")

    agent, *_ = build(
        [run_of("a.example")], tools=(GroupingTool(),), policy=lambda: AUTO, approver=Approver(waits, "network")
    )
    async with agent.open() as session, asyncio.TaskGroup() as group:
        turn = group.create_task(session.run("go"))
        await asked.wait()
        session.cancel()
        assert (await turn).reason == "cancelled" and not reported


async def test_a_defect_at_a_question_of_a_sub_agent_ends_its_turn_and_the_main_agent_hears_of_it(reported):
    main, sub = [{"tool_calls": [task("t")]}, {"text": "ok"}], [run_of("a.example"), {"text": "found"}]
    tool = CommandTool()
    agent, *_ = build(
        [],
        model=TwoScripts(main, sub),
        tools=(tool, AgentTool()),
        policy=lambda: AUTO,
        approver=Approver(raises, "network"),
    )
    async with agent.open() as session:
        await session.run("go")
    assert [each["message"] for each in reported] == ["The approver failed: RuntimeError: boom"] and not tool.found
