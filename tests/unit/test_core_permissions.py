"""The one decision: refusals before questions before what is allowed, in every mode."""

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

HELD = Sandbox("bubblewrap")
LEAKY = Sandbox("landlock", lacks=("chmod_outside", "ptrace"))
WS = ("/ws",)
SHELL = Effects(unknown=True, seal="s")
LISTING = Effects(commands=(("ls",),), understood=True, reads=("/ws",), seal="s")
MAKING = Effects(commands=(("mkdir", "x"),), understood=True, writes=("/ws/x",), seal="s")
EDIT = Effects(reads=("/ws/a",), writes=("/ws/a",))


def request(effects: Effects, tool: str = "bash") -> Request:
    return Request(tool, "0" * 64, effects)


def judged(policy: Policy, effects: Effects, tool: str = "bash") -> str:
    return type(decide(policy, request(effects, tool))).__name__.lower()


def grant_of(decision: Decision) -> Grant:
    match decision:
        case Allow(grant) | Ask(grant):
            return grant
        case Deny():
            return Grant()
        case _:
            assert_never(decision)


def stays_inside(effects: Effects) -> bool:
    own = {"cwd", "env", "jobs", "mode", "todos", "user"}
    session = tuple(part for part in effects.session if part not in own)
    return msgspec.structs.replace(effects, session=session, spends=False).is_read_only


# ------------------------------------------------------------------ what holds for any call


@given(EFFECTS)
def test_in_default_mode_a_call_runs_unasked_exactly_when_nothing_outside_the_conversation_changes(effects: Effects):
    assert isinstance(decide(Policy(roots=("/",)), request(effects)), Allow) == (
        stays_inside(effects) and not effects.danger
    )


@given(EFFECTS)
def test_with_questions_switched_off_every_call_runs_that_is_not_dangerous(effects: Effects):
    assert isinstance(decide(Policy("bypass"), request(effects)), Deny if effects.danger else Allow)


@given(EFFECTS, st.sampled_from(MODES), st.sampled_from((Sandbox(), HELD, LEAKY)))
def test_every_decision_has_a_reason_and_binds_its_grant_to_the_call(effects: Effects, mode, sandbox: Sandbox):
    decision = decide(Policy(mode, sandbox=sandbox), request(effects))
    assert decision.reason
    if not isinstance(decision, Deny):
        assert grant_of(decision).command_hash == (effects.seal or "0" * 64)


@given(EFFECTS, st.sampled_from(MODES), st.sampled_from((Sandbox(), HELD, LEAKY)))
def test_no_mode_runs_what_is_dangerous_or_what_a_rule_refuses(effects: Effects, mode, sandbox: Sandbox):
    policy = Policy(mode, sandbox=sandbox)
    dangerous = decide(policy, request(msgspec.structs.replace(effects, danger="it deletes everything")))
    assert dangerous == Deny("it deletes everything")
    refusing = msgspec.structs.replace(policy, rules=(Rule("deny", "tool", "bash", text="Bash", source="user"),))
    assert isinstance(decide(refusing, request(effects)), Deny)


@given(EFFECTS, st.sampled_from(MODES), st.sampled_from((Sandbox(), HELD, LEAKY)))
def test_a_further_refusal_or_question_never_lets_more_run(effects: Effects, mode, sandbox: Sandbox):
    order = {"Allow": 0, "Ask": 1, "Deny": 2}
    plain = Policy(mode, sandbox=sandbox, rules=(Rule("allow", "tool", "bash", text="Bash", source="user"),))
    before = decide(plain, request(effects))
    for verdict in ("ask", "deny"):
        rule = Rule(verdict, "tool", "bash", text="Bash", source="project")
        after = decide(msgspec.structs.replace(plain, rules=(*plain.rules, rule)), request(effects))
        assert order[type(after).__name__] >= order[type(before).__name__]


# ------------------------------------------------------------------ modes

