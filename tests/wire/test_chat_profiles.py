"""Requests for each family of Chat Completions servers, and how refused fields are left out."""

import json

import msgspec
import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import ModelInfo, Prefix, ToolSchema
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.chat.params import typed_schema
from bradawl.providers.compat import CompatProfile, with_changes
from bradawl.providers.compat_table import profile_for
from bradawl.providers.downgrade import Downgrade
from bradawl.providers.strict_schemas import is_strict
from wire.cases import ASK, PREFIX, cases
from wire.chat_checker import check_request
from wire.replay import ORIGIN, chat

OPENAI, AZURE = "https://api.openai.com/v1", "https://r.openai.azure.com/openai/v1"
DEEPSEEK, KIMI = "https://api.deepseek.com", "https://api.moonshot.ai/v1"
QWEN, GLM = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "https://api.z.ai/api/paas/v4"
MISTRAL, XAI, GROQ = "https://api.mistral.ai/v1", "https://api.x.ai/v1", "https://api.groq.com/openai/v1"
OPENROUTER, GEMINI = "https://openrouter.ai/api/v1", "https://generativelanguage.googleapis.com/v1beta/openai"
CEREBRAS, LOCAL, UNKNOWN = "https://api.cerebras.ai/v1", "http://127.0.0.1:8000/v1", "https://llm.example.com/v1"
ALL = (OPENAI, AZURE, DEEPSEEK, KIMI, QWEN, GLM, MISTRAL, XAI, GROQ, OPENROUTER, GEMINI, CEREBRAS, LOCAL, UNKNOWN)


def body_of(base_url, messages=(ASK,), model="demo-model", prefix=PREFIX, session_id="", codec=None, **params):
    codec = codec or OpenAIChat(base_url)
    encoder = codec.encoder(prefix, ModelInfo(Origin(ORIGIN.api, ORIGIN.provider, model)), session_id)
    for message in messages:
        encoder.append(message)
    body = b"".join(encoder.body(RequestParams(**params)))
    assert check_request(body) == []
    return json.loads(body)


@pytest.mark.parametrize("base_url", ALL)
def test_every_conversation_is_well_formed_for_every_server(base_url):
    for name, messages in cases(ORIGIN):
        encoder = OpenAIChat(base_url).encoder(PREFIX, ModelInfo(ORIGIN))
        for message in messages:
            encoder.append(message)
        assert check_request(b"".join(encoder.body(RequestParams(effort="high")))) == [], name


# ------------------------------------------------------------------ thinking and effort

_EFFORT_FIELDS = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs")


