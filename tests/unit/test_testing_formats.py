"""`WireServer` in each wire format: the codecs read what it sends, and it refuses what real servers refuse."""

import http.client
import json
from contextlib import aclosing
from urllib.parse import urlsplit

import pytest

from bradawl.core.messages import Assistant
from bradawl.folds.assembler import Assembler
from bradawl.providers.protocols import protocol_named
from bradawl.testing.server import WireServer
from bradawl.testing.wire_formats import format_of as server_side
from wire.exchange import ADAPTERS, ask, model_at
from wire.points import APIS, answers_to
from wire.points import ask as prompt
from wire.points import wire as format_of
from wire.replay import outcome

BASES = {"openai_chat": "/v1", "openai_responses": "/v1", "anthropic_messages": ""}
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}
CALLS = [
    {"id": "a1", "name": "read_file", "arguments": {"path": "a.py", "deep": {"é": [1, None]}}},
    {"id": "a2", "name": "read_file", "arguments": ""},
    {"id": "a3", "name": "read_file", "arguments": '{"path": "cut'},
]
USAGE = {"input": 120, "output": 30, "cache_read": 40, "cache_write": 10, "reasoning": 12}


async def step(api, script, *conversation):
    """The deltas of one step with the script's first entry, and the server."""
    async with WireServer(script) as server, aclosing(ADAPTERS["direct"]()) as http:
        base_url = server.base_url.removesuffix("/v1") + BASES[api]
        model = model_at(format_of(api), base_url, http)
        deltas, server = await ask(model, conversation or (prompt(),)), server
    return outcome(deltas), server


@pytest.mark.parametrize("api", APIS)
async def test_every_field_of_a_script_entry_is_sent(api):
    entry = {"thinking": "where is it?", "text": "I look  first.\n", "tool_calls": CALLS, "usage": USAGE}
    seen, server = await step(api, [entry])
    assert not server.failures and seen["complete"], seen["error"]
    message = [(part["type"], part.get("text") or part.get("name")) for part in seen["parts"]]
    assert message == [("thinking", "where is it?"), ("text", "I look  first.\n"), *[("tool_call", "read_file")] * 3]
    calls = [(part["id"], part["args"], part["args_status"]) for part in seen["parts"][2:]]
    assert calls == [("a1", CALLS[0]["arguments"], "ok"), ("a2", {}, "ok"), ("a3", None, "malformed")]
    assert (seen["usage"], seen["stop_reason"]) == (USAGE, "tool_use")
    assert seen["model"] == format_of(api).origin.model


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stop", ["end_turn", "max_tokens", "refusal", "context_overflow", "content_filter", "error"])
async def test_a_reply_ends_as_the_script_says(api, stop):
    seen, _ = await step(api, [{"text": "so far", "stop": stop}])
    if stop == "error":
        assert (seen["error"]["kind"], seen["error"]["retryable"], seen["complete"]) == ("server", True, False)
    elif api == "openai_responses" and stop == "context_overflow":
        assert (seen["error"]["kind"], seen["complete"]) == ("context_overflow", False)
    elif api == "anthropic_messages" and stop == "content_filter":
        assert seen["stop_reason"] == "refusal", "there is one word for both"
    else:
        assert (seen["stop_reason"], seen["complete"]) == (stop, True)
    assert "".join(part["text"] for part in seen["parts"]) == "so far"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (400, "invalid_request"), (429, "rate_limit")])
async def test_a_status_comes_with_the_formats_own_error(api, status, kind):
    seen, _ = await step(api, [{"text": "not now", "faults": {"status": status}}])
    assert (seen["error"]["kind"], seen["error"]["status"], seen["error"]["message"]) == (kind, status, "not now")


@pytest.mark.parametrize("api", APIS)
async def test_the_parts_of_a_reply_may_be_sent_back(api):
    entry = {"thinking": "hm", "text": "Looking.", "tool_calls": CALLS[:2]}
    script = [entry, {"text": "ok", "expect": "its result"}]
    async with WireServer(script) as server, aclosing(ADAPTERS["direct"]()) as http:
        model = model_at(format_of(api), server.base_url.removesuffix("/v1") + BASES[api], http)
        parts = assembled(api, await ask(model, (prompt(),)))
        reply = Assistant(parts, format_of(api).origin)
        await ask(model, (prompt(), reply, answers_to(reply, "its result")))
    assert not server.failures
    kept = {"openai_chat": "Looking.", "openai_responses": "sealed-1", "anthropic_messages": "signed-1"}
    assert kept[api] in json.dumps(server.requests[1])


def assembled(api, deltas):
    assembler = Assembler(format_of(api).origin)
    for delta in deltas:
        assembler.feed(delta)
    return assembler.reply().parts


# ------------------------------------------------------------------ without a client


def post(server, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.base_url).port or 0, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body).encode())
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def body_for(api, *messages, **more):
    """A minimal request."""
    messages = list(messages) or [{"role": "user", "content": "Hi"}]
    if api == "openai_responses":
        return {"model": "m", "input": messages, **more}
    return {"model": "m", "messages": messages, **({"max_tokens": 9} if api == "anthropic_messages" else {}), **more}


