"""Why a call was refused, in words for the user."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.refusal_reasons import refusal_reason, without_advice
from bradawl.core.permissions import Policy
from bradawl.safety.permissions.builtin_rules import with_builtin_rules
from bradawl.testing.fakes import MemoryFiles

RULES = with_builtin_rules(Policy(), MemoryFiles()).rules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "bash was not run: nothing may change in plan mode, and the call would write /p/a; put it into the plan.",
            "nothing may change in plan mode, and the call would write /p/a",
        ),
        (
            "bash was not run: nothing may change in plan mode, and what the call would change can't be told "
            "(plain ls, cat, head, grep, find and the like can); put it into the plan.",
            "nothing may change in plan mode, and what the call would change can't be told",
        ),
        ("bash was not run: the user declined. Do something else, or say what you need and why.", "you said no"),
        (
            "bash was not run: the user declined. They said: use make; run it twice",
            "you said no: use make; run it twice",
        ),
        (
            "bash was not run: it needs permission (it reaches a.org), and no user is present to give it. Do what "
            "you can without, and say what is left undone.",
            "it needs permission: it reaches a.org",
        ),
        (
            "bash was not run: `git push; do x`: pushing is refused; leave that to the user.",
            "`git push; do x`: pushing is refused",
        ),
        ("edit_file was not run: /h/.bashrc: it runs at login; ask the user.", "/h/.bashrc: it runs at login"),
        ("The hook says no. Use another tool.", "The hook says no. Use another tool."),
    ],
)
def test_a_reason_has_no_advice_to_the_model(text, reason):
    assert refusal_reason(text) == reason


@pytest.mark.parametrize("reason", sorted({rule.reason for rule in RULES}))
def test_no_built_in_reason_speaks_of_the_user(reason):
    shown = refusal_reason(f"bash was not run: /some/path: {reason}.")
    assert shown.startswith("/some/path: ") and len(shown) < 160
    assert not re.search(r"the user\b|ask |do the work|edit_file|write_file", shown), shown


def test_an_error_keeps_what_happened():
    text = "a.py is read-only; use another file or ask the user"
    assert without_advice(text) == "a.py is read-only"


@given(st.text(max_size=200))
def test_something_is_left_of_any_text(text):
    assert without_advice(text) == text or without_advice(text)
