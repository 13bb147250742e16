"""`ask_user`, the tool; and how the terminal asks and reads the answer."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_calls import Desk

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.tui.approver import TerminalApprover, choice_text, parse_choice
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Choice
from bradawl.testing.fakes import ScriptedApprover
from bradawl.tools.ask_user import AskUser

OPTIONS = ("SQLite", "PostgreSQL")


def test_what_the_user_says_is_the_answer():
    approver = ScriptedApprover(words=["PostgreSQL"])
    text = Desk(approver=approver).text(AskUser(), question=" Which one? ", options=["SQLite", " ", "PostgreSQL\n"])
    assert text == "The user says: PostgreSQL"
    assert approver.choices == [Choice("Which one?", OPTIONS)]


@pytest.mark.parametrize("approver", [None, DenyAllApprover(), ScriptedApprover(), ScriptedApprover(words=["  "])])
def test_where_nobody_answers_the_model_is_told_to_decide(approver):
    text = Desk(approver=approver).text(AskUser(), question="Which one?")
    assert text.startswith("No answer") and "Decide yourself" in text


def test_a_question_that_is_none_is_refused_before_anybody_is_asked():
    approver = ScriptedApprover(words=["x"] * 3)
    with pytest.raises(ToolError, match="question is empty"):
        Desk(approver=approver).call(AskUser(), question=" ")
    with pytest.raises(ToolError, match="10 options are too many"):
        Desk(approver=approver).call(AskUser(), question="Which?", options=list("abcdefghij"))
    assert approver.choices == []


def test_one_option_given_as_a_text_is_a_list_of_one():
    approver = ScriptedApprover(words=["yes"])
    Desk(approver=approver).call(AskUser(), question="Go on?", options="yes")
    assert approver.choices == [Choice("Go on?", ("yes",))]


def test_it_declares_to_need_the_user_so_that_two_questions_come_one_after_the_other():
    effects = AskUser().effects(AskUser().params("x"), Desk().context)
    assert effects.session == ("user",) and not effects.is_read_only


# ------------------------------------------------------------------ at the terminal


def asked(choice, typed):
    """The answer, and all that was shown."""
    shown, held = [], []

    class Hold:
        def __enter__(self):
            held.append(True)

        def __exit__(self, *_):
            held.append(False)

    async def read(prompt):
        assert held == [True]
        shown.append(prompt)
        if isinstance(typed, type):
            raise typed
        return typed

    approver = TerminalApprover(shown.append, read, lambda: shown.append("CANCELLED"), Hold)
    answer = asyncio.run(approver.choose(choice))
    assert held == [True, False]
    return answer, "\n".join(shown)


def test_options_are_numbered_and_a_number_stands_for_one():
    answer, shown = asked(Choice("Which\none?", OPTIONS), " 2 \n")
    assert answer == "PostgreSQL"
    assert "    Which\n    one?\n    1. SQLite\n    2. PostgreSQL\n" in shown


@pytest.mark.parametrize("typed", ["", " \t", KeyboardInterrupt, EOFError])
def test_nothing_ctrl_c_and_a_closed_input_are_no_answer_and_end_nothing(typed):
    answer, shown = asked(Choice("Which?", OPTIONS), typed)
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
def test_any_other_answer_is_taken_as_it_is(typed, options, meant):
    assert parse_choice(typed, options) == meant


@given(st.text(), st.lists(st.text(min_size=1), max_size=9).map(tuple))
def test_whatever_is_typed_is_an_option_the_text_itself_or_nothing(typed, options):
    assert parse_choice(typed, options) in {*options, typed.strip() or None}


def test_what_the_model_asks_can_not_move_the_cursor():
    shown = choice_text(Choice("Run \x1b[2Jit?", ("a\x1b]0;x\x07", "b\r")))
    assert "\x1b" not in shown and "\r" not in shown and "\x07" not in shown
