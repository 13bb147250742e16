"""Anthropic Messages from the server's side: encodes scripted replies, decodes and checks requests. Pure."""

import re
from collections.abc import Iterator

import msgspec

from bradawl.core.messages import StopReason
from bradawl.testing.script import Entry, ScriptedUsage, fragments, stop_of, words
from bradawl.testing.wire_format import NAME, Json, WireFormat, WireRequest, decoded, objects

MOST_BREAKPOINTS = 4

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_TO_WIRE: dict[StopReason, str] = {
    "context_overflow": "model_context_window_exceeded",
    "content_filter": "refusal",
    "pause": "pause_turn",
}


def error_body(status: int, message: str) -> bytes:
    """An error document in Anthropic's format."""
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    error = {"type": kind, "message": message or f"scripted failure with status {status}"}
    return msgspec.json.encode({"type": "error", "error": error})


def usage_json(usage: ScriptedUsage | None) -> Json:
    """Token counts in Anthropic's format, in disjoint buckets; zeros if the script has none."""
    counted = usage or ScriptedUsage()
    return {
        "input_tokens": counted.input,
        "cache_creation_input_tokens": counted.cache_write,
        "cache_read_input_tokens": counted.cache_read,
        "output_tokens": counted.output,
        "output_tokens_details": {"thinking_tokens": counted.reasoning},
    }


# ------------------------------------------------------------------ replies


def sse_events(entry: Entry, number: int, request: WireRequest) -> Iterator[bytes]:
    """A streamed reply, event by event."""
    message = {**_message(entry, number, request), "content": [], "stop_reason": None}
    yield _event("message_start", message={**message, "usage": {**usage_json(entry.usage), "output_tokens": 1}})
    yield _event("ping")
    for index, (opened, deltas) in enumerate(_blocks(entry, number)):
        yield _event("content_block_start", index=index, content_block=opened)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    if entry.stop == "error":
        yield _event("error", error={"type": "api_error", "message": "the scripted model failed"})
        return
    stop = {"stop_reason": _stop_of(entry), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=usage_json(entry.usage))
    yield _event("message_stop")


def whole_reply(entry: Entry, number: int, request: WireRequest) -> bytes:
    """The same reply as one document, for a request without `stream`."""
    content: list[Json] = []
    for opened, _ in _blocks(entry, number):
        match opened["type"]:
            case "thinking":
                content.append({**opened, "thinking": entry.thinking, "signature": _signature(number)})
            case "text":
                content.append({**opened, "text": entry.text})
            case _:
                call = next(call for call in entry.tool_calls if call.id == opened["id"])
                content.append({**opened, "input": call.arguments if isinstance(call.arguments, dict) else {}})
    message = _message(entry, number, request)
    return msgspec.json.encode({**message, "content": content, "usage": usage_json(entry.usage)})


def _message(entry: Entry, number: int, request: WireRequest) -> Json:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "stop_reason": _stop_of(entry),
        "stop_sequence": None,
    }


def _stop_of(entry: Entry) -> str:
    stop = stop_of(entry)
    return entry.stop or stop if stop == "unknown" else _TO_WIRE.get(stop, stop)


def _signature(number: int) -> str:
    return f"signed-{number}"


def _blocks(entry: Entry, number: int) -> Iterator[tuple[Json, list[Json]]]:
    """Each block as in `content_block_start`, with its deltas."""
    if entry.thinking:
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in words(entry.thinking)]
        deltas.append({"type": "signature_delta", "signature": _signature(number)})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if entry.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in words(entry.text)]
    for call in entry.tool_calls:
        opened: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        pieces = ["", *fragments(call.raw_arguments)]
        yield opened, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))


# ------------------------------------------------------------------ requests


def read_request(body: bytes) -> WireRequest | str:
    """Decode a request; returns the reason if the Messages API would reject it."""
    request = decoded(body)
    if isinstance(request, str):
        return request
    model, messages = request.get("model"), objects(request.get("messages"))
    if not isinstance(model, str) or not model:
        return "model is missing"
    if not isinstance(request.get("max_tokens"), int):
        return "max_tokens: Field required"
    if not messages:
        return "messages is empty; send at least one"
    problem = _bad_tool(objects(request.get("tools"))) or _bad_blocks(messages) or _unpaired(messages)
    marks = body.count(b'"cache_control"')
    if not problem and marks > MOST_BREAKPOINTS:
        problem = f"a maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided; found {marks}"
    return problem or WireRequest(model, _last_text(messages), request.get("stream") is True)


def _bad_tool(tools: list[Json]) -> str | None:
    for tool in tools:
        if not re.fullmatch(NAME, str(tool.get("name", ""))):
            return f"the tool name {tool.get('name')!r} does not match {NAME}"
        if not isinstance(tool.get("input_schema"), dict):
            return f"the tool {tool['name']} has no input_schema"
    return None


def _content(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _bad_blocks(messages: list[Json]) -> str | None:
    if messages[0].get("role") != "user":
        return "the first message must have the role user"
    for place, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant"):
            return f"messages[{place}] has the unknown role {message.get('role')!r}"
        for block in _content(message):
            if block.get("type") == "text" and not str(block.get("text", "")).strip():
                return f"messages[{place}]: text content blocks must contain non-whitespace text"
            if block.get("type") == "thinking" and not block.get("signature"):
                return f"messages[{place}]: invalid signature in thinking block"
            if block.get("type") == "tool_use" and not re.fullmatch(NAME, str(block.get("id", ""))):
                return f"messages[{place}]: the id {block.get('id')!r} does not match {NAME}"
    return None


def _turns(messages: list[Json]) -> Iterator[tuple[object, list[Json]]]:
    """The messages, with consecutive ones of a role joined as the API does."""
    role, blocks = messages[0].get("role"), list[Json]()
    for message in messages:
        if message.get("role") != role:
            yield role, blocks
            role, blocks = message.get("role"), []
        blocks += _content(message)
    yield role, blocks


def _unpaired(messages: list[Json]) -> str | None:
    """The results of all calls must be the first blocks of the next turn, and nowhere else."""
    waiting: set[object] = set()
    for _, blocks in _turns(messages):
        answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        leading = [block.get("type") == "tool_result" for block in blocks[: len(answered)]]
        if waiting - set(answered):
            return f"tool_use ids were found without tool_result blocks immediately after: {sorted(map(str, waiting))}"
        if set(answered) - waiting or len(set(answered)) < len(answered):
            return f"unexpected tool_use_id found in tool_result blocks: {answered}"
        if not all(leading):
            return "tool_result blocks must come first in their message"
        called = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        if len(set(called)) < len(called):
            return f"tool_use ids must be unique: {called}"
        waiting = set(called)
    return f"tool_use ids were found without tool_result blocks: {sorted(map(str, waiting))}" if waiting else None


def _last_text(messages: list[Json]) -> str:
    texts: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "user":
            break
        texts.append("\n".join(map(_text, _content(message))))
    return "\n".join(reversed(texts))


def _text(block: Json) -> str:
    if block.get("type") == "tool_result":
        return "".join(map(_text, _content(block)))
    return str(block.get("text", ""))


FORMAT = WireFormat(read_request, sse_events, whole_reply, error_body)
"""Anthropic Messages."""
