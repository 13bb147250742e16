"""Anthropic's SDK compared with bradawl's codec: its types accept the requests, and both decode streams equally."""

import json
from typing import get_args

import httpx2
import pytest
from anthropic import Anthropic
from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic.types import MessageParam, ModelParam, ThinkingBlock, ToolUseBlock
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from validated import whole

from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin
from bradawl.core.ports import ModelInfo
from bradawl.providers.messages.profile import family_of, messages_profile_for
from wire.anthropic_streams import begin, call, end, messages, piece, stream, text, thinking
from wire.cases import PREFIX, cases
from wire.replay import SAMPLES, decode, outcome
from wire.test_anthropic_requests import ORIGIN as OWN_ORIGIN
from wire.test_anthropic_requests import OWN_CASES

NOT_THE_APIS = {"unknown_block", "citations"}
"""Cases whose purpose is a block that the SDK does not know."""
SCHEMA = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
REQUEST = TypeAdapter(MessageCreateParamsStreaming)
MODELS = ["claude-opus-5-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-5-5"]
STREAMS = {
    "omitted_and_redacted_thinking": stream(
        *thinking(0, "", "S1"),
        begin(1, "redacted_thinking", data="R"),
        end(1),
        *text(2, "So."),
        *call(3, '{"p":', "1}"),
    ),
    "a_signature_given_twice": stream(
        begin(0, "thinking"),
        piece(0, "thinking_delta", thinking="Hm."),
        piece(0, "signature_delta", signature="S"),
        piece(0, "signature_delta", signature="SIG"),
        end(0),
        *text(1, "a", "b"),
    ),
    "two_calls_without_arguments": stream(*call(0), *call(1, ""), stop="tool_use"),
    "cut_by_the_limit": stream(*text(0, "Half"), stop="max_tokens"),
    "window_full": stream(*text(0, "a"), stop="model_context_window_exceeded"),
    "paused": stream(*text(0, "a"), stop="pause_turn"),
}
for _name in ("55_anthropic_thinking_text_tool", "60_anthropic_refusal"):
    STREAMS[_name] = (SAMPLES / f"{_name}.sse").read_bytes()


def request_of(conversation, origin, params):
    encoder = messages().encoder(PREFIX, ModelInfo(origin))
    for message in conversation:
        encoder.append(message)
    return json.loads(b"".join(encoder.body(params)))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("effort", [None, "none", "high"])
def test_the_sdks_types_accept_every_request_and_know_every_field(model, effort):
    params = RequestParams(max_output_tokens=9_999, effort=effort, answer_schema=SCHEMA)
    for name, conversation in [*cases(OWN_ORIGIN), *OWN_CASES]:
        if name in NOT_THE_APIS:
            continue
        request = request_of(conversation, Origin("anthropic_messages", "anthropic", model), params)
        # The types drop unknown fields, so the result shows which fields they know.
        assert whole(REQUEST.validate_python(request)) == request, name


def test_the_sdks_types_accept_replayed_thinking():
    for name, conversation in OWN_CASES:
        if name not in NOT_THE_APIS:
            request = request_of(conversation, OWN_ORIGIN, RequestParams())
            assert whole(REQUEST.validate_python(request)) == request, name


def test_the_sdks_types_reject_invalid_requests():
    adapter = TypeAdapter(MessageParam)
    with pytest.raises(ValidationError):
        whole(adapter.validate_python({"role": "user", "content": [{"type": "text"}]}))
    odd = {"role": "user", "content": [{"type": "text", "text": "a", "glow": 1}]}
    assert whole(adapter.validate_python(odd)) != odd


def test_the_api_version_is_that_of_the_sdk():
    assert messages_profile_for("https://api.anthropic.com").version == ANTHROPIC_API_VERSION


def test_every_model_of_the_sdk_has_a_family_that_thinks():
    names = [name for choice in get_args(ModelParam) for name in get_args(choice)]
    assert len(names) > 15
    assert {family_of(name).thinking for name in names} == {"always", "adaptive", "budget"}


def read_by_the_sdk(data):
    def answer(request):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    with (
        httpx2.Client(transport=httpx2.MockTransport(answer)) as http,
        Anthropic(api_key="k", http_client=http, max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "a"}]) as events,
    ):
        return events.get_final_message()


def part_of(block):
    match block:
        case ThinkingBlock():
            return {"type": "thinking", "text": block.thinking, "signature": block.signature}
        case ToolUseBlock():
            return {"type": "tool_call", "id": block.id, "name": block.name, "args": block.input}
        case _ if block.type == "redacted_thinking":
            return {"type": "thinking", "text": "", "redacted": True, "provider_data": {"data": block.data}}
        case _:
            return {"type": "text", "text": block.text}


@pytest.mark.parametrize("name", STREAMS)
def test_the_sdk_and_bradawl_decode_a_stream_equally(name):
    theirs = read_by_the_sdk(STREAMS[name])
    ours = outcome(decode(messages(), [STREAMS[name]]))
    parts = [
        {key: value for key, value in part.items() if key not in ("raw_args", "args_status")} for part in ours["parts"]
    ]
    assert parts == [part_of(block) for block in theirs.content]
    assert (ours["raw_stop"], ours["id"], ours["model"]) == (theirs.stop_reason, theirs.id, theirs.model)
    details = theirs.stop_details
    assert ours.get("stop_details") == (None if details is None else details.to_dict())
    usage = theirs.usage
    assert ours["usage"] == {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_input_tokens or 0,
        "cache_write": usage.cache_creation_input_tokens or 0,
        "reasoning": usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
    }
