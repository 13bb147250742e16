"""The line of the system prompt about what is held, and the arguments of bash where nobody can be asked."""

import msgspec
import pytest

from bradawl.app.held import held_line
from bradawl.core.permissions import Policy, Sandbox
from bradawl.core.rules import Rule
from bradawl.tools.bash import Bash

WHOLE, LANDLOCK = Sandbox("bubblewrap"), Sandbox("landlock", ("private_tmp", "credentials"))
HOST = (Rule("allow", "connect", "example.org"),)


@pytest.mark.parametrize(
    ("policy", "can_ask", "line"),
    [
        (
            Policy("auto", sandbox=WHOLE),
            False,
            "held: commands write only in the working directory and /tmp, which is the session's own; no network "
            "without permission; what needs more is refused",
        ),
        (
            Policy("auto", sandbox=LANDLOCK, rules=HOST, roots=("/ws", "/more", "/data/tmp")),
            True,
            "held: commands write only in the working directory and /more and the folder $TMPDIR; network only to "
            "granted hosts; what needs more is asked about",
        ),
        (
            Policy("default"),
            False,
            "held: no sandbox: every change needs permission; what needs more is refused",
        ),
        (
            Policy("accept-edits"),
            True,
            "held: no sandbox: commands that change something and writes outside the working directory need "
            "permission; what needs more is asked about",
        ),
        (Policy("plan", sandbox=WHOLE), False, "held: nothing may change (plan mode)"),
        (
            Policy("bypass", sandbox=WHOLE),
            False,
            "held: commands write only in the working directory and /tmp, which is the session's own; any network",
        ),
        (Policy("bypass"), False, "held: nothing; commands run with all rights of the user"),
    ],
)
def test_the_line_says_what_is_held_and_whether_asking_is_possible(policy, can_ask, line):
    assert held_line(policy, cwd="/ws", tmp="/data/tmp", can_ask=can_ask) == line


def test_without_a_user_bash_has_no_argument_that_asks_for_one():
    names = [{each.name for each in msgspec.structs.fields(Bash(user_is_there=it).params)} for it in (True, False)]
    assert names[0] - names[1] == {"sandbox"}
    with_user, without = (msgspec.json.schema(Bash(user_is_there=there).params) for there in (True, False))
    assert "sandbox" in str(with_user) and "sandbox" not in str(without)