TABLE = {
    # effects: default, accept-edits, plan, auto held, auto leaky, auto without a sandbox, bypass
    "a look at the workspace": (LISTING, "allow allow allow allow allow allow allow"),
    "a folder made by a command": (MAKING, "ask ask deny allow ask ask allow"),
    "a command nobody understands": (SHELL, "ask ask deny allow ask ask allow"),
    "a file edited": (EDIT, "ask allow deny allow allow allow allow"),
    "a file read": (Effects(reads=("/ws/a",)), "allow allow allow allow allow allow allow"),
    "a file read outside": (Effects(reads=("/etc/passwd",)), "ask ask ask allow allow allow allow"),
    "a file written outside": (Effects(writes=("/etc/x",)), "ask ask deny ask ask ask allow"),
    "a command that writes outside": (
        Effects(commands=(("touch", "/o"),), understood=True, writes=("/o",), seal="s"),
        "ask ask deny ask ask ask allow",
    ),
    "a page fetched": (Effects(hosts=("docs.example",)), "ask ask deny ask ask ask allow"),
    "a tool elsewhere": (Effects(external=True), "ask ask deny ask ask ask allow"),
    "a tool nobody knows": (UNKNOWN, "ask ask deny ask ask ask allow"),
    "todos": (Effects(session=("todos",)), "allow allow allow allow allow allow allow"),
    "a question": (Effects(session=("user", "mode")), "allow allow allow allow allow allow allow"),
    "a sub-agent": (Effects(spends=True), "allow allow allow allow allow allow allow"),
    "a variable that decides what runs": (
        Effects(commands=(("export", "PATH=x"),), understood=True, session=("env", "env:PATH"), seal="s"),
        "ask ask deny ask ask ask allow",
    ),
    "a command without the network's limits": (
        Effects(commands=(("curl", "x"),), unknown=True, hosts=("*",), seal="s", lifts=("network",)),
        "ask ask deny ask ask ask allow",
    ),
    "a look without the sandbox": (
        msgspec.structs.replace(LISTING, lifts=("sandbox",)),
        "ask ask deny ask ask ask allow",
    ),
}
POLICIES = (
    Policy("default", roots=WS),
    Policy("accept-edits", roots=WS),
    Policy("plan", roots=WS),
    Policy("auto", roots=WS, sandbox=HELD),
    Policy("auto", roots=WS, sandbox=LEAKY),
    Policy("auto", roots=WS),
    Policy("bypass", roots=WS),
)


@pytest.mark.parametrize("name", TABLE)
def test_each_mode_judges(name: str):
    effects, wanted = TABLE[name]
    assert [judged(policy, effects) for policy in POLICIES] == wanted.split()


@pytest.mark.parametrize("sandbox", [Sandbox(), HELD])
@pytest.mark.parametrize("mode", ["default", "accept-edits", "plan"])
def test_a_sandbox_makes_no_other_mode_ask_less(mode, sandbox: Sandbox):
    for effects, _ in TABLE.values():
        held = Policy(mode, roots=WS, sandbox=sandbox)
        assert judged(held, effects) == judged(Policy(mode, roots=WS), effects)


def test_folders_that_may_be_read_are_read_unasked_and_their_neighbours_are_not():
    policy = Policy(roots=WS, readable=("/usr",))
    assert judged(policy, Effects(reads=("/usr/include/stdio.h", "/ws"))) == "allow"
    assert judged(policy, Effects(reads=("/usr-evil/a",))) == "ask"
    assert judged(policy, Effects(reads=("/ws-evil/a",))) == "ask"
    assert judged(policy, Effects(writes=("/usr/x",))) == "ask"


def test_who_only_reads_may_not_change_anything_in_any_mode():
    for mode, (effects, _) in product(MODES, TABLE.values()):
        policy = Policy(mode, read_only=True, roots=WS, sandbox=HELD)
        if not stays_inside(effects):
            assert judged(policy, effects) == "deny"


@pytest.mark.parametrize(
    ("policy", "effects", "said"),
    [
        (Policy(roots=WS), SHELL, "what it would change can't be told"),
        (Policy(roots=WS), MAKING, "it changes something"),
        (Policy(roots=WS), Effects(writes=("/a", "/b", "/c", "/d")), "it writes outside the workspace: /a, /b, /c"),
        (Policy(roots=WS), Effects(reads=("/a", "/b", "/c", "/d")), "it reads outside the workspace: /a, /b, /c"),
        (Policy(roots=WS), Effects(hosts=("a", "b", "c", "d")), "it reaches a, b, c"),
        (Policy("auto"), SHELL, "what it would change can't be told, and the sandbox is missing"),
        (
            Policy("auto", sandbox=LEAKY),
            SHELL,
            "what it would change can't be told, and the sandbox can't hold: chmod_outside, ptrace",
        ),
        (Policy("auto", sandbox=HELD), UNKNOWN, "what it would change can't be told"),
        (Policy("auto"), Effects(lifts=("sandbox",)), "it asks to run without the sandbox"),
        (Policy("auto"), Effects(lifts=("network",)), "it asks for the network"),
        (
            Policy("plan"),
            MAKING,
            "nothing may change in plan mode, and the call would write /ws/x; put it into the plan (exit_plan)",
        ),
        (
            Policy(read_only=True),
            SHELL,
            "this agent only reads, and what the call would change can't be told (plain ls, cat, head, grep, find and "
            "the like can); leave that out, or report it instead",
        ),
        (
            Policy("plan"),
            Effects(writes=("/a", "/b", "/c", "/d")),
            "nothing may change in plan mode, and the call would write /a, /b, /c; put it into the plan (exit_plan)",
        ),
        (Policy("bypass"), SHELL, "questions are switched off"),
        (Policy(roots=WS), LISTING, "it stays within what this mode allows"),
    ],
)
def test_the_reason_says_what_it_was_about(policy: Policy, effects: Effects, said: str):
    assert decide(policy, request(effects)).reason == said


