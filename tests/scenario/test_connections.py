"""Connections of a running command are judged one host at a time: by rules, by answers of the user, or not at all."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from scripted_agent import build, results
from scripted_subagents import TwoScripts, task

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import Meter, result_of
from bradawl.app.refusal_advice import how_to_allow
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import PermissionAsked, PermissionDecided
from bradawl.core.messages import Text
from bradawl.core.permissions import Answer, Policy, Sandbox
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.rules import Rule
from bradawl.core.tools import ToolSpec
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.testing.fakes import RecordingEmit, ScriptedApprover
from bradawl.tools.agent import AgentTool

HELD = Sandbox("bubblewrap")
AUTO = Policy("auto", sandbox=HELD)


class CommandParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hosts that the command connects to, one after the other, or at once."""

    hosts: list[str]
    at_once: bool = False
    lifts: list[str] = []


class CommandTool:
    """A tool like `bash` whose command connects to hosts; the result says what became of each."""

    spec = ToolSpec("bash", rule_names=("Bash",))
    params = CommandParams

    def __init__(self) -> None:
        self.permits: list[Any] = []
        self.found: list[str] = []

    def effects(self, params: CommandParams, context: CallContext) -> Effects:
        return Effects(unknown=True, seal="s", lifts=tuple(params.lifts))

    async def run(self, params: CommandParams, context: CallContext) -> ToolOutput:
        self.permits.append(context.permit)
        if params.at_once:
            found = await asyncio.gather(*(reach(context.permit, host) for host in params.hosts))
        else:
            found = [await reach(context.permit, host) for host in params.hosts]
        self.found += found
        return ToolOutput((Text("; ".join(found)),))


async def reach(permit: Any, host: str) -> str:
    try:
        await permit(Effects(hosts=(host,)))
    except ToolError as error:
        return f"{host}: {error}"
    return f"{host}: reached"