@pytest.mark.parametrize(
    ("base_url", "model", "effort", "expected"),
    [
        (OPENAI, "gpt-5.5", "xhigh", {"reasoning_effort": "xhigh"}),
        (OPENAI, "gpt-5.5", None, {}),
        (DEEPSEEK, "deepseek-chat", "medium", {"reasoning_effort": "high", "thinking": {"type": "enabled"}}),
        (DEEPSEEK, "deepseek-chat", "max", {"reasoning_effort": "max", "thinking": {"type": "enabled"}}),
        (DEEPSEEK, "deepseek-chat", "none", {"thinking": {"type": "disabled"}}),
        (DEEPSEEK, "deepseek-chat", None, {}),
        (KIMI, "kimi-k3", "none", {"reasoning_effort": "low"}),
        (KIMI, "kimi-k3", "high", {"reasoning_effort": "high"}),
        (KIMI, "kimi-k2.6", None, {"thinking": {"type": "enabled", "keep": "all"}}),
        (KIMI, "kimi-k2-0905-preview", "high", {}),
        (QWEN, "qwen3.5-plus", "high", {"enable_thinking": True}),
        (QWEN, "qwen3.5-plus", "none", {"enable_thinking": False}),
        (QWEN, "qwen3.5-plus", None, {}),
        (GLM, "glm-5.2", None, {"thinking": {"type": "enabled", "clear_thinking": False}}),
        (GLM, "glm-5.2", "none", {"thinking": {"type": "disabled"}}),
        (
            GLM,
            "glm-5.3",
            "none",
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "low"},
        ),
        (MISTRAL, "mistral-large", "high", {}),
        (XAI, "grok-4-fast", "high", {}),
        (XAI, "grok-3-mini", "minimal", {"reasoning_effort": "low"}),
        (XAI, "grok-4.3", "none", {"reasoning_effort": "none"}),
        (XAI, "grok-4.5", "max", {"reasoning_effort": "high"}),
        (GROQ, "llama-3.3-70b", "high", {}),
        (GROQ, "openai/gpt-oss-120b", "xhigh", {"reasoning_effort": "high"}),
        (GROQ, "qwen/qwen3-32b", "high", {"reasoning_effort": "default"}),
        (GROQ, "qwen/qwen3-32b", "none", {"reasoning_effort": "none"}),
        (CEREBRAS, "gpt-oss-120b", "minimal", {"reasoning_effort": "low"}),
        (OPENROUTER, "openai/gpt-5.5", "max", {"reasoning": {"effort": "xhigh"}}),
        (OPENROUTER, "openai/gpt-oss-20b", "none", {"reasoning": {"effort": "low"}}),
        (GEMINI, "gemini-3-pro", "max", {"reasoning_effort": "high"}),
        (LOCAL, "qwen3", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
        (LOCAL, "qwen3", "max", {"reasoning_effort": "high"}),
        (LOCAL, "openai/gpt-oss-20b", "xhigh", {"reasoning_effort": "high"}),
    ],
)
def test_effort_is_sent_in_the_form_of_server_and_model(base_url, model, effort, expected):
    request = body_of(base_url, model=model, effort=effort)
    assert {name: request[name] for name in _EFFORT_FIELDS if name in request} == expected


# ------------------------------------------------------------------ further fields