# ------------------------------------------------------------------ rules


def allow(on, pattern: str = "", words: tuple[str, ...] = ()) -> Rule:
    return Rule("allow", on, pattern, words, text=f"the {on} rule", source="user")


def command(*argvs: tuple[str, ...]) -> Effects:
    return Effects(unknown=True, commands=argvs, seal="s")


def test_a_command_is_allowed_when_rules_speak_of_each_program_in_it():
    tests, logs = allow("run", words=("npm", "test", "*")), allow("run", words=("git", "log"))
    policy = Policy(roots=WS, rules=(tests, logs))
    assert judged(policy, command(("npm", "test", "-x"))) == "allow"
    assert judged(policy, command(("npm", "test"), ("git", "log"))) == "allow"
    assert judged(policy, command(("cd", "src"), ("npm", "test"))) == "allow"
    assert judged(policy, command(("npm", "test"), ("rm", "x"))) == "ask"
    assert judged(policy, command(("cd", "src"))) == "ask"
    assert judged(policy, command()) == "ask"
    assert judged(policy, msgspec.structs.replace(command(("npm", "test")), lifts=("network",))) == "ask"


def test_an_allowed_command_may_write_outside_the_workspace_only_where_that_is_allowed_too():
    echo, there = allow("run", words=("echo", "*")), allow("write", "/out/.*")
    effects = Effects(commands=(("echo", "x"),), understood=True, writes=("/ws/a", "/out/f"), seal="s")
    assert judged(Policy(roots=WS, rules=(echo,)), effects) == "ask"
    assert judged(Policy(roots=WS, rules=(echo, there)), effects) == "allow"
    assert judged(Policy(roots=WS, rules=(echo,)), msgspec.structs.replace(effects, writes=("/ws/a",))) == "allow"


def test_an_allowed_command_puts_its_output_only_where_writing_is_allowed_too():
    echo, there = allow("run", words=("echo", "*")), allow("write", "/ws/out/.*")
    effects = Effects(
        commands=(("echo", "x"),), understood=True, writes=("/ws/out/f",), redirects=("/ws/out/f",), seal="s"
    )
    assert judged(Policy(roots=WS, rules=(echo,)), effects) == "ask"
    assert judged(Policy(roots=WS, rules=(there,)), effects) == "ask"
    assert judged(Policy(roots=WS, rules=(echo, there)), effects) == "allow"
    for mode in ("accept-edits", "auto"):
        assert judged(Policy(mode, roots=WS, rules=(echo,)), effects) == "allow"
    beside = msgspec.structs.replace(effects, writes=("/x/f",), redirects=("/x/f",))
    assert judged(Policy("accept-edits", roots=WS, rules=(echo, there)), beside) == "ask"


def test_an_allowed_command_names_its_rule_and_gets_what_a_yes_would_have_given():
    policy = Policy(roots=WS, rules=(allow("run", words=("npm", "test")),), sandbox=HELD)
    decision = decide(policy, request(command(("npm", "test"))))
    assert decision == Allow(Grant(WS, command_hash="s"), "the run rule (user) allows it")


def test_a_rule_for_the_tool_allows_every_call_of_it_and_of_no_other():
    policy = Policy(roots=WS, rules=(allow("tool", "bash"),))
    assert judged(policy, SHELL) == "allow"
    assert judged(policy, UNKNOWN, "mcp__x__bash") == "ask"


def test_rules_for_paths_and_hosts_allow_a_call_together():
    policy = Policy(roots=WS, rules=(allow("write", "/out/.*"), allow("reach", "a.example"), allow("read", "/etc/x")))
    assert judged(policy, Effects(writes=("/out/a",))) == "allow"
    assert judged(policy, Effects(writes=("/out/a", "/ws/a"))) == "ask"
    assert judged(policy, Effects(hosts=("b.a.example",))) == "allow"
    assert judged(policy, Effects(hosts=("ba.example",))) == "ask"
    assert judged(policy, Effects(writes=("/out/a",), hosts=("a.example",), reads=("/etc/x", "/ws/b"))) == "allow"
    assert judged(policy, Effects(writes=("/out/a",), reads=("/etc/y",))) == "ask"
    assert judged(policy, Effects(writes=("/out/a",), external=True)) == "ask"
    assert judged(policy, Effects(reads=("/etc/x",))) == "allow"


