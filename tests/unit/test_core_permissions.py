"""`decide`: refusals win over questions, and questions over allowances, in every mode."""

from itertools import product
from typing import assert_never, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_core_effects import EFFECTS

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import (
    MODES,
    Allow,
    Answer,
    Ask,
    Decision,
    Deny,
    Grant,
    Mode,
    Policy,
    Question,
    Request,
    Sandbox,
    decide,
)
from bradawl.core.rules import Rule

COMPLETE = Sandbox("bubblewrap")
PARTIAL = Sandbox("landlock", lacks=("chmod_outside", "ptrace"))
WS = ("/ws",)
NOT_UNDERSTOOD = Effects(unknown=True, seal="s")
LISTING = Effects(commands=(("ls",),), understood=True, reads=("/ws",), seal="s")
MKDIR = Effects(commands=(("mkdir", "x"),), understood=True, writes=("/ws/x",), seal="s")
STASH_DROP = Effects(unknown=True, seal="s", discards="stashed changes", undoable=True)
PRUNE = Effects(unknown=True, seal="s", discards="objects")
FORCED_PUSH = Effects(unknown=True, seal="s", commands=(("git", "push", "-f"),), forced="it forces a push")
EDIT = Effects(reads=("/ws/a",), writes=("/ws/a",))


def request(effects: Effects, tool: str = "bash") -> Request:
    return Request(tool, "0" * 64, effects)


def verdict(policy: Policy, effects: Effects, tool: str = "bash") -> str:
    return type(decide(policy, request(effects, tool))).__name__.lower()


def grant_of(decision: Decision) -> Grant:
    match decision:
        case Allow(grant) | Ask(grant):
            return grant
        case Deny():
            return Grant()
        case _:
            assert_never(decision)


def changes_only_the_conversation(effects: Effects) -> bool:
    own = {"cwd", "env", "jobs", "mode", "todos", "user"}
    session = tuple(part for part in effects.session if part not in own)
    return msgspec.structs.replace(effects, session=session, spends=False).is_read_only


# ------------------------------------------------------------------ properties of every decision


@given(EFFECTS)
def test_default_mode_allows_exactly_the_calls_that_change_only_the_conversation(effects: Effects):
    assert isinstance(decide(Policy(roots=("/",)), request(effects)), Allow) == (
        changes_only_the_conversation(effects) and not effects.danger
    )


@given(EFFECTS)
def test_bypass_allows_every_call_that_is_not_dangerous(effects: Effects):
    assert isinstance(decide(Policy("bypass"), request(effects)), Deny if effects.danger else Allow)


@given(EFFECTS, st.sampled_from(MODES), st.sampled_from((Sandbox(), COMPLETE, PARTIAL)))
def test_every_decision_has_a_reason_and_binds_its_grant_to_the_call(effects: Effects, mode, sandbox: Sandbox):
    decision = decide(Policy(mode, sandbox=sandbox), request(effects))
    assert decision.reason
    if not isinstance(decision, Deny):
        assert grant_of(decision).command_hash == (effects.seal or "0" * 64)


@given(EFFECTS, st.sampled_from(MODES), st.sampled_from((Sandbox(), COMPLETE, PARTIAL)))
def test_every_mode_refuses_a_dangerous_call_and_one_that_a_rule_denies(effects: Effects, mode, sandbox: Sandbox):
    policy = Policy(mode, sandbox=sandbox)
    dangerous = decide(policy, request(msgspec.structs.replace(effects, danger="it deletes everything")))
    assert dangerous == Deny("it deletes everything")
    refusing = msgspec.structs.replace(policy, rules=(Rule("deny", "tool", "bash", text="Bash", source="user"),))
    assert isinstance(decide(refusing, request(effects)), Deny)


