"""A yes for the project holds from the next call on, in this session and in the next."""

import asyncio

from house import Probe, build, call, results

from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.tui.approver import TerminalApprover
from bradawl.core.permissions import Policy

SCRIPT = [
    {"tool_calls": [call("one", writes=["/p/src/a"])]},
    {"tool_calls": [call("two", writes=["/p/src/b"])]},
    {"tool_calls": [call("three", writes=["/p/other/c"])]},
    {"text": "done"},
]


def run(data, *typed):
    memory, lines, shown = RememberedRules(str(data), "/p", "/home/u"), iter(typed), []

    async def read(_: str) -> str:
        return next(lines)

    approver = TerminalApprover(shown.append, read, lambda: None, memory=memory)

    def policy() -> Policy:
        return Policy(rules=memory.rules(), roots=("/p",))

    agent, *_ = build(SCRIPT, approver=approver, policy=policy, tools=(Probe(),))

    async def main():
        async with agent.open() as session:
            await session.run("go")
            return results(session.transcript.messages)

    answers = asyncio.run(main())
    assert next(lines, None) is None
    return answers, "\n".join(shown)


def test_what_was_allowed_for_good_is_not_asked_again_and_all_else_is(tmp_path):
    answers, shown = run(tmp_path, "p", "", "n not there")
    assert answers[:2] == ["did one", "did two"] and "not there" in answers[2]
    assert shown.count("wants to run") == 2 and "Edit(src/**)" in shown
    answers, shown = run(tmp_path, "y")
    assert answers == ["did one", "did two", "did three"] and shown.count("wants to run") == 1
