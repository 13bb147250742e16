"""Sub-agents: conversations of their own that read, work and end as one call of their parent."""

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from house import Probe, assert_valid, build, call, results
from subagent_house import MARK, Crowd, entries_of, events_of, family, task

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


def run(agent: Any, *, emit: Any = None, prompt: str = "go") -> tuple[Any, Any]:
    """The turn's result and the session it ran in, closed."""

    async def main() -> tuple[Any, Any]:
        async with agent.open() as session:
            result = await session.run(prompt, *([emit] if emit else []))
            assert_valid(session.transcript.messages)
            assert len(asyncio.all_tasks()) == 1
        return result, session

    return asyncio.run(main())


# ------------------------------------------------------------------ one


def test_the_last_text_of_a_sub_agent_is_the_answer_to_the_call():
    sub = [{"text": "I look.", "tool_calls": [call("r", reads=["/p/a"])]}, {"text": "It is in a.py:3."}]
    agent, model, probe = family(ONE, sub)
    result, session = run(agent)
    assert (result.reason, result.text, result.steps) == ("completed", "done", 2)
    assert results(session.transcript.messages) == ["It is in a.py:3."]
    assert probe.log == ["+r", "-r"]
    assert [text_of(message.parts) for message in model.sub.requests[0]] == ["look"]


def test_a_sub_agent_has_the_tools_of_its_parent_but_those_that_start_agents_or_ask():
    agent, model, _ = family(ONE, [{"text": "ok"}], tools=(TodoWrite(), AskUser()))
    run(agent)
    assert [tool.name for tool in model.main.prefixes[0].tools] == ["agent", "probe", "todo_write", "ask_user"]
    assert [tool.name for tool in model.sub.prefixes[0].tools] == ["probe", "todo_write"]
    assert "working directory: /project" in model.sub.prefixes[0].system


def test_a_sub_agent_that_calls_for_another_is_told_there_is_no_such_tool():
    agent, model, _ = family(ONE, [{"tool_calls": [task("b")]}, {"text": "alone then"}])
    _, session = run(agent)
    assert results(session.transcript.messages) == ["alone then"]
    assert "no tool named 'agent'" in results(model.sub.requests[1])[0]
    assert len(model.sub.prefixes) == 1


def test_it_is_written_into_its_parents_log_under_a_name_of_its_own():
    store = MemoryStore()
    agent, model, _ = family(ONE, [{"tool_calls": [call("r")]}, {"text": "found"}], store=store)
    run(agent)
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


def test_it_begins_one_prefix_and_only_ever_adds_to_it():
    store = MemoryStore()
    sub = [{"tool_calls": [call(name)]} for name in "xyz"] + [{"text": "found"}]
    agent, model, _ = family(ONE, sub, store=store)
    run(agent)
    assert [event.reason for event in events_of(store, PrefixOpened, "agent-1")] == ["start"]
    assert [event.step for event in events_of(store, RequestSent, "agent-1")] == [1, 2, 3, 4]
    requests = model.sub.requests
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(requests))
    assert [event.reason for event in events_of(store, PrefixOpened, "main")] == ["start"]


def test_what_it_uses_counts_for_its_parent_and_is_shown_by_model():
    used = {"usage": {"input": 1_000_000, "output": 10}}
    meter, emit = Meter(), RecordingEmit()

    def both(item: Any) -> None:
        meter.emit(item)
        emit(item)

    agent, *_ = family(
        [{**entry, **used} for entry in ONE], [{"text": "ok", **used}], price=Price(2.0, 0.0, None, None)
    )
    result, session = run(agent, emit=both)
    assert result.usage.input == session.state.usage.input == 3_000_000
    assert result.cost == pytest.approx(6.0) and result.steps == 2
    (ended,) = (event for event in emit.events if isinstance(event, AgentEnded))
    assert (ended.reason, ended.usage.input, ended.cost) == ("completed", 1_000_000, pytest.approx(2.0))
    assert sum(used.input_tokens for used in meter.by_model().values()) == 3_000_000
    assert {item.agent for item in emit.items} == {"main", "agent-1"}


def test_where_its_parent_is_it_begins_and_its_own_moves_stay_its_own():
    class Mover(Probe):
        """Changes the working directory to what it is told to read."""

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
    _, session = run(agent)
    assert [place for place in mover.log if place.startswith("/")] == ["/project", "/project/a"]
    assert session.state.cwd == "/project/a"
    assert "working directory: /project/a\n" in model.sub.prefixes[0].system
    assert events_of(store, StateChanged, "agent-1") == [
        StateChanged(Cwd("/project/a")),
        StateChanged(Cwd("/project/b")),
    ]