@given(EFFECTS, st.sampled_from(MODES), st.sampled_from((Sandbox(), COMPLETE, PARTIAL)))
def test_an_additional_ask_or_deny_rule_never_makes_a_decision_more_permissive(
    effects: Effects, mode, sandbox: Sandbox
):
    order = {"Allow": 0, "Ask": 1, "Deny": 2}
    plain = Policy(mode, sandbox=sandbox, rules=(Rule("allow", "tool", "bash", text="Bash", source="user"),))
    before = decide(plain, request(effects))
    for verdict in ("ask", "deny"):
        rule = Rule(verdict, "tool", "bash", text="Bash", source="project")
        after = decide(msgspec.structs.replace(plain, rules=(*plain.rules, rule)), request(effects))
        assert order[type(after).__name__] >= order[type(before).__name__]


# ------------------------------------------------------------------ modes

TABLE = {
    # effects: default, accept-edits, plan, auto (complete, partial, no sandbox), bypass
    "a listing of the workspace": (LISTING, "allow allow allow allow allow allow allow"),
    "a folder made by a command": (MKDIR, "ask ask deny allow ask ask allow"),
    "a command that is not understood": (NOT_UNDERSTOOD, "ask ask deny allow ask ask allow"),
    "a file edited": (EDIT, "ask allow deny allow allow allow allow"),
    "a file read": (Effects(reads=("/ws/a",)), "allow allow allow allow allow allow allow"),
    "a file read outside": (Effects(reads=("/etc/passwd",)), "ask ask ask allow allow allow allow"),
    "a file written outside": (Effects(writes=("/etc/x",)), "ask ask deny ask ask ask allow"),
    "a command that writes outside": (
        Effects(commands=(("touch", "/o"),), understood=True, writes=("/o",), seal="s"),
        "ask ask deny ask ask ask allow",
    ),
    "a page fetched": (Effects(hosts=("docs.example",)), "ask ask deny ask ask ask allow"),
    "a tool with external effects": (Effects(external=True), "ask ask deny ask ask ask allow"),
    "a tool with unknown effects": (UNKNOWN, "ask ask deny ask ask ask allow"),
    "todos": (Effects(session=("todos",)), "allow allow allow allow allow allow allow"),
    "a question": (Effects(session=("user", "mode")), "allow allow allow allow allow allow allow"),
    "a sub-agent": (Effects(spends=True), "allow allow allow allow allow allow allow"),
    "a variable that decides what runs": (
        Effects(commands=(("export", "PATH=x"),), understood=True, session=("env", "env:PATH"), seal="s"),
        "ask ask deny ask ask ask allow",
    ),
    "a command with the network": (
        Effects(commands=(("curl", "x"),), unknown=True, hosts=("*",), seal="s", lifts=("network",)),
        "ask ask deny ask ask ask allow",
    ),
    "a listing without the sandbox": (
        msgspec.structs.replace(LISTING, lifts=("sandbox",)),
        "ask ask deny ask ask ask allow",
    ),
}
POLICIES = (
    Policy("default", roots=WS),
    Policy("accept-edits", roots=WS),
    Policy("plan", roots=WS),
    Policy("auto", roots=WS, sandbox=COMPLETE),
    Policy("auto", roots=WS, sandbox=PARTIAL),
    Policy("auto", roots=WS),
    Policy("bypass", roots=WS),
)


@pytest.mark.parametrize("name", TABLE)
def test_each_mode_decides_as_the_table_says(name: str):
    effects, wanted = TABLE[name]
    assert [verdict(policy, effects) for policy in POLICIES] == wanted.split()


@pytest.mark.parametrize("sandbox", [Sandbox(), COMPLETE])
@pytest.mark.parametrize("mode", ["default", "accept-edits", "plan"])
def test_a_sandbox_changes_no_decision_of_a_mode_other_than_auto(mode, sandbox: Sandbox):
    for effects, _ in TABLE.values():
        held = Policy(mode, roots=WS, sandbox=sandbox)
        assert verdict(held, effects) == verdict(Policy(mode, roots=WS), effects)


