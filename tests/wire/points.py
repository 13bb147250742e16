"""Shared by the tests of the conformance list: streams of each format, conversations, and their outcomes."""

import json
import re

from bradawl.core.deltas import Delta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Message, Text, ToolCall, ToolResult, ToolResults, User
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.folds.assembler import Assembler
from bradawl.providers.codec import Codec
from wire.cases import PREFIX
from wire.codecs import BY_API, BY_SAMPLE_API, Format
from wire.replay import SAMPLES, compared, decode, outcome

CHAT = BY_API["openai_chat"]
APIS = ("openai_chat", "openai_responses", "anthropic_messages")
EVENTS = (("content-type", "text/event-stream"),)


def wire(api: str) -> Format:
    """A format by its name."""
    return BY_API[api]


# ------------------------------------------------------------------ samples


def sample(number: int) -> tuple[bytes, dict, Format]:
    """Bytes, description and format of a recorded stream."""
    (path,) = SAMPLES.glob(f"{number:02d}_*.json")
    told = json.loads(path.read_text("utf-8"))
    return path.with_suffix(".sse").read_bytes(), told, BY_SAMPLE_API[told["api"]]


def check_sample(number: int, cut_every: int = 0) -> dict:
    """Decode a recorded stream, whole or in pieces, compare with its description, and return the outcome."""
    data, told, format_ = sample(number)
    pieces = [data[at : at + cut_every] for at in range(0, len(data), cut_every)] if cut_every else [data]
    seen = outcome(decode(format_.new(), pieces))
    ours, theirs = compared(seen, told["expect"])
    assert ours == theirs
    return seen


# ------------------------------------------------------------------ streams


def named(*events: dict, done: bool = False) -> bytes:
    """Events with a type, as Responses and Messages servers send them."""
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def claude(*blocks: list[dict], stop: str | None = "end_turn", usage: dict | None = None) -> bytes:
    """A Messages stream of blocks; without `stop` it ends after the last one."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "demo-model", "content": []}
    first = {"type": "message_start", "message": {**message, "usage": {"input_tokens": 10, "output_tokens": 1}}}
    events = [first]
    for index, (opened, *deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if stop:
        ended = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": usage or {"output_tokens": 5}})
        events.append({"type": "message_stop"})
    return named(*events)


def claude_text(text: str) -> list[dict]:
    return [{"type": "text", "text": ""}, {"type": "text_delta", "text": text}]


def claude_call(call_id: str, arguments: str, name: str = "read_file") -> list[dict]:
    opened = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [opened, {"type": "input_json_delta", "partial_json": arguments}]


def response(*items: dict, status: str = "completed", **fields: object) -> bytes:
    """A Responses stream of complete items."""
    base = {"id": "resp_1", "object": "response", "model": "demo-model", "output": []}
    events = [{"type": "response.created", "response": {**base, "status": "in_progress"}}]
    for place, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    ended = {**base, "status": status, "output": list(items), "usage": usage, **fields}
    return named(*events, {"type": f"response.{status}", "response": ended})


def response_text(text: str, **fields: object) -> dict:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content, **fields}


def response_call(call_id: str, arguments: str = "{}", **fields: object) -> dict:
    call = {"type": "function_call", "call_id": call_id, "name": "read_file", "arguments": arguments}
    return {**call, "id": f"fc_{call_id}", "status": "completed", **fields}


def chat_stream(*texts: str) -> bytes:
    chunks = [{"id": "r1", "model": "demo-model", "choices": [{"index": 0, "delta": {"content": t}}]} for t in texts]
    end = {"id": "r1", "model": "demo-model", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in (*chunks, end)) + b"data: [DONE]\n\n"


def text_stream(api: str, text: str) -> bytes:
    """A complete stream in this format with one text."""
    match api:
        case "openai_chat":
            return chat_stream(text)
        case "openai_responses":
            return response(response_text(text))
        case _:
            return claude(claude_text(text))


def text_document(api: str, text: str) -> bytes:
    """The same reply as one JSON document."""
    match api:
        case "openai_chat":
            message = {"role": "assistant", "content": text}
            return json.dumps({"id": "r1", "choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        case "openai_responses":
            item = {**response_text(text), "status": "completed"}
            return json.dumps({"id": "r1", "object": "response", "status": "completed", "output": [item]}).encode()
        case _:
            fields = {"role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": {"output_tokens": 1}}
            return json.dumps(
                {"id": "r1", "type": "message", "content": [{"type": "text", "text": text}], **fields}
            ).encode()


def error_event(api: str) -> bytes:
    """An error event at the start of a stream."""
    error = {"type": "overloaded_error", "code": "server_error", "message": "Overloaded"}
    match api:
        case "openai_chat":
            return b"data: %b\n\n" % json.dumps({"error": error}).encode()
        case _:
            return named({"type": "error", "error": error})


def seen_in(api: str, data: bytes) -> dict:
    """Outcome of a stream in this format."""
    return outcome(decode(wire(api).new(), [data]))


def text_of(deltas: list[Delta]) -> str:
    """The text of a complete reply."""
    seen = outcome(deltas)
    assert seen["complete"], seen
    return "".join(part["text"] for part in seen["parts"] if part["type"] == "text")


# ------------------------------------------------------------------ conversations


def reply_in(api: str, data: bytes, **origin: str) -> Assistant:
    """The message that results from a stream."""
    assembler = Assembler(wire(api).origin)
    for delta in decode(wire(api).new(), [data]):
        assembler.feed(delta)
    return assembler.reply()


def answers_to(reply: Assistant, text: str = "done") -> ToolResults:
    """A result for each of its calls."""
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    return ToolResults(tuple(ToolResult(call.id, call.name, (Text(text),)) for call in calls))


def body_of(
    api: str,
    *messages: Message,
    codec: Codec | None = None,
    base_url: str = "",
    prefix: Prefix = PREFIX,
    params: RequestParams | None = None,
) -> bytes:
    """The body of the request for a conversation."""
    codec = codec or wire(api).new(base_url=base_url)
    encoder = codec.encoder(prefix, ModelInfo(wire(api).origin), "session-1")
    for message in messages:
        encoder.append(message)
    return b"".join(encoder.body(params or RequestParams()))


def request_of(api: str, *messages: Message, **fields) -> dict:
    """The decoded body of the request, after a check by the strict server."""
    body = body_of(api, *messages, **fields)
    assert wire(api).check(body) == []
    return json.loads(body)


def without_markers(body: bytes) -> bytes:
    """A Messages request without its cache breakpoints."""
    return re.sub(rb',?"cache_control":\{[^}]*\},?', b"", body)


def ask(text: str = "Fix it.") -> User:
    return User((Text(text),))
