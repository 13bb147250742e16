"""OpenAI's SDK compared with bradawl's codecs: its types accept the requests, and both decode streams equally."""

import json

import httpx2
import pytest
from openai import OpenAI
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses import ResponseInputItemParam
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from validated import whole

from bradawl.core.events import RequestParams
from bradawl.core.ports import ModelInfo
from wire.cases import PREFIX, cases
from wire.codecs import BY_API
from wire.replay import SAMPLES, decode, outcome
from wire.responses_events import STANDARD_STREAM, bytes_of
from wire.test_responses_requests import OWN_CASES

CHAT, RESPONSES = BY_API["openai_chat"], BY_API["openai_responses"]
SCHEMA = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
PARAMS = RequestParams(max_output_tokens=99, effort="low", answer_schema=SCHEMA)
REQUESTS = {CHAT: TypeAdapter(CompletionCreateParamsStreaming), RESPONSES: TypeAdapter(ResponseCreateParamsStreaming)}
KNOWN = {
    CHAT: CompletionCreateParamsStreaming.__required_keys__ | CompletionCreateParamsStreaming.__optional_keys__,
    RESPONSES: ResponseCreateParamsStreaming.__required_keys__ | ResponseCreateParamsStreaming.__optional_keys__,
}
ITEM = TypeAdapter(ResponseInputItemParam)


def requests_of(format_):
    own = OWN_CASES if format_ is RESPONSES else []
    for name, messages in [*cases(format_.origin), *own]:
        encoder = format_.new(base_url="https://api.openai.com/v1").encoder(PREFIX, ModelInfo(format_.origin), "s1")
        for message in messages:
            encoder.append(message)
        yield name, json.loads(b"".join(encoder.body(PARAMS)))


@pytest.mark.parametrize("format_", [CHAT, RESPONSES], ids=lambda one: one.api)
def test_the_sdks_types_accept_every_request(format_):
    for name, request in requests_of(format_):
        assert request.keys() <= KNOWN[format_], name
        assert whole(REQUESTS[format_].validate_python(request)), name


def test_the_sdks_types_accept_every_item_as_it_is_sent():
    for name, request in requests_of(RESPONSES):
        for item in request["input"]:
            assert whole(ITEM.validate_python(item)) == item, name


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]},
        {"type": "function_call", "call_id": "c", "name": "ls"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "text", "text": "x"}]},
    ],
    ids=["message_without_id", "call_without_arguments", "output_of_chat"],
)
def test_the_sdks_types_reject_invalid_requests(wrong):
    with pytest.raises(ValidationError):
        whole(ITEM.validate_python(wrong))


# ------------------------------------------------------------------ streams


def client_for(stream):
    def answer(request):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    return OpenAI(
        api_key="none",
        base_url="http://127.0.0.1:1/v1",
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
        max_retries=0,
    )


def sample(name):
    return (SAMPLES / f"{name}.sse").read_bytes()


def ours(format_, stream):
    seen = outcome(decode(format_.new(), [stream]))
    calls = [(part["id"], part["name"], part["raw_args"]) for part in seen["parts"] if part["type"] == "tool_call"]
    text = "".join(part["text"] for part in seen["parts"] if part["type"] in ("text", "refusal"))
    return text, calls, seen["usage"]


@pytest.mark.parametrize(
    "name",
    [
        "01_chat_basic_text",
        "02_chat_tool_fragmented",
        "03_chat_parallel_interleaved",
        "04_chat_usage_details_final",
        "37_frame_crlf",
        "52_args_empty_means_object",
    ],
)
def test_the_sdk_and_bradawl_decode_a_chat_stream_equally(name):
    stream = sample(name)
    with client_for(stream) as client, client.chat.completions.stream(model="m", messages=[]) as events:
        completion = events.get_final_completion()
    message = completion.choices[0].message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    text, our_calls, usage = ours(CHAT, stream)
    assert (text, our_calls) == ((message.content or "") + (message.refusal or ""), calls)
    if completion.usage is None:
        assert usage is None
    else:
        assert sum(usage[name] for name in ("input", "cache_read", "cache_write")) == completion.usage.prompt_tokens
        assert usage["output"] == completion.usage.completion_tokens


STREAMS = {
    "64_responses_reasoning_function_call": sample("64_responses_reasoning_function_call"),
    "66_responses_incomplete": sample("66_responses_incomplete"),
    "by_the_book": bytes_of(*({**one, "sequence_number": place} for place, one in enumerate(STANDARD_STREAM))),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_sdk_and_bradawl_decode_a_responses_stream_equally(name):
    stream = STREAMS[name]
    texts, arguments, calls, usage = {}, {}, {}, None
    with client_for(stream) as client, client.responses.stream(model="m", input="") as events:
        for event in events:
            match event.type:
                case "response.output_item.added" if event.item.type == "function_call":
                    calls[event.output_index] = (event.item.call_id, event.item.name)
                case "response.output_text.delta":
                    texts[event.output_index] = event.snapshot
                case "response.function_call_arguments.delta":
                    arguments[event.output_index] = event.snapshot
                case "response.completed" | "response.incomplete":
                    usage = event.response.usage
    theirs = [(*call, arguments[index]) for index, call in sorted(calls.items())]
    text, our_calls, our_usage = ours(RESPONSES, stream)
    assert (text, our_calls) == ("".join(texts.values()), theirs)
    assert our_calls
    prompt = sum(our_usage[name] for name in ("input", "cache_read", "cache_write"))
    assert (prompt, our_usage["output"]) == (usage.input_tokens, usage.output_tokens)
    assert our_usage["reasoning"] == usage.output_tokens_details.reasoning_tokens
