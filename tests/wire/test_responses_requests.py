"""The bodies of Responses requests."""

import json
from pathlib import Path

import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Note,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolResults,
)
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.codec import Endpoint
from patience import cpu_limit
from wire.cases import ASK, PREFIX, cases
from wire.responses_checker import check_request, responses
from wire.responses_messages import (
    ELSEWHERE,
    ORIGIN,
    body_of,
    called,
    encoder_of,
    reply,
    request_of,
    result,
    said,
    signed,
)

SNAPSHOTS = Path(__file__).parent / "snapshots" / "openai_responses"
WEB_SEARCH = '{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}'

OWN_CASES = [
    (
        "own_reasoning_between_calls",
        [
            ASK,
            reply(signed("One.\n\nTwo."), called(), signed("Next.", "rs_2", "ENC2"), called("call_2", "fc_2")),
            ToolResults((result(), result("call_2"))),
        ],
    ),
    (
        "own_phases",
        [ASK, reply(signed(), said("Looking.", phase="commentary"), said("So.", "msg_2", phase="final_answer")), ASK],
    ),
    (
        "own_reasoning_of_unusual_shape",
        [ASK, reply(signed("Shown.", summary=[], content=[{"type": "reasoning_text", "text": "Shown."}]), called())],
    ),
    ("own_reasoning_that_leads_nowhere", [ASK, reply(said("So."), signed()), ASK]),
    (
        "reply_of_another_model",
        [
            ASK,
            reply(signed(), said("Hm.", phase="commentary"), called("x" * 90), origin=ELSEWHERE),
            ToolResults((result("x" * 90),)),
        ],
    ),
    (
        "cut_reply_with_signed_reasoning",
        [ASK, reply(signed(), called(), Text("And th"), complete=False), ToolResults((result(),))],
    ),
    (
        "cut_reply_without_its_signature",
        [
            ASK,
            reply(Text("Look."), Thinking("Hm."), called(), complete=False),
            ToolResults((result(text="12 lines"),), (Note("n", "Job 1 ended.", "job"),)),
        ],
    ),
    (
        "own_unknown_items",
        [ASK, reply(Opaque(WEB_SEARCH), said("Found.")), ASK],
    ),
]
CASES = [*cases(ORIGIN), *OWN_CASES]


@pytest.mark.parametrize(("name", "messages"), CASES, ids=[name for name, _ in CASES])
def test_a_conversation_is_sent_as_its_snapshot_shows(name, messages):
    body = body_of(messages)
    assert check_request(body) == []
    assert json.loads(body) == json.loads((SNAPSHOTS / f"{name}.json").read_text("utf-8"))


def test_no_snapshot_is_left_over():
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == {name for name, _ in CASES}


def test_a_body_begins_with_what_was_sent_before():
    encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
    before = b""
    for _, messages in CASES:
        for message in messages:
            encoder.append(message)
        head, items, _ = encoder.body(RequestParams())
        assert (head + items).startswith(before)
        before = head + items
        assert check_request(b"".join(encoder.body(RequestParams()))) == []


def test_the_hash_covers_tools_system_and_messages_and_nothing_else():
    def hash_of(prefix, *messages, **fields):
        encoder = encoder_of(messages, prefix=prefix, **fields)
        encoder.body(RequestParams(max_output_tokens=5, effort="high"))
        return encoder.prefix_hash()

    base = hash_of(PREFIX, ASK)
    assert len(base) == 64
    assert base == hash_of(PREFIX, ASK, base_url="https://r.openai.azure.com/openai/v1", session_id="s")
    others = [
        hash_of(PREFIX),
        hash_of(PREFIX, ASK, ASK),
        hash_of(Prefix("Other.", PREFIX.tools), ASK),
        hash_of(Prefix(PREFIX.system, ()), ASK),
    ]
    assert len({base, *others}) == 5


# ------------------------------------------------------------------ fields


def test_a_request_has_only_what_it_needs():
    assert request_of([ASK], prefix=Prefix("", ())) == {
        "model": "demo-model",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Go."}]}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_parameters_are_sent_in_their_fields():
    schema = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
    params = RequestParams(max_output_tokens=99, effort="low", answer_schema=schema)
    request = request_of([ASK], params, session_id="session-1")
    assert request["max_output_tokens"] == 99
    assert request["reasoning"] == {"effort": "low", "summary": "auto"}
    assert request["prompt_cache_key"] == "session-1"
    form = {"type": "json_schema", "name": "answer", "schema": json.loads(schema), "strict": True}
    assert request["text"] == {"format": form}


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}',
        '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}',
        "{}",
    ],
)
def test_a_schema_with_optional_or_additional_properties_is_not_strict(schema):
    request = request_of([ASK], RequestParams(answer_schema=schema))
    assert request["text"]["format"]["strict"] is False


