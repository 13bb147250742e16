"""The tool `ask_user`, and how the terminal shows its question and reads the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_calls import FakeSession

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.tui.plain.approver import TerminalApprover, choice_text, parse_choice
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Choice
from bradawl.testing.fakes import ScriptedApprover
from bradawl.tools.ask_user import AskUser

OPTIONS = ("SQLite", "PostgreSQL")


async def test_the_users_answer_is_the_result():
    approver = ScriptedApprover(words=["PostgreSQL"])
    text = await FakeSession(approver=approver).text(
        AskUser(), question=" Which one? ", options=["SQLite", " ", "PostgreSQL\n"]
    )
    assert text == "The user says: PostgreSQL"
    assert approver.choices == [Choice("Which one?", OPTIONS)]


@pytest.mark.parametrize("approver", [None, DenyAllApprover(), ScriptedApprover(), ScriptedApprover(words=["  "])])
async def test_without_an_answer_the_result_says_to_decide_alone(approver):
    text = await FakeSession(approver=approver).text(AskUser(), question="Which one?")
    assert text.startswith("No answer") and "Decide yourself" in text


async def test_an_invalid_question_is_refused_before_the_user_is_asked():
    approver = ScriptedApprover(words=["x"] * 3)
    with pytest.raises(ToolError, match="question is empty"):
        await FakeSession(approver=approver).call(AskUser(), question=" ")
    with pytest.raises(ToolError, match="10 options are too many"):
        await FakeSession(approver=approver).call(AskUser(), question="Which?", options=list("abcdefghij"))
    assert approver.choices == []


async def test_a_single_option_given_as_a_string_is_a_list_of_one():
    approver = ScriptedApprover(words=["yes"])
    await FakeSession(approver=approver).call(AskUser(), question="Go on?", options="yes")
    assert approver.choices == [Choice("Go on?", ("yes",))]


def test_it_declares_the_user_as_a_resource_so_that_questions_are_sequential():
    effects = AskUser().effects(AskUser().params("x"), FakeSession().context)
    assert effects.session == ("user",) and not effects.is_read_only


# ------------------------------------------------------------------ at the terminal


async def ask(choice, typed):
    """The answer of the terminal's approver to a choice, and everything that was shown."""
    shown, holds = [], []

    class RecordingHold:
        def __enter__(self):
            holds.append(True)

        def __exit__(self, *_):
            holds.append(False)

    async def read(prompt):
        assert holds == [True]
        shown.append(prompt)
        if isinstance(typed, type):
            raise typed
        return typed

    approver = TerminalApprover(shown.append, read, lambda: shown.append("CANCELLED"), RecordingHold)
    answer = await approver.choose(choice)
    assert holds == [True, False]
    return answer, "\n".join(shown)


async def test_options_are_numbered_and_a_number_selects_one():
    answer, shown = await ask(Choice("Which\none?", OPTIONS), " 2 \n")
    assert answer == "PostgreSQL"
    assert "    Which\n    one?\n    1. SQLite\n    2. PostgreSQL\n" in shown


@pytest.mark.parametrize("typed", ["", " \t", KeyboardInterrupt, EOFError])
async def test_empty_input_ctrl_c_and_closed_input_are_no_answer_and_cancel_nothing(typed):
    answer, shown = await ask(Choice("Which?", OPTIONS), typed)
    assert answer is None and "CANCELLED" not in shown


@pytest.mark.parametrize(
    ("typed", "options", "meant"),
    [
        ("sqlite", OPTIONS, "SQLite"),
        ("MySQL, please", OPTIONS, "MySQL, please"),
        ("3", OPTIONS, "3"),
        ("0", OPTIONS, "0"),
        ("10", ("5", "10"), "10"),
        ("2", ("5", "2"), "2"),
        ("1", ("5", "2"), "5"),
        ("²", OPTIONS, "²"),
        ("9" * 5000, OPTIONS, "9" * 5000),
        ("1", (), "1"),
    ],
)
def test_text_that_selects_no_option_is_the_answer(typed, options, meant):
    assert parse_choice(typed, options) == meant


@given(st.text(), st.lists(st.text(min_size=1), max_size=9).map(tuple))
def test_any_input_is_an_option_the_text_itself_or_no_answer(typed, options):
    assert parse_choice(typed, options) in {*options, typed.strip() or None}


def test_a_question_can_not_contain_control_sequences():
    shown = choice_text(Choice("Run \x1b[2Jit?", ("a\x1b]0;x\x07", "b\r")))
    assert "\x1b" not in shown and "\r" not in shown and "\x07" not in shown
