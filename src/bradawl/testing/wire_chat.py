"""Chat Completions from the server's side: encodes scripted replies, decodes and checks requests. Pure."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from bradawl.testing.script import Entry, ScriptedUsage, fragments, raw_stop_of, words
from bradawl.testing.wire_format import CREATED, NAME, Json, WireFormat, WireRequest

_ERRORS = {
    400: ("invalid_request_error", None),
    401: ("authentication_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("permission_error", "permission_denied"),
    404: ("invalid_request_error", "model_not_found"),
    408: ("timeout", "request_timeout"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    503: ("server_error", "overloaded"),
}


def error_body(status: int, message: str) -> bytes:
    """An error document in OpenAI's format."""
    kind, code = _ERRORS.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    error = {"message": message or f"scripted failure with status {status}", "type": kind, "param": None, "code": code}
    return msgspec.json.encode({"error": error})


def models_body(model: str) -> bytes:
    """The list of models."""
    entry = {"id": model, "object": "model", "created": CREATED, "owned_by": "bradawl"}
    return msgspec.json.encode({"object": "list", "data": [entry]})


def usage_json(usage: ScriptedUsage) -> Json:
    """Token counts in OpenAI's format: cached and written tokens are part of the prompt."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


# ------------------------------------------------------------------ replies


def sse_events(entry: Entry, number: int, request: WireRequest) -> Iterator[bytes]:
    """A streamed reply, event by event, `[DONE]` included. `number` is the request's, from 1."""
    with_usage = request.with_usage
    head: Json = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": request.model,
        "system_fingerprint": None,
    }
    if with_usage:
        head["usage"] = None
    for delta in _deltas(entry):
        yield _event(head | {"choices": [_choice(delta, None)]})
    if entry.stop == "error":
        failed = {"error": {"message": "the scripted model failed", "type": "server_error", "code": 502}}
        yield _event(head | failed | {"choices": [_choice({}, "error")]})
        return
    yield _event(head | {"choices": [_choice({}, raw_stop_of(entry))]})
    if with_usage and entry.usage is not None:
        yield _event(head | {"choices": [], "usage": usage_json(entry.usage)})
    yield b"data: [DONE]\n\n"


def _event(document: Json) -> bytes:
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def _choice(delta: Json, finish: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _deltas(entry: Entry) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if entry.tool_calls and not entry.text else "", "refusal": None}
    for piece in words(entry.thinking):
        yield {"reasoning_content": piece}
    field = "refusal" if entry.stop == "refusal" else "content"
    for piece in words(entry.text):
        yield {field: piece}
    for index, call in enumerate(entry.tool_calls):
        opened = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [opened]}
        for piece in fragments(call.raw_arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def whole_reply(entry: Entry, number: int, request: WireRequest) -> bytes:
    """The same reply as one document, for a request without `stream`."""
    is_refusal = entry.stop == "refusal"
    message: Json = {
        "role": "assistant",
        "content": None if is_refusal or (entry.tool_calls and not entry.text) else entry.text,
        "refusal": entry.text if is_refusal else None,
    }
    if entry.thinking:
        message["reasoning_content"] = entry.thinking
    if entry.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw_arguments}}
            for call in entry.tool_calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": raw_stop_of(entry)}
    document: Json = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": request.model,
        "choices": [choice],
    }
    if entry.usage is not None:
        document["usage"] = usage_json(entry.usage)
    return msgspec.json.encode(document)


# ------------------------------------------------------------------ requests

_Text = str | list[dict[str, object]] | None


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    function: _Function


class _Message(msgspec.Struct):
    role: str
    content: _Text = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None

    def text(self) -> str:
        """Its plain text; other parts are left out."""
        if isinstance(self.content, list):
            return "".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Tool(msgspec.Struct):
    function: "_ToolFunction"


class _ToolFunction(msgspec.Struct):
    name: str


class _ChatRequest(msgspec.Struct):
    model: str
    messages: list[_Message]
    stream: bool = False
    stream_options: _StreamOptions | None = None
    tools: list[_Tool] | None = None

    @property
    def wants_usage(self) -> bool:
        """True if a streamed reply must end with its token counts."""
        return self.stream_options is not None and self.stream_options.include_usage

    def last_text(self) -> str:
        """The text after the last reply: the prompt, or all results."""
        texts: list[str] = []
        for message in reversed(self.messages):
            if message.role not in ("tool", "user"):
                break
            texts.append(message.text())
        return "\n".join(reversed(texts))


def read_request(body: bytes) -> WireRequest | str:
    """Decode a request; returns the reason if a Chat Completions server would reject it."""
    try:
        request = msgspec.json.decode(body, type=_ChatRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"the request can't be read: {error}"
    return _oddity(request) or WireRequest(request.model, request.last_text(), request.stream, request.wants_usage)


def _oddity(request: _ChatRequest) -> str | None:
    if not request.messages:
        return "messages is empty; send at least one"
    for tool in request.tools or ():
        if not re.fullmatch(NAME, tool.function.name):
            return f"the tool name {tool.function.name!r} does not match {NAME}"
    return _unanswered(request.messages)


def _unanswered(messages: Sequence[_Message]) -> str | None:
    """Every call needs one result, in tool messages directly after its reply."""
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return f"messages[{place}] answers {message.tool_call_id!r}, which no call right before it waits for"
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            break
        if message.role not in ("system", "developer", "user", "assistant"):
            return f"messages[{place}] has the unknown role {message.role!r}"
        waiting = [call.id for call in message.tool_calls or ()]
        if len(set(waiting)) < len(waiting):
            return f"messages[{place}] makes two calls with the same id"
    if waiting:
        return f"each tool call must be answered by a tool message right behind it; no answer to {', '.join(waiting)}"
    return None


FORMAT = WireFormat(read_request, sse_events, whole_reply, error_body)
"""Chat Completions."""