def test_a_long_session_id_becomes_a_short_stable_cache_key():
    keys = [request_of([ASK], session_id=name)["prompt_cache_key"] for name in ("s" * 65, "s" * 65, "s" * 66)]
    assert keys[0] == keys[1] != keys[2]
    assert len(keys[0]) <= 64


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-5.4", True),
        ("openai/gpt-5-mini", True),
        ("o3", True),
        ("o4-mini", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4.1", False),
        ("gpt-4o", False),
        ("qwen3-coder", False),
        ("olmo-3", False),
    ],
)
def test_summaries_are_requested_from_models_known_to_reason(model, reasons):
    request = request_of([ASK], model=Origin("openai_responses", "demo", model))
    assert request.get("reasoning") == ({"summary": "auto"} if reasons else None)


def test_no_summary_is_requested_without_thinking():
    model = Origin("openai_responses", "demo", "gpt-5.4")
    assert request_of([ASK], RequestParams(effort="none"), model=model)["reasoning"] == {"effort": "none"}


def test_the_url_keeps_its_query_and_the_key_is_in_the_servers_header():
    endpoint = Endpoint("demo", "https://h.example/v1/?x=1", "m", "secret-key", (("X-Extra", "1"),))
    url, headers = responses(endpoint.base_url).target(endpoint)
    assert url == "https://h.example/v1/responses?x=1"
    assert dict(headers)["authorization"] == "Bearer secret-key"
    assert dict(headers)["x-extra"] == "1"
    azure = Endpoint("azure", "https://r.openai.azure.com/openai/v1?api-version=preview", "m", "k")
    url, headers = responses(azure.base_url).target(azure)
    assert url == "https://r.openai.azure.com/openai/v1/responses?api-version=preview"
    assert dict(headers)["api-key"] == "k"
    assert "authorization" not in dict(headers)
    _, headers = responses().target(Endpoint("local", "http://localhost:1/v1", "m"))
    assert "authorization" not in dict(headers)


# ------------------------------------------------------------------ fields a server refuses


def refuse(codec, message, param=None, status=400):
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}
    return codec.error_of(status, {}, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("message", "param", "gone"),
    [
        ("Encrypted content is not supported with this model.", "include", {"include"}),
        ("Invalid value: 'reasoning.encrypted_content'. Supported values are: 'a'.", "include[0]", {"include"}),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning.effort", None),
        ("Unknown parameter: 'reasoning'.", "reasoning", None),
        ("Reasoning is not supported by gpt-4o.", None, None),
        ("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key", {"prompt_cache_key"}),
        ("Unsupported parameter: max_output_tokens", None, {"max_output_tokens"}),
    ],
)
def test_a_field_the_server_refuses_is_left_out_from_then_on(message, param, gone):
    codec = responses()
    encoder = codec.encoder(PREFIX, ModelInfo(ORIGIN), "s1")
    encoder.append(ASK)
    params = RequestParams(max_output_tokens=99, effort="low")
    before = json.loads(b"".join(encoder.body(params)))
    failure = refuse(codec, message, param)
    assert (failure.kind, failure.retryable, failure.retry_after_s) == ("invalid_request", True, 0.0)
    after = json.loads(b"".join(encoder.body(params)))
    assert before.keys() - after.keys() == (gone or {"reasoning"})
    assert refuse(codec, message, param).retryable is False
    later = codec.encoder(PREFIX, ModelInfo(ORIGIN), "s2")
    assert json.loads(b"".join(later.body(params))).keys() == after.keys()


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Your organization must be verified to generate reasoning summaries.", "reasoning.summary"),
        ("Unsupported parameter: 'reasoning.summary' is not supported with this model.", "reasoning.summary"),
    ],
)
def test_a_refused_summary_keeps_the_effort(message, param):
    codec = responses()
    assert refuse(codec, message, param).retryable is True
    request = json.loads(b"".join(codec.encoder(PREFIX, ModelInfo(ORIGIN)).body(RequestParams(effort="low"))))
    assert request["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Unsupported value: 'xhigh' is not supported with the 'gpt-5' model. Supported values are: 'low'.", "effort"),
        ("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.", "max_output_tokens"),
        ("No tool output found for function call call_1.", "input"),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", "input"),
    ],
)
def test_an_error_that_the_user_must_correct_is_not_retried(message, param):
    assert refuse(responses(), message, param).retryable is False


def test_many_steps_cost_the_same_each():
    encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
    text = "x" * 2_000
    with cpu_limit(3):
        for number in range(2_000):
            encoder.append(reply(signed(item_id=f"rs_{number}"), called(f"c{number}", f"fc_{number}")))
            encoder.append(ToolResults((result(f"c{number}", text),)))
            encoder.prefix_hash()