def test_readable_folders_are_read_without_a_question_and_folders_with_the_same_prefix_are_not():
    policy = Policy(roots=WS, readable=("/usr",))
    assert verdict(policy, Effects(reads=("/usr/include/stdio.h", "/ws"))) == "allow"
    assert verdict(policy, Effects(reads=("/usr-evil/a",))) == "ask"
    assert verdict(policy, Effects(reads=("/ws-evil/a",))) == "ask"
    assert verdict(policy, Effects(writes=("/usr/x",))) == "ask"


NODE = Rule("allow", "run", words=("node", "*"), text="Bash(node:*)")


def test_a_read_only_agent_may_change_nothing_in_any_mode():
    for mode, (effects, _) in product(MODES, TABLE.values()):
        policy = Policy(mode, read_only=True, roots=WS, sandbox=COMPLETE)
        if not changes_only_the_conversation(effects):
            assert verdict(policy, effects) == "deny"


@pytest.mark.parametrize(
    ("policy", "effects", "said"),
    [
        (
            Policy(roots=WS),
            NOT_UNDERSTOOD,
            "mode default asks before every change, and what it would change can't be told",
        ),
        (Policy(roots=WS), MKDIR, "mode default asks before every change"),
        (Policy("accept-edits", roots=WS), MKDIR, "it changes something, which this mode asks about"),
        (
            Policy(roots=WS),
            Effects(session=("env", "env:LD_PRELOAD", "env:PYTHONPATH")),
            "later commands would run with LD_PRELOAD, PYTHONPATH as it is set here",
        ),
        (
            Policy(roots=WS, rules=(NODE,)),
            Effects(commands=(("node", "a.js"), ("timeout", "5", "node")), unknown=True, seal="s"),
            "`timeout 5 node` is not covered by Bash(node:*), and what it would change can't be told",
        ),
        (
            Policy("auto", roots=WS, rules=(NODE, Rule("allow", "write", "/o/.*", text="Edit(//o/**)"))),
            Effects(writes=("/o/x",), commands=(("node", "a.js"), ("cat", "/o/x")), seal="s"),
            "it writes outside the workspace: /o/x; `cat /o/x` is not covered by Bash(node:*)",
        ),
        (
            Policy(roots=WS, rules=(Rule("deny", "write", "/etc/.*", why="it belongs to the system"),)),
            Effects(writes=("/etc/foo", "/ws/a")),
            "/etc/foo: it belongs to the system",
        ),
        (
            Policy(roots=WS, rules=(Rule("ask", "run", words=("git", "push", "*"), why="it leaves"),)),
            Effects(commands=(("ls",), ("git", "push", "origin"))),
            "`git push origin`: it leaves",
        ),
        (Policy(roots=WS), Effects(writes=("/a", "/b", "/c", "/d")), "it writes outside the workspace: /a, /b, /c"),
        (Policy(roots=WS), Effects(reads=("/a", "/b", "/c", "/d")), "it reads outside the workspace: /a, /b, /c"),
        (Policy(roots=WS), Effects(hosts=("a", "b", "c", "d")), "it reaches a, b, c"),
        (Policy("auto"), NOT_UNDERSTOOD, "what it would change can't be told, and the sandbox is missing"),
        (
            Policy("auto", sandbox=PARTIAL),
            NOT_UNDERSTOOD,
            "what it would change can't be told, and the sandbox can't hold: chmod_outside, ptrace",
        ),
        (Policy("auto", sandbox=COMPLETE), UNKNOWN, "what it would change can't be told"),
        (Policy("auto"), Effects(lifts=("sandbox",)), "it asks to run without the sandbox"),
        (Policy("auto"), Effects(lifts=("network",)), "it asks for the network"),
        (
            Policy("plan"),
            MKDIR,
            "nothing may change in plan mode, and the call would write /ws/x; put it into the plan",
        ),
        (
            Policy(read_only=True),
            NOT_UNDERSTOOD,
            "this agent only reads, and what the call would change can't be told (plain ls, cat, head, grep, find and "
            "the like can); leave that out, or report it instead",
        ),
        (
            Policy("plan"),
            Effects(writes=("/a", "/b", "/c", "/d")),
            "nothing may change in plan mode, and the call would write /a, /b, /c; put it into the plan",
        ),
        (Policy("auto", sandbox=COMPLETE), STASH_DROP, "it discards stashed changes, and undo can't bring that back"),
        (Policy("auto", sandbox=COMPLETE, undo=True), STASH_DROP, "it stays within what this mode allows"),
        (
            Policy(roots=WS, undo=True),
            STASH_DROP,
            "mode default asks before every change, and what it would change can't be told",
        ),
        (Policy("auto", sandbox=COMPLETE), PRUNE, "it discards objects, and undo can't bring that back"),
        (Policy("auto", sandbox=COMPLETE, undo=True), PRUNE, "it discards objects, and undo can't bring that back"),
        (Policy("bypass"), PRUNE, "questions are switched off"),
        (Policy("auto", sandbox=COMPLETE, undo=True), FORCED_PUSH, "it forces a push"),
        (Policy(roots=WS), FORCED_PUSH, "it forces a push"),
        (Policy("bypass"), FORCED_PUSH, "questions are switched off"),
        (Policy("bypass"), NOT_UNDERSTOOD, "questions are switched off"),
        (Policy(roots=WS), LISTING, "it stays within what this mode allows"),
    ],
)
def test_the_reason_names_the_cause_of_the_decision(policy: Policy, effects: Effects, said: str):
    assert decide(policy, request(effects)).reason == said


