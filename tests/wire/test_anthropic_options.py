"""Options of a Messages request, its URL and headers, and how refused options are left out."""

import json
import re

import msgspec
import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Origin, Text, Thinking, ToolCall, ToolResult, ToolResults
from bradawl.core.ports import ModelInfo, Prefix, ToolSchema
from bradawl.providers.codec import Endpoint
from bradawl.providers.messages.codec import AnthropicMessages
from bradawl.providers.messages.profile import family_of
from bradawl.providers.messages.tools import takes_long_strings
from wire.anthropic_streams import CLAUDE
from wire.cases import ASK, PREFIX
from wire.messages_checker import check_request
from wire.test_anthropic_requests import ELSEWHERE, LS, body_of, request_of

# ------------------------------------------------------------------ length, thinking, effort, form


@pytest.mark.parametrize(
    ("model", "max_output", "asked", "sent"),
    [
        ("claude-opus-5-5", None, None, 32_000),
        ("claude-opus-5-5", 128_000, None, 32_000),
        ("claude-opus-5-5", 128_000, 100_000, 100_000),
        ("claude-3-5-haiku-latest", 8_192, None, 8_192),
        ("kimi-k3", None, None, 8_192),
        ("kimi-k3", 131_072, None, 32_000),
    ],
)
def test_the_length_of_a_reply_is_always_limited(model, max_output, asked, sent):
    origin = Origin("anthropic_messages", "p", model)
    params = RequestParams(max_output_tokens=asked)
    assert request_of([ASK], ELSEWHERE, params, origin=origin, max_output=max_output)["max_tokens"] == sent


_SUMMED = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "sent"),
    [
        ("claude-fable-5-1", None, _SUMMED, None),
        ("claude-opus-5-5", "xhigh", _SUMMED, "xhigh"),
        ("claude-opus-5-5", "none", _SUMMED, "low"),
        ("claude-sonnet-5-5", "minimal", _SUMMED, "low"),
        ("anthropic.claude-haiku-5-5", "medium", _SUMMED, "medium"),
        ("claude-opus-5", "none", {"type": "disabled"}, None),
        ("anthropic/claude-opus-4.8", "max", _SUMMED, "max"),
        ("us.anthropic.claude-opus-4-6-v1", "xhigh", _SUMMED, "high"),
        ("claude-sonnet-4-6", "max", _SUMMED, "max"),
        ("claude-opus-4-5-20251101", "max", {"type": "enabled", "budget_tokens": 24_000}, "high"),
        ("claude-sonnet-4-5@20250929", "high", {"type": "enabled", "budget_tokens": 16_000}, None),
        ("claude-haiku-4-5", None, None, None),
        ("claude-opus-4-20250514", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
        ("claude-4-sonnet-20250514", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
        ("claude-3-7-sonnet-latest", "none", None, None),
        ("claude-3-5-haiku-20241022", "high", None, None),
        ("claude-opus-9", "max", _SUMMED, "max"),
        ("claude-unheard-of", None, None, None),
        ("claude-unheard-of", "high", _SUMMED, "high"),
        ("kimi-k3", "high", None, "high"),
        ("kimi-k3", "none", None, None),
    ],
)
def test_each_model_family_gets_its_own_form_of_thinking(model, effort, thinking, sent):
    request = request_of([ASK], "", RequestParams(effort=effort), origin=Origin("anthropic_messages", "p", model))
    assert request.get("thinking") == thinking
    assert request.get("output_config", {}).get("effort") == sent


def test_a_thinking_budget_leaves_room_for_the_answer_or_is_omitted():
    sonnet = Origin("anthropic_messages", "p", "claude-sonnet-4-5")
    small = request_of([ASK], "", RequestParams(effort="high", max_output_tokens=4_000), origin=sonnet)
    assert small["thinking"]["budget_tokens"] == 3_000
    tiny = request_of([ASK], "", RequestParams(effort="high", max_output_tokens=1_000), origin=sonnet)
    assert "thinking" not in tiny


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-4-5"])
def test_thinking_never_changes_inside_a_tool_loop(model):
    origin = Origin("anthropic_messages", "p", model)
    encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(origin))

    def sent(**params):
        request = json.loads(b"".join(encoder.body(RequestParams(**params))))
        return request.get("thinking"), request.get("output_config")

    encoder.append(ASK)
    first = sent(effort="high")
    encoder.append(Assistant((Thinking("Hm.", signature="S"), LS), origin))
    encoder.append(ToolResults((ToolResult(LS.id, "ls", (Text("x"),)),)))
    assert sent(effort="none", max_output_tokens=64_000) == first
    encoder.append(Assistant((Text("Done."),), origin))
    encoder.append(ASK)
    assert sent(effort="none") != first


