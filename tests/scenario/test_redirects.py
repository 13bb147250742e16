"""`web_fetch` checks each host of a redirect against the rules, like a call of its own."""

import pytest
from scripted_agent import build, results

from bradawl.core.permissions import Answer, Policy
from bradawl.core.rules import Rule
from bradawl.testing.fakes import Reply, ScriptedApprover, ScriptedHttp
from bradawl.tools.web_fetch import WebFetch

TO_EVIL = Reply(302, (b"",), (("location", "https://evil.example/x"),))
PAGE = Reply(200, (b"there",), (("content-type", "text/plain"),))
GOOD = Rule("allow", "reach", "good.example", text="WebFetch(domain:good.example)", source="user")


async def fetched(
    policy: Policy, *replies: Reply, answers=(), url="https://good.example/"
) -> tuple[str, list[str], int]:
    """Result of the call, the requested hosts, and the number of questions."""
    http = ScriptedHttp(replies)
    tool = WebFetch(lambda _url, _addresses: http)
    script = [{"tool_calls": [{"id": "c", "name": "web_fetch", "arguments": {"url": url}}]}, {"text": "ok"}]
    approver = ScriptedApprover(answers)
    agent, *_ = build(script, tools=(tool,), policy=lambda: policy, approver=approver)

    async with agent.open() as session:
        await session.run("go")
        shown = results(session.transcript.messages)[0]
    return shown, [request.url.split("/")[2] for request in http.requests], len(approver.questions)


@pytest.mark.parametrize("location", ["https://evil.example/x", "//EVIL.example./x", "http://sub.evil.example:8080/x"])
@pytest.mark.parametrize("mode", ["default", "auto", "bypass"])
async def test_a_redirect_to_a_refused_host_is_not_followed(location, mode):
    refuses = Rule("deny", "reach", "evil.example", text="WebFetch(domain:evil.example)", source="user")
    hop = Reply(302, (b"",), (("location", location),))
    shown, hosts, _ = await fetched(Policy(mode, rules=(GOOD, refuses)), hop, PAGE, answers=[True] * 3)
    assert hosts == ["good.example"]
    assert "evil.example" in shown
    assert "says deny" in shown


async def test_a_redirect_to_an_unknown_host_asks_about_that_host():
    shown, hosts, questions = await fetched(Policy(rules=(GOOD,)), TO_EVIL, PAGE, answers=[True])
    assert (hosts, questions) == (["good.example", "evil.example"], 1)
    assert "there" in shown
    shown, hosts, questions = await fetched(Policy(rules=(GOOD,)), TO_EVIL, PAGE, answers=[False])
    assert (hosts, questions) == (["good.example"], 1)
    assert "redirects to https://evil.example/x" in shown
    nobody = [Answer(False, by="nobody")]
    assert (await fetched(Policy(rules=(GOOD,)), TO_EVIL, PAGE, answers=nobody))[1] == ["good.example"]


async def test_an_ask_rule_applies_to_a_redirect_even_if_the_whole_tool_was_permitted():
    asks = Rule("ask", "reach", "evil.example", text="WebFetch(domain:evil.example)", source="user")
    answers = [Answer(True, "user", "session"), False]
    _, hosts, questions = await fetched(Policy(rules=(asks,)), TO_EVIL, PAGE, answers=answers)
    assert (hosts, questions) == (["good.example"], 2)


async def test_redirects_to_allowed_hosts_do_not_ask():
    back = Reply(302, (b"",), (("location", "https://good.example/y"),))
    evil = Rule("allow", "reach", "evil.example", text="x", source="user")
    shown, hosts, questions = await fetched(Policy(rules=(GOOD, evil)), TO_EVIL, back, PAGE)
    assert (len(hosts), questions) == (3, 0)
    assert (await fetched(Policy("bypass"), TO_EVIL, PAGE))[1:] == (["good.example", "evil.example"], 0)
    assert "after 2 redirects" in shown


async def test_a_host_name_with_a_final_dot_is_the_same_host():
    refuses = Rule("deny", "reach", "evil.example", text="x", source="user")
    assert (await fetched(Policy("bypass", rules=(refuses,)), PAGE, url="https://Evil.Example./"))[1] == []
