"""Sub-agents: their prefix, tools, limits, usage, and how their end becomes the result of one call."""

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from scripted_agent import Probe, assert_valid, build, call, results
from scripted_subagents import MARK, Crowd, entries_of, events_of, family, task

from bradawl.agent.configuration import Limits
from bradawl.agent.middleware.reminders import LAST_STEP
from bradawl.agent.subagents.child import MOST_STEPS
from bradawl.agent.subagents.registry import MOST_SUB_AGENTS
from bradawl.app.exit_code import Meter
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    Cwd,
    PrefixOpened,
    RequestParams,
    RequestSent,
    SessionOpened,
    StateChanged,
    TodosSet,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Assistant, text_of
from bradawl.core.permissions import Answer, Policy
from bradawl.core.tools import ToolSpec
from bradawl.core.usage import Price
from bradawl.folds.transcript import branch, fold
from bradawl.testing.fakes import FakeClock, MemoryStore, RecordingEmit, ScriptedApprover
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.agent import AgentTool
from bradawl.tools.ask_user import AskUser
from bradawl.tools.todo_write import TodoWrite

ONE = [{"tool_calls": [task("a")]}, {"text": "done"}]


async def run(agent: Any, *, emit: Any = None, prompt: str = "go") -> tuple[Any, Any]:
    """The turn's result and its closed session."""

    async with agent.open() as session:
        result = await session.run(prompt, *([emit] if emit else []))
        assert_valid(session.transcript.messages)
        assert len(asyncio.all_tasks()) == 1
    return result, session


# ------------------------------------------------------------------ one sub-agent


async def test_the_last_text_of_a_sub_agent_is_the_result_of_the_call():
    sub = [{"text": "I look.", "tool_calls": [call("r", reads=["/p/a"])]}, {"text": "It is in a.py:3."}]
    agent, model, probe = family(ONE, sub)
    result, session = await run(agent)
    assert (result.reason, result.text, result.steps) == ("completed", "done", 2)
    assert results(session.transcript.messages) == ["It is in a.py:3."]
    assert probe.log == ["+r", "-r"]
    assert [text_of(message.parts) for message in model.sub.requests[0]] == ["look"]


async def test_a_sub_agent_has_its_parents_tools_except_those_that_start_agents_or_ask():
    agent, model, _ = family(ONE, [{"text": "ok"}], tools=(TodoWrite(), AskUser()))
    await run(agent)
    assert [tool.name for tool in model.main.prefixes[0].tools] == ["agent", "probe", "todo_write", "ask_user"]
    assert [tool.name for tool in model.sub.prefixes[0].tools] == ["probe", "todo_write"]
    assert "working directory: /project" in model.sub.prefixes[0].system


async def test_a_sub_agent_can_not_start_a_sub_agent():
    agent, model, _ = family(ONE, [{"tool_calls": [task("b")]}, {"text": "alone then"}])
    _, session = await run(agent)
    assert results(session.transcript.messages) == ["alone then"]
    assert "no tool named 'agent'" in results(model.sub.requests[1])[0]
    assert len(model.sub.prefixes) == 1


async def test_a_sub_agent_is_recorded_in_its_parents_log_under_its_own_name():
    store = MemoryStore()
    agent, model, _ = family(ONE, [{"tool_calls": [call("r")]}, {"text": "found"}], store=store)
    await run(agent)
    entries = entries_of(store)
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert {entry.agent for entry in entries} == {"main", "agent-1"}
    assert events_of(store, SessionOpened, "agent-1") == []
    assert events_of(store, AgentSpawned) == [AgentSpawned("agent-1", "a", "general", "look")]
    assert [event.spawned for event in events_of(store, AgentEnded)] == ["agent-1"]
    assert {entry.agent for entry in entries if isinstance(entry.event, AgentSpawned | AgentEnded)} == {"main"}
    own = fold(entries, "agent-1").messages
    assert text_of(own[0].parts) == "look" and text_of(own[-1].parts) == "found"
    assert [type(m) for m in fold(entries).messages] == [type(m) for m in model.main.requests[-1]] + [Assistant]
    chain = branch(entries, "agent-1")
    assert [e.seq for e in chain] == [e.seq for e in entries_of(store, "agent-1")]
    assert set(model.ids) == {next(iter(store.logs))}