# ------------------------------------------------------------------ rules


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("plan", "bypass")])
def test_rules_answer_the_question_about_discarded_work_and_not_the_one_about_forced_pushes(mode: Mode):
    rules = (allow("tool", "bash"), allow("run", words=("*",)), allow("network", words=("*",)))
    policy = Policy(mode, roots=WS, sandbox=COMPLETE, rules=rules, undo=True)
    assert isinstance(decide(policy, request(PRUNE)), Allow)
    asked = decide(policy, request(FORCED_PUSH))
    assert isinstance(asked, Ask) and asked.by_rule


def allow(on, pattern: str = "", words: tuple[str, ...] = ()) -> Rule:
    return Rule("allow", on, pattern, words, text=f"the {on} rule", source="user")


def command(*argvs: tuple[str, ...]) -> Effects:
    return Effects(unknown=True, commands=argvs, seal="s")


def test_a_command_is_allowed_when_rules_match_each_program_in_it():
    tests, logs = allow("run", words=("npm", "test", "*")), allow("run", words=("git", "log"))
    policy = Policy(roots=WS, rules=(tests, logs))
    assert verdict(policy, command(("npm", "test", "-x"))) == "allow"
    assert verdict(policy, command(("npm", "test"), ("git", "log"))) == "allow"
    assert verdict(policy, command(("cd", "src"), ("npm", "test"))) == "allow"
    assert verdict(policy, command(("npm", "test"), ("rm", "x"))) == "ask"
    assert verdict(policy, command(("cd", "src"))) == "ask"
    assert verdict(policy, command()) == "ask"
    assert verdict(policy, msgspec.structs.replace(command(("npm", "test")), lifts=("network",))) == "ask"


def test_an_allowed_command_may_write_outside_the_workspace_only_where_that_is_allowed_too():
    echo, there = allow("run", words=("echo", "*")), allow("write", "/out/.*")
    effects = Effects(commands=(("echo", "x"),), understood=True, writes=("/ws/a", "/out/f"), seal="s")
    assert verdict(Policy(roots=WS, rules=(echo,)), effects) == "ask"
    assert verdict(Policy(roots=WS, rules=(echo, there)), effects) == "allow"
    assert verdict(Policy(roots=WS, rules=(echo,)), msgspec.structs.replace(effects, writes=("/ws/a",))) == "allow"


