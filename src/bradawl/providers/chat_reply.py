"""Reads a Chat Completions reply: server-sent events in, deltas out. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from bradawl.core.deltas import (
    CallDelta,
    Delta,
    PartClosed,
    ReplyEnded,
    ReplyStarted,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from bradawl.core.errors import Failure
from bradawl.core.messages import Refusal, StopReason, Text
from bradawl.providers.chat_calls import CallAssembly, CallSlot, is_object
from bradawl.providers.chat_reasoning import Reasoning
from bradawl.providers.chat_usage import is_usage, read_usage
from bradawl.providers.codec import ServerEvent
from bradawl.providers.encoding import without_surrogates
from bradawl.providers.failures import failure_of_event, read_error

_STOPS: Mapping[str, StopReason] = {
    "stop": "end_turn",
    "end": "end_turn",
    "eos": "end_turn",
    "end_turn": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "model_context_window_exceeded": "context_overflow",
    "error": "error",
    "abort": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
}
_CUT_STOPS: frozenset[StopReason] = frozenset({"max_tokens", "content_filter", "context_overflow"})
_NOT_TO_BE_STARTED: frozenset[StopReason] = frozenset({"content_filter", "error"})


class _Delta(msgspec.Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: Any = None
    index: Any = None
    usage: Any = None


class _Chunk(msgspec.Struct):
    """Only what is used, and loosely typed: servers put anything into the rest."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    id: Any = None
    model: Any = None
    x_groq: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


def _decode_leniently(data: str) -> _Chunk | None:
    try:
        return msgspec.convert(without_surrogates(json.loads(data, strict=False)), _Chunk)
    except (ValueError, RecursionError):
        return None


