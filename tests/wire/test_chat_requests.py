"""The bodies of Chat Completions requests."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Text, Thinking, ToolCall, ToolResult, ToolResults
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.codec import Endpoint
from bradawl.providers.compat_table import profile_for
from bradawl.providers.encoding import valid_arguments
from bradawl.providers.hosts import host_of, is_loopback
from patience import cpu_limit
from wire.cases import ASK, PREFIX, cases
from wire.chat_checker import check_request
from wire.replay import ORIGIN

SNAPSHOTS = Path(__file__).parent / "snapshots" / "openai_chat"
CASES = cases(ORIGIN)


def body_of(messages, base_url="", params=None, prefix=PREFIX):
    encoder = OpenAIChat(base_url).encoder(prefix, ModelInfo(ORIGIN))
    for message in messages:
        encoder.append(message)
    return b"".join(encoder.body(params or RequestParams()))


def request_of(messages, base_url="", params=None, prefix=PREFIX):
    return json.loads(body_of(messages, base_url, params, prefix))


@pytest.mark.parametrize(("name", "messages"), CASES, ids=[name for name, _ in CASES])
def test_a_conversation_is_sent_as_its_snapshot_shows(name, messages):
    body = body_of(messages)
    assert check_request(body) == []
    assert json.loads(body) == json.loads((SNAPSHOTS / f"{name}.json").read_text("utf-8"))


def test_no_snapshot_is_left_over():
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == {name for name, _ in CASES}


@pytest.mark.parametrize(
    "base_url", ["https://api.mistral.ai/v1", "https://api.moonshot.ai/v1", "https://api.openai.com/v1"]
)
def test_every_case_is_well_formed_for_servers_with_rules_of_their_own(base_url):
    for name, messages in CASES:
        assert check_request(body_of(messages, base_url)) == [], name


def test_a_body_begins_with_what_was_sent_before():
    encoder = OpenAIChat().encoder(PREFIX, ModelInfo(ORIGIN))
    before = b""
    for _, messages in CASES:
        for message in messages:
            encoder.append(message)
        head, sent, _ = encoder.body(RequestParams())
        assert (head + sent).startswith(before)
        before = head + sent


def test_the_hash_covers_tools_system_and_messages_and_nothing_else():
    def hash_of(prefix, *messages, base_url=""):
        encoder = OpenAIChat(base_url).encoder(prefix, ModelInfo(ORIGIN))
        for message in messages:
            encoder.append(message)
        encoder.body(RequestParams(max_output_tokens=5))
        return encoder.prefix_hash()

    base = hash_of(PREFIX, ASK)
    assert len(base) == len(hashlib.sha256().hexdigest())
    assert base == hash_of(PREFIX, ASK, base_url="https://api.mistral.ai/v1")
    others = [
        hash_of(PREFIX),
        hash_of(PREFIX, ASK, ASK),
        hash_of(Prefix("Other.", PREFIX.tools), ASK),
        hash_of(Prefix(PREFIX.system, ()), ASK),
    ]
    assert len({base, *others}) == 5


def test_a_request_has_only_what_it_needs():
    plain = request_of([ASK], prefix=Prefix("", ()))
    assert plain == {
        "model": "demo-model",
        "messages": [{"role": "user", "content": "Go."}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("base_url", "field", "effort"),
    [
        ("http://127.0.0.1:8000/v1", "max_tokens", "medium"),
        ("https://api.openai.com/v1", "max_completion_tokens", "medium"),
        ("https://api.deepseek.com", "max_tokens", "high"),
        ("https://api.x.ai/v1", "max_tokens", None),
    ],
)
def test_limits_and_effort_go_into_the_fields_the_server_knows(base_url, field, effort):
    request = request_of([ASK], base_url, RequestParams(max_output_tokens=99, effort="medium"))
    assert request[field] == 99
    assert request.get("reasoning_effort") == effort


def test_a_field_the_server_refuses_is_left_out_from_then_on():
    codec = OpenAIChat()
    encoder = codec.encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(ASK)
    refusal = b'{"error":{"message":"Unrecognized request argument supplied: stream_options"}}'
    first = codec.error_of(400, {}, refusal)
    assert (first.kind, first.retryable, first.retry_after_s) == ("invalid_request", True, 0.0)
    assert "stream_options" not in json.loads(b"".join(encoder.body(RequestParams())))
    assert codec.error_of(400, {}, refusal).retryable is False


def test_the_two_names_of_the_token_limit_are_tried_once_each():
    codec = OpenAIChat()
    no_old = b'{"error":{"message":"Unsupported parameter: max_tokens. Use max_completion_tokens instead."}}'
    no_new = b'{"error":{"message":"Unsupported parameter: max_completion_tokens. Use max_tokens instead."}}'
    answers = [codec.error_of(400, {}, body).retryable for body in (no_old, no_new, no_old, no_new)]
    assert answers == [True, True, False, False]


def test_a_value_that_is_too_large_is_not_taken_for_a_refused_field():
    body = b'{"error":{"message":"max_tokens is too large: 99999999. The limit is 8192."}}'
    assert OpenAIChat().error_of(400, {}, body).retryable is False


def test_kimi_gets_empty_reasoning_where_there_was_none():
    messages = [ASK, Assistant((ToolCall("functions.ls:0", "ls", "{}"),), ORIGIN), ToolResults(())]
    reply = request_of(messages, "https://api.moonshot.ai/v1")["messages"][2]
    assert reply["reasoning_content"] == ""
    assert reply["tool_calls"][0]["id"] == "functions.ls:0"


def test_mistral_gets_nine_character_ids_and_its_thinking_as_content():
    thinking = Thinking("Hm.", provider_data='{"field":"content.thinking"}')
    reply = Assistant((thinking, Text("So."), ToolCall("functions.ls:0", "ls", "{}")), ORIGIN)
    results = ToolResults((ToolResult("functions.ls:0", "ls", (Text("x"),)),))
    _, _, sent, result = request_of([ASK, reply, results], "https://api.mistral.ai/v1")["messages"]
    call_id = sent["tool_calls"][0]["id"]
    assert len(call_id) == 9 and call_id.isalnum()
    assert result["tool_call_id"] == call_id
    assert [piece["type"] for piece in sent["content"]] == ["thinking", "text"]


def test_openai_gets_ids_of_at_most_forty_characters():
    call = ToolCall("c" * 60, "ls", "{}")
    messages = [ASK, Assistant((call,), ORIGIN), ToolResults((ToolResult(call.id, "ls", (Text("x"),)),))]
    *_, sent, result = request_of(messages, "https://api.openai.com/v1")["messages"]
    assert len(sent["tool_calls"][0]["id"]) <= 40
    assert result["tool_call_id"] == sent["tool_calls"][0]["id"]


def test_reasoning_of_an_answer_without_calls_is_not_replayed_by_default():
    thinking = Thinking("Hm.", provider_data='{"field":"reasoning_content"}')
    request = request_of([ASK, Assistant((thinking, Text("So.")), ORIGIN), ASK])
    assert request["messages"][2] == {"role": "assistant", "content": "So."}


@given(st.text() | st.from_regex(r'\s*[{"\[].*[}"\]]', fullmatch=True))
def test_arguments_are_always_an_object_of_valid_json(raw):
    text = valid_arguments(raw)
    assert isinstance(json.loads(text), dict)
    text.encode()


@pytest.mark.parametrize("raw", ['{"a": 1}', ' {"a":[1.50]} '])
def test_good_arguments_are_replayed_as_the_model_wrote_them(raw):
    assert valid_arguments(raw) == raw


@pytest.mark.parametrize("raw", ["[" * 100_000, '{"a":' * 50_000, "[1]", "7", '"x"'])
def test_other_arguments_are_shown_as_text(raw):
    assert json.loads(valid_arguments(raw)) == {"_invalid_json": raw}


def test_many_steps_cost_the_same_each():
    encoder = OpenAIChat().encoder(PREFIX, ModelInfo(ORIGIN))
    text = "x" * 2_000
    with cpu_limit(3):
        for number in range(2_000):
            encoder.append(Assistant((ToolCall(f"c{number}", "ls", "{}"),), ORIGIN))
            encoder.append(ToolResults((ToolResult(f"c{number}", "ls", (Text(text),)),)))
            encoder.prefix_hash()


def test_the_key_goes_into_the_header_the_server_reads_and_into_no_repr():
    endpoint = Endpoint("demo", "https://h.example/v1", "m", "secret-key", (("X-Extra", "1"),))
    url, headers = OpenAIChat(endpoint.base_url).target(endpoint)
    assert url == "https://h.example/v1/chat/completions"
    assert dict(headers)["authorization"] == "Bearer secret-key"
    assert dict(headers)["x-extra"] == "1"
    assert "secret-key" not in repr(endpoint)
    azure = Endpoint("azure", "https://r.openai.azure.com/openai/deployments/d?api-version=1", "m", "k")
    url, headers = OpenAIChat(azure.base_url).target(azure)
    assert url == "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"
    assert dict(headers)["api-key"] == "k"


def test_without_a_key_none_is_sent():
    _, headers = OpenAIChat().target(Endpoint("local", "http://localhost:1/v1", "m"))
    assert "authorization" not in dict(headers)


@pytest.mark.parametrize(
    ("url", "host", "local"),
    [
        ("http://LocalHost:8080/v1", "localhost", True),
        ("http://127.1.2.3/v1", "127.1.2.3", True),
        ("http://[::1]:9/v1", "::1", True),
        ("https://u:p@api.openai.com/v1", "api.openai.com", False),
        ("https://127.0.0.1.evil.example/", "127.0.0.1.evil.example", False),
        ("nonsense", "", False),
    ],
)
def test_hosts_are_read_from_urls(url, host, local):
    assert (host_of(url), is_loopback(url)) == (host, local)


def test_profiles_are_found_by_exact_host_or_subdomain():
    assert profile_for("https://eu.api.openai.com/v1").name == "openai"
    assert profile_for("https://notapi.openai.com.example/v1").name == "default"