def test_an_allowed_command_may_redirect_its_output_only_where_writing_is_allowed_too():
    echo, there = allow("run", words=("echo", "*")), allow("write", "/ws/out/.*")
    effects = Effects(
        commands=(("echo", "x"),), understood=True, writes=("/ws/out/f",), redirects=("/ws/out/f",), seal="s"
    )
    assert verdict(Policy(roots=WS, rules=(echo,)), effects) == "ask"
    assert verdict(Policy(roots=WS, rules=(there,)), effects) == "ask"
    assert verdict(Policy(roots=WS, rules=(echo, there)), effects) == "allow"
    for mode in ("accept-edits", "auto"):
        assert verdict(Policy(mode, roots=WS, rules=(echo,)), effects) == "allow"
    beside = msgspec.structs.replace(effects, writes=("/x/f",), redirects=("/x/f",))
    assert verdict(Policy("accept-edits", roots=WS, rules=(echo, there)), beside) == "ask"


def test_the_decision_on_an_allowed_command_names_its_rule_and_grants_what_a_yes_grants():
    policy = Policy(roots=WS, rules=(allow("run", words=("npm", "test")),), sandbox=COMPLETE)
    decision = decide(policy, request(command(("npm", "test"))))
    assert decision == Allow(Grant(WS, command_hash="s"), "the run rule (user) allows it")


def test_a_rule_for_the_tool_allows_every_call_of_it_and_of_no_other():
    policy = Policy(roots=WS, rules=(allow("tool", "bash"),))
    assert verdict(policy, NOT_UNDERSTOOD) == "allow"
    assert verdict(policy, UNKNOWN, "mcp__x__bash") == "ask"


def test_rules_for_paths_and_hosts_allow_a_call_together():
    policy = Policy(roots=WS, rules=(allow("write", "/out/.*"), allow("reach", "a.example"), allow("read", "/etc/x")))
    assert verdict(policy, Effects(writes=("/out/a",))) == "allow"
    assert verdict(policy, Effects(writes=("/out/a", "/ws/a"))) == "ask"
    assert verdict(policy, Effects(hosts=("b.a.example",))) == "allow"
    assert verdict(policy, Effects(hosts=("ba.example",))) == "ask"
    assert verdict(policy, Effects(writes=("/out/a",), hosts=("a.example",), reads=("/etc/x", "/ws/b"))) == "allow"
    assert verdict(policy, Effects(writes=("/out/a",), reads=("/etc/y",))) == "ask"
    assert verdict(policy, Effects(writes=("/out/a",), external=True)) == "ask"
    assert verdict(policy, Effects(reads=("/etc/x",))) == "allow"


def test_ask_rules_win_over_allow_rules_and_deny_rules_over_both():
    asks = Rule("ask", "run", words=("npm", "test"), text="Bash(npm test)", source="user")
    rules = (allow("tool", "bash"), asks)
    asked = decide(Policy(roots=WS, rules=rules), request(command(("npm", "test"))))
    assert asked.reason == "`npm test`: the rule Bash(npm test) (user) says ask" and isinstance(asked, Ask)
    refuses = Rule("deny", "run", words=("npm", "*"), text="Bash(npm *)", source="managed", why="not here")
    assert decide(Policy(roots=WS, rules=(*rules, refuses)), request(command(("npm", "test")))) == Deny(
        "`npm test`: not here"
    )


def test_deny_and_ask_rules_see_inner_commands_and_allow_rules_do_not():
    wrapped = Effects(unknown=True, commands=(("env", "rm", "x"),), inner=(("rm", "x"),), seal="s")
    words = ("rm", "*")
    assert verdict(Policy("bypass", rules=(Rule("deny", "run", words=words),)), wrapped) == "deny"
    assert verdict(Policy("auto", sandbox=COMPLETE, rules=(Rule("ask", "run", words=words),)), wrapped) == "ask"
    assert verdict(Policy(rules=(allow("run", words=words),)), wrapped) == "ask"


