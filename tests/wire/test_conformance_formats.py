"""Points 56 to 75 of the conformance list: Anthropic Messages and OpenAI Responses."""

import json

import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Origin, Text, Thinking, ToolCall, ToolResult, ToolResults
from bradawl.providers.codec import Endpoint
from wire.points import (
    answers_to,
    ask,
    body_of,
    check_sample,
    claude,
    claude_call,
    claude_text,
    named,
    reply_in,
    request_of,
    response,
    response_call,
    response_text,
    seen_in,
    wire,
    without_markers,
)

MESSAGES, RESPONSES = "anthropic_messages", "openai_responses"
HOME = "https://api.anthropic.com"
SIGNED = [{"type": "thinking", "thinking": "", "signature": ""}, {"type": "signature_delta", "signature": "EqQB+/x=="}]
REDACTED = [{"type": "redacted_thinking", "data": "EmwK+/Zz=="}]


def result_blocks(request):
    return [
        block
        for message in request["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]


def assistant_content(*messages, **fields):
    """The blocks of the first reply as they are encoded in the next request."""
    request = json.loads(without_markers(body_of(MESSAGES, *messages, **fields)))
    return next(message["content"] for message in request["messages"] if message["role"] == "assistant")


# ------------------------------------------------------------------ 56 to 68: Anthropic Messages


def test_56_thinking_text_and_a_call():
    check_sample(55)


def test_57_an_error_in_the_middle_of_the_stream():
    check_sample(56)


def test_58_signatures_redacted_and_omitted_thinking_are_replayed_as_they_came():
    data = claude(SIGNED, REDACTED, claude_text("On it."), claude_call("toolu_1", '{"path":"a"}'), stop="tool_use")
    reply = reply_in(MESSAGES, data)
    content = assistant_content(ask(), reply, answers_to(reply), base_url=HOME)
    assert content[:2] == [
        {"type": "thinking", "thinking": "", "signature": "EqQB+/x=="},
        {"type": "redacted_thinking", "data": "EmwK+/Zz=="},
    ]
    assert [block["type"] for block in content[2:]] == ["text", "tool_use"]
    assert wire(MESSAGES).check(body_of(MESSAGES, ask(), reply, answers_to(reply), base_url=HOME)) == []


def test_59_usage_is_merged_and_null_overwrites_nothing():
    check_sample(55)
    check_sample(61)
    nulls = {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 42}
    usage = seen_in(MESSAGES, claude(claude_text("x"), usage=nulls))["usage"]
    assert (usage["input"], usage["output"]) == (10, 42)


def test_60_why_a_request_was_refused():
    seen = check_sample(60)
    assert seen["stop_reason"] == "refusal" and seen["stop_details"]


def test_61_unknown_events_and_deltas_are_ignored_and_unknown_blocks_are_replayed():
    novel = [{"type": "hologram", "scene": {"depth": 3}, "id": "holo_1"}]
    odd_delta = {"type": "sparkle_delta", "sparkle": 1}
    data = claude(novel, [*claude_text("Hello"), odd_delta], [{"type": "text", "text": ""}])
    data = named({"type": "weather_report", "sky": "blue"}) + data
    seen = outcome_of_text(data)
    assert seen == "Hello"
    reply = reply_in(MESSAGES, data)
    content = assistant_content(ask(), reply, ask("And now?"), base_url=HOME)
    assert novel[0] in content and {"type": "text", "text": "Hello"} in content
    stranger = Assistant(reply.parts, Origin(MESSAGES, "elsewhere", "other"))
    assert "hologram" not in json.dumps(assistant_content(ask(), stranger, ask("And now?")))


def outcome_of_text(data):
    """The text of a Messages stream."""
    reply = reply_in(MESSAGES, data)
    assert reply.complete
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


def test_62_a_compatible_server_without_event_lines():
    check_sample(61)


def test_63_the_window_is_exceeded():
    seen = seen_in(MESSAGES, claude(claude_text("so far"), stop="model_context_window_exceeded"))
    assert (seen["stop_reason"], seen["raw_stop"]) == ("context_overflow", "model_context_window_exceeded")


def test_64_cut_before_the_message_delta():
    check_sample(63)


def test_65_calls_and_results_are_paired_whatever_is_handed_in():
    reply = Assistant((ToolCall("t1", "read_file", "{}"), ToolCall("t2", "read_file", "{}")), wire(MESSAGES).origin)
    half = ToolResults((ToolResult("t2", "read_file", (Text("two"),)), ToolResult("t9", "read_file", (Text("stray"),))))
    for messages in ([ask(), reply, half], [ask(), reply, ask("Never mind.")], [ask(), reply]):
        request = request_of(MESSAGES, *messages)
        found = {block["tool_use_id"]: block.get("is_error", False) for block in result_blocks(request)}
        assert found["t1"] is True and set(found) == {"t1", "t2"}
        assert "stray" not in json.dumps(request)


def breakpoints(request):
    """The blocks and tools that carry a cache marker."""
    blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
    nested = [inner for block in blocks for inner in block.get("content") or () if isinstance(inner, dict)]
    system = request["system"] if isinstance(request["system"], list) else []
    return [entry for entry in (*request["tools"], *system, *blocks, *nested) if "cache_control" in entry]


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 40])
def test_66_at_most_four_cache_breakpoints_and_none_on_thinking(steps):
    messages = [ask()]
    for step in range(steps):
        data = claude(SIGNED, *(claude_call(f"t{step}_{one}", "{}") for one in range(1 + step % 25)), stop="tool_use")
        reply = reply_in(MESSAGES, data)
        messages += [reply, answers_to(reply)]
    messages += [reply_in(MESSAGES, claude(SIGNED))]
    body = body_of(MESSAGES, *messages, ask("Go on."), base_url=HOME)
    marked = breakpoints(json.loads(body))
    assert 1 <= len(marked) <= 4 and body.count(b'"cache_control"') == len(marked)
    assert not [entry for entry in marked if entry.get("type") in ("thinking", "redacted_thinking")]
    assert wire(MESSAGES).check(body) == []