def test_a_question_comes_before_what_is_allowed_and_a_refusal_before_both():
    asks = Rule("ask", "run", words=("npm", "test"), text="Bash(npm test)", source="user")
    rules = (allow("tool", "bash"), asks)
    asked = decide(Policy(roots=WS, rules=rules), request(command(("npm", "test"))))
    assert asked.reason == "the rule Bash(npm test) (user) says ask" and isinstance(asked, Ask)
    refuses = Rule("deny", "run", words=("npm", "*"), text="Bash(npm *)", source="managed", why="not here")
    assert decide(Policy(roots=WS, rules=(*rules, refuses)), request(command(("npm", "test")))) == Deny("not here")


def test_refusals_and_questions_see_what_commands_would_start_in_turn_and_allowances_do_not():
    wrapped = Effects(unknown=True, commands=(("env", "rm", "x"),), inner=(("rm", "x"),), seal="s")
    words = ("rm", "*")
    assert judged(Policy("bypass", rules=(Rule("deny", "run", words=words),)), wrapped) == "deny"
    assert judged(Policy("auto", sandbox=HELD, rules=(Rule("ask", "run", words=words),)), wrapped) == "ask"
    assert judged(Policy(rules=(allow("run", words=words),)), wrapped) == "ask"


def test_a_built_in_question_about_a_path_is_not_asked_when_that_path_is_allowed_by_name():
    secret = Rule("ask", "read", r".*/\.env", why="it reads a secret")
    read = Effects(reads=("/ws/.env",))
    assert decide(Policy("auto", rules=(secret,)), request(read)).reason == "it reads a secret"
    assert judged(Policy("auto", rules=(secret, allow("read", r"/ws/\.env"))), read) == "allow"
    assert judged(Policy("auto", rules=(secret, allow("read", "/ws/a"))), read) == "ask"
    assert judged(Policy("auto", rules=(secret, allow("write", r"/ws/\.env"))), read) == "ask"
    mine = msgspec.structs.replace(secret, source="user")
    assert judged(Policy("auto", rules=(mine, allow("read", r"/ws/\.env"))), read) == "ask"


def test_a_refusal_that_does_not_hold_in_bypass_holds_in_every_other_mode():
    rule = Rule("deny", "write", "/etc/.*", why="a system file", in_bypass=False)
    for mode in MODES:
        wanted = "allow" if mode == "bypass" else "deny"
        assert judged(Policy(mode, rules=(rule,)), Effects(writes=("/etc/x",))) == wanted


# ------------------------------------------------------------------ grants


def grant(policy: Policy, effects: Effects) -> Grant:
    return grant_of(decide(policy, request(effects)))


def test_what_only_reads_is_granted_nothing_to_write_and_no_network():
    for policy in (Policy(), Policy(sandbox=HELD), Policy("auto", sandbox=HELD)):
        assert grant(policy, Effects(reads=("/a",))) == Grant(command_hash="0" * 64)
        assert grant(policy, LISTING) == Grant(command_hash="s")


def test_without_a_sandbox_a_change_is_granted_where_it_was_declared():
    given = grant(Policy(), Effects(writes=("/a", "/b")))
    assert given == Grant(("/a", "/b"), network=True, outside_sandbox=True, command_hash="0" * 64)


def test_in_a_sandbox_a_command_may_write_to_the_workspace_and_to_what_was_asked_about():
    assert grant(Policy("auto", roots=WS, sandbox=HELD), SHELL) == Grant(WS, command_hash="s")
    outside = Effects(commands=(("touch", "/o"),), understood=True, writes=("/ws/a", "/o"), seal="s")
    assert grant(Policy("auto", roots=WS, sandbox=HELD), outside).writable == ("/ws", "/o")