@pytest.mark.parametrize("api", APIS)
def test_without_stream_the_reply_is_one_equal_document(wire_server, api):
    server = wire_server([{"thinking": "hm", "text": "Hello", "tool_calls": CALLS[:1], "usage": USAGE}])
    status, document = post(server, PATHS[api], body_for(api))
    assert status == 200
    parts = assembled(api, list(format_of(api).new().decoder().whole(json.dumps(document).encode())))
    assert [type(part).__name__ for part in parts] == ["Thinking", "Text", "ToolCall"]
    assert parts[1].text == "Hello" and json.loads(parts[2].raw_arguments) == CALLS[0]["arguments"]


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "x", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}
HI = {"role": "user", "content": "Hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "x", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


def chat(*messages, **more):
    return {"model": "m", "messages": list(messages) or [HI], **more}


CALLED = [{"id": one, "type": "function", "function": {"name": "x", "arguments": "{}"}} for one in ("a", "b")]
ANSWER_A = {"role": "tool", "tool_call_id": "a", "content": "x"}
ANSWER_B = {"role": "tool", "tool_call_id": "b", "content": "x"}
REPLY = {"role": "assistant", "content": None, "tool_calls": CALLED}


@pytest.mark.parametrize(
    ("api", "body", "message"),
    [
        ("openai_chat", b"{", "can't be read"),
        ("openai_chat", b"\xff", "can't be read"),
        ("openai_chat", {"messages": [HI]}, "missing required field `model`"),
        ("openai_chat", {"model": "m"}, "missing required field `messages`"),
        ("openai_chat", {"model": "m", "messages": []}, "messages is empty"),
        ("openai_chat", chat({"role": "robot", "content": "x"}), "messages[0] has the unknown role 'robot'"),
        ("openai_chat", chat(HI, REPLY), "no answer to a, b"),
        ("openai_chat", chat(HI, REPLY, ANSWER_A), "no answer to b"),
        ("openai_chat", chat(HI, REPLY, ANSWER_A, HI, ANSWER_B), "no answer to b"),
        ("openai_chat", chat(HI, REPLY, HI), "no answer to a, b"),
        ("openai_chat", chat(HI, REPLY, ANSWER_A, ANSWER_A), "messages[3] answers 'a'"),
        ("openai_chat", chat(HI, ANSWER_A), "messages[1] answers 'a'"),
        ("openai_chat", chat(HI, REPLY | {"tool_calls": [CALLED[0], CALLED[0]]}), "two calls with the same id"),
        (
            "openai_chat",
            chat(HI, {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": {}}}]}),
            "arguments",
        ),
        (
            "openai_chat",
            chat(tools=[{"type": "function", "function": {"name": "no spaces"}}]),
            "the tool name 'no spaces'",
        ),
        ("openai_responses", {"model": "m", "input": []}, "empty"),
        ("openai_responses", {"input": "Hi"}, "model"),
        ("openai_responses", body_for("openai_responses", HI, CALL), "no output for the call 'c1'"),
        ("openai_responses", body_for("openai_responses", HI, OUTPUT), "no call before it"),
        ("openai_responses", body_for("openai_responses", HI, CALL, CALL, OUTPUT), "second call"),
        ("openai_responses", body_for("openai_responses", HI, {"type": "reasoning", "id": "rs_1"}), "not found"),
        (
            "openai_responses",
            body_for("openai_responses", HI, {"type": "reasoning", "id": "r", "encrypted_content": "e"}),
            "without the item it led to",
        ),
        ("openai_responses", body_for("openai_responses", {"role": "wizard", "content": "x"}), "unknown role"),
        ("openai_responses", body_for("openai_responses", tools=[{"type": "function", "name": "a b"}]), "tool name"),
        ("anthropic_messages", {"model": "m", "messages": [HI]}, "max_tokens"),
        ("anthropic_messages", body_for("anthropic_messages", {"role": "assistant", "content": "x"}), "first message"),
        ("anthropic_messages", body_for("anthropic_messages", HI, USE), "without tool_result"),
        ("anthropic_messages", body_for("anthropic_messages", HI, USE, HI), "without tool_result"),
        ("anthropic_messages", body_for("anthropic_messages", HI, RESULT), "unexpected tool_use_id"),
        (
            "anthropic_messages",
            body_for("anthropic_messages", HI, USE, {"role": "user", "content": [MARKED, *RESULT["content"]]}),
            "come first",
        ),
        ("anthropic_messages", body_for("anthropic_messages", {"role": "user", "content": "  \n"}), "non-whitespace"),
        (
            "anthropic_messages",
            body_for("anthropic_messages", {"role": "user", "content": [MARKED] * 5}),
            "maximum of 4",
        ),
        (
            "anthropic_messages",
            body_for(
                "anthropic_messages", HI, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}
            ),
            "signature",
        ),
        ("anthropic_messages", body_for("anthropic_messages", tools=[{"name": "x"}]), "input_schema"),
    ],
)
def test_a_request_that_real_servers_refuse_is_refused(api, body, message):
    refusal = server_side(protocol_named(api)).read(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert isinstance(refusal, str) and message in refusal


@pytest.mark.parametrize("api", APIS)
def test_a_refused_request_gets_the_reason_and_uses_no_entry(wire_server, api):
    server = wire_server([{"text": "still here"}])
    status, document = post(server, PATHS[api], {"model": ""})
    assert (status, server.failures) == (400, [document["error"]["message"]])
    server.failures.clear()
    conversation = (HI, REPLY, ANSWER_B, ANSWER_A, HI) if api == "openai_chat" else ()
    assert "still here" in json.dumps(post(server, PATHS[api], body_for(api, *conversation))[1])


def test_one_script_serves_several_formats_and_expects_results_in_each(wire_server):
    server = wire_server([{"text": "x", "expect": "ok"}] * 3)
    chat = ({"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "x", "arguments": "{}"}}]},)
    chat += ({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]},)
    asked = {"anthropic_messages": (USE, RESULT), "openai_responses": (CALL, OUTPUT), "openai_chat": chat}
    for api, conversation in asked.items():
        assert post(server, PATHS[api], body_for(api, HI, *conversation))[0] == 200