def test_servers_get_their_own_fields():
    assert body_of(GLM)["tool_stream"] is True
    assert "tool_stream" not in body_of(GLM, prefix=Prefix("", ()))
    assert body_of(GROQ, model="qwen/qwen3-32b")["reasoning_format"] == "parsed"
    assert body_of(OPENROUTER, model="anthropic/claude-sonnet-5")["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in body_of(OPENROUTER, model="openai/gpt-5.5")
    for base_url in (OPENAI, KIMI):
        assert body_of(base_url, session_id="01SESSION")["prompt_cache_key"] == "01SESSION"
    assert "prompt_cache_key" not in body_of(UNKNOWN, session_id="01SESSION")
    for base_url in (GLM, MISTRAL):
        assert "stream_options" not in body_of(base_url)


def test_azure_has_its_own_header_and_mistrals_models_there_their_own_limit():
    assert profile_for(AZURE).key_header == "api-key"
    assert body_of(AZURE, max_output_tokens=9)["max_completion_tokens"] == 9
    assert body_of(AZURE, model="mistral-large-2", max_output_tokens=9)["max_tokens"] == 9


def test_fields_set_by_the_user_are_in_every_request_and_take_precedence():
    profile = profile_for(
        UNKNOWN, changes={"extra": {"provider": '{"order":["a"]}', "stream_options": "null", "model": "1"}}
    )
    codec = OpenAIChat(UNKNOWN, profile=profile)
    request = body_of(UNKNOWN, codec=codec)
    assert request["provider"] == {"order": ["a"]}
    assert (request["stream_options"], request["model"]) == (None, "demo-model")


# ------------------------------------------------------------------ messages


def test_gemini_gets_a_placeholder_signature_for_calls_of_other_models():
    calls = (ToolCall("c1", "ls", "{}"), ToolCall("c2", "ls", "{}"))
    results = ToolResults((ToolResult("c1", "ls", (Text("x"),)), ToolResult("c2", "ls", (Text("y"),))))
    *_, reply, _, _ = body_of(GEMINI, (ASK, Assistant(calls, ORIGIN), results))["messages"]
    first, second = reply["tool_calls"]
    assert first["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    assert "extra_content" not in second
    signed = ToolCall("c1", "ls", "{}", provider_data='{"extra_content":{"google":{"thought_signature":"S"}}}')
    *_, reply, _, _ = body_of(GEMINI, (ASK, Assistant((signed, calls[1]), ORIGIN), results))["messages"]
    assert reply["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "S"
    assert "extra_content" not in reply["tool_calls"][1]


def test_mistral_gets_names_with_results_and_a_reply_between_results_and_prompt():
    turn = (ASK, Assistant((ToolCall("c1", "ls", "{}"),), ORIGIN), ToolResults((ToolResult("c1", "ls", (Text("x"),)),)))
    messages = body_of(MISTRAL, (*turn, ASK))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert messages[3]["name"] == "ls"
    assert [message["role"] for message in body_of(UNKNOWN, (*turn, ASK))["messages"]][3:] == ["tool", "user"]


@pytest.mark.parametrize("base_url", [DEEPSEEK, KIMI])
def test_calls_of_other_models_get_empty_reasoning_where_it_is_required(base_url):
    foreign = Assistant((Thinking("Hm."), ToolCall("c1", "ls", "{}")), Origin("openai_chat", "elsewhere", "m"))
    reply = body_of(base_url, (ASK, foreign, ToolResults(())))["messages"][2]
    assert reply["reasoning_content"] == ""


@pytest.mark.parametrize("base_url", [DEEPSEEK, KIMI])
def test_reasoning_of_calls_goes_back_in_all_later_requests(base_url):
    thinking = Thinking("Hm.", provider_data='{"field":"reasoning_content"}')
    reply = Assistant((thinking, ToolCall("c1", "ls", "{}")), ORIGIN)
    later = (ASK, reply, ToolResults(()), Assistant((Text("Done."),), ORIGIN), ASK)
    assert body_of(base_url, later)["messages"][2]["reasoning_content"] == "Hm."


def test_files_that_a_server_does_not_accept_are_sent_as_text():
    parts = (
        Text("See."),
        Image("image/png", b"\x89PNG"),
        Document("application/pdf", b"%PDF", "a.pdf"),
        Document("text/markdown", b"# Title", "b.md"),
    )
    content = body_of(DEEPSEEK, (User(parts),))["messages"][1]["content"]
    assert isinstance(content, str)
    assert "image/png" in content and "a.pdf" in content and "b.md:\n# Title" in content
    shown = body_of(OPENAI, (User(parts),))["messages"][1]["content"]
    assert [piece["type"] for piece in shown] == ["text", "image_url", "file", "file"]


def test_a_cut_reply_goes_back_as_calls_where_nothing_is_signed():
    cut = Assistant((Thinking("Hm."), Text("Looking."), ToolCall("c1", "ls", "{}")), ORIGIN, complete=False)
    results = ToolResults((ToolResult("c1", "ls", (Text("a.py"),)),), (Note("n1", "Mind.", "user"),))
    reply, result = body_of(UNKNOWN, (ASK, cut, results))["messages"][2:]
    assert (reply["content"], reply["tool_calls"][0]["id"], result["role"]) == ("Looking.", "c1", "tool")
    assert body_of(DEEPSEEK, (ASK, cut, results))["messages"][2]["reasoning_content"] == "Hm."


def test_a_cut_reply_with_unsigned_reasoning_is_described_as_text():
    cut = Assistant((Thinking("Hm."), Text("Looking."), ToolCall("c1", "ls", '{"path":"."}')), ORIGIN, complete=False)
    results = ToolResults(
        (ToolResult("c1", "ls", (Text("a.py"), Image("image/png", b"P"))),), (Note("n1", "Mind.", "user"),)
    )
    reply, told, attached = body_of(OPENROUTER, (ASK, cut, results))["messages"][2:]
    assert reply == {"role": "assistant", "content": "Looking."}
    assert told["role"] == "user"
    assert all(words in told["content"] for words in ("cut off", 'ls {"path":"."}', "a.py", "Mind."))
    assert attached["role"] == "user"
    signed = Thinking("Hm.", provider_data='{"reasoning_details":[{"type":"reasoning.text","signature":"S"}]}')
    whole = msgspec.structs.replace(cut, parts=(signed, *cut.parts[1:]))
    reply = body_of(OPENROUTER, (ASK, whole, results))["messages"][2]
    assert reply["reasoning_details"][0]["signature"] == "S" and reply["tool_calls"]


def test_a_cut_reply_is_described_even_without_its_results():
    cut = Assistant((Thinking("Hm."), ToolCall("c1", "ls", "{}")), ORIGIN, complete=False)
    messages = body_of(OPENROUTER, (ASK, cut, ASK))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "user", "user"]
    assert "No result" in messages[2]["content"]


# ------------------------------------------------------------------ answer schemas

OPEN = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'
CLOSED = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}'


def test_an_answer_schema_is_sent_in_the_field_of_the_server():
    request = body_of(OPENAI, answer_schema=OPEN)
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": json.loads(OPEN), "strict": False},
    }
    assert body_of(OPENAI, answer_schema=CLOSED)["response_format"]["json_schema"]["strict"] is True
    assert "strict" not in body_of(UNKNOWN, answer_schema=CLOSED)["response_format"]["json_schema"]
    assert body_of(OPENAI, answer_schema=OPEN)["messages"][0] == body_of(OPENAI)["messages"][0]