def test_its_todos_are_its_own():
    todos = [{"content": "dig", "status": "in_progress"}]
    write = {"name": "todo_write", "arguments": {"todos": todos}}
    store = MemoryStore()
    agent, *_ = family(ONE, [{"tool_calls": [write]}, {"text": "ok"}], tools=(TodoWrite(),), store=store)
    _, session = run(agent)
    assert session.state.todos == ()
    assert any(isinstance(event.state, TodosSet) for event in events_of(store, StateChanged, "agent-1"))


def test_a_schema_for_the_answer_is_for_the_parent_alone():
    schema = '{"type": "object"}'
    main = [{"tool_calls": [task("a")]}, {"text": "{}"}]
    params = RequestParams(answer_schema=schema)
    agent, model, _ = family(main, [{"text": "prose"}], params=params, check_for=lambda _: lambda _: "")
    result, _ = run(agent)
    assert (result.reason, result.answer) == ("completed", {})
    assert [params.answer_schema for params in model.sub.params] == [""]


# ------------------------------------------------------------------ kinds


def test_one_that_explores_may_change_nothing_whatever_its_parent_may():
    sub = [{"tool_calls": [call("r", reads=["/p"]), call("w", writes=["/p"]), call("u", unknown=True)]}, {"text": "ok"}]
    main = [{"tool_calls": [task("a", kind="explore")]}, {"tool_calls": [task("b")]}, {"text": "done"}]
    agent, model, probe = family(main, sub)
    run(agent)
    told = results(model.sub.requests[1])
    assert told[0] == "did r" and all("only reads" in text for text in told[1:])
    assert [line for line in probe.log if line.startswith("+")] == ["+r", "+r", "+w", "+u"]


def test_one_that_explores_uses_the_small_model_if_there_is_one():
    small = ScriptedModel(b'[{"text": "small"}]', max_output=5)
    main = [{"tool_calls": [task("a", kind="explore"), task("b", kind="general")]}, {"text": "done"}]
    agent, model, _ = family(
        main, [{"text": "big"}], small_model=small, params=RequestParams(max_output_tokens=9, effort="high")
    )
    _, session = run(agent)
    assert results(session.transcript.messages) == ["small", "big"]
    assert len(model.sub.prefixes) == 1
    assert small.params == [RequestParams()] and model.sub.params == [RequestParams(9, "high")]


# ------------------------------------------------------------------ several


def test_several_run_at_the_same_time_and_their_answers_stand_in_call_order():
    names = [f"t{n}" for n in range(4)]
    main = [{"tool_calls": [task(name, name) for name in names]}, {"text": "done"}]
    store = MemoryStore()
    crowd = Crowd(4)
    agent, _, probe = family(main, [{"tool_calls": [call("r")]}, {"text": "ok"}], store=store, probe=crowd)
    crowd.gates["r"] = crowd.is_full
    _, session = run(agent)
    assert probe.most_running == 4
    assert results(session.transcript.messages) == ["ok"] * 4
    for number, name in enumerate(names, 1):
        assert text_of(fold(entries_of(store), f"agent-{number}").messages[0].parts) == name
    assert len({event.spawned for event in events_of(store, AgentEnded)}) == 4


def test_what_was_written_before_is_there_when_it_begins_and_what_is_written_after_waits():
    calls = [call("before", writes=["/project/x"]), task("a"), call("after", writes=["/project/x"])]
    agent, _, probe = family([{"tool_calls": calls}, {"text": "done"}], [{"tool_calls": [call("in")]}, {"text": "ok"}])
    run(agent)
    assert probe.log == ["+before", "-before", "+in", "-in", "+after", "-after"]


async def test_more_than_a_session_can_ever_need_are_not_started():
    store = MemoryStore()
    agent, *_ = family(ONE, [{"text": "ok"}], store=store)

    async def main() -> Any:
        async with agent.open() as session:
            session.conversation.record(SessionOpened(1, "/project", "/project"))
            for number in range(MOST_SUB_AGENTS):
                session.conversation.record(AgentSpawned(f"agent-{number + 1}", "x", "explore", "x"))
                session.conversation.record(AgentEnded(f"agent-{number + 1}", "completed"))
        again, *_ = family(ONE, [{"text": "ok"}], store=store)
        async with again.open(session.id) as resumed:
            await resumed.run("go")
            return resumed

    assert "which is the limit" in results((await main()).transcript.messages)[0]


# ------------------------------------------------------------------ that end otherwise


