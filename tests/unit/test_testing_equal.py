"""A script gives the same replies from `ScriptedModel` and from `WireServer`."""

import itertools
import json

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Note,
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.folds.assembler import Assembler
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.testing.scripted import ScriptedModel
from bradawl.testing.server import WireServer
from bradawl.workspace.machine import SystemClock, SystemIds

ORIGIN = Origin("openai_chat", "demo", "m")


def http_model(base_url):
    endpoint = Endpoint("demo", base_url, "m")
    return HttpModel(
        ModelEndpoint(OpenAIChat(base_url), endpoint), Httpx2Http(), SystemClock(), SystemIds(), ModelInfo(ORIGIN)
    )


async def replies(model, turns):
    """The reply, stop, usage and failure of each request, without data that only one wire format has."""
    session = model.open(Prefix("be brief", ()))
    found = []
    for message in turns:
        session.append(message)
        assembler = Assembler(ORIGIN)
        async for delta in session.stream(RequestParams(), RetryBudget(attempts=1)):
            assembler.feed(delta)
        parts = tuple(
            msgspec.structs.replace(part, provider_data="") if isinstance(part, Thinking) else part
            for part in assembler.reply().parts
        )
        reply = Assistant(parts, ORIGIN, assembler.has_ended)
        failure = assembler.failure
        facts = failure and (failure.kind, failure.status, failure.retryable, failure.retry_after_s)
        found.append((reply, assembler.stop, assembler.usage, facts))
        session.append(reply)
    return found


async def both(script, turns):
    direct = ScriptedModel(script)
    in_process = await replies(direct, turns)
    async with WireServer(script) as server:
        model = http_model(server.base_url)
        try:
            over_wire = await replies(model, turns)
        finally:
            await model.aclose()
    assert len(server.failures) == len(direct.failures)
    return in_process, over_wire, server


def answers_to(entry, notes=()):
    return ToolResults(
        tuple(ToolResult(c["id"], c["name"], (Text(f"result of {c['id']}"),)) for c in entry["tool_calls"]), notes
    )


async def test_a_conversation_gives_equal_replies():
    calls = [
        {"id": "one", "name": "read_file", "arguments": {"file_path": "a.py"}},
        {"id": "two", "name": "grep", "arguments": '{"pattern": "x"'},
        {"id": "three", "name": "glob", "arguments": ""},
    ]
    usage = {"input": 5, "output": 3, "cache_read": 2}
    script = [
        {"thinking": "well", "text": "I look.", "tool_calls": calls, "usage": usage},
        *[{"expect": word, "text": "Done."} for word in ("result of one", "result of three", "hurry")],
        {"expect": "again", "text": "Yes", "stop": "length"},
        {"text": "I can't.", "stop": "refusal"},
        {"tool_calls": [{"id": "four", "name": "grep", "arguments": '{"a"'}], "stop": "length"},
        {"tool_calls": [{"id": "five", "name": "grep", "arguments": "[]"}]},
        {"text": "so far", "stop": "error"},
    ]
    results = answers_to(script[0], (Note("n", "hurry"),))
    again = User((Text("again, result of one, result of three, hurry"),))
    turns = [
        User((Text("go"),)),
        results,
        again,
        again,
        again,
        again,
        again,
        answers_to(script[6]),
        answers_to(script[7]),
    ]
    in_process, over_wire, server = await both(script, turns)
    (*in_process, failed), (*over_wire, failed_over_wire) = in_process, over_wire
    assert in_process == over_wire
    assert (server.failures, server.connections) == ([], 1)
    assert failed[:3] == failed_over_wire[:3] and failed[0].parts == (Text("so far"),)
    assert failed[3] == ("server", None, True, None)  # over the wire the failure has a status
    assert in_process[5][0].parts == (Refusal("I can't."),)
    calls = [part for reply, *_ in in_process for part in reply.parts if isinstance(part, ToolCall)]
    assert [call.status for call in calls] == ["ok", "malformed", "ok", "truncated", "malformed"]
    assert [call.raw_arguments for call in calls[1:]] == ['{"pattern": "x"', "", '{"a"', "[]"]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 429, 500, 502, 503, 504, 529])
async def test_a_status_gives_equal_failures(status):
    wait_s = None if status == 402 else 3.0  # with this header a real 402 is retryable
    entry = {"faults": {"status": status, "headers": {} if wait_s is None else {"Retry-After": "3"}}}
    in_process, over_wire, server = await both([entry], [User((Text("go"),))])
    assert in_process == over_wire
    assert (in_process[0][3][3], server.failures) == (wait_s, [])


CALL = {"id": "one", "name": "glob", "arguments": ""}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([], "script has 1 entry, and request 2 came"),
        (
            [{"expect": "go"}],
            "should hold 'go' after the last reply, but holds 'result of one",
        ),
    ],
)
async def test_an_unexpected_request_gives_equal_failures(second, message):
    """`expect` is compared with what follows the last reply: results and notes, not the earlier prompt."""
    script = [{"tool_calls": [CALL]}, *second]
    turns = [User((Text("go"),)), answers_to(script[0], (Note("n", "hurry"),))]
    in_process, over_wire, server = await both(script, turns)
    assert in_process[1][3][:1] == over_wire[1][3][:1] == ("invalid_request",)
    assert in_process[1][3][2] is over_wire[1][3][2] is False
    [failure] = server.failures
    assert message in failure


TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
WORDS = st.sampled_from(
    [None, "end_turn", "tool_use", "max_tokens", "stop", "length", "content_filter", "eos", "never_heard_of"]
)
ARGUMENTS = st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3)
CALLS = st.lists(
    st.builds(lambda name, given: {"name": name, "arguments": given}, st.sampled_from("abc"), ARGUMENTS), max_size=3
)


@given(st.lists(st.tuples(TEXTS, TEXTS, CALLS, WORDS), min_size=1, max_size=3), st.sampled_from([64, 500]))
@settings(max_examples=15, phases=[Phase.generate])
async def test_any_reply_in_any_fragments_is_equal(entries, size):
    numbers = itertools.count(1)
    script = [
        {
            "text": text + "." if text else "",
            "thinking": thinking,
            "tool_calls": [call | {"id": f"c{next(numbers)}"} for call in calls],
            "stop": stop,
            "faults": {"chunk_bytes": size},
        }
        for text, thinking, calls, stop in entries
        if text or calls
    ]
    turns = [User((Text("go"),))]
    for before in script[:-1]:
        turns.append(answers_to(before) if before["tool_calls"] else User((Text("more"),)))
    in_process, over_wire, _ = await both(json.loads(json.dumps(script)), turns[: len(script)])
    assert in_process == over_wire
    parts = [part for reply, *_ in in_process for part in reply.parts]
    assert all(part.status == "ok" for part in parts if isinstance(part, ToolCall))
    for kind, field in ((Text, "text"), (Thinking, "thinking")):
        whole = "".join(part.text for part in parts if isinstance(part, kind))
        assert whole == "".join(entry[field] for entry in script)