@pytest.mark.parametrize(("base_url", "kind"), [(DEEPSEEK, {"type": "json_object"}), (LOCAL, None), (GROQ, None)])
def test_a_schema_is_sent_as_text_where_the_server_has_no_field(base_url, kind):
    request = body_of(base_url, answer_schema=CLOSED)
    assert request.get("response_format") == kind
    assert CLOSED in request["messages"][0]["content"]
    assert request["messages"][0]["content"].startswith(PREFIX.system)
    assert "response_format" not in body_of(base_url)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (CLOSED, True),
        (OPEN, False),
        ('{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}', False),
        ('{"type":"array","items":' + OPEN + "}", False),
        ('{"anyOf":[' + CLOSED + ',{"type":"null"}]}', True),
        ('{"$defs":{"x":' + OPEN + "}}", False),
        ('{"type":"string"}', True),
    ],
)
def test_a_schema_is_strict_when_every_object_is_closed_and_complete(schema, expected):
    assert is_strict(json.loads(schema)) is expected


def test_kimi_gets_a_type_for_every_property():
    schema = {
        "type": "object",
        "properties": {
            "mode": {"enum": ["a", "b"]},
            "level": {"const": 3},
            "any": {"description": "whatever"},
            "nested": {"properties": {"x": {"enum": [True]}}},
            "choice": {"anyOf": [{"enum": ["c"]}, {"type": "null"}]},
            "list": {"type": "array", "items": {"properties": {"y": {"enum": [1.5]}}}},
        },
    }
    typed = typed_schema(schema)["properties"]
    assert [typed[name].get("type") for name in ("mode", "level", "any", "nested")] == [
        "string",
        "integer",
        "string",
        "object",
    ]
    assert typed["nested"]["properties"]["x"]["type"] == "boolean"
    assert typed["choice"] == {"anyOf": [{"type": "string", "enum": ["c"]}, {"type": "null"}]}
    assert typed["list"]["items"]["properties"]["y"]["type"] == "number"
    prefix = Prefix("", (ToolSchema("t", "d", msgspec.Raw(json.dumps(schema).encode())),))
    sent = body_of(KIMI, prefix=prefix)["tools"][0]["function"]["parameters"]
    assert sent["properties"]["mode"]["type"] == "string"


# ------------------------------------------------------------------ changes by the user


