"""The line of the system prompt about what is held, and the arguments of bash where nobody can be asked."""

import msgspec
import pytest

from bradawl.app.held import held_line
from bradawl.app.policies import PROMPT_SOURCE
from bradawl.core.permissions import Policy, Sandbox
from bradawl.core.rules import Rule
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.tools.bash import Bash

WHOLE, LANDLOCK = Sandbox("bubblewrap"), Sandbox("landlock", ("private_tmp", "credentials"))
HOST = Rule("allow", "connect", "example.org")
NAMED = Rule("allow", "write", "/tmp/x", text="Edit(//tmp/x)", source=PROMPT_SOURCE)
NO_MORE = "held: this run changes nothing: edits and commands that change something are refused"


def allowing(*texts):
    return tuple(rule for text in texts for rule in parse_rule(text, "allow", "a test", Bases("/ws", "/home/u", "/ws")))


def policy(mode, sandbox=None, rules=(), roots=("/ws", "/data/tmp")):
    return Policy(mode, sandbox=sandbox or Sandbox(), rules=rules, roots=roots)


@pytest.mark.parametrize(
    ("held", "can_ask", "line"),
    [
        (
            policy("auto", WHOLE),
            False,
            "held: commands write only in the working directory and /tmp, which is the session's own; no network; "
            "what needs more is refused",
        ),
        (
            policy("auto", WHOLE, (HOST, NAMED, *allowing("Edit(//other/**)", "Bash(node:*)", "Read(//x)"))),
            False,
            "held: commands write only in the working directory and /tmp, which is the session's own; network only to "
            "granted hosts; also allowed: Edit(//other/**); what needs more is refused",
        ),
        (
            policy("auto", WHOLE, roots=("/ws", "/more", "/data/tmp")),
            True,
            "held: commands write only in the working directory and /more and /tmp, which is the session's own; no "
            "network without permission; what needs more is asked about",
        ),
        (
            policy("auto", LANDLOCK),  # it can't hold commands with unknown effects
            False,
            "held: edits only in the working directory; commands that change something are refused",
        ),
        (policy("default", WHOLE), False, NO_MORE),
        (policy("default"), False, NO_MORE),
        (policy("default"), True, "held: every edit and every command that changes something is asked about"),
        (
            policy("default", rules=allowing("Edit", "Bash(node:*)", "Read")),
            False,
            "held: allowed without asking: Edit, Bash(node:*); every other change is refused",
        ),
        (
            policy("default", rules=allowing("Bash")),
            False,
            "held: allowed without asking: Bash; every other change is refused",
        ),
        (
            policy("default", WHOLE, allowing("Bash(node:*)")),
            False,
            "held: allowed without asking: Bash(node:*); every other change is refused; commands write only in the "
            "working directory and /tmp, which is the session's own; no network",
        ),
        (
            policy("accept-edits", WHOLE),
            False,
            "held: edits only in the working directory; commands that change something are refused",
        ),
        (
            policy("accept-edits", rules=allowing("Bash(npm test)")),
            True,
            "held: edits only in the working directory; also allowed: Bash(npm test); other commands that change "
            "something are asked about",
        ),
        (policy("plan", WHOLE), False, "held: nothing may change (plan mode)"),
        (
            policy("bypass", WHOLE),
            False,
            "held: nothing is asked; commands write in the working directory, /tmp and at paths that they name, and "
            "reach any network; git hooks and the like are refused",
        ),
        (
            policy("bypass"),
            False,
            "held: nothing is asked, no sandbox; only git hooks and the like, and deletions such as rm -rf ~, are "
            "refused",
        ),
    ],
)
def test_the_line_says_what_is_held_and_whether_asking_is_possible(held, can_ask, line):
    assert held_line(held, cwd="/ws", tmp="/data/tmp", can_ask=can_ask) == line


@pytest.mark.parametrize(
    ("held", "can_ask", "line"),
    [
        (policy("auto", WHOLE), False, "held: edits only in the working directory; others are refused"),
        (policy("default"), False, "held: this run changes nothing: edits are refused"),
        (policy("default"), True, "held: every edit is asked about"),
        (
            policy("default", rules=allowing("Edit(src/**)")),
            False,
            "held: allowed without asking: Edit(src/**); every other change is refused",
        ),
    ],
)
def test_without_a_tool_for_commands_the_line_speaks_of_edits_alone(held, can_ask, line):
    assert held_line(held, cwd="/ws", tmp="/data/tmp", can_ask=can_ask, runs_commands=False) == line


def test_without_a_user_bash_has_no_argument_that_asks_for_one():
    names = [{each.name for each in msgspec.structs.fields(Bash(user_is_there=it).params)} for it in (True, False)]
    assert names[0] - names[1] == {"sandbox"}
    with_user, without = (msgspec.json.schema(Bash(user_is_there=there).params) for there in (True, False))
    assert "sandbox" in str(with_user) and "sandbox" not in str(without)