def run_of(*hosts: str, name: str = "c", **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": name, "name": "bash", "arguments": {"hosts": list(hosts), **arguments}}]}


def rule(text: str, verdict: Any = "allow") -> tuple[Rule, ...]:
    return parse_rule(text, verdict, "user", Bases("/p", "/home/u", "/p"))


async def ran(policy: Policy, *calls: dict[str, Any], answers: Any = ()) -> tuple[list[str], ScriptedApprover]:
    approver = ScriptedApprover(answers)
    agent, *_ = build([*calls, {"text": "ok"}], tools=(CommandTool(),), policy=lambda: policy, approver=approver)
    async with agent.open() as session:
        await session.run("go")
        return results(session.transcript.messages), approver


@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto"])
async def test_each_host_is_asked_about_once_for_a_command_and_a_no_gives_the_reason(mode):
    first = [True] if mode != "auto" else []  # the command itself
    answers = [*first, True, Answer(False, "user", message="not that one")]
    shown, approver = await ran(Policy(mode, sandbox=HELD), run_of("a.example", "b.example:81"), answers=answers)
    assert shown == ["a.example: reached; b.example:81: the user declined. They said: not that one"]
    asked = [one.request.effects for one in approver.questions[len(first) :]]
    assert asked == [Effects(hosts=(host,), lifts=("host",)) for host in ("a.example", "b.example:81")]


async def test_a_yes_for_the_session_covers_the_host_for_every_later_command_and_no_other_host_or_port():
    calls = [run_of("a.example", name="1"), run_of("a.example", "a.example:81", "b.a.example", name="2")]
    shown, approver = await ran(AUTO, *calls, answers=[Answer(True, "user", "session"), False, False])
    assert shown[0] == "a.example: reached" and shown[1].startswith("a.example: reached; a.example:81: the user")
    assert [one.request.effects.hosts for one in approver.questions] == [
        ("a.example",),
        ("a.example:81",),
        ("b.a.example",),
    ]


async def test_a_yes_for_once_does_not_cover_the_next_command():
    _, approver = await ran(AUTO, run_of("a.example", name="1"), run_of("a.example", name="2"), answers=[True, True])
    assert len(approver.questions) == 2


async def test_a_yes_for_the_session_covers_a_host_that_a_rule_asks_about_only_while_that_rule_asks():
    policy = msgspec.structs.replace(AUTO, rules=rule("Network(a.example)", "ask"))
    calls = [run_of("a.example", name="1"), run_of("a.example", name="2")]
    shown, approver = await ran(policy, *calls, answers=[Answer(True, "user", "session")])
    assert shown == ["a.example: reached"] * 2 and len(approver.questions) == 1


async def test_connections_at_once_are_asked_about_one_after_the_other():
    shown, approver = await ran(AUTO, run_of("a.example", "b.example", at_once=True), answers=[True, False])
    assert shown[0].startswith("a.example: reached; b.example: the user declined") and len(approver.questions) == 2


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_no_to_all_hosts_of_a_command_ends_its_questions_and_no_others(at_once):
    policy = msgspec.structs.replace(AUTO, rules=rule("Network(granted.example)"))
    hosts = [f"h{number}.example" for number in range(60)]
    calls = [run_of(*hosts, "granted.example", at_once=at_once, name="1"), run_of("h9.example", name="2")]
    answers = [True, Answer(False, "user", "session", "stop"), True]
    shown, approver = await ran(policy, *calls, answers=answers)
    found = shown[0].split("; ")
    assert found[:2] == ["h0.example: reached", "h1.example: the user declined. They said: stop"]
    assert found[2:60] == [f"{host}: the user declined all further hosts of this command" for host in hosts[2:]]
    assert found[60] == "granted.example: reached", "a rule allows it"
    assert shown[1] == "h9.example: reached" and len(approver.questions) == 3, "another command asks again"


@pytest.mark.parametrize("at_once", [True, False])
async def test_only_questions_count_towards_the_limit_of_hosts(at_once):
    policy = msgspec.structs.replace(AUTO, rules=rule("Network(*.granted.example)"))
    granted = [f"h{number}.granted.example" for number in range(150)]
    others = [f"h{number}.example" for number in range(110)]
    shown, approver = await ran(
        policy, run_of(*granted, *others, *granted, at_once=at_once), answers=[True] * 60 + [False] * 60
    )
    found = shown[0].split("; ")
    assert all(each.endswith(": reached") for each in [*found[:150], *found[260:]])
    assert [each.partition(": ")[2] for each in found[250:260]] == ["the command has asked for 100 hosts already"] * 10
    assert len(approver.questions) == 100


async def test_granted_hosts_are_not_asked_about_and_refused_ones_are_refused_in_every_mode():
    rules = (*rule("Network(a.example)"), *rule("WebFetch(domain:evil.example)", "deny"))
    for mode in ("auto", "bypass"):
        policy = Policy(mode, rules=rules, sandbox=HELD)
        shown, approver = await ran(policy, run_of("a.example", "x.evil.example"))
        assert shown == ["a.example: reached; x.evil.example: the rule WebFetch(domain:evil.example) (user) says deny"]
        assert not approver.questions


async def test_rules_about_the_tool_say_nothing_about_its_connections():
    policy = Policy("auto", rules=(*rule("Bash", "ask"), *rule("Bash")), sandbox=HELD)
    _, approver = await ran(policy, run_of("a.example"), answers=[True, False])
    assert [one.reason for one in approver.questions] == ["the rule Bash (user) says ask", "it reaches a.example"]


async def test_with_the_whole_network_granted_only_refusals_other_ports_and_rules_that_ask_count():
    rules = (*rule("Network(evil.example)", "deny"), *rule("Network(odd.example)", "ask"))
    policy = Policy("auto", rules=rules, sandbox=HELD)
    hosts = ("a.example", "evil.example", "odd.example", "a.example:22")
    shown, approver = await ran(policy, run_of(*hosts, lifts=["network"]), answers=[True, False, False])
    assert shown[0].split("; ")[:2] == [
        "a.example: reached",
        "evil.example: the rule Network(evil.example) (user) says deny",
    ]
    assert [one.request.effects.hosts for one in approver.questions[1:]] == [("odd.example",), ("a.example:22",)]


@pytest.mark.parametrize(
    "host", ["", "A.example", "a b", "a\x00b", "a.example\n", "[::1]", "a:b", "*", "a@b", "a/b", "a:0"]
)
async def test_what_is_not_a_destination_is_refused_without_a_question(host):
    shown, approver = await ran(Policy("bypass", sandbox=HELD), run_of(host))
    assert shown == [f"{host}: that is not the name of a host"] and not approver.questions


class SwitchingTool(CommandTool):
    """A command during which the policy changes."""

    def __init__(self, before: Policy, after: Policy) -> None:
        super().__init__()
        self.policy, self._after = before, after

    async def run(self, params: CommandParams, context: CallContext) -> ToolOutput:
        self.policy = self._after
        return await super().run(params, context)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"mode": "plan"}, "nothing may change in plan mode"), ({"read_only": True}, "this agent only reads")],
)
async def test_plan_mode_and_agents_that_only_read_reach_no_host(changes, reason):
    tool = SwitchingTool(AUTO, msgspec.structs.replace(AUTO, **changes))
    agent, *_ = build([run_of("a.example"), {"text": "ok"}], tools=(tool,), policy=lambda: tool.policy)
    async with agent.open() as session:
        await session.run("go")
        (shown,) = results(session.transcript.messages)
    assert reason in shown and "the command would reach a.example" in shown