def test_a_budget_waits_for_the_next_prompt_if_the_tool_loop_began_without_thinking():
    origin = Origin("anthropic_messages", "p", "claude-sonnet-4-5")
    loop = [ASK, Assistant((LS,), origin), ToolResults((ToolResult(LS.id, "ls", (Text("x"),)),))]

    def thinks(*messages):
        body = body_of(messages, params=RequestParams(effort="high"), origin=origin)
        assert check_request(body) == []
        return "thinking" in json.loads(body)

    second = Assistant((Thinking("Hm.", signature="S"), ToolCall("toolu_2", "ls", "{}")), origin)
    answered = ToolResults((ToolResult("toolu_2", "ls", (Text("y"),)),))
    assert not thinks(*loop)
    assert not thinks(*loop, second, answered), "the loop began without it"
    assert thinks(*loop, Assistant((Text("Done."),), origin), ASK)
    assert thinks(ASK, second, answered, Assistant((LS,), origin), loop[2]), "later replies need not think"


def test_an_answer_schema_is_a_field_for_claude_and_text_for_other_models():
    params = RequestParams(answer_schema='{"type":"object","properties":{}}')
    config = request_of([ASK], "", params, origin=CLAUDE)["output_config"]
    assert config["format"] == {"type": "json_schema", "schema": {"type": "object", "properties": {}}}
    elsewhere = request_of([ASK], ELSEWHERE, params)
    assert "output_config" not in elsewhere
    assert [block["text"][:17] for block in elsewhere["system"]] == [PREFIX.system[:17], "Your final answer"]
    assert '{"type":"object","properties":{}}' in elsewhere["system"][-1]["text"]
    alone = request_of([ASK], ELSEWHERE, params, prefix=Prefix("", ()))["system"]
    assert [block["text"][:17] for block in alone] == ["Your final answer"]


@pytest.mark.parametrize(
    ("properties", "required", "eager"),
    [
        ('{"file_path":{"type":"string"},"content":{"type":"string"}}', '["file_path","content"]', True),
        ('{"path":{"type":"string"},"old":{"type":"string"}}', '["path","old"]', True),
        ('{"command":{"type":"string"}}', '["command"]', True),
        ('{"edits":{"type":"array"}}', "[]", True),
        ('{"path":{"type":"string"}}', '["path"]', False),
        ('{"pattern":{"type":"string"},"path":{"type":"string","default":"."}}', '["pattern"]', False),
        ('{"mode":{"type":"string","enum":["a"]},"path":{"type":"string"}}', '["mode","path"]', False),
        ("[]", "0", False),
    ],
)
def test_tools_with_long_text_arguments_stream_them_eagerly(properties, required, eager):
    schema = f'{{"type":"object","properties":{properties},"required":{required}}}'
    tool = ToolSchema("t", "", msgspec.Raw(schema.encode()))
    assert takes_long_strings(tool) is eager
    (sent,) = request_of([ASK], "", prefix=Prefix("", (tool,)))["tools"]
    assert sent.get("eager_input_streaming", False) is eager
    assert b"eager" not in body_of([ASK], ELSEWHERE, prefix=Prefix("", (tool,)))


# ------------------------------------------------------------------ URL and headers


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        ("https://h.example/anthropic/v1/messages", "https://h.example/anthropic/v1/messages"),
        ("https://h.example/anthropic?api-version=1", "https://h.example/anthropic/v1/messages?api-version=1"),
    ],
)
def test_the_base_url_may_be_given_with_or_without_v1(base_url, url):
    assert AnthropicMessages(base_url).target(Endpoint("p", base_url, "m"))[0] == url


