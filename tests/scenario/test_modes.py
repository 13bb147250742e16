"""Permission modes of a session: the notes about them to the model, and that each call obeys the current mode."""

import asyncio
from typing import Any

import msgspec
import pytest
from headless_runs import run_without_user
from scripted_agent import Probe, assert_valid, build, call, results

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.core.events import Compacted, ModeChosen, StateChanged
from bradawl.core.messages import ToolResults, User
from bradawl.core.permissions import Answer, Policy
from bradawl.shaping.reminder_notes import PLAN, PLAN_ENDED
from bradawl.testing.fakes import MemoryStore, RecordingEmit, ScriptedApprover
from bradawl.tools.agent import AgentTool
from bradawl.tools.exit_plan import ExitPlan

APPROVED = "Yes, and edit files in the workspace without asking"


def policy(mode: Any = "default") -> dict[str, Any]:
    return {"policy": lambda: Policy(mode, roots=("/project",))}


def notes(request: Any) -> list[str]:
    """Texts of the notes that are new in a request."""
    last = request[-1]
    return [note.text for note in last.notes] if isinstance(last, User | ToolResults) else []


def write(name: str) -> dict[str, Any]:
    return call(name, writes=[f"/project/{name}"])


PROPOSE = {"tool_calls": [{"name": "exit_plan", "arguments": {"plan": "write b"}}]}


async def talk(script: list[dict[str, Any]], *acts: Any, session_id: str | None = None, **changes: Any) -> Any:
    """Run prompts (strings) and choose modes (one-tuples) in one session. Returns session, model and probe."""
    agent, model, probe = build(script, **{"tools": (Probe(), ExitPlan()), **policy(), **changes})
    probe = next((tool for tool in agent.tools if isinstance(tool, Probe)), probe)

    async with agent.open(session_id) as session:
        for act in acts:
            if isinstance(act, tuple):
                session.choose_mode(act[0])
            else:
                await session.run(act)
                assert_valid(session.transcript.messages)
    return session, model, probe


async def test_after_approval_of_a_plan_changes_are_permitted():
    approver = ScriptedApprover(words=[APPROVED])
    script = [{"tool_calls": [write("a")]}, PROPOSE, {"tool_calls": [write("b")]}, {"text": "done"}]
    session, model, probe = await talk(script, ("plan",), "go", approver=approver)
    told = [notes(request) for request in model.requests]
    assert told[0][0].startswith(PLAN) and "exit_plan" in told[0][0]
    assert told[1:] == [[], [PLAN_ENDED], []]
    refused, approved, _ = results(session.transcript.messages)
    assert "nothing may change in plan mode" in refused and "approved the plan" in approved
    assert probe.log == ["+b", "-b"]
    assert session.state.mode == "accept-edits" and approver.questions == []


async def test_a_rejected_plan_keeps_the_mode_and_gives_the_reason():
    approver = ScriptedApprover(words=["use sqlite instead"])
    session, _, probe = await talk(
        [PROPOSE, {"tool_calls": [write("b")]}, {"text": "done"}], ("plan",), "go", approver=approver
    )
    rejected, refused = results(session.transcript.messages)
    assert "use sqlite instead" in rejected and "plan mode" in refused
    assert probe.log == [] and session.state.mode == "plan"


@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto", "bypass"])
async def test_outside_of_plan_mode_exit_plan_is_not_run(mode):
    approver = ScriptedApprover(words=[APPROVED])
    session, _, _ = await talk([PROPOSE, {"text": "done"}], "go", approver=approver, **policy(mode))
    assert results(session.transcript.messages) == [
        "exit_plan was not run: this is not plan mode. Changes may be made; just go on."
    ]
    assert approver.choices == [] and session.state.mode is None


async def test_a_change_in_the_same_reply_as_the_plan_is_refused():
    class Slow(ScriptedApprover):
        async def choose(self, choice: Any) -> str | None:
            await asyncio.sleep(0.01)
            return APPROVED

    script = [{"tool_calls": [PROPOSE["tool_calls"][0], write("b")]}, {"text": "done"}]
    session, _, probe = await talk(script, ("plan",), "go", approver=Slow())
    assert probe.log == [] and "nothing may change in plan mode" in results(session.transcript.messages)[1]


@pytest.mark.parametrize("unknown", [True, False])
async def test_a_permission_for_the_session_does_not_apply_in_plan_mode(unknown):
    first = call("a", unknown=unknown, writes=["/project/a"])
    script = [{"tool_calls": [first]}, {"text": "1"}, {"tool_calls": [{**first, "id": "again"}]}, {"text": "2"}]
    approver = ScriptedApprover([Answer(allowed=True, by="user", scope="session")])
    session, _, probe = await talk(script, "go", ("plan",), "go on", approver=approver)
    assert probe.log == ["+a", "-a"]
    assert "nothing may change in plan mode" in results(session.transcript.messages)[1]


async def test_a_mode_change_between_turns_sends_one_note():
    script = [{"text": str(number)} for number in range(6)]
    _, model, _ = await talk(script, "a", "b", ("plan",), "c", "d", ("default",), "e", ("accept-edits",), "f")
    told = [notes(request) for request in model.requests]
    assert [len(each) for each in told] == [0, 0, 1, 0, 1, 0]
    assert told[2][0].startswith(PLAN) and told[4] == [PLAN_ENDED]


