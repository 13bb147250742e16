"""`exit_plan`, the tool: only the user's yes ends plan mode, and it says in which mode work goes on."""

import pytest
from session_calls import Desk

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.tui.approver import choice_text
from bradawl.core.errors import ToolError
from bradawl.core.events import ModeChosen
from bradawl.testing.fakes import ScriptedApprover
from bradawl.tools.exit_plan import ExitPlan

PLAN = "1. rename f\n2. run the tests"


def decide(*words, tool=None):
    approver = ScriptedApprover(words=list(words))
    desk = Desk(approver=approver)
    return desk.text(tool or ExitPlan(), plan=PLAN), desk.changes, approver.choices


@pytest.mark.parametrize(("option", "mode"), [(0, "default"), (1, "accept-edits"), (2, "auto")])
def test_a_yes_says_in_which_mode_work_goes_on(option, mode):
    _, _, (choice,) = decide("x")
    said, changes, _ = decide(choice.options[option])
    assert said == "The user approved the plan: carry it out."
    assert changes == [ModeChosen(mode)]


def test_the_user_sees_the_whole_plan():
    _, _, (choice,) = decide("no")
    shown = choice_text(choice)
    assert "1. rename f" in shown and "2. run the tests" in shown and "carried out?" in shown


@pytest.mark.parametrize("words", ["yes", "Y", "ok, but keep the old name", "Approve.", "lgtm"])
def test_assent_in_other_words_is_the_careful_mode_and_the_words_are_passed_on(words):
    said, changes, _ = decide(words)
    assert changes == [ModeChosen("default")]
    assert "approved" in said and f"They said: {words}" in said


@pytest.mark.parametrize("words", ["no", "No, go on planning", "use sqlite instead", "not yet", "yesterday's file too"])
def test_anything_else_leaves_plan_mode_on(words):
    said, changes, _ = decide(words)
    assert changes == []
    assert "did not approve" in said and "plan mode stays" in said
    assert (f"They said: {words}" in said) is (words not in ("no", "No, go on planning"))


def test_the_user_may_write_the_plan():
    own = "Yes, but with a plan that I write now"
    said, changes, choices = decide(own, "only rename f")
    assert changes == [ModeChosen("default")] and len(choices) == 2
    assert said.endswith("only rename f") and "instead of yours" in said
    for nothing in (own,), (own, "  "):
        said, changes, _ = decide(*nothing)
        assert changes == [] and "Plan mode stays" in said


@pytest.mark.parametrize("approver", [None, DenyAllApprover(), ScriptedApprover(), ScriptedApprover(words=[" "])])
def test_where_nobody_answers_the_plan_is_the_answer(approver):
    desk = Desk(approver=approver)
    assert "whole plan as your answer" in desk.text(ExitPlan(), plan=PLAN)
    assert desk.changes == []


def test_only_modes_that_may_be_chosen_are_offered_and_a_bare_yes_means_the_first():
    _, changes, (choice,) = decide("yes", tool=ExitPlan(("accept-edits",)))
    assert changes == [ModeChosen("accept-edits")]
    assert len(choice.options) == 3


@pytest.mark.parametrize(("plan", "why"), [("", "plan is empty"), (" \n", "plan is empty"), ("x" * 50_001, "50,001")])
def test_a_plan_that_is_none_is_refused_before_anybody_is_asked(plan, why):
    approver = ScriptedApprover(words=["yes"])
    desk = Desk(approver=approver)
    with pytest.raises(ToolError, match=why):
        desk.call(ExitPlan(), plan=plan)
    assert approver.choices == [] and desk.changes == []


def test_it_declares_that_it_asks_and_ends_plan_mode():
    effects = ExitPlan().effects(ExitPlan().params("x"), Desk().context)
    assert effects.session == ("user", "mode")