def test_every_field_can_be_changed_by_the_user():
    profile = profile_for(DEEPSEEK, "m", {"stream_options": False, "idle_s": 30, "efforts": {"high": "max"}})
    assert (profile.name, profile.stream_options, profile.idle_s, profile.efforts) == (
        "deepseek",
        False,
        30.0,
        {"high": "max"},
    )
    assert profile.reasoning_required is True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strem_options": True}, "did you mean `stream_options`"),
        ({"zzz": True}, "known are name, max_tokens_field"),
        ({"stream_options": "yes"}, "stream_options"),
        ({"max_tokens_field": "length"}, "max_tokens_field"),
        ({"extra": {"a": "{"}}, "extra.a"),
        ({"unsigned_calls": "[1]"}, "unsigned_calls"),
    ],
)
def test_invalid_profile_fields_are_refused_with_the_reason(changes, words):
    with pytest.raises(ValueError, match=r"compat|must be") as caught:
        with_changes(CompatProfile(), changes)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("http://127.0.0.1:11434/v1", "ollama"),
        ("http://localhost:1234/v1", "lmstudio"),
        ("http://[::1]:8080/v1", "llamacpp"),
        ("http://127.0.0.1:8000/v1", "vllm"),
        ("http://127.0.0.1:30000/v1", "sglang"),
        ("http://127.0.0.1:9/v1", "local"),
        ("http://192.168.1.5:8000/v1", "local"),
        ("http://box.local:11434/v1", "local"),
        ("http://8.8.8.8:11434/v1", "default"),
        ("https://router.huggingface.co/v1", "huggingface"),
    ],
)
def test_local_servers_are_known_by_their_port_and_get_time_to_load(base_url, name):
    profile = profile_for(base_url)
    assert profile.name == name
    if name not in ("default", "huggingface"):
        assert (profile.first_byte_s, profile.idle_s, profile.documents) == (600.0, 600.0, False)


# ------------------------------------------------------------------ refused fields

_FIELDS = (
    "stream_options",
    "parallel_tool_calls",
    "strict",
    "reasoning_effort",
    "prompt_cache_key",
    "max_completion_tokens",
    "max_tokens",
    "developer",
    "response_format",
    "tool_stream",
    "thinking",
    "enable_thinking",
    "reasoning",
    "include",
    "eager_input_streaming",
    "output_config",
)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("body.stream_options: Extra inputs are not permitted", "stream_options"),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs'}]", "stream_options"),
        ("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("Model grok-4-latest does not support parameter reasoningEffort.", "reasoning_effort"),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning"),
        ("Unknown parameter: 'include'.", "include"),
        ("tools.0.custom.eager_input_streaming: Extra inputs are not permitted", "eager_input_streaming"),
        ("tools.0.function.strict: Extra inputs are not permitted", "strict"),
        ("output_config: Extra inputs are not permitted", "output_config"),
        ('json: unknown field "thinking"', "thinking"),
        ("Unsupported value: 'messages[0].role' does not support 'developer' with this model.", "developer"),
        ("This response_format type is unavailable now", "response_format"),
        ("Unrecognized key(s) in object: 'parallel_tool_calls'", "parallel_tool_calls"),
        ("Additional properties are not allowed ('tool_stream' was unexpected)", "tool_stream"),
        ("max_tokens is too large: 99999999. The limit is 8192.", None),
        ("max_tokens must be at least 1", None),
        ("Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model.", None),
        ("reasoning_effort: Input should be 'low', 'medium' or 'high'", None),
        ("The model produced invalid content while reasoning, which is not supported", None),
        ("messages is required", None),
    ],
)
def test_a_refusal_names_the_field_and_a_value_out_of_range_is_no_refusal(message, field):
    downgrade = Downgrade(_FIELDS, by_mention=("developer", "response_format"))
    assert downgrade.take(message) == field
    assert downgrade.take(message) is None