async def test_a_sub_agent_opens_one_prefix_and_only_extends_it():
    store = MemoryStore()
    sub = [{"tool_calls": [call(name)]} for name in "xyz"] + [{"text": "found"}]
    agent, model, _ = family(ONE, sub, store=store)
    await run(agent)
    assert [event.reason for event in events_of(store, PrefixOpened, "agent-1")] == ["start"]
    assert [event.step for event in events_of(store, RequestSent, "agent-1")] == [1, 2, 3, 4]
    requests = model.sub.requests
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(requests))
    assert [event.reason for event in events_of(store, PrefixOpened, "main")] == ["start"]


async def test_the_usage_of_a_sub_agent_counts_for_its_parent_and_is_listed_by_model():
    used = {"usage": {"input": 1_000_000, "output": 10}}
    meter, emit = Meter(), RecordingEmit()

    def both(item: Any) -> None:
        meter.emit(item)
        emit(item)

    agent, *_ = family(
        [{**entry, **used} for entry in ONE], [{"text": "ok", **used}], price=Price(2.0, 0.0, None, None)
    )
    result, session = await run(agent, emit=both)
    assert result.usage.input == session.state.usage.input == 3_000_000
    assert result.cost == pytest.approx(6.0) and result.steps == 2
    (ended,) = (event for event in emit.events if isinstance(event, AgentEnded))
    assert (ended.reason, ended.usage.input, ended.cost) == ("completed", 1_000_000, pytest.approx(2.0))
    assert sum(used.input_tokens for used in meter.by_model().values()) == 3_000_000
    assert {item.agent for item in emit.items} == {"main", "agent-1"}


async def test_a_sub_agent_starts_in_its_parents_cwd_and_its_changes_stay_its_own():
    class Mover(Probe):
        """A tool that changes the working directory to the path it reads."""

        spec = ToolSpec("move")

        def effects(self, params: Any, context: Any) -> Any:
            return msgspec.structs.replace(super().effects(params, context), session=("cwd",))

        async def run(self, params: Any, context: Any) -> Any:
            self.log.append(context.cwd)
            context.change(Cwd(params.name))
            return await super().run(params, context)

    def move(to: str) -> dict[str, Any]:
        return {"name": "move", "arguments": {"name": to}}

    mover, store = Mover(), MemoryStore()
    main = [{"tool_calls": [move("/project/a"), task("t")]}, {"text": "done"}]
    agent, model, _ = family(main, [{"tool_calls": [move("/project/b")]}, {"text": "ok"}], tools=(mover,), store=store)
    _, session = await run(agent)
    assert [place for place in mover.log if place.startswith("/")] == ["/project", "/project/a"]
    assert session.state.cwd == "/project/a"
    assert "working directory: /project/a\n" in model.sub.prefixes[0].system
    assert events_of(store, StateChanged, "agent-1") == [
        StateChanged(Cwd("/project/a")),
        StateChanged(Cwd("/project/b")),
    ]


async def test_a_sub_agent_has_its_own_todos():
    todos = [{"content": "dig", "status": "in_progress"}]
    write = {"name": "todo_write", "arguments": {"todos": todos}}
    store = MemoryStore()
    agent, *_ = family(ONE, [{"tool_calls": [write]}, {"text": "ok"}], tools=(TodoWrite(),), store=store)
    _, session = await run(agent)
    assert session.state.todos == ()
    assert any(isinstance(event.state, TodosSet) for event in events_of(store, StateChanged, "agent-1"))


async def test_the_answer_schema_applies_to_the_parent_only():
    schema = '{"type": "object"}'
    main = [{"tool_calls": [task("a")]}, {"text": "{}"}]
    params = RequestParams(answer_schema=schema)
    agent, model, _ = family(main, [{"text": "prose"}], params=params, check_for=lambda _: lambda _: "")
    result, _ = await run(agent)
    assert (result.reason, result.answer) == ("completed", {})
    assert [params.answer_schema for params in model.sub.params] == [""]


# ------------------------------------------------------------------ kinds


async def test_an_exploring_sub_agent_changes_nothing_even_if_its_parent_may():
    sub = [{"tool_calls": [call("r", reads=["/p"]), call("w", writes=["/p"]), call("u", unknown=True)]}, {"text": "ok"}]
    main = [{"tool_calls": [task("a", kind="explore")]}, {"tool_calls": [task("b")]}, {"text": "done"}]
    agent, model, probe = family(main, sub)
    await run(agent)
    told = results(model.sub.requests[1])
    assert told[0] == "did r" and all("only reads" in text for text in told[1:])
    assert [line for line in probe.log if line.startswith("+")] == ["+r", "+r", "+w", "+u"]