@pytest.mark.parametrize(
    ("base_url", "key", "key_name", "sent", "version"),
    [
        ("https://api.anthropic.com", "sk-ant-api", "", {"x-api-key"}, "2026-10-21"),
        ("https://api.anthropic.com", "sk-ant-oat01-x", "", {"authorization"}, "2026-10-21"),
        ("https://api.anthropic.com", "token", "ANTHROPIC_AUTH_TOKEN", {"authorization"}, "2026-10-21"),
        ("https://api.minimax.io/anthropic", "k", "", {"authorization"}, "2023-06-01"),
        (ELSEWHERE, "k", "", {"authorization", "x-api-key"}, "2023-06-01"),
        ("https://api.anthropic.com.evil.example", "k", "", {"authorization", "x-api-key"}, "2023-06-01"),
        ("http://localhost:1", "", "", set(), "2023-06-01"),
    ],
)
def test_the_key_goes_into_the_headers_the_server_reads(base_url, key, key_name, sent, version):
    endpoint = Endpoint("p", base_url, "m", key, key_name=key_name)
    headers = dict(AnthropicMessages(base_url).target(endpoint)[1])
    assert headers.keys() & {"x-api-key", "authorization"} == sent
    assert headers.get("authorization", f"Bearer {key}") == f"Bearer {key}"
    assert headers["anthropic-version"] == version
    assert ("oauth-2025-04-20" in headers.get("anthropic-beta", "")) is key.startswith("sk-ant-oat")


def test_headers_of_the_user_take_precedence_and_beta_flags_are_combined():
    base_url = "https://api.anthropic.com"
    extra = (("Anthropic-Beta", "mine, interleaved-thinking-2025-05-14"), ("Anthropic-Version", "2099-01-01"))
    endpoint = Endpoint("p", base_url, "claude-sonnet-4-5", "k", extra)
    headers = dict(AnthropicMessages(base_url).target(endpoint)[1])
    assert headers["anthropic-beta"] == "interleaved-thinking-2025-05-14,mine"
    assert headers["anthropic-version"] == "2099-01-01"


def test_every_model_the_vendor_lists_has_a_family():
    names = "fable-5-2 mythos-5-2 haiku-5-5 sonnet-5-5 fable-5-1 opus-5-5 mythos-5-1 sonnet-5 fable-5 mythos-5 opus-5"
    names += " opus-4-8 opus-4-7 mythos-preview opus-4-6 sonnet-4-6 haiku-4-5 haiku-4-5-20251001 opus-4-5 sonnet-4-5"
    styles = {name: family_of(f"claude-{name}").thinking for name in names.split()}
    assert {name for name, style in styles.items() if style == "always"} == {
        name for name in styles if re.match(r"fable|mythos|(opus|sonnet)-5-5", name)
    }
    assert {name for name, style in styles.items() if style == "budget"} == {
        name for name in styles if re.match(r"\w+-4-5", name)
    }
    assert set(styles.values()) == {"always", "adaptive", "budget"}
    assert family_of("gpt-5.6") is None


# ------------------------------------------------------------------ refused options


def _error(message):
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()


_LONG = Prefix("s", (ToolSchema("write", "", msgspec.Raw(b'{"type":"object","properties":{"content":{}}}')),))


@pytest.mark.parametrize(
    ("model", "message", "field"),
    [
        ("claude-opus-5", "tools.0.custom.eager_input_streaming: Extra inputs are not permitted", "eager_input"),
        ("claude-opus-5", "system.0.cache_control: Extra inputs are not permitted", "cache_control"),
        ("claude-opus-5", "output_config.effort: Extra inputs are not permitted", '"effort"'),
        ("claude-opus-5", "This model does not support the effort parameter.", '"effort"'),
        ("claude-opus-5", "output_config.effort 'max' is not supported when thinking is disabled", '"effort"'),
        ("claude-opus-5", "output_config.format.schema: 'additionalProperties' must be false", "json_schema"),
        ("claude-opus-5", "adaptive thinking is not supported on this model", "adaptive"),
        ("claude-opus-5", "thinking: Extra inputs are not permitted", "adaptive"),
        (
            "claude-sonnet-4-5",
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort".',
            "budget_tokens",
        ),
    ],
)
def test_an_option_that_the_server_refuses_is_left_out_from_then_on(model, message, field):
    codec = AnthropicMessages()
    encoder = codec.encoder(_LONG, ModelInfo(Origin("anthropic_messages", "p", model)))
    encoder.append(ASK)
    params = RequestParams(effort="high", answer_schema='{"type":"object"}')
    assert field.encode() in b"".join(encoder.body(params))
    first = codec.error_of(400, {}, _error(message))
    assert (first.kind, first.retryable, first.retry_after_s) == ("invalid_request", True, 0.0)
    after = b"".join(encoder.body(params))
    assert field.encode() not in after and check_request(after) == []
    assert codec.error_of(400, {}, _error(message)).retryable is False


