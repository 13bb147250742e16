"""When a turn with calls that no user could allow is completed, and when it ends as refused."""

from typing import Any

import pytest
from scripted_agent import Probe, build, call
from scripted_subagents import TwoScripts, entries_of, task

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.events import (
    AgentSpawned,
    CallPrepared,
    Event,
    Outcome,
    PermissionDecided,
    PromptSubmitted,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Text
from bradawl.core.permissions import Answer, Choice, Policy, Question
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.folds.attempts import Attempts
from bradawl.testing.fakes import FakeHook, MemoryStore
from bradawl.tools.agent import AgentTool
from bradawl.tools.json_schema import check_for
from bradawl.tools.todo_write import TodoWrite

ASKING = Policy("default", roots=("/",))
EDIT, OTHER_EDIT = call("edit", writes=["/p/a"]), call("other edit", writes=["/p/b"])
TEST, READ = call("test", unknown=True), call("read", reads=["/p/a"])
FAILED_TEST = call("failed test", unknown=True, fails="exit code 1")
HIDING_TEST = call("hiding test", unknown=True, has_failed_part=True)
FAILED_EDIT = call("failed edit", writes=["/p/a"], fails="no such text")
REFUSED, REFUSED_EDIT = call("X", unknown=True), call("X edit", writes=["/p/c"])
TODO = {"id": "todo", "name": "todo_write", "arguments": {"todos": []}}


class AbsentForSome:
    """Allows each call, but is not there for calls whose arguments contain a capital X."""

    async def ask(self, question: Question) -> Answer:
        return Answer(False, "nobody") if "X" in question.call.raw_arguments else Answer(True, "user")

    async def choose(self, choice: Choice) -> str | None:
        return None


def script_of(*replies: Any) -> list[dict[str, Any]]:
    return [{"tool_calls": reply if isinstance(reply, list) else [reply]} for reply in replies] + [{"text": "The end."}]


async def turn_of(
    *replies: Any, sub: list[dict[str, Any]] | None = None, policy: Policy = ASKING, **changes: Any
) -> tuple[Any, MemoryStore]:
    """The result of a turn with these replies, and the log. `sub` is what sub-agents say."""
    store, tools = MemoryStore(), changes.pop("tools", (Probe(), AgentTool(), TodoWrite()))
    model = TwoScripts(script_of(*replies), sub or [{"text": "nothing"}])
    given = {"model": model, "store": store, "tools": tools, "approver": AbsentForSome(), **changes}
    agent, *_ = build([], policy=lambda: policy, **given)
    return await agent.run("go"), store


def gave_up(store: MemoryStore, agent: str = "main") -> bool:
    """The verdict about the last turn of an agent, from the log alone."""
    attempts = Attempts()
    spawned: dict[str, str] = {}
    for entry in entries_of(store, agent):
        attempts.take(entry.event)
    for entry in entries_of(store):
        if isinstance(entry.event, AgentSpawned):
            spawned[entry.event.spawned] = entry.event.call_id
    for name, call_id in spawned.items():
        inner = Attempts()
        for entry in entries_of(store, name):
            inner.take(entry.event)
        attempts.add_sub_agent(call_id, inner)
    return attempts.gave_up


# ------------------------------------------------------------------ the calls of one turn


ENDS: list[tuple[str, list[Any], str]] = [
    ("the only call", [REFUSED], "refused"),
    ("only reads after it", [REFUSED, READ], "refused"),
    ("only todos after it", [REFUSED, TODO], "refused"),
    ("only failures after it", [REFUSED, FAILED_EDIT], "refused"),
    ("another way", [REFUSED, EDIT], "completed"),
    ("another program", [REFUSED, TEST], "completed"),
    ("another way, which is refused too", [REFUSED, EDIT, REFUSED_EDIT], "refused"),
    ("a call beside it is not another way", [[REFUSED, EDIT]], "refused"),
    ("programs before it", [TEST, TEST, REFUSED], "refused"),
    ("a change that nothing checked", [EDIT, REFUSED], "refused"),
    ("a change that was only read", [EDIT, READ, REFUSED], "refused"),
    ("a checked change", [EDIT, TEST, REFUSED], "completed"),
    ("a checked change, and reads after it", [EDIT, TEST, REFUSED, READ], "completed"),
    ("two steps left out of a checked change", [EDIT, TEST, REFUSED, REFUSED_EDIT], "completed"),
    ("a checked change in one reply", [[EDIT, TEST, REFUSED]], "completed"),
    ("a change after the check", [EDIT, TEST, OTHER_EDIT, REFUSED], "refused"),
    ("a failed check", [EDIT, FAILED_TEST, REFUSED], "refused"),
    ("a check that failed in the end", [EDIT, TEST, FAILED_TEST, REFUSED], "refused"),
    ("a check that fails after it", [EDIT, TEST, REFUSED, FAILED_TEST], "refused"),
    ("a check before the change", [TEST, EDIT, REFUSED], "refused"),
    ("a check that hides a failure", [EDIT, HIDING_TEST, REFUSED], "refused"),
    ("a check that hides a failure, then one that succeeds", [EDIT, HIDING_TEST, TEST, REFUSED], "completed"),
    ("a refused check", [EDIT, REFUSED, READ], "refused"),
]


@pytest.mark.parametrize(("replies", "reason"), [pytest.param(*end[1:], id=end[0]) for end in ENDS])
async def test_a_turn_ends_as_refused_only_if_the_model_gave_up_on_what_was_refused(replies: Any, reason: str) -> None:
    turn, store = await turn_of(*replies)
    assert (turn.reason, turn.text, turn.failure) == (reason, "The end.", None)
    assert turn.denials and all("X" in each.raw_arguments for each in turn.denials)
    assert gave_up(store) == (reason == "refused"), "the log alone gives another verdict"
    assert entries_of(store, "main")[-1].event == TurnFinished(turn.reason)


async def test_an_id_that_a_model_uses_again_names_the_later_call() -> None:
    turn, _ = await turn_of({**REFUSED, "id": "c"}, {**EDIT, "id": "c"})
    assert turn.reason == "completed"


async def test_a_turn_is_judged_by_its_own_calls() -> None:
    script = [*script_of(REFUSED), *script_of(READ), *script_of(EDIT, TEST), *script_of(REFUSED)]
    agent, *_ = build(script, approver=AbsentForSome(), policy=lambda: ASKING)
    async with agent.open() as session:
        turns = [await session.run("go") for _ in range(4)]
        session_id = session.id
    assert [turn.reason for turn in turns] == ["refused", "completed", "completed", "refused"]
    assert [len(turn.denials) for turn in turns] == [1, 0, 0, 1]
    agent, *_ = build(script_of(READ), store=agent.store, approver=AbsentForSome(), policy=lambda: ASKING)
    async with agent.open(session_id) as session:
        resumed = await session.run("go")
    assert (resumed.reason, resumed.denials) == ("completed", ())


async def test_a_checked_answer_does_not_hide_that_the_model_gave_up() -> None:
    for calls, reason in (([REFUSED], "refused"), ([REFUSED, EDIT], "completed")):
        script = [*script_of(*calls)[:-1], {"text": '{"done": false}'}]
        agent, *_ = build(script, approver=AbsentForSome(), policy=lambda: ASKING, check_for=check_for)
        turn = await agent.run("go", answer_schema={"type": "object"})
        assert (turn.reason, turn.answer) == (reason, {"done": False})


# ------------------------------------------------------------------ refusals that are decisions of the user


async def test_what_a_mode_refuses_does_not_end_a_turn_as_refused() -> None:
    turn, store = await turn_of(call("x", writes=["/p/a"]), policy=Policy("plan", roots=("/",)))
    assert (turn.reason, turn.denials) == ("completed", ()) and not gave_up(store)


async def test_what_a_hook_refuses_does_not_end_a_turn_as_refused() -> None:
    hook = FakeHook(before=lambda _: "not on a Friday")
    turn, store = await turn_of(EDIT, hooks=(hook,))
    assert (turn.reason, turn.denials) == ("completed", ()) and not gave_up(store)


async def test_what_the_user_declined_does_not_end_a_turn_as_refused() -> None:
    class Declines(AbsentForSome):
        async def ask(self, question: Question) -> Answer:
            return Answer(False, "user")

    turn, store = await turn_of(EDIT, approver=Declines())
    assert (turn.reason, turn.denials) == ("completed", ()) and not gave_up(store)


# ------------------------------------------------------------------ sub-agents


HELP, GIVES_UP = task("t"), script_of(REFUSED)
OF_SUB_AGENTS: list[tuple[str, list[Any], list[dict[str, Any]], str]] = [
    ("it gave up", [HELP], GIVES_UP, "refused"),
    ("it gave up, and the caller read", [HELP, READ], GIVES_UP, "refused"),
    ("it gave up, and the caller found another way", [HELP, EDIT], GIVES_UP, "completed"),
    ("it gave up after the caller's checked change", [EDIT, TEST, HELP], GIVES_UP, "completed"),
    ("it found another way", [HELP], script_of(REFUSED, EDIT), "completed"),
    ("it checked its change", [HELP], script_of(EDIT, TEST, REFUSED), "completed"),
    ("its checked change, then a refused call of the caller", [HELP, REFUSED], script_of(EDIT, TEST), "completed"),
    ("its change, which the caller checked", [HELP, TEST, REFUSED], script_of(EDIT), "completed"),
    ("its change, which nothing checked", [EDIT, TEST, HELP, REFUSED], script_of(OTHER_EDIT), "refused"),
    ("it is the other way", [REFUSED, HELP], script_of(EDIT), "completed"),
    ("it only read", [REFUSED, HELP], script_of(READ), "refused"),
    ("it changed more before it gave up", [EDIT, TEST, HELP], script_of(OTHER_EDIT, REFUSED), "refused"),
]


@pytest.mark.parametrize(("replies", "sub", "reason"), [pytest.param(*end[1:], id=end[0]) for end in OF_SUB_AGENTS])
async def test_a_sub_agent_counts_as_one_call_of_its_caller(replies: Any, sub: Any, reason: str) -> None:
    turn, store = await turn_of(*replies, sub=sub)
    assert turn.reason == reason and len(turn.denials) == 1
    assert gave_up(store) == (reason == "refused"), "the log alone gives another verdict"


async def test_of_sub_agents_at_the_same_time_the_order_of_the_calls_counts() -> None:
    both = [task("1", "look"), task("2", "look")]
    turn, store = await turn_of(both, sub=GIVES_UP)
    assert turn.reason == "refused" and gave_up(store) and len(turn.denials) == 2
    turn, _ = await turn_of([*both, EDIT], TEST, sub=GIVES_UP)
    assert turn.reason == "completed"


class TwiceTool(AgentTool):
    """Starts two sub-agents in one call, and succeeds whatever becomes of them."""

    spec = ToolSpec("agent", kind="run", main_agent_only=True)

    async def run(self, params: Any, context: CallContext) -> ToolOutput:
        assert context.spawner is not None
        for _ in range(2):
            await context.spawner.spawn("general", params.prompt, context.call_id)
        return ToolOutput((Text("both ended"),), is_error=params.prompt == "fail")


@pytest.mark.parametrize(
    ("prompt", "sub", "reason"),
    [("fail", GIVES_UP, "refused"), ("look", GIVES_UP, "completed"), ("look", script_of(EDIT, REFUSED), "completed")],
)
async def test_of_a_call_with_several_sub_agents_all_count(prompt: str, sub: Any, reason: str) -> None:
    turn, _ = await turn_of(task("t", prompt), sub=sub, tools=(Probe(), TwiceTool()))
    assert turn.reason == reason and len(turn.denials) == 2


def test_a_sub_agent_that_gave_up_is_not_forgotten_for_a_later_one() -> None:
    gave_up_first, attempts = Attempts(), Attempts()
    for event in _events_of_a_refused_call():
        gave_up_first.take(event)
    prepared, _, finished = _events_of_a_refused_call()
    attempts.take(prepared)
    attempts.add_sub_agent("c", gave_up_first)
    attempts.add_sub_agent("c", Attempts())
    attempts.take(finished)
    assert attempts.gave_up


# ------------------------------------------------------------------ the fold


def test_a_prompt_begins_anew() -> None:
    attempts = Attempts()
    for event in _events_of_a_refused_call():
        attempts.take(event)
    assert attempts.gave_up
    attempts.take(PromptSubmitted(()))
    assert not attempts.gave_up


def test_events_of_calls_that_are_not_known_are_ignored() -> None:
    attempts = Attempts()
    for event in _events_of_a_refused_call()[1:]:
        attempts.take(event)
    attempts.add_sub_agent("never", Attempts())
    assert not attempts.gave_up


@pytest.mark.parametrize("last", ["refused", "error"])
def test_refused_programs_and_those_without_a_host_leave_a_check_before_them_valid(last: Outcome) -> None:
    attempts = Attempts()
    effects = [Effects(writes=("/p/a",)), UNKNOWN, UNKNOWN, UNKNOWN]
    outcomes: list[Outcome] = ["ok", "ok", "refused", last]
    for step, (each, outcome) in enumerate(zip(effects, outcomes, strict=True)):
        attempts.take(CallPrepared(str(step), step, "probe", "{}", each))
        if step >= 2:
            attempts.take(PermissionDecided(str(step), "deny", "policy" if step == 2 else "nobody"))
        attempts.take(ToolFinished(str(step), outcome, ()))
    assert not attempts.gave_up


def _events_of_a_refused_call() -> tuple[Event, Event, Event]:
    prepared = CallPrepared("c", 1, "probe", "{}", Effects())
    return prepared, PermissionDecided("c", "deny", "nobody"), ToolFinished("c", "refused", ())