async def test_an_exploring_sub_agent_uses_the_small_model_if_there_is_one():
    small = ScriptedModel(b'[{"text": "small"}]', max_output=5)
    main = [{"tool_calls": [task("a", kind="explore"), task("b", kind="general")]}, {"text": "done"}]
    agent, model, _ = family(
        main, [{"text": "big"}], small_model=small, params=RequestParams(max_output_tokens=9, effort="high")
    )
    _, session = await run(agent)
    assert results(session.transcript.messages) == ["small", "big"]
    assert len(model.sub.prefixes) == 1
    assert small.params == [RequestParams()] and model.sub.params == [RequestParams(9, "high")]


# ------------------------------------------------------------------ several sub-agents


async def test_sub_agents_run_concurrently_and_their_results_are_in_call_order():
    names = [f"t{n}" for n in range(4)]
    main = [{"tool_calls": [task(name, name) for name in names]}, {"text": "done"}]
    store = MemoryStore()
    crowd = Crowd(4)
    agent, _, probe = family(main, [{"tool_calls": [call("r")]}, {"text": "ok"}], store=store, probe=crowd)
    crowd.gates["r"] = crowd.is_full
    _, session = await run(agent)
    assert probe.most_running == 4
    assert results(session.transcript.messages) == ["ok"] * 4
    for number, name in enumerate(names, 1):
        assert text_of(fold(entries_of(store), f"agent-{number}").messages[0].parts) == name
    assert len({event.spawned for event in events_of(store, AgentEnded)}) == 4


async def test_a_sub_agent_runs_after_earlier_writes_and_before_later_ones():
    calls = [call("before", writes=["/project/x"]), task("a"), call("after", writes=["/project/x"])]
    agent, _, probe = family([{"tool_calls": calls}, {"text": "done"}], [{"tool_calls": [call("in")]}, {"text": "ok"}])
    await run(agent)
    assert probe.log == ["+before", "-before", "+in", "-in", "+after", "-after"]


async def test_the_number_of_sub_agents_per_session_is_limited():
    store = MemoryStore()
    agent, *_ = family(ONE, [{"text": "ok"}], store=store)

    async with agent.open() as session:
        session.conversation.record(SessionOpened(1, "/project", "/project"))
        for number in range(MOST_SUB_AGENTS):
            session.conversation.record(AgentSpawned(f"agent-{number + 1}", "x", "explore", "x"))
            session.conversation.record(AgentEnded(f"agent-{number + 1}", "completed"))
    again, *_ = family(ONE, [{"text": "ok"}], store=store)
    async with again.open(session.id) as resumed:
        await resumed.run("go")
    assert "which is the limit" in results(resumed.transcript.messages)[0]


# ------------------------------------------------------------------ sub-agents that fail


async def test_a_sub_agent_at_its_limit_reports_that_and_its_findings():
    sub = [{"text": f"Clue {n}.", "tool_calls": [call(f"r{n}")]} for n in range(9)]
    store = MemoryStore()
    agent, model, _ = family(ONE, sub, limits=Limits(max_steps=3), store=store)
    _, session = await run(agent)
    (text,) = results(session.transcript.messages)
    assert text.startswith("[the sub-agent did not complete its task: it reached its limit of steps")
    assert "Clue 0.\n\nClue 1.\n\nClue 2." in text and 'probe({"name":"r2"})' in text
    (finished,) = (event for event in events_of(store, ToolFinished) if event.call_id == "a")
    assert finished.outcome == "error"
    assert [event.reason for event in events_of(store, AgentEnded)] == ["steps"]
    notes = [[note.text for m in request for note in getattr(m, "notes", ())] for request in model.sub.requests]
    assert notes == [[], [], [LAST_STEP]]


async def test_a_sub_agent_has_a_limit_even_if_its_parent_has_none():
    sub = [{"tool_calls": [call(f"r{n}")]} for n in range(MOST_STEPS + 5)]
    agent, model, _ = family(ONE, sub)
    await run(agent)
    assert len(model.sub.requests) == MOST_STEPS


async def test_a_sub_agent_whose_model_fails_reports_the_error_and_its_findings():
    sub = [{"text": "A clue.", "tool_calls": [call("r")]}, {"text": "no more credit", "faults": {"status": 402}}]
    agent, *_ = family(ONE, sub)
    result, session = await run(agent)
    (text,) = results(session.transcript.messages)
    assert "did not complete its task: it failed" in text
    assert "A clue." in text and "It failed: no more credit" in text
    assert result.reason == "completed"