class ChatReply:
    """One reply. `new_id` names calls the server left without an id."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._warnings: set[str] = set()
        self._calls = CallAssembly(new_id, self._warnings.add)
        self._reasoning = Reasoning()
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._places: dict[str, int] = {}
        self._next_place = 0
        self._last_call: CallSlot | None = None
        self._started = ReplyStarted()
        self._usage: Mapping[str, object] | None = None
        self._raw_stop: str | None = None
        self._ended = False

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Take one event of the stream."""
        data = event.data
        if self._ended:
            return ()
        if data.startswith("[DONE]"):
            return self._end()
        if event.event == "error":
            return self._fail_with(data)
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, RecursionError):
            chunk = _decode_leniently(data)
            if chunk is None:
                return self._take_unreadable(data)
        return self._take(chunk, data)

    def finish(self) -> Iterable[Delta]:
        """The stream is over; whole only if the server had said why it stopped."""
        if self._ended:
            return ()
        if self._raw_stop is not None:
            self._warnings.add("missing_done")
            return self._end()
        failure = Failure("connection", "The server closed the connection before the reply had ended.", retryable=True)
        return self._fail(failure)

    def whole(self, body: bytes) -> Iterable[Delta]:
        """A reply that came as one JSON document although a stream was asked for."""
        data = body.decode("utf-8", "replace").removeprefix("\ufeff")
        deltas = list(self.feed(ServerEvent("", data)))
        if self._ended:
            return deltas
        if "non_streaming_body" not in self._warnings:
            text = " ".join(data.split())[:200]
            return [*deltas, *self._fail(Failure("server", f"The server's answer is not a reply: {text}", True))]
        return [*deltas, *self._end()]

    # -------------------------------------------------------------- chunks

    def _take(self, chunk: _Chunk, data: str) -> list[Delta]:
        deltas: list[Delta] = []
        if self._started.model is None or self._started.response_id is None:
            self._start(chunk, deltas)
        if chunk.error:
            self._raw_stop = next((c.finish_reason for c in chunk.choices or () if c.finish_reason), self._raw_stop)
            return [*deltas, *self._fail_with(data)]
        if chunk.usage is not None or chunk.x_groq is not None:
            self._take_usage(chunk)
        if chunk.choices is None:
            return deltas or self._take_unknown(chunk, data)
        for choice in chunk.choices:
            if not choice.index:  # further choices were not asked for
                self._take_choice(choice, deltas)
        return deltas

    def _start(self, chunk: _Chunk, deltas: list[Delta]) -> None:
        response_id = str(chunk.id) if isinstance(chunk.id, str | int) and chunk.id else None
        model = chunk.model if isinstance(chunk.model, str) and chunk.model else None
        started = ReplyStarted(self._started.response_id or response_id, self._started.model or model)
        if started != self._started:
            self._started = started
            deltas.append(started)

    def _take_unknown(self, chunk: _Chunk, data: str) -> list[Delta]:
        """Neither choices nor usage: old vLLM and some gateways send a bare error object."""
        if chunk.usage is None and read_error(_untyped(data)) is not None:
            return self._fail_with(data)
        return []

    def _take_unreadable(self, data: str) -> list[Delta]:
        value = _untyped(data)
        if read_error(value) is not None:
            return self._fail_with(data)
        self._warnings.add("undecodable_event")
        return []

    def _take_usage(self, chunk: _Chunk) -> None:
        if is_usage(chunk.usage):
            self._usage = chunk.usage
        elif is_object(chunk.x_groq) and is_usage(inner := chunk.x_groq.get("usage")):
            self._usage = cast("Mapping[str, object]", inner)

    def _take_choice(self, choice: _Choice, deltas: list[Delta]) -> None:
        delta = choice.delta
        if choice.message is not None and delta is None:
            self._warnings.add("non_streaming_body")
            delta = choice.message
        if choice.usage is not None and is_usage(choice.usage):
            self._usage = choice.usage
        if delta is not None:
            self._take_delta(delta, deltas)
        if choice.finish_reason and isinstance(choice.finish_reason, str):
            self._take_finish(choice.finish_reason, deltas)

    def _take_delta(self, delta: _Delta, deltas: list[Delta]) -> None:
        if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
            self._take_reasoning(delta, deltas)
        content = delta.content
        if content:
            if isinstance(content, str):
                self._add_text(content, deltas)
            else:
                self._take_content_list(content, deltas)
        if delta.refusal and isinstance(delta.refusal, str):
            self._close_previous(None, deltas)
            self._place("refusal")
            self._refusals.append(delta.refusal)
        if delta.tool_calls and isinstance(delta.tool_calls, list):
            for entry in cast("list[object]", delta.tool_calls):
                if is_object(entry):
                    self._take_call(entry, deltas)
        if is_object(delta.function_call):
            self._take_call({"index": 0, "function": delta.function_call}, deltas)

    def _take_content_list(self, content: object, deltas: list[Delta]) -> None:
        """Mistral's content once reasoning is on: a list of typed pieces."""
        for item in cast("list[object]", content) if isinstance(content, list) else [content]:
            if isinstance(item, str):
                self._add_text(item, deltas)
            elif is_object(item):
                if item.get("type") == "thinking":
                    self._add_thinking("content.thinking", _joined_text(item.get("thinking")), deltas)
                else:
                    self._add_text(_joined_text(item), deltas)

    def _take_reasoning(self, delta: _Delta, deltas: list[Delta]) -> None:
        field = "reasoning_content" if delta.reasoning_content else "reasoning"
        text: object = delta.reasoning_content or delta.reasoning
        has_text = isinstance(text, str) and bool(text)
        if isinstance(text, str):
            self._add_thinking(field, text, deltas)
        if isinstance(delta.reasoning_details, list) and delta.reasoning_details:
            details = cast("list[object]", delta.reasoning_details)
            place = self._place("thinking")
            if fresh := self._reasoning.take_details(details, has_text=has_text):
                self._close_previous(None, deltas)
                deltas.append(ThinkingDelta(place, fresh))

    def _add_text(self, text: str, deltas: list[Delta]) -> None:
        if text:
            if self._last_call is not None:
                self._close_previous(None, deltas)
            self._texts.append(text)
            deltas.append(TextDelta(self._place("text"), text))

    def _add_thinking(self, field: str, text: str, deltas: list[Delta]) -> None:
        if text:
            self._close_previous(None, deltas)
            deltas.append(ThinkingDelta(self._place("thinking"), self._reasoning.take_text(field, text)))

    def _place(self, kind: str) -> int:
        place = self._places.get(kind)
        if place is None:
            place = self._places[kind] = self._next_place
            self._next_place += 1
        return place

    # -------------------------------------------------------------- calls

    def _take_call(self, entry: dict[str, object], deltas: list[Delta]) -> None:
        if (more := self._calls.continue_call(entry)) is not None:
            slot, arguments = more
            if slot is not self._last_call:
                self._close_previous(slot, deltas)
            deltas.append(CallDelta(slot.place, slot.id or "", slot.name, arguments))
            return
        fields = self._calls.read(entry)
        slot = self._calls.take(fields, self._next_place)
        if slot is None:
            return
        if slot.place == self._next_place:
            self._next_place += 1
        self._close_previous(slot, deltas)
        if not slot.is_closed:
            deltas.append(CallDelta(slot.place, slot.id or "", slot.name, fields.arguments))

    def _close_previous(self, current: CallSlot | None, deltas: list[Delta]) -> None:
        """Something else has begun: the call before it is finished if its arguments say so.

        Only the call touched last can have become whole since the last look.
        """
        previous = self._last_call
        self._last_call = current
        if previous is not None and previous is not current and previous.may_close:
            deltas.append(PartClosed(previous.place, self._calls.close(previous)))

    def _take_finish(self, raw_stop: str, deltas: list[Delta]) -> None:
        if self._raw_stop is None or self._raw_stop == "stop":
            self._raw_stop = raw_stop
        if _STOPS.get(raw_stop) not in _NOT_TO_BE_STARTED:
            self._close_calls(deltas)

    def _close_calls(self, deltas: list[Delta]) -> None:
        cut = _STOPS.get(self._raw_stop or "") in _CUT_STOPS
        for slot in self._calls.slots:
            if not slot.is_closed:
                deltas.append(PartClosed(slot.place, self._calls.close(slot, cut=cut)))

    # -------------------------------------------------------------- the end

    def _end(self) -> list[Delta]:
        stop = self._stop()
        if stop == "error":
            message = f"The server ended the reply early ({self._raw_stop})."
            return self._fail(Failure("server", message, retryable=True, code=self._raw_stop))
        self._ended = True
        deltas: list[Delta] = []
        self._close_calls(deltas)
        if "text" in self._places:
            deltas.append(PartClosed(self._places["text"], Text("".join(self._texts))))
        if "thinking" in self._places:
            deltas.append(PartClosed(self._places["thinking"], self._reasoning.part()))
        if "refusal" in self._places:
            deltas.append(PartClosed(self._places["refusal"], Refusal("".join(self._refusals))))
        deltas.extend(self._usage_deltas())
        deltas.append(ReplyEnded(stop, self._raw_stop, tuple(sorted(self._warnings))))
        return deltas

    def _stop(self) -> StopReason:
        raw = self._raw_stop
        if raw is None:
            self._warnings.add("missing_finish_reason")
        elif raw not in _STOPS:
            self._warnings.add("unknown_finish_reason")
        stop: StopReason = _STOPS.get(raw, "unknown") if raw is not None else "unknown"
        has_calls = bool(self._calls.slots)
        if has_calls and stop in ("end_turn", "unknown"):
            self._warnings.add("stop_overridden_to_tool_use")
            return "tool_use"
        if stop == "tool_use" and not has_calls:
            self._warnings.add("tool_use_without_calls")
            stop = "end_turn"
        return "refusal" if stop == "end_turn" and self._refusals else stop

    def _usage_deltas(self) -> list[Delta]:
        if self._usage is None:
            return []
        usage, is_outside = read_usage(self._usage)
        if is_outside:
            self._warnings.add("reasoning_outside_completion_tokens")
        return [UsageReported(usage)]

    def _fail_with(self, data: str) -> list[Delta]:
        return self._fail(failure_of_event(_untyped(data)))

    def _fail(self, failure: Failure) -> list[Delta]:
        self._ended = True
        usage = self._usage_deltas()
        return [*usage, StreamFailed(failure, self._raw_stop, tuple(sorted(self._warnings)))]


def _untyped(data: str) -> object:
    try:
        return without_surrogates(json.loads(data, strict=False))
    except (ValueError, RecursionError):
        return data


def _joined_text(value: object) -> str:
    """The text of a piece of content: a string, `{"text": ...}`, or a list of these."""
    if isinstance(value, str):
        return value
    if is_object(value):
        text = value.get("text")
        return text if isinstance(text, str) else ""
    return "".join(_joined_text(item) for item in cast("list[object]", value)) if isinstance(value, list) else ""