def test_a_field_that_was_not_sent_is_not_treated_as_refused():
    downgrade = Downgrade(("max_tokens", "max_completion_tokens"))
    message = "Use max_completion_tokens: max_tokens is not supported."
    assert downgrade.take(message, {"max_tokens"}) == "max_tokens"


def refuse(codec, message, status=400, **fields):
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return codec.error_of(status, {}, body)


@pytest.mark.parametrize(
    ("base_url", "message", "field"),
    [
        (UNKNOWN, "stream_options is not supported", "stream_options"),
        (UNKNOWN, "Unknown field: reasoning_effort", "reasoning_effort"),
        (OPENAI, "Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
        (GLM, "unknown field `tool_stream`", "tool_stream"),
        (GLM, "thinking: Extra inputs are not permitted", "thinking"),
        (QWEN, "parameter enable_thinking is not supported", "enable_thinking"),
        (OPENROUTER, "'reasoning' is not supported by this provider", "reasoning"),
        (UNKNOWN, "response_format json_schema is not supported", "response_format"),
        (LOCAL, "Unknown field chat_template_kwargs", "chat_template_kwargs"),
    ],
)
def test_each_refused_optional_field_is_left_out_permanently(base_url, message, field):
    codec = chat(base_url)
    effort = "none" if base_url == LOCAL else "high"
    wanted = {"effort": effort, "answer_schema": OPEN, "session_id": "s"}
    assert field in body_of(base_url, codec=codec, **wanted)
    first = refuse(codec, message, 422)
    assert (first.retryable, first.retry_after_s) == (True, 0.0)
    assert field not in body_of(base_url, codec=codec, **wanted)
    assert refuse(codec, message, 422).retryable is False


def test_the_parameter_may_be_named_beside_the_message():
    codec = chat(UNKNOWN)
    assert refuse(codec, "Unsupported parameter.", param="stream_options").retryable is True
    assert "stream_options" not in body_of(UNKNOWN, codec=codec)


def test_a_refused_developer_role_becomes_system():
    codec = OpenAIChat(profile=CompatProfile(system_role="developer"))
    assert body_of("", codec=codec)["messages"][0]["role"] == "developer"
    assert refuse(codec, "Unexpected role developer").retryable is True
    assert body_of("", codec=codec)["messages"][0]["role"] == "system"


def test_a_refused_strict_flag_is_left_out_and_the_schema_kept():
    codec = chat(OPENAI)
    assert refuse(codec, "Unknown parameter: 'response_format.json_schema.strict'.", param="strict").retryable is True
    request = body_of(OPENAI, codec=codec, answer_schema=CLOSED)
    assert "strict" not in request.get("response_format", {}).get("json_schema", {})


def test_tools_that_exclude_reasoning_get_no_effort_from_then_on():
    codec = chat(OPENAI)
    message = (
        "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function "
        "tools, use /v1/responses or set reasoning_effort to 'none'."
    )
    assert refuse(codec, message).retryable is True
    assert body_of(OPENAI, codec=codec, effort="high")["reasoning_effort"] == "none"
    assert body_of(OPENAI, codec=codec)["reasoning_effort"] == "none"
    assert refuse(codec, message).retryable is False


def test_a_refused_field_set_by_the_user_is_left_out_too():
    codec = OpenAIChat(UNKNOWN, profile=profile_for(UNKNOWN, changes={"extra": {"top_k": "5"}}))
    assert body_of(UNKNOWN, codec=codec)["top_k"] == 5
    assert refuse(codec, "Unrecognized request argument supplied: top_k").retryable is True
    assert "top_k" not in body_of(UNKNOWN, codec=codec)


def test_leaving_out_a_field_keeps_the_sent_messages_unchanged():
    codec = chat(UNKNOWN)
    encoder = codec.encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(ASK)
    before, known = encoder.body(RequestParams())[:2], encoder.prefix_hash()
    refuse(codec, "stream_options is not supported")
    assert (encoder.body(RequestParams())[:2], encoder.prefix_hash()) == (before, known)
