"""The tool `exit_plan`: only the user's approval ends plan mode, and it determines the next mode."""

import pytest
from session_calls import FakeSession

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.tui.plain.approver import choice_text
from bradawl.core.errors import ToolError
from bradawl.core.events import ModeChosen
from bradawl.testing.fakes import ScriptedApprover
from bradawl.tools.exit_plan import ExitPlan

PLAN = "1. rename f\n2. run the tests"


async def decide(*words, tool=None):
    approver = ScriptedApprover(words=list(words))
    session = FakeSession(approver=approver)
    return await session.text(tool or ExitPlan(), plan=PLAN), session.changes, approver.choices


@pytest.mark.parametrize(("option", "mode"), [(0, "default"), (1, "accept-edits"), (2, "auto")])
async def test_the_chosen_option_determines_the_next_mode(option, mode):
    _, _, (choice,) = await decide("x")
    message, changes, _ = await decide(choice.options[option])
    assert message == "The user approved the plan: carry it out."
    assert changes == [ModeChosen(mode)]


async def test_the_user_sees_the_whole_plan():
    _, _, (choice,) = await decide("no")
    shown = choice_text(choice)
    assert "1. rename f" in shown and "2. run the tests" in shown and "carried out?" in shown


@pytest.mark.parametrize("words", ["yes", "Y", "ok, but keep the old name", "Approve.", "lgtm"])
async def test_approval_in_free_text_selects_default_mode_and_is_passed_on(words):
    message, changes, _ = await decide(words)
    assert changes == [ModeChosen("default")]
    assert "approved" in message and f"They said: {words}" in message


@pytest.mark.parametrize("words", ["no", "No, go on planning", "use sqlite instead", "not yet", "yesterday's file too"])
async def test_any_other_answer_keeps_plan_mode(words):
    message, changes, _ = await decide(words)
    assert changes == []
    assert "did not approve" in message and "plan mode stays" in message
    assert (f"They said: {words}" in message) is (words not in ("no", "No, go on planning"))


async def test_the_user_may_write_another_plan():
    own = "Yes, but with a plan that I write now"
    message, changes, choices = await decide(own, "only rename f")
    assert changes == [ModeChosen("default")] and len(choices) == 2
    assert message.endswith("only rename f") and "instead of yours" in message
    for nothing in (own,), (own, "  "):
        message, changes, _ = await decide(*nothing)
        assert changes == [] and "Plan mode stays" in message


@pytest.mark.parametrize("approver", [None, DenyAllApprover(), ScriptedApprover(), ScriptedApprover(words=[" "])])
async def test_without_an_answer_the_plan_is_the_final_answer(approver):
    session = FakeSession(approver=approver)
    assert "whole plan as your answer" in await session.text(ExitPlan(), plan=PLAN)
    assert session.changes == []


async def test_only_permitted_modes_are_offered_and_yes_selects_the_first():
    _, changes, (choice,) = await decide("yes", tool=ExitPlan(("accept-edits",)))
    assert changes == [ModeChosen("accept-edits")]
    assert len(choice.options) == 3


@pytest.mark.parametrize(("plan", "why"), [("", "plan is empty"), (" \n", "plan is empty"), ("x" * 50_001, "50,001")])
async def test_an_invalid_plan_is_refused_before_the_user_is_asked(plan, why):
    approver = ScriptedApprover(words=["yes"])
    session = FakeSession(approver=approver)
    with pytest.raises(ToolError, match=why):
        await session.call(ExitPlan(), plan=plan)
    assert approver.choices == [] and session.changes == []


def test_it_declares_the_question_and_the_change_of_mode():
    effects = ExitPlan().effects(ExitPlan().params("x"), FakeSession().context)
    assert effects.session == ("user", "mode")