async def test_after_the_call_has_ended_rules_decide_and_nothing_is_asked():
    tool, approver = CommandTool(), ScriptedApprover([True])
    policy = msgspec.structs.replace(AUTO, rules=rule("Network(a.example)"))
    agent, *_ = build([run_of(), {"text": "ok"}], tools=(tool,), policy=lambda: policy, approver=approver)
    async with agent.open() as session:
        await session.run("go")
        assert await reach(tool.permits[0], "a.example") == "a.example: reached"
        assert "runs in the background" in await reach(tool.permits[0], "b.example")
    assert not approver.questions


async def test_an_answer_for_the_session_covers_sub_agents_and_later_commands_of_the_main_agent():
    sub = [run_of("a.example", name="s"), {"text": "done"}]
    main = [run_of("a.example", name="m"), {"tool_calls": [task("t")]}, run_of("a.example", name="n"), {"text": "ok"}]
    approver = ScriptedApprover([Answer(True, "user", "session"), True, True, True])
    tool = CommandTool()
    agent, *_ = build(
        [], model=TwoScripts(main, sub), tools=(tool, AgentTool()), policy=lambda: AUTO, approver=approver
    )
    async with agent.open() as session:
        await session.run("go")
    assert tool.found == ["a.example: reached"] * 3
    assert [one.request.effects.hosts for one in approver.questions if one.request.effects.lifts] == [("a.example",)]


async def test_the_log_says_what_was_asked_and_decided_about_a_host():
    emit = RecordingEmit()
    agent, *_ = build(
        [run_of("a.example"), {"text": "ok"}],
        tools=(CommandTool(),),
        policy=lambda: AUTO,
        approver=ScriptedApprover([True]),
    )
    async with agent.open() as session:
        await session.run("go", emit)
    asked = [event for event in emit.events if isinstance(event, PermissionAsked)]
    decided = [event for event in emit.events if isinstance(event, PermissionDecided) and event.by == "user"]
    assert asked == [PermissionAsked("c", "it reaches a.example")]
    assert decided == [PermissionDecided("c", "allow", "user")]


async def test_a_program_that_names_hosts_without_end_does_not_fill_the_log():
    rules = (*rule("Network(*.granted.example)"), *rule("Network(evil.example)", "deny"))
    names = [f"h{number}.{end}" for number in range(200) for end in ("granted.example", "evil.example")]
    emit, tool = RecordingEmit(), CommandTool()
    agent, *_ = build(
        [run_of(*names), {"text": "ok"}], tools=(tool,), policy=lambda: msgspec.structs.replace(AUTO, rules=rules)
    )
    async with agent.open() as session:
        await session.run("go", emit)
    assert [found.endswith(": reached") for found in tool.found] == [True, False] * 200
    assert all("says deny" in found for found in tool.found[1::2])
    decided = [(each.decision, each.rule) for each in emit.events if isinstance(each, PermissionDecided)][1:]
    assert decided == [
        ("allow", "Network(*.granted.example) (user) allows it"),
        ("deny", "the rule Network(evil.example) (user) says deny"),
    ]


async def test_in_plan_mode_too_hosts_without_end_do_not_fill_the_log():
    tool, emit = SwitchingTool(AUTO, msgspec.structs.replace(AUTO, mode="plan")), RecordingEmit()
    names = [f"h{number}.example" for number in range(300)]
    agent, *_ = build([run_of(*names), {"text": "ok"}], tools=(tool,), policy=lambda: tool.policy)
    async with agent.open() as session:
        await session.run("go", emit)
    assert all(f"the command would reach h{number}.example" in found for number, found in enumerate(tool.found))
    assert len([each for each in emit.events if isinstance(each, PermissionDecided)]) == 101