@pytest.mark.parametrize("effort", [None, "low", "high", "max"])
@pytest.mark.parametrize("base_url", [HOME, "https://compatible.example/anthropic"])
def test_67_no_sampling_parameters(effort, base_url):
    request = request_of(MESSAGES, ask(), base_url=base_url, params=RequestParams(effort=effort))
    assert not {"temperature", "top_p", "top_k"} & set(request)
    _, headers = wire(MESSAGES).new(base_url=base_url).target(Endpoint("anthropic", base_url, "m", "sk-ant-1234"))
    assert dict(headers)["anthropic-version"] == ("2026-10-21" if base_url == HOME else "2023-06-01")


def test_68_the_history_is_the_same_bytes_in_every_request():
    codec = wire(MESSAGES).new(base_url=HOME)
    from bradawl.core.ports import ModelInfo
    from wire.cases import PREFIX

    encoder = codec.encoder(PREFIX, ModelInfo(wire(MESSAGES).origin), "s")
    encoder.append(ask())
    before = b""
    for step in range(12):
        body = without_markers(b"".join(encoder.body(RequestParams())))
        history = body[body.index(b'"messages":[') : body.rindex(b"]")]
        shared = before.rstrip(b"}] ")
        assert history.startswith(shared) and len(history) > len(shared)
        before = history
        reply = reply_in(MESSAGES, claude(SIGNED, claude_text("On."), claude_call(f"t{step}", "{}"), stop="tool_use"))
        encoder.append(reply)
        encoder.append(answers_to(reply))


# ------------------------------------------------------------------ 69 to 75: OpenAI Responses


def test_69_reasoning_and_a_call():
    check_sample(64)


def test_70_the_phase_of_a_message_comes_back():
    said = response_text("I look first.", phase="commentary")
    reply = reply_in(RESPONSES, response(said, response_call("c1")))
    request = request_of(RESPONSES, ask(), reply, answers_to(reply))
    (message,) = [item for item in request["input"] if item.get("role") == "assistant"]
    assert message["phase"] == "commentary"
    assert message["content"][0]["text"] == "I look first."


def test_71_a_reply_that_is_incomplete():
    assert check_sample(66)["stop_reason"] == "max_tokens"


def test_72_a_reply_that_failed():
    check_sample(67)


def test_73_errors_nested_and_flat():
    check_sample(68)
    for error in (
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None},
        {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "Slow down."}},
    ):
        seen = seen_in(RESPONSES, named(error))
        assert (seen["error"]["kind"], seen["error"]["message"]) == ("rate_limit", "Slow down.")
        assert seen["error"]["retryable"] and seen["error"]["code"] == "rate_limit_exceeded"


def test_74_a_server_that_sends_only_final_events():
    check_sample(69)


def test_75_encrypted_reasoning_is_replayed_with_its_call_to_its_own_model_only():
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA+/=="}
    reply = reply_in(RESPONSES, response(sealed, response_call("c1"), response_text("Done.")))
    kinds = [item.get("type", "message") for item in request_of(RESPONSES, ask(), reply, answers_to(reply))["input"]]
    assert kinds[kinds.index("reasoning") + 1] == "function_call"
    for parts, origin in (
        (reply.parts, Origin(RESPONSES, "openai", "another-model")),
        ((Thinking("bare", provider_data='{"item_id":"rs_2"}'), *reply.parts[1:]), wire(RESPONSES).origin),
    ):
        moved = Assistant(parts, origin)
        items = request_of(RESPONSES, ask(), moved, answers_to(moved))["input"]
        assert not [item for item in items if item.get("type") == "reasoning"]
        assert "rs_" not in json.dumps(items)
        (call,) = [item for item in items if item.get("type") == "function_call"]
        if origin != wire(RESPONSES).origin:
            assert "id" not in call
    assert json.loads(body_of(RESPONSES, ask()))["store"] is False
