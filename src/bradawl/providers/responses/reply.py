"""The decoder of OpenAI Responses: server-sent events in, deltas out. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.deltas import (
    CallDelta,
    Delta,
    ReplyEnded,
    ReplyStarted,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from bradawl.core.errors import Failure
from bradawl.core.messages import StopReason
from bradawl.providers.codec import ServerEvent, event_of_body
from bradawl.providers.encoding import encode_json, untyped, without_surrogates
from bradawl.providers.failures import failure_of_event, no_reply, read_error, truncated_stream
from bradawl.providers.responses.fields import Fields, as_text, fields_of, text_of, value_of
from bradawl.providers.responses.items import Items
from bradawl.providers.responses.slots import Index, Kind, Slot, kind_of
from bradawl.providers.responses.usage import read_usage

_NO_OBJECT = msgspec.Raw(b"{}")
_STOPS: Mapping[str, StopReason] = MappingProxyType(
    {"max_output_tokens": "max_tokens", "max_tokens": "max_tokens", "content_filter": "content_filter"}
)


class _Event(msgspec.Struct):
    """One event; only the fields used here, loosely typed, because servers send any JSON type."""

    type: str = ""
    output_index: Index = None
    delta: Any = None
    item_id: Any = None
    summary_index: Any = None
    content_index: Any = None
    text: Any = None
    arguments: Any = None
    refusal: Any = None
    item: msgspec.Raw = _NO_OBJECT
    response: msgspec.Raw = _NO_OBJECT
    object: Any = None


_decode = msgspec.json.Decoder(_Event).decode


def _decode_leniently(data: str) -> _Event | None:
    """Decodes JSON with lone surrogates and control characters, which msgspec rejects."""
    try:
        return _decode(encode_json(without_surrogates(json.loads(data, strict=False))))
    except (ValueError, RecursionError):
        return None


class ResponsesReply:
    """Decodes one reply. `new_id` gives ids to calls without one."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._warnings: set[str] = set()
        self._items = Items(new_id, self._warnings.add)
        self._slots = self._items.slots
        self._started = ReplyStarted()
        self._ended = False

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Decode one event of the stream."""
        if self._ended:
            return ()
        data = event.data
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, RecursionError):
            if data.startswith("[DONE]"):
                return self.finish()
            chunk = _decode_leniently(data)
            if chunk is None:
                return self._take_unreadable(event)
        take = _TAKES.get(chunk.type)
        return take(self, chunk) if take is not None else self._take_other(chunk, event)

    def finish(self) -> Iterable[Delta]:
        """End of the stream; the reply is complete only after the server's final event."""
        if self._ended:
            return ()
        return self._fail(truncated_stream())

    def whole(self, body: bytes) -> Iterable[Delta]:
        """Decode a reply that came as one JSON document although a stream was requested."""
        event = event_of_body(body)
        deltas = list(self.feed(event))
        if self._ended:
            return deltas
        return [*deltas, *self._fail(no_reply(event.data))]

    # -------------------------------------------------------------- events of no kind we know

    def _take_other(self, chunk: _Event, event: ServerEvent) -> Iterable[Delta]:
        if chunk.type in _ERRORS or event.event in _ERRORS:
            return self._fail(failure_of_event(untyped(event.data)))
        if chunk.type:
            return ()
        if (take := _TAKES.get(event.event)) is not None:
            return take(self, chunk)
        if chunk.object == "response":
            return self._take_response(fields_of(msgspec.Raw(encode_json(untyped(event.data)))), "completed")
        value = untyped(event.data)
        return self._fail(failure_of_event(value)) if read_error(value) is not None else ()

    def _take_unreadable(self, event: ServerEvent) -> Iterable[Delta]:
        value = untyped(event.data)
        if event.event in _ERRORS or read_error(value) is not None:
            return self._fail(failure_of_event(value))
        self._warnings.add("undecodable_event")
        return ()

    # -------------------------------------------------------------- fragments

    def _take_started(self, chunk: _Event) -> Iterable[Delta]:
        return self._start(fields_of(chunk.response))

    def _start(self, response: Fields) -> list[Delta]:
        response_id = text_of(response, "id") or None
        model = text_of(response, "model") or None
        started = ReplyStarted(self._started.response_id or response_id, self._started.model or model)
        if started == self._started:
            return []
        self._started = started
        return [started]

    def _slot(self, kind: Kind, chunk: _Event) -> Slot:
        index = chunk.output_index
        found = self._slots.by_index.get(index)
        if found is not None and found.kind == kind and not found.is_closed:
            return found
        slot = self._slots.find(kind, index, chunk.item_id)
        if slot is None:
            slot = self._slots.open(kind, index)
            slot.item_id = as_text(chunk.item_id) or None
        return slot

    def _take_text(self, chunk: _Event) -> Iterable[Delta]:
        slot, text = self._slot("message", chunk), chunk.delta
        if slot.is_closed or not isinstance(text, str) or not text:
            return ()
        slot.texts.add(chunk.content_index, text)
        return (TextDelta(slot.place, text),)

    def _take_whole_text(self, chunk: _Event) -> Iterable[Delta]:
        slot, text = self._slot("message", chunk), as_text(chunk.text)
        if slot.is_closed or not text:
            return ()
        return (TextDelta(slot.place, text),) if slot.texts.replace(chunk.content_index, text) else ()

    def _take_refusal(self, chunk: _Event) -> Iterable[Delta]:
        slot = self._slot("message", chunk)
        if not slot.is_closed:
            if chunk.type.endswith("done"):
                slot.more.replace(chunk.content_index, as_text(chunk.refusal))
            else:
                slot.more.add(chunk.content_index, as_text(chunk.delta))
        return ()

    def _take_thinking(self, chunk: _Event) -> Iterable[Delta]:
        """Take more of a summary, or of the reasoning text; parts are separated by a blank line."""
        slot, text = self._slot("reasoning", chunk), chunk.delta
        if slot.is_closed or not isinstance(text, str) or not text:
            return ()
        is_own_text = chunk.type == "response.reasoning_text.delta"
        texts, index = (slot.more, chunk.content_index) if is_own_text else (slot.texts, chunk.summary_index)
        is_next = texts.add(index, text)
        return (ThinkingDelta(slot.place, f"\n\n{text}" if is_next else text),)

    def _take_whole_thinking(self, chunk: _Event) -> Iterable[Delta]:
        slot, text = self._slot("reasoning", chunk), as_text(chunk.text)
        if slot.is_closed or not text:
            return ()
        is_own_text = chunk.type == "response.reasoning_text.done"
        texts, index = (slot.more, chunk.content_index) if is_own_text else (slot.texts, chunk.summary_index)
        is_next = not texts.is_empty
        if not texts.replace(index, text):
            return ()
        return (ThinkingDelta(slot.place, f"\n\n{text}" if is_next else text),)

    def _take_arguments(self, chunk: _Event) -> Iterable[Delta]:
        # Fast path: the arguments of a large file come in very many fragments.
        slot = self._slots.by_index.get(chunk.output_index)
        if slot is None or slot.is_closed or slot.kind != "function_call":
            slot = self._slot("function_call", chunk)
        fragment = chunk.delta
        if not isinstance(fragment, str):
            return ()
        if slot.is_closed:
            if fragment.strip():
                self._warnings.add("arguments_after_close")
            return ()
        slot.arguments.append(fragment)
        return (CallDelta(slot.place, slot.call_id, slot.name, fragment),)

    def _take_whole_arguments(self, chunk: _Event) -> Iterable[Delta]:
        """Close a call at its `arguments.done`, unless they may be truncated: then its item decides."""
        slot = self._slot("function_call", chunk)
        arguments = self._items.arguments(chunk.arguments)
        if slot.is_closed or arguments is None:
            self._items.warn_if_changed(slot, arguments)
            return ()
        slot.arguments = [arguments]
        is_known = bool(slot.call_id and slot.name and arguments.strip())
        if not is_known or parse_arguments(arguments)[1] != "ok":
            return ()
        return self._items.close_call(slot)

    # -------------------------------------------------------------- items

    def _take_added(self, chunk: _Event) -> Iterable[Delta]:
        fields = fields_of(chunk.item)
        kind = kind_of(value_of(fields, "type"))
        if kind == "other":
            return ()
        call_id = text_of(fields, "call_id")
        slot = self._slots.find(kind, chunk.output_index, value_of(fields, "id"), call_id)
        if slot is None or slot.is_closed:
            slot = self._slots.open(kind, chunk.output_index)
        slot.learn(fields)
        if kind != "function_call":
            return ()
        self._items.has_calls = True
        return (CallDelta(slot.place, slot.call_id, slot.name, ""),)

    def _take_item(self, chunk: _Event) -> Iterable[Delta]:
        return self._items.close_item(chunk.item, chunk.output_index)

    # -------------------------------------------------------------- the end

    def _take_end(self, chunk: _Event) -> Iterable[Delta]:
        return self._take_response(fields_of(chunk.response), chunk.type.removeprefix("response."))

    def _take_response(self, response: Fields, status: str) -> list[Delta]:
        """The finished response. Gateways always send `completed`; the status inside is reliable."""
        deltas = self._start(response)
        inner_status = text_of(response, "status")
        if status not in _FAILED and inner_status in ("incomplete", *_FAILED):
            status = inner_status
        if usage := read_usage(value_of(response, "usage")):
            deltas.append(UsageReported(usage))
        if status in _FAILED:
            error = value_of(response, "error") or {"message": f"The server ended the reply as {status}."}
            return [*deltas, *self._fail(failure_of_event({"error": error}), status)]
        deltas += self._items.take_output(response)
        deltas += self._items.close_rest(cut=status == "incomplete")
        self._ended = True
        stop, raw_stop = self._stop(response, status)
        return [*deltas, ReplyEnded(stop, raw_stop, tuple(sorted(self._warnings)))]

    def _stop(self, response: Fields, status: str) -> tuple[StopReason, str]:
        if status == "incomplete":
            details = value_of(response, "incomplete_details")
            reason = cast("dict[str, object]", details).get("reason") if isinstance(details, dict) else None
            raw_stop = as_text(reason) or status
            if raw_stop not in _STOPS:
                self._warnings.add("unknown_stop_reason")
            return _STOPS.get(raw_stop, "unknown"), raw_stop
        if self._items.has_calls:
            return "tool_use", status
        return "refusal" if self._items.has_refusal else "end_turn", status

    def _fail(self, failure: Failure, raw_stop: str | None = None) -> list[Delta]:
        self._ended = True
        return [StreamFailed(failure, raw_stop, tuple(sorted(self._warnings)))]


