"""A sandboxed command connects, the user is asked, and the model reads what became of it: real programs throughout."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from internet import ConnectedSession, connected_session

sys.path.insert(0, str(Path(__file__).parents[1] / "scenario"))
from scripted_agent import build, results

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.core.permissions import Answer, Choice, Policy, Question, Sandbox
from bradawl.core.rules import Rule
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import Verdict, domain_rule, parse_rule
from bradawl.testing.fakes import ScriptedApprover
from bradawl.tools.bash import Bash
from bradawl.workspace.files import LocalFiles

pytestmark = needs_bwrap
CURL = "curl -sS -m 20"


@pytest.fixture
def online(tmp_path):
    with connected_session(tmp_path) as made:
        (made.outside.folder / "page").write_text("a page\n")
        yield made


def rules(text: str, verdict: Verdict = "allow") -> tuple[Rule, ...]:
    return parse_rule(text, verdict, "user", Bases("/", "/home/u", "/"))


async def told(
    online: ConnectedSession,
    *lines: str,
    approver: object,
    given: Sequence[Rule] = (),
    sandbox: str = "",
) -> list[str]:
    """What the model reads about each command."""
    arguments = {"sandbox": sandbox} if sandbox else {}
    calls = [
        {"id": f"c{n}", "name": "bash", "arguments": {"command": each, **arguments}} for n, each in enumerate(lines)
    ]
    here = online.here
    bash = Bash(
        home="/nonexistent",
        search_path="/usr/bin:/bin",
        workspace=here.layout.roots,
        sandbox=lambda: Sandbox("bubblewrap"),
        environment={},
    )
    agent, *_ = build(
        [*({"tool_calls": [each]} for each in calls), {"text": "ok"}],
        tools=(bash,),
        processes=here.processes,
        files=LocalFiles("/nonexistent"),
        approver=approver,
        project=here.cwd,
        policy=lambda: Policy("auto", sandbox=Sandbox("bubblewrap"), roots=here.layout.roots, rules=tuple(given)),
    )
    async with agent.open() as session:
        await session.run("go")
        return results(session.transcript.messages)


async def test_the_connection_waits_for_the_answer_and_a_session_answer_covers_the_next_command(online):
    approver = ScriptedApprover([Answer(True, "user", "session"), False])
    lines = [f"{CURL} http://granted.example/page", f"{CURL} http://granted.example/page http://refused.example/page"]
    first, second = await told(online, *lines, approver=approver)
    assert first.startswith("a page")
    assert "a page" in second and "[the network proxy refused refused.example:80: the user declined." in second
    assert [one.request.effects.hosts for one in approver.questions] == [("granted.example",), ("refused.example",)]


async def test_granted_domains_are_reached_unasked_and_refused_ones_stay_refused_with_the_whole_network(online):
    given = (domain_rule("granted.example", "x"), *rules("WebFetch(domain:refused.example)", "deny"))
    line = f"{CURL} http://granted.example/page; {CURL} http://refused.example/page"
    approver = ScriptedApprover([])
    (shown,) = await told(online, line, approver=approver, given=given)
    assert "a page" in shown and "says deny" in shown and not approver.questions
    (shown,) = await told(online, line, approver=ScriptedApprover([True]), given=given, sandbox="network")
    assert "a page" in shown and "says deny" in shown


async def test_without_a_user_the_model_reads_host_and_option(online):
    approver = DenyAllApprover()
    (shown,) = await told(online, f"{CURL} http://granted.example/page", approver=approver)
    assert "[the network proxy refused granted.example:80: it needs permission (--network granted.example)" in shown
    assert [refusal.hosts for refusal in approver.refusals().values()] == [("granted.example",)]


async def test_a_program_that_ignores_the_proxy_is_explained(online):
    line = "python3 -c 'import socket; socket.getaddrinfo(\"granted.example\", 80)'"
    (shown,) = await told(online, line, approver=ScriptedApprover([]))
    assert "this program does not use it" in shown and 'sandbox: "off"' in shown


class BrokenApprover:
    """An approver that raises."""

    async def ask(self, question: Question) -> Answer:
        raise RuntimeError("boom")

    async def choose(self, choice: Choice) -> str | None:
        return None


async def test_an_approver_that_raises_grants_nothing_and_ends_the_turn(online):
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
    try:
        (shown,) = await told(online, f"{CURL} http://granted.example/page", approver=BrokenApprover())
    finally:
        asyncio.get_running_loop().set_exception_handler(None)
    assert reported == ["The approver failed: RuntimeError: boom"]
    assert "a page" not in shown and "cancelled while it was running" in shown
    assert not online.outside.dialed