async def test_changing_the_mode_and_back_between_two_turns_sends_no_note():
    _, model, _ = await talk([{"text": "1"}, {"text": "2"}], "a", ("plan",), ("default",), "b")
    assert [notes(request) for request in model.requests] == [[], []]


async def test_a_mode_change_keeps_the_sent_messages_unchanged():
    _, model, _ = await talk([{"text": "1"}, {"text": "2"}, {"text": "3"}], "a", ("plan",), "b", ("default",), "c")
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert later[: len(earlier)] == earlier
    assert len({str(prefix) for prefix in model.prefixes}) == 1


async def test_a_resumed_session_is_still_in_plan_mode_and_is_told_so_again():
    store = MemoryStore()
    session, _, _ = await talk([{"text": "1"}], ("plan",), "a", store=store)
    again, model, probe = await talk(
        [{"tool_calls": [write("b")]}, {"text": "2"}], "b", store=store, session_id=session.id
    )
    assert again.state.mode == "plan" and probe.log == []
    (note,) = notes(model.requests[0])
    assert note.startswith(PLAN)
    _, model, _ = await talk([{"text": "3"}], ("default",), "c", store=store, session_id=session.id)
    assert notes(model.requests[0]) == [PLAN_ENDED]


async def test_after_a_compaction_the_note_about_plan_mode_is_sent_again():
    agent, model, _ = build([{"text": "1"}, {"text": "2"}], tools=(Probe(), ExitPlan()), **policy())

    async with agent.open() as session:
        session.choose_mode("plan")
        await session.run("a")
        session.conversation.record(Compacted("summary", 0, kept_from=1_000))
        await session.run("b")
    assert [len(notes(request)) for request in model.requests] == [1, 1]


async def test_a_mode_chosen_before_the_first_prompt_is_in_the_log():
    emit = RecordingEmit()
    agent, *_ = build([{"text": "1"}], **policy())

    async with agent.open() as session:
        session.choose_mode("plan")
        assert session.mode == "plan"
        await session.run("a", emit)
    assert StateChanged(ModeChosen("plan")) in emit.events


async def test_plan_mode_from_the_settings_sends_a_note_with_the_first_results():
    _, model, probe = await talk([{"tool_calls": [write("a")]}, {"text": "1"}], "go", **policy("plan"))
    assert [len(notes(request)) for request in model.requests] == [0, 1] and probe.log == []


DELEGATE = {"tool_calls": [{"name": "agent", "arguments": {"prompt": "do it"}}]}


async def test_a_sub_agent_obeys_plan_mode_gets_a_note_and_has_no_exit_plan():
    script = [DELEGATE, {"tool_calls": [write("b")]}, {"text": "I looked."}, {"text": "done"}]
    session, model, probe = await talk(script, ("plan",), "go", tools=(Probe(), ExitPlan(), AgentTool()))
    (told,) = notes(model.requests[1])
    assert told.startswith(PLAN) and "exit_plan" not in told
    assert "exit_plan" not in [tool.name for tool in model.prefixes[1].tools]
    assert probe.log == [] and "I looked." in results(session.transcript.messages)[0]


async def test_a_sub_agent_obeys_a_mode_that_changes_while_it_runs():
    now: dict[str, Any] = {"mode": "bypass"}
    script = [
        DELEGATE,
        {"tool_calls": [write("a")]},
        {"tool_calls": [write("b")]},
        {"text": "I wrote."},
        {"text": "done"},
    ]
    agent, _, _ = build(script, tools=(Probe(), AgentTool()), **policy("bypass"))
    agent = msgspec.structs.replace(agent, policy=lambda: Policy(now["mode"], roots=("/project",)))
    probe = next(tool for tool in agent.tools if isinstance(tool, Probe))

    def watch(item: Any) -> None:
        if probe.log:
            now["mode"] = "plan"

    async with agent.open() as session:
        await session.run("go", watch)
    assert probe.log == ["+a", "-a"]


# ------------------------------------------------------------------ without a user


async def test_a_headless_run_names_the_flag_that_would_have_allowed_its_calls():
    no_user = DenyAllApprover("/home/u")
    script = [{"tool_calls": [call("a", writes=["/project/a"])]}, {"text": "I could not."}]
    agent, *_ = build(script, approver=no_user, policy=lambda: Policy("default", roots=("/project",)))
    code, _, err = await run_without_user(agent)
    assert code == 5
    assert (
        "bradawl: the model stopped at 1 refused call: probe(a). No user is present to be asked; to allow such calls"
        in err
    )
    assert "--permission-mode accept-edits" in err


async def test_in_a_headless_run_in_plan_mode_the_plan_is_the_answer():
    script = [PROPOSE, {"text": "Plan: write b.", "expect": "whole plan as your answer"}]
    agent, model, _ = build(script, approver=DenyAllApprover(), tools=(Probe(), ExitPlan()), **policy())
    code, out, _ = await run_without_user(agent, permission_mode="plan")
    assert code == 0
    assert out == "Plan: write b.\n" and model.failures == []