def test_a_built_in_question_about_a_path_is_not_asked_when_that_path_is_allowed_by_name():
    secret = Rule("ask", "read", r".*/\.env", why="it reads a secret")
    read = Effects(reads=("/ws/.env",))
    assert decide(Policy("auto", rules=(secret,)), request(read)).reason == "/ws/.env: it reads a secret"
    assert verdict(Policy("auto", rules=(secret, allow("read", r"/ws/\.env"))), read) == "allow"
    assert verdict(Policy("auto", rules=(secret, allow("read", "/ws/a"))), read) == "ask"
    assert verdict(Policy("auto", rules=(secret, allow("write", r"/ws/\.env"))), read) == "ask"
    mine = msgspec.structs.replace(secret, source="user")
    assert verdict(Policy("auto", rules=(mine, allow("read", r"/ws/\.env"))), read) == "ask"


def test_a_refusal_that_does_not_hold_in_bypass_holds_in_every_other_mode():
    rule = Rule("deny", "write", "/etc/.*", why="a system file", in_bypass=False)
    for mode in MODES:
        wanted = "allow" if mode == "bypass" else "deny"
        assert verdict(Policy(mode, rules=(rule,)), Effects(writes=("/etc/x",))) == wanted


# ------------------------------------------------------------------ grants


def grant(policy: Policy, effects: Effects) -> Grant:
    return grant_of(decide(policy, request(effects)))


def test_a_read_only_call_is_granted_no_writable_path_and_no_network():
    for policy in (Policy(), Policy(sandbox=COMPLETE), Policy("auto", sandbox=COMPLETE)):
        assert grant(policy, Effects(reads=("/a",))) == Grant(command_hash="0" * 64)
        assert grant(policy, LISTING) == Grant(command_hash="s")


def test_without_a_sandbox_the_declared_paths_are_writable():
    given = grant(Policy(), Effects(writes=("/a", "/b")))
    assert given == Grant(("/a", "/b"), network=True, outside_sandbox=True, command_hash="0" * 64)


def test_in_a_sandbox_a_command_may_write_to_the_workspace_and_to_what_was_asked_about():
    assert grant(Policy("auto", roots=WS, sandbox=COMPLETE), NOT_UNDERSTOOD) == Grant(WS, command_hash="s")
    outside = Effects(commands=(("touch", "/o"),), understood=True, writes=("/ws/a", "/o"), seal="s")
    assert grant(Policy("auto", roots=WS, sandbox=COMPLETE), outside).writable == ("/ws", "/o")


def test_the_network_is_granted_by_a_question_or_a_network_rule_and_not_by_a_mode():
    fetching = Effects(unknown=True, commands=(("cd", "a"), ("npm", "i")), hosts=("*",), seal="s")
    listed = Rule("allow", "network", words=("npm", "*"), text="npm *", source="user")
    held = Policy("auto", roots=WS, sandbox=COMPLETE)
    assert isinstance(decide(held, request(fetching)), Allow)
    assert not grant(held, fetching).network
    assert grant(msgspec.structs.replace(held, mode="default"), fetching).network
    assert not grant(msgspec.structs.replace(held, mode="default"), NOT_UNDERSTOOD).network
    assert grant(msgspec.structs.replace(held, rules=(listed,)), fetching).network
    assert not grant(msgspec.structs.replace(held, rules=(listed,)), NOT_UNDERSTOOD).network
    asked = msgspec.structs.replace(fetching, lifts=("network",))
    assert isinstance(decide(held, request(asked)), Ask) and grant(held, asked).network
    assert isinstance(decide(msgspec.structs.replace(held, rules=(listed,)), request(asked)), Allow)
    more = msgspec.structs.replace(fetching, lifts=("network", "sandbox"))
    assert isinstance(decide(msgspec.structs.replace(held, rules=(listed,)), request(more)), Ask)