def test_one_that_reaches_its_limit_says_so_and_what_it_had_found():
    sub = [{"text": f"Clue {n}.", "tool_calls": [call(f"r{n}")]} for n in range(9)]
    store = MemoryStore()
    agent, model, _ = family(ONE, sub, limits=Limits(max_steps=3), store=store)
    _, session = run(agent)
    (text,) = results(session.transcript.messages)
    assert text.startswith("[the sub-agent did not complete its task: it reached its limit of steps")
    assert "Clue 0.\n\nClue 1.\n\nClue 2." in text and 'probe({"name":"r2"})' in text
    (finished,) = (event for event in events_of(store, ToolFinished) if event.call_id == "a")
    assert finished.outcome == "error"
    assert [event.reason for event in events_of(store, AgentEnded)] == ["steps"]
    notes = [[note.text for m in request for note in getattr(m, "notes", ())] for request in model.sub.requests]
    assert notes == [[], [], [LAST_STEP]]


def test_one_has_a_limit_even_where_its_parent_has_none():
    sub = [{"tool_calls": [call(f"r{n}")]} for n in range(MOST_STEPS + 5)]
    agent, model, _ = family(ONE, sub)
    run(agent)
    assert len(model.sub.requests) == MOST_STEPS


def test_one_whose_model_fails_says_why_and_what_it_had_found():
    sub = [{"text": "A clue.", "tool_calls": [call("r")]}, {"text": "no more credit", "faults": {"status": 402}}]
    agent, *_ = family(ONE, sub)
    result, session = run(agent)
    (text,) = results(session.transcript.messages)
    assert "did not complete its task: it failed" in text
    assert "A clue." in text and "It failed: no more credit" in text
    assert result.reason == "completed"


def test_one_that_breaks_is_one_failed_call_and_leaves_a_closed_log():
    store = MemoryStore()
    agent, model, _ = family(ONE, [{"text": "never"}], store=store)
    model.sub.open = lambda prefix, session_id="": (_ for _ in ()).throw(RuntimeError("a defect"))
    result, session = run(agent)
    assert result.reason == "completed"
    assert "did not complete its task: it failed" in results(session.transcript.messages)[0]
    assert "failed: RuntimeError: a defect" in results(session.transcript.messages)[0]
    assert [event.reason for event in events_of(store, AgentEnded)] == ["error"]
    assert [event.reason for event in events_of(store, TurnFinished, "agent-1")] == ["error"]


def test_calls_of_it_that_nobody_could_allow_are_told_to_it_and_in_the_end_to_the_user():
    agent, *_ = family(
        ONE,
        [{"tool_calls": [call("u", unknown=True)]}, {"text": "I could not."}],
        policy=asks_from_the_second_call_on(),
    )
    result, session = run(agent)
    (text,) = results(session.transcript.messages)
    assert text.endswith("I could not.") and "were refused" in text
    assert [call.id for call in result.denials] == ["id_u"] and result.reason == "refused"


def test_of_a_long_conclusion_the_end_is_shown_and_the_whole_is_kept():
    long = "beginning " + "x" * 50_000 + " THE CONCLUSION"
    store = MemoryStore()
    agent, *_ = family(ONE, [{"text": long}], store=store)
    _, session = run(agent)
    (finished,) = (event for event in events_of(store, ToolFinished) if event.call_id == "a")
    shown = text_of(finished.shown)
    assert "THE CONCLUSION" in shown and "beginning" not in shown and len(shown) < 30_000
    assert "characters are cut]" in shown
    assert finished.full_ref is not None and session.blobs.get(finished.full_ref).decode() == long


def test_one_that_says_nothing_is_told_so():
    agent, *_ = family(ONE, [{"text": " \n"}])
    assert results(run(agent)[1].transcript.messages) == ["(it said nothing)"]


# ------------------------------------------------------------------ questions


def asks_from_the_second_call_on() -> Any:
    """A policy under which the call of a sub-agent, the first to be judged, is not in question."""
    policies = iter([Policy("bypass")])
    return lambda: next(policies, Policy(roots=("/",)))


def test_a_question_for_a_sub_agent_says_who_asks():
    approver = ScriptedApprover([True])
    agent, _, probe = family(
        ONE,
        [{"tool_calls": [call("u", unknown=True)]}, {"text": "ok"}],
        approver=approver,
        policy=asks_from_the_second_call_on(),
    )
    run(agent)
    assert [question.reason for question in approver.questions] == ["agent-1: what it would change can't be told"]
    assert probe.log == ["+u", "-u"]


async def test_questions_of_several_are_asked_one_at_a_time_and_a_lasting_yes_holds_for_all():
    class Slow:
        """Somebody who takes a while, and says yes for good to the second question."""

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


def test_one_script_for_both_is_enough_to_try_it():
    script = [
        {"tool_calls": [task("a", "look", kind="explore", description="look around")]},
        {"text": "it is there", "expect": "look"},
        {"text": "done", "expect": "it is there"},
    ]
    agent, model, _ = build(script, tools=(AgentTool(),), clock=FakeClock(is_eager=True))
    result, _ = run(agent)
    assert result.text == "done" and not model.failures
    assert MARK in model.prefixes[1].system