def test_network_is_granted_when_it_was_asked_for_or_listed_and_not_by_a_mode():
    fetching = Effects(unknown=True, commands=(("cd", "a"), ("npm", "i")), hosts=("*",), seal="s")
    listed = Rule("allow", "network", words=("npm", "*"), text="npm *", source="user")
    held = Policy("auto", roots=WS, sandbox=HELD)
    assert isinstance(decide(held, request(fetching)), Allow)
    assert not grant(held, fetching).network
    assert grant(msgspec.structs.replace(held, mode="default"), fetching).network
    assert not grant(msgspec.structs.replace(held, mode="default"), SHELL).network
    assert grant(msgspec.structs.replace(held, rules=(listed,)), fetching).network
    assert not grant(msgspec.structs.replace(held, rules=(listed,)), SHELL).network
    asked = msgspec.structs.replace(fetching, lifts=("network",))
    assert isinstance(decide(held, request(asked)), Ask) and grant(held, asked).network
    assert isinstance(decide(msgspec.structs.replace(held, rules=(listed,)), request(asked)), Allow)
    more = msgspec.structs.replace(fetching, lifts=("network", "sandbox"))
    assert isinstance(decide(msgspec.structs.replace(held, rules=(listed,)), request(more)), Ask)


def test_outside_of_the_sandbox_is_granted_only_when_it_was_asked_for():
    asked = msgspec.structs.replace(SHELL, lifts=("sandbox",))
    held = Policy("auto", roots=WS, sandbox=HELD)
    assert grant(held, asked) == Grant(network=True, outside_sandbox=True, command_hash="s")
    assert not grant(held, SHELL).outside_sandbox
    connected = msgspec.structs.replace(SHELL, lifts=("network",))
    assert grant(held, connected) == Grant(WS, network=True, command_hash="s")


def test_with_questions_switched_off_a_wanted_sandbox_still_holds_and_everything_else_is_granted():
    held = Policy("bypass", roots=WS, sandbox=HELD)
    assert grant(held, SHELL) == Grant(WS, network=True, environment=("*",), command_hash="s")
    without = Grant(network=True, outside_sandbox=True, environment=("*",), command_hash="s")
    assert grant(Policy("bypass", roots=WS), SHELL) == without
    refused = decide(held, request(msgspec.structs.replace(SHELL, lifts=("sandbox",))))
    assert refused == Deny("commands are to stay in the sandbox, and nobody is asked")
    assert judged(held, msgspec.structs.replace(SHELL, lifts=("network",))) == "allow"


def test_a_sandbox_that_lacks_nothing_may_change_every_part_of_the_session_that_is_its_own():
    own = ("cwd", "env", "jobs", "mode", "todos", "user")
    assert judged(Policy("auto", roots=WS, sandbox=HELD), msgspec.structs.replace(SHELL, session=own)) == "allow"


def test_variables_that_decide_what_runs_are_granted_by_name():
    effects = Effects(commands=(("export", "PATH=x"),), understood=True, session=("env", "env:PATH", "cwd"), seal="s")
    assert grant(Policy(), effects).environment == ("PATH",)


def test_what_the_sandbox_covers_is_uncovered_for_a_call_that_was_asked_about_it():
    rules = (
        Rule("ask", "read", r".*/\.env", why="a secret"),
        Rule("ask", "write", r".*/\.mcp\.json", why="it starts programs"),
        Rule("ask", "read", "/mine", text="Read(//mine)", source="user"),
        Rule("deny", "read", "/never"),
        Rule("ask", "tool", "web_fetch"),
    )
    effects = Effects(reads=("/ws/.env", "/ws/a", "/mine"), writes=("/ws/.mcp.json", "/ws/b"), unknown=True, seal="s")
    given = grant(Policy("auto", roots=WS, sandbox=HELD, rules=rules), effects)
    assert given.uncovered == ("/ws/.env", "/ws/.mcp.json")


def test_a_yes_to_a_command_says_nothing_about_other_calls():
    assert request(SHELL).stands_alone and request(LISTING).stands_alone
    assert not request(EDIT).stands_alone


# ------------------------------------------------------------------ what goes without saying


def test_without_a_workspace_everything_lies_outside_of_it():
    for mode in ("default", "accept-edits", "auto"):
        assert judged(Policy(mode), EDIT) == "ask"
        assert judged(Policy(mode, sandbox=HELD), MAKING) == "ask"
    assert judged(Policy(), LISTING) == "ask"


def test_every_mode_there_is_can_be_listed():
    assert get_args(Mode) == MODES


def test_what_is_not_given_is_the_least():
    assert Policy() == Policy("default", False, (), (), (), Sandbox(""))
    assert Grant() == Grant((), False, False, (), "", ())
    assert Answer(True, "user") == Answer(True, "user", "once", "", ())
    asked = Question(ToolCall("1", "bash", "{}"), request(SHELL), "why")
    assert (asked.grant, asked.place) == (Grant(), "")
