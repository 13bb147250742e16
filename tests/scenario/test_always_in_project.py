"""A permission granted for the project applies from the next call on, in this session and in later ones."""

from scripted_agent import Probe, build, call, results

from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.tui.plain.approver import TerminalApprover
from bradawl.core.permissions import Policy

SCRIPT = [
    {"tool_calls": [call("one", writes=["/p/src/a"])]},
    {"tool_calls": [call("two", writes=["/p/src/b"])]},
    {"tool_calls": [call("three", writes=["/p/other/c"])]},
    {"text": "done"},
]


async def run(data, *typed):
    memory, lines, shown = RememberedRules(str(data), "/p", "/home/u"), iter(typed), []

    async def read(_: str) -> str:
        return next(lines)

    approver = TerminalApprover(shown.append, read, lambda: None, memory=memory)

    def policy() -> Policy:
        return Policy(rules=memory.rules(), roots=("/p",))

    agent, *_ = build(SCRIPT, approver=approver, policy=policy, tools=(Probe(),))

    async with agent.open() as session:
        await session.run("go")
        answers = results(session.transcript.messages)
    assert next(lines, None) is None
    return answers, "\n".join(shown)


async def test_a_permission_for_the_project_covers_later_calls_and_sessions_and_nothing_else(tmp_path):
    answers, shown = await run(tmp_path, "p", "", "n not there")
    assert answers[:2] == ["did one", "did two"] and "not there" in answers[2]
    assert shown.count("wants to run") == 2 and "Edit(src/**)" in shown
    answers, shown = await run(tmp_path, "y")
    assert answers == ["did one", "did two", "did three"] and shown.count("wants to run") == 1