async def test_an_exception_in_a_sub_agent_is_one_failed_call_and_leaves_a_closed_log():
    store = MemoryStore()
    agent, model, _ = family(ONE, [{"text": "never"}], store=store)
    model.sub.open = lambda prefix, session_id="": (_ for _ in ()).throw(RuntimeError("a defect"))
    result, session = await run(agent)
    assert result.reason == "completed"
    assert "did not complete its task: it failed" in results(session.transcript.messages)[0]
    assert "failed: RuntimeError: a defect" in results(session.transcript.messages)[0]
    assert [event.reason for event in events_of(store, AgentEnded)] == ["error"]
    assert [event.reason for event in events_of(store, TurnFinished, "agent-1")] == ["error"]


async def test_calls_refused_for_lack_of_a_user_are_reported_to_the_sub_agent_and_the_user():
    agent, *_ = family(
        ONE,
        [{"tool_calls": [call("u", unknown=True)]}, {"text": "I could not."}],
        policy=asks_from_the_second_call_on(),
    )
    result, session = await run(agent)
    (text,) = results(session.transcript.messages)
    assert text.endswith("I could not.") and "were refused" in text
    assert [call.id for call in result.denials] == ["id_u"] and result.reason == "refused"


async def test_of_a_long_conclusion_the_end_is_shown_and_a_blob_keeps_all_of_it():
    long = "beginning " + "x" * 50_000 + " THE CONCLUSION"
    store = MemoryStore()
    agent, *_ = family(ONE, [{"text": long}], store=store)
    _, session = await run(agent)
    (finished,) = (event for event in events_of(store, ToolFinished) if event.call_id == "a")
    shown = text_of(finished.shown)
    assert "THE CONCLUSION" in shown and "beginning" not in shown and len(shown) < 30_000
    assert "characters are cut]" in shown
    assert finished.full_ref is not None and session.blobs.get(finished.full_ref).decode() == long


async def test_a_sub_agent_without_a_text_is_reported_as_such():
    agent, *_ = family(ONE, [{"text": " \n"}])
    assert results((await run(agent))[1].transcript.messages) == ["(it said nothing)"]


# ------------------------------------------------------------------ questions


def asks_from_the_second_call_on() -> Any:
    """A policy that permits the first call, which starts the sub-agent, and asks about all later ones."""
    policies = iter([Policy("bypass")])
    return lambda: next(policies, Policy(roots=("/",)))


async def test_a_question_from_a_sub_agent_names_it():
    approver = ScriptedApprover([True])
    agent, _, probe = family(
        ONE,
        [{"tool_calls": [call("u", unknown=True)]}, {"text": "ok"}],
        approver=approver,
        policy=asks_from_the_second_call_on(),
    )
    await run(agent)
    assert [question.reason for question in approver.questions] == [
        "agent-1: mode default asks before every change, and what it would change can't be told"
    ]
    assert probe.log == ["+u", "-u"]


async def test_questions_of_several_sub_agents_never_overlap_and_a_session_permission_covers_all():
    class Slow:
        """An approver that suspends, and permits the second call for the session."""

        open = most = asked = 0

        async def ask(self, question: Any) -> Answer:
            self.asked += 1
            self.open += 1
            self.most = max(self.most, self.open)
            for _ in range(50):
                await asyncio.sleep(0)
            self.open -= 1
            return Answer(True, "user", scope="session" if self.asked == 2 else "once")

    slow = Slow()
    calls = [task(f"t{n}") for n in range(4)]
    agent, _, probe = family(
        [{"tool_calls": calls}, {"text": "done"}],
        [{"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "ok"}],
        approver=slow,
        policy=lambda: Policy(roots=("/",)),
    )

    async with agent.open() as session:
        session.calls.allowed.add("agent")
        await session.run("go")
    assert slow.most == 1 and slow.asked == 2
    assert probe.log.count("+w") == 4


async def test_one_script_can_serve_the_parent_and_the_sub_agent():
    script = [
        {"tool_calls": [task("a", "look", kind="explore", description="look around")]},
        {"text": "it is there", "expect": "look"},
        {"text": "done", "expect": "it is there"},
    ]
    agent, model, _ = build(script, tools=(AgentTool(),), clock=FakeClock(is_eager=True))
    result, _ = await run(agent)
    assert result.text == "done" and not model.failures
    assert MARK in model.prefixes[1].system
