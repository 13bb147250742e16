"""Changing the tools of a session: the new prefix, its log entry, and resumed sessions."""

import asyncio
from typing import Any

import msgspec
import pytest
from scripted_agent import Probe, assert_valid, build, call, only, results
from scripted_subagents import TwoScripts, task

from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.events import PrefixOpened, RequestSent, ToolsChanged
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.testing.fakes import MemoryStore, RecordingEmit
from bradawl.tools.agent import AgentTool
from bradawl.tools.custom import tool


class GreetParams(msgspec.Struct, frozen=True):
    """Greets."""


class Greet:
    spec = ToolSpec("greet")
    params = GreetParams

    def effects(self, params: GreetParams, context: CallContext) -> Effects:
        return Effects()

    async def run(self, params: GreetParams, context: CallContext) -> ToolOutput:
        return ToolOutput((Text("hello"),))


GREETING = {"tool_calls": [{"id": "g", "name": "greet", "arguments": {}}]}


def offered(model: Any) -> list[list[str]]:
    return [[tool.name for tool in prefix.tools] for prefix in model.prefixes]


async def changed(script: list[dict[str, Any]], *tools: Any, store: MemoryStore | None = None) -> Any:
    """Run a turn, change the tools, run a second turn. Returns session id, results, events and model."""
    agent, model, probe = build(script, store=store or MemoryStore())
    emit = RecordingEmit()

    async with agent.open() as session:
        await session.run("one", emit)
        session.change_tools([probe if each is Probe else each for each in tools])
        await session.run("two", emit)
        assert_valid(session.transcript.messages)
        session_id, answers = session.id, results(session.transcript.messages)
    return session_id, answers, list(emit.events), model


async def test_a_new_tool_can_be_called_immediately_and_the_prefix_changes_once() -> None:
    script = [{"text": "1"}, GREETING, {"tool_calls": [call("a")]}, {"text": "2"}]
    _, answers, events, model = await changed(script, Probe, Greet())
    assert answers == ["hello", "did a"] and offered(model) == [["probe"], ["probe", "greet"]]
    assert only(events, ToolsChanged) == [ToolsChanged(("greet",))]
    opened = only(events, PrefixOpened)
    assert [event.reason for event in opened] == ["start", "tools"] and opened[1].first_change == "tools"
    assert opened[0].system_ref == opened[1].system_ref and opened[0].tools_ref != opened[1].tools_ref
    marks = [len(event.marks) for event in only(events, RequestSent)]
    assert marks == [2, 4, 2, 2], "each of the two prefixes begins with a mark that covers no message"
    assert [len(request) for request in model.requests] == [1, 3, 5, 7], (
        "the second prefix contains the whole transcript"
    )


async def test_tools_can_change_while_a_turn_runs() -> None:
    agent, model, probe = build([{"tool_calls": [call("a")]}, GREETING, {"text": "done"}])
    gate = probe.gate("a")

    async with agent.open() as session, asyncio.TaskGroup() as group:
        turn = group.create_task(session.run("go"))
        await probe.has_started("a").wait()
        session.change_tools([Greet()])
        gate.set()
        await turn
        assert results(session.transcript.messages) == ["did a", "hello"] and offered(model) == [["probe"], ["greet"]]


async def test_a_call_of_a_removed_tool_fails_and_names_the_reason() -> None:
    script = [{"text": "1"}, {"tool_calls": [call("a")]}, {"text": "2"}]
    _, answers, events, _ = await changed(script, Greet())
    assert only(events, ToolsChanged) == [ToolsChanged(("greet",), ("probe",))]
    assert answers == ["The tool 'probe' was removed from this session; nothing was run. The tools are: greet."]


async def test_tools_with_the_same_schemas_open_no_new_prefix() -> None:
    script = [{"text": "1"}, {"tool_calls": [call("a")]}, {"text": "2"}]
    _, answers, events, model = await changed(script, Probe())
    assert answers == ["did a"] and len(model.prefixes) == 1
    assert not only(events, ToolsChanged) and len(only(events, PrefixOpened)) == 1


@tool
def shout(text: str) -> str:
    """Shout."""
    return text.upper()


def whisper(text: str) -> str:
    return text.lower()


def renamed(name: str) -> Any:
    class Renamed(Greet):
        spec = ToolSpec(name)

    return Renamed()


WRONG_TOOLS: dict[str, tuple[list[Any], str]] = {
    "two of one name": ([Greet(), Greet()], r"Two tools are named greet: .*\.Greet and .*\.Greet"),
    "a name models refuse": ([renamed("Bad Name")], "the name 'Bad Name'; names are of a-z"),
    "a function": ([whisper], r"whisper is a function, not a tool; .*@tool"),
    "a class": ([Greet], r"Greet is a class, not a tool; .*Greet\(\)"),
    "another object": ([object()], "An object of the type object is not a tool: it has no spec, params, effects, run"),
    "a name alone": (["greet"], "An object of the type str is not a tool"),
}


@pytest.mark.parametrize("wrong", WRONG_TOOLS)
async def test_wrong_tools_are_refused_at_once_wherever_they_are_given(wrong: str) -> None:
    tools, why = WRONG_TOOLS[wrong]
    with pytest.raises(SettingsError, match=why):
        await changed([{"text": "1"}], *tools)
    with pytest.raises(SettingsError, match=why):
        build([{"text": "1"}], tools=tuple(tools))


async def test_a_function_can_be_offered_as_a_tool() -> None:
    agent, model, _ = build([{"text": "1"}])
    async with agent.open() as session:
        session.change_tools([shout, Greet()])
        await session.run("go")
    assert offered(model)[-1] == ["shout", "greet"]


async def test_a_resumed_session_with_the_changed_tools_continues_the_same_prefix() -> None:
    store = MemoryStore()
    session_id, *_ = await changed([{"text": "1"}, GREETING, {"text": "2"}], Probe, Greet(), store=store)
    agent, model, _ = build([GREETING, {"text": "3"}], store=store, tools=(Probe(), Greet()))
    emit = RecordingEmit()

    async with agent.open(session_id) as session:
        await session.run("three", emit)
    assert emit.warnings == () and offered(model) == [["probe", "greet"]]
    assert not only(list(emit.events), PrefixOpened) and not only(list(emit.events), ToolsChanged)


async def test_a_resumed_session_reports_missing_tools_and_refuses_calls_of_them() -> None:
    store = MemoryStore()
    session_id, *_ = await changed([{"text": "1"}, GREETING, {"text": "2"}], Probe, Greet(), store=store)
    agent, model, _ = build([GREETING, {"text": "3"}], store=store)
    emit = RecordingEmit()

    async with agent.open(session_id) as session:
        await session.run("three", emit)
        answers = results(session.transcript.messages)
    assert emit.warnings == ("Tools that this session had are not available any more: greet.",)
    assert "'greet' was removed from this session" in answers[-1] and offered(model) == [["probe"]]
    assert only(list(emit.events), ToolsChanged) == [ToolsChanged((), ("greet",))]
    assert [event.reason for event in only(list(emit.events), PrefixOpened)] == ["tools"]


async def test_a_sub_agent_gets_the_current_tools_of_its_session() -> None:
    model = TwoScripts([{"text": "1"}, {"tool_calls": [task("t")]}, {"text": "2"}], [GREETING, {"text": "it greets"}])
    agent, *_ = build([], model=model, tools=(AgentTool(),))

    async with agent.open() as session:
        await session.run("one")
        session.change_tools([AgentTool(), Greet()])
        await session.run("two")
        assert results(session.transcript.messages) == ["it greets"] and offered(model.sub) == [["greet"]]
