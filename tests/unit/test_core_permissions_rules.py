"""Rules in decisions: questions by a rule, path rules in the grant of a command, exported variables."""

import msgspec
import pytest

from bradawl.core.effects import Effects
from bradawl.core.permissions import Allow, Ask, Deny, Grant, Mode, Policy, Request, Sandbox, decide
from bradawl.core.rules import Rule

HELD = Sandbox("bubblewrap")
SHELL = Effects(unknown=True, seal="s")
NAMES = ("A", "B", "C", "D", "E", "F")


def request(effects: Effects) -> Request:
    return Request("bash", "0" * 64, effects)


# ------------------------------------------------------------------ questions


def test_a_question_says_whether_a_rule_or_the_mode_asks():
    rule = Rule("ask", "tool", "bash", text="Bash", source="user")
    grant = Grant(network=True, outside_sandbox=True, command_hash="s")
    assert decide(Policy(rules=(rule,)), request(SHELL)) == Ask(grant, "the rule Bash (user) says ask", by_rule=True)
    assert decide(Policy(), request(SHELL)) == Ask(
        grant, "mode default asks before every change, and what it would change can't be told", by_rule=False
    )


@pytest.mark.parametrize(("read_rules", "is_refused"), [("whole", True), ("exact", False), ("later", False)])
def test_a_rule_about_a_path_applies_to_the_folder_above_it_as_the_tool_declares(read_rules, is_refused: bool):
    rule = Rule("deny", "read", "/ws/keys", places=("/ws/keys",), source="user")
    call = Request("grep", "0" * 64, Effects(reads=("/ws",), spends=read_rules == "later"), read_rules=read_rules)
    assert isinstance(decide(Policy(roots=("/ws",), rules=(rule,)), call), Deny if is_refused else Allow)


@pytest.mark.parametrize(("names", "is_allowed"), [((), False), (("Bash",), True), (("Edit", "Bash"), True)])
def test_a_rule_covers_a_tool_that_declares_its_name(names: tuple[str, ...], is_allowed: bool):
    rule = Rule("allow", "tool", "Bash", text="Bash", source="user")
    call = Request("my_shell", "0" * 64, SHELL, names)
    assert isinstance(decide(Policy(rules=(rule,)), call), Allow) is is_allowed
    assert call.names == ("my_shell", *names)


def test_a_call_that_declares_nothing_about_rules_has_no_further_names_and_reads_whole_folders():
    assert request(SHELL) == Request("bash", "0" * 64, SHELL, (), "whole")
    assert not Policy().has_guards


# ------------------------------------------------------------------ exported variables

LISTED = Rule("allow", "network", words=("npm", "*"), text="npm *", source="user")
ANY_COMMAND = Rule("allow", "tool", "bash", text="Bash", source="user")
FETCHING = Effects(unknown=True, commands=(("npm", "i"),), hosts=("*",), seal="s", variables=NAMES)


@pytest.mark.parametrize(
    ("policy", "grant"),
    [
        (Policy(rules=(ANY_COMMAND,)), Grant((), network=True, outside_sandbox=True, command_hash="s")),
        (Policy("auto", sandbox=HELD, rules=(LISTED,)), Grant((), network=True, command_hash="s")),
    ],
    ids=["outside the sandbox", "with the network"],
)
def test_an_allowed_command_with_exported_variables_is_asked_about_where_no_limit_holds_it(policy: Policy, grant):
    reason = "it would run with what earlier commands exported: A, B, C, D, E"
    assert decide(policy, request(FETCHING)) == Ask(grant, reason)
    assert isinstance(decide(policy, request(msgspec.structs.replace(FETCHING, variables=()))), Allow)


def test_a_command_with_exported_variables_in_a_sandbox_without_network_is_allowed():
    policy = Policy("auto", sandbox=HELD)
    assert decide(policy, request(FETCHING)) == Allow(Grant(command_hash="s"), "it stays within what this mode allows")


# ------------------------------------------------------------------ path rules in grants

DENIED = Rule("deny", "read", "/ws/denied", places=("/ws/denied",), source="user")
ASKED = Rule("ask", "write", "/ws/asked", places=("/ws/asked",), source="user")
PATHLESS = Rule("deny", "read", "/ws/x", source="user")
BUILT_IN = Rule("ask", "read", "/ws/.env", places=("/ws/.env",))
ALLOWED = Rule("allow", "read", "/ws/a", places=("/ws/a",), source="user")
RULES = (DENIED, ASKED, PATHLESS, BUILT_IN, ALLOWED)
WRITING = Effects(unknown=True, writes=("/ws/asked",), seal="s")


@pytest.mark.parametrize(
    ("mode", "effects", "rules"),
    [
        ("auto", SHELL, (DENIED, ASKED)),
        ("default", SHELL, (DENIED, ASKED)),
        ("auto", WRITING, (DENIED,)),
        ("bypass", SHELL, (DENIED,)),
        ("auto", Effects(writes=("/ws/b",)), ()),
        ("auto", Effects(reads=("/ws/a",), commands=(("cat", "a"),), understood=True, seal="s"), (DENIED, ASKED)),
    ],
    ids=["auto", "a question by the mode", "a question by the rule", "bypass", "no command", "a reading command"],
)
def test_a_command_is_granted_the_path_rules_that_it_was_not_asked_about(mode: Mode, effects: Effects, rules):
    decision = decide(Policy(mode, roots=("/ws",), sandbox=HELD, rules=RULES), request(effects))
    assert isinstance(decision, Allow | Ask)
    assert decision.grant.rules == rules