async def test_a_connection_that_the_user_declined_is_among_the_denials_and_the_turn_is_complete():
    calls = [run_of("a.example", "b.example", "c.example", name="1"), run_of("a.example", name="2"), {"text": "ok"}]
    approver = ScriptedApprover([False, True, False, True])
    agent, *_ = build([*calls, {"text": "two"}], tools=(CommandTool(),), policy=lambda: AUTO, approver=approver)
    async with agent.open() as session:
        turn = await session.run("go")
        assert ([call.id for call in turn.denials], turn.reason) == (["1"], "completed")
        assert not (await session.run("again")).denials


async def test_a_connection_that_a_rule_refuses_or_that_is_declined_with_its_command_is_no_denial():
    policy = msgspec.structs.replace(AUTO, mode="default", rules=rule("Network(a.example)", "deny"))
    calls = [run_of("a.example", name="1"), run_of("b.example", name="2"), {"text": "ok"}]
    approver = ScriptedApprover([True, False])
    agent, *_ = build(calls, tools=(CommandTool(),), policy=lambda: policy, approver=approver)
    turn = await agent.run("go")
    assert not turn.denials and turn.reason == "completed"


async def test_a_connection_that_a_sub_agent_was_refused_is_among_the_denials():
    main, sub = [{"tool_calls": [task("t")]}, {"text": "ok"}], [run_of("a.example", name="s"), {"text": "done"}]
    approver = ScriptedApprover([False])
    model, tools = TwoScripts(main, sub), (CommandTool(), AgentTool())
    agent, *_ = build([], model=model, tools=tools, policy=lambda: AUTO, approver=approver)
    turn = await agent.run("go")
    assert [call.id for call in turn.denials] == ["s"] and turn.reason == "completed"


async def test_without_a_user_the_model_and_the_result_name_the_host_and_the_option():
    approver = DenyAllApprover()
    calls = [run_of("a.example", "b.example:81", "a.example"), {"text": "ok"}]
    agent, *_ = build(calls, tools=(CommandTool(),), policy=lambda: AUTO, approver=approver)
    async with agent.open() as session:
        turn = await session.run("go")
        (shown,) = results(session.transcript.messages)
    assert "a.example: it needs permission (--network a.example), and no user is present" in shown
    assert "b.example:81: it needs permission (--network b.example:81)" in shown
    assert [call.id for call in turn.denials] == ["c"]
    found = json.loads(result_of(turn, 5, (), Meter(), approver.refusals()).to_json())
    (denial,) = found["permission_denials"]
    assert denial["hosts"] == ["a.example", "b.example:81"] and denial["tool_name"] == "bash"
    advice = how_to_allow(approver.refused, AUTO, cwd="/p", home="/home/u")
    assert "rerun with --network a.example --network b.example:81, or" in advice


class FailingCommandTool(CommandTool):
    """Its command fails if a host is refused."""

    async def run(self, params: CommandParams, context: CallContext) -> ToolOutput:
        output = await super().run(params, context)
        return msgspec.structs.replace(output, is_error="permission" in self.found[-1])


@pytest.mark.parametrize(("tool", "reason"), [(CommandTool, "completed"), (FailingCommandTool, "refused")])
async def test_without_a_user_a_refused_host_ends_the_turn_as_refused_only_if_its_command_failed(tool, reason):
    script = [run_of("a.example"), {"text": "ok"}]
    agent, *_ = build(script, tools=(tool(),), policy=lambda: AUTO, approver=DenyAllApprover())
    turn = await agent.run("go")
    assert (turn.reason, [call.id for call in turn.denials]) == (reason, ["c"])


async def test_without_a_user_no_option_is_named_for_a_host_about_which_a_rule_asks():
    approver = DenyAllApprover()
    policy = msgspec.structs.replace(AUTO, rules=(*rule("Network(a.example)", "ask"), *rule("Network(a.example)")))
    agent, *_ = build(
        [run_of("a.example", "b.example"), {"text": "ok"}],
        tools=(CommandTool(),),
        policy=lambda: policy,
        approver=approver,
    )
    async with agent.open() as session:
        await session.run("go")
        (shown,) = results(session.transcript.messages)
    assert "a.example: it needs permission (the rule Network(a.example) (user) says ask), and no user" in shown
    advice = how_to_allow(approver.refused, policy, cwd="/p", home="/home/u")
    assert "--network b.example" in advice and "--network a.example" not in advice and "--yolo" in advice