@pytest.mark.parametrize("place", ["messages.1.content.0.thinking.signature: ", "messages.3.thinking: "])
def test_a_refusal_of_a_message_is_not_mistaken_for_one_of_an_option(place):
    assert AnthropicMessages().error_of(400, {}, _error(place + "Extra inputs are not permitted")).retryable is False


def test_a_model_with_adaptive_thinking_only_gets_adaptive_thinking():
    codec = AnthropicMessages()
    encoder = codec.encoder(PREFIX, ModelInfo(Origin("anthropic_messages", "p", "claude-sonnet-4-5")))
    encoder.append(ASK)
    codec.error_of(400, {}, _error('"thinking.type.enabled" is not supported for this model.'))
    assert json.loads(b"".join(encoder.body(RequestParams(effort="high"))))["thinking"] == _SUMMED


def test_an_assumed_length_limit_is_corrected_and_the_users_limit_is_not():
    codec = AnthropicMessages()
    encoder = codec.encoder(PREFIX, ModelInfo(Origin("anthropic_messages", "p", "claude-3-haiku-20240307")))
    encoder.append(ASK)
    too_long = "max_tokens: {} > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307"
    assert codec.error_of(400, {}, _error(too_long.format(99_999))).retryable is False
    assert codec.error_of(400, {}, _error(too_long.format(32_000))).retryable is True
    assert json.loads(b"".join(encoder.body(RequestParams())))["max_tokens"] == 4_096


def test_the_server_is_asked_to_drop_thinking_after_a_changed_prefix():
    codec = AnthropicMessages("https://api.anthropic.com")
    encoder = codec.encoder(PREFIX, ModelInfo(CLAUDE))
    encoder.append(ASK)
    message = "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
    assert codec.error_of(400, {}, _error(message)).retryable is True
    thinking = json.loads(b"".join(encoder.body(RequestParams())))["thinking"]
    assert thinking["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    headers = dict(codec.target(Endpoint("p", "https://api.anthropic.com", CLAUDE.model, "k"))[1])
    assert "thinking-binding-controls-2026-08-01" in headers["anthropic-beta"]
    assert codec.error_of(400, {}, _error(message)).retryable is False


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, "auth", "authentication_error"),
        (402, "quota", "billing_error"),
        (403, "auth", "permission_error"),
        (404, "invalid_request", "not_found_error"),
        (413, "invalid_request", "request_too_large"),
        (429, "rate_limit", "rate_limit_error"),
        (500, "server", "api_error"),
        (504, "timeout", "timeout_error"),
        (529, "overloaded", "overloaded_error"),
    ],
)
def test_errors_are_classified_with_the_apis_own_code(status, kind, code):
    body = json.dumps({"type": "error", "error": {"type": code, "message": "No."}, "request_id": "req_1"}).encode()
    failure = AnthropicMessages().error_of(status, {}, body)
    assert (failure.kind, failure.code, failure.request_id) == (kind, code, "req_1")


def test_the_more_specific_error_code_takes_precedence():
    error = {"type": "rate_limit_error", "message": "No.", "details": {"error_code": "ramp_limit_exceeded"}}
    failure = AnthropicMessages().error_of(429, {}, json.dumps({"type": "error", "error": error}).encode())
    assert (failure.kind, failure.code) == ("rate_limit", "ramp_limit_exceeded")