def test_leaving_the_sandbox_is_granted_only_to_a_call_that_asks_for_it():
    asked = msgspec.structs.replace(NOT_UNDERSTOOD, lifts=("sandbox",))
    held = Policy("auto", roots=WS, sandbox=COMPLETE)
    assert grant(held, asked) == Grant(network=True, outside_sandbox=True, command_hash="s")
    assert not grant(held, NOT_UNDERSTOOD).outside_sandbox
    connected = msgspec.structs.replace(NOT_UNDERSTOOD, lifts=("network",))
    assert grant(held, connected) == Grant(WS, network=True, command_hash="s")


def test_bypass_keeps_the_sandbox_and_grants_everything_else():
    held = Policy("bypass", roots=WS, sandbox=COMPLETE)
    assert grant(held, NOT_UNDERSTOOD) == Grant(WS, network=True, environment=("*",), command_hash="s")
    without = Grant(network=True, outside_sandbox=True, environment=("*",), command_hash="s")
    assert grant(Policy("bypass", roots=WS), NOT_UNDERSTOOD) == without
    refused = decide(held, request(msgspec.structs.replace(NOT_UNDERSTOOD, lifts=("sandbox",))))
    assert refused == Deny("commands are to stay in the sandbox, and nobody is asked")
    assert verdict(held, msgspec.structs.replace(NOT_UNDERSTOOD, lifts=("network",))) == "allow"


def test_in_a_complete_sandbox_a_command_may_change_every_part_of_its_own_session():
    own = ("cwd", "env", "jobs", "mode", "todos", "user")
    assert (
        verdict(Policy("auto", roots=WS, sandbox=COMPLETE), msgspec.structs.replace(NOT_UNDERSTOOD, session=own))
        == "allow"
    )


def test_variables_that_decide_what_runs_are_granted_by_name():
    effects = Effects(commands=(("export", "PATH=x"),), understood=True, session=("env", "env:PATH", "cwd"), seal="s")
    assert grant(Policy(), effects).environment == ("PATH",)


def test_a_path_that_the_sandbox_covers_is_uncovered_for_a_call_after_a_question_about_it():
    rules = (
        Rule("ask", "read", r".*/\.env", why="a secret"),
        Rule("ask", "write", r".*/\.mcp\.json", why="it starts programs"),
        Rule("ask", "read", "/mine", text="Read(//mine)", source="user"),
        Rule("deny", "read", "/never"),
        Rule("ask", "tool", "web_fetch"),
    )
    effects = Effects(reads=("/ws/.env", "/ws/a", "/mine"), writes=("/ws/.mcp.json", "/ws/b"), unknown=True, seal="s")
    given = grant(Policy("auto", roots=WS, sandbox=COMPLETE, rules=rules), effects)
    assert given.uncovered == ("/ws/.env", "/ws/.mcp.json")


def test_a_yes_to_a_command_does_not_extend_to_other_calls():
    assert request(NOT_UNDERSTOOD).stands_alone and request(LISTING).stands_alone
    assert not request(EDIT).stands_alone


# ------------------------------------------------------------------ defaults


def test_without_a_workspace_everything_lies_outside_of_it():
    for mode in ("default", "accept-edits", "auto"):
        assert verdict(Policy(mode), EDIT) == "ask"
        assert verdict(Policy(mode, sandbox=COMPLETE), MKDIR) == "ask"
    assert verdict(Policy(), LISTING) == "ask"


def test_modes_lists_every_mode():
    assert get_args(Mode) == MODES


def test_the_defaults_permit_the_least():
    assert Policy() == Policy("default", False, (), (), (), Sandbox(""))
    assert Grant() == Grant((), False, False, (), "", ())
    assert Answer(True, "user") == Answer(True, "user", "once", "", ())
    asked = Question(ToolCall("1", "bash", "{}"), request(NOT_UNDERSTOOD), "why")
    assert (asked.grant, asked.place) == (Grant(), "")
