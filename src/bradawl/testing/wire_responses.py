"""OpenAI Responses from the server's side: encodes scripted replies, decodes and checks requests. Pure."""

import re
from collections.abc import Iterator

import msgspec

from bradawl.core.messages import StopReason
from bradawl.testing.script import Entry, ScriptedCall, ScriptedUsage, fragments, stop_of, words
from bradawl.testing.wire_chat import error_body
from bradawl.testing.wire_format import CREATED, NAME, Json, WireFormat, WireRequest, decoded, objects

_INCOMPLETE: dict[StopReason, str] = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}
_FAILED: dict[StopReason, tuple[str, str]] = {
    "error": ("server_error", "the scripted model failed"),
    "context_overflow": ("context_length_exceeded", "Your input exceeds the context window of this model."),
}


def usage_json(usage: ScriptedUsage) -> Json:
    """Token counts in the format of Responses: cached and written tokens are part of the input."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": prompt + usage.output,
    }


# ------------------------------------------------------------------ replies


class _Reply:
    """Encodes one scripted reply as items and events of a response."""

    def __init__(self, entry: Entry, number: int, request: WireRequest) -> None:
        self._entry = entry
        self._number = number
        self._model = request.model
        self._count = 0
        self._stop: StopReason = stop_of(entry)

    def events(self) -> Iterator[bytes]:
        yield self._event("response.created", response=self._response("in_progress", []))
        items: list[Json] = []
        for item in self._items():
            place = len(items)
            yield from self._item_events(place, item)
            items.append(item)
        status = self._status()
        yield self._event(f"response.{status}", response=self._response(status, items))

    def document(self) -> Json:
        return self._response(self._status(), list(self._items()))

    def _status(self) -> str:
        if self._stop in _FAILED:
            return "failed"
        return "incomplete" if self._stop in _INCOMPLETE else "completed"

    def _response(self, status: str, items: list[Json]) -> Json:
        response: Json = {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "model": self._model,
            "output": items,
            "error": None,
            "incomplete_details": None,
            "usage": None,
        }
        if status == "failed":
            code, message = _FAILED[self._stop]
            response["error"] = {"code": code, "message": message}
        if status == "incomplete":
            response["incomplete_details"] = {"reason": _INCOMPLETE[self._stop]}
        if status != "in_progress" and self._entry.usage is not None:
            response["usage"] = usage_json(self._entry.usage)
        return response

    def _items(self) -> Iterator[Json]:
        entry, number = self._entry, self._number
        if entry.thinking:
            yield {
                "id": f"rs_{number}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": entry.thinking}],
                "encrypted_content": f"sealed-{number}",
            }
        if entry.text:
            yield {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [self._content(entry.text)],
            }
        for place, call in enumerate(entry.tool_calls):
            yield self._call(place, call)

    def _content(self, text: str) -> Json:
        if self._stop == "refusal":
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": []}

    def _call(self, place: int, call: ScriptedCall) -> Json:
        return {
            "id": f"fc_{self._number}_{place}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.raw_arguments,
        }

    def _item_events(self, place: int, item: Json) -> Iterator[bytes]:
        where: Json = {"output_index": place, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                opened, events = {"summary": [], "encrypted_content": None}, self._reasoning_events(where)
            case "message":
                opened, events = {"content": [], "status": "in_progress"}, self._text_events(where)
            case _:
                opened = {"arguments": "", "status": "in_progress"}
                events = self._call_events(where, str(item["arguments"]))
        yield self._event("response.output_item.added", output_index=place, item=item | opened)
        yield from events
        yield self._event("response.output_item.done", output_index=place, item=item)

    def _reasoning_events(self, where: Json) -> Iterator[bytes]:
        where = {**where, "summary_index": 0}
        text = self._entry.thinking
        empty, whole = {"type": "summary_text", "text": ""}, {"type": "summary_text", "text": text}
        yield self._event("response.reasoning_summary_part.added", **where, part=empty)
        for piece in words(text):
            yield self._event("response.reasoning_summary_text.delta", **where, delta=piece)
        yield self._event("response.reasoning_summary_text.done", **where, text=text)
        yield self._event("response.reasoning_summary_part.done", **where, part=whole)

    def _text_events(self, where: Json) -> Iterator[bytes]:
        where = {**where, "content_index": 0}
        text = self._entry.text
        field, kind = ("refusal", "refusal") if self._stop == "refusal" else ("text", "output_text")
        yield self._event("response.content_part.added", **where, part=self._content(""))
        for piece in words(text):
            yield self._event(f"response.{kind}.delta", **where, delta=piece)
        yield self._event(f"response.{kind}.done", **{**where, field: text})
        yield self._event("response.content_part.done", **where, part=self._content(text))

    def _call_events(self, where: Json, arguments: str) -> Iterator[bytes]:
        for piece in fragments(arguments):
            yield self._event("response.function_call_arguments.delta", **where, delta=piece)
        yield self._event("response.function_call_arguments.done", **where, arguments=arguments)

    def _event(self, kind: str, **fields: object) -> bytes:
        document = msgspec.json.encode({"type": kind, "sequence_number": self._count, **fields})
        self._count += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), document)


def sse_events(entry: Entry, number: int, request: WireRequest) -> Iterator[bytes]:
    """A streamed reply, event by event; the last one has the status."""
    return _Reply(entry, number, request).events()


def whole_reply(entry: Entry, number: int, request: WireRequest) -> bytes:
    """The same reply as one document, for a request without `stream`."""
    return msgspec.json.encode(_Reply(entry, number, request).document())


# ------------------------------------------------------------------ requests


def read_request(body: bytes) -> WireRequest | str:
    """Decode a request; returns the reason if the Responses API would reject it."""
    request = decoded(body)
    if isinstance(request, str):
        return request
    model, given = request.get("model"), request.get("input")
    if not isinstance(model, str) or not model:
        return "model is missing"
    items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    if not items:
        return "input is empty; send at least one item"
    problem = _bad_tool(objects(request.get("tools"))) or _bad_item(items) or _unpaired(items)
    return problem or WireRequest(model, _last_text(items), request.get("stream") is True)


def _bad_tool(tools: list[Json]) -> str | None:
    for tool in tools:
        if not re.fullmatch(NAME, str(tool.get("name", ""))):
            return f"the tool name {tool.get('name')!r} does not match {NAME}"
        if tool.get("type") != "function" or not isinstance(tool.get("parameters"), dict):
            return f"the tool {tool['name']} needs the type function and parameters"
    return None


def _bad_item(items: list[Json]) -> str | None:
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") not in ("system", "developer", "user", "assistant"):
            return f"input[{place}] has the unknown role {item.get('role')!r}"
        if kind == "reasoning":
            if not item.get("encrypted_content"):
                return f"input[{place}]: item {item.get('id')!r} was not found; nothing is stored here"
            if not (place + 1 < len(items) and _is_of_reply(items[place + 1])):
                return f"input[{place}] is reasoning without the item it led to"
    return None


def _is_of_reply(item: Json) -> bool:
    if item.get("type", "message") == "message":
        return item.get("role") == "assistant"
    return not str(item["type"]).endswith("_output")


def _unpaired(items: list[Json]) -> str | None:
    """Every call needs one output after it, and every output a call before it."""
    waiting: list[object] = []
    for place, item in enumerate(items):
        if item.get("type") == "function_call":
            if item.get("call_id") in waiting:
                return f"input[{place}] makes a second call with the id {item.get('call_id')!r}"
            waiting.append(item.get("call_id"))
        elif item.get("type") == "function_call_output":
            if item.get("call_id") not in waiting:
                return f"input[{place}] answers {item.get('call_id')!r}, which no call before it waits for"
            waiting.remove(item.get("call_id"))
    return f"no output for the call {waiting[0]!r}" if waiting else None


def _last_text(items: list[Json]) -> str:
    texts: list[str] = []
    for item in reversed(items):
        if item.get("type") in ("function_call", "reasoning") or item.get("role") == "assistant":
            break
        texts.append(_text(item.get("output", item.get("content"))))
    return "\n".join(reversed(texts))


def _text(content: object) -> str:
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in objects(content))


FORMAT = WireFormat(read_request, sse_events, whole_reply, error_body)
"""OpenAI Responses."""