_ERRORS = frozenset({"error", "response.error"})
_FAILED = ("failed", "cancelled")
_TAKES: Mapping[str, Callable[[ResponsesReply, _Event], Iterable[Delta]]] = MappingProxyType(
    {
        "response.function_call_arguments.delta": ResponsesReply._take_arguments,
        "response.output_text.delta": ResponsesReply._take_text,
        "response.reasoning_summary_text.delta": ResponsesReply._take_thinking,
        "response.reasoning_text.delta": ResponsesReply._take_thinking,
        "response.refusal.delta": ResponsesReply._take_refusal,
        "response.function_call_arguments.done": ResponsesReply._take_whole_arguments,
        "response.output_text.done": ResponsesReply._take_whole_text,
        "response.reasoning_summary_text.done": ResponsesReply._take_whole_thinking,
        "response.reasoning_text.done": ResponsesReply._take_whole_thinking,
        "response.refusal.done": ResponsesReply._take_refusal,
        "response.output_item.added": ResponsesReply._take_added,
        "response.output_item.done": ResponsesReply._take_item,
        "response.created": ResponsesReply._take_started,
        "response.queued": ResponsesReply._take_started,
        "response.in_progress": ResponsesReply._take_started,
        "response.completed": ResponsesReply._take_end,
        "response.incomplete": ResponsesReply._take_end,
        "response.failed": ResponsesReply._take_end,
        "response.cancelled": ResponsesReply._take_end,
    }
)
