"""The decoder of Chat Completions: server-sent events in, deltas out. Pure."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import cast

import msgspec

from bradawl.core.deltas import (
    CallDelta,
    Delta,
    ReplyEnded,
    ReplyStarted,
    StreamFailed,
    TextDelta,
    UsageReported,
)
from bradawl.core.errors import Failure
from bradawl.core.messages import StopReason
from bradawl.providers.chat.calls import CallSlot, is_object
from bradawl.providers.chat.chunks import (
    Choice,
    Chunk,
    ChunkDelta,
    as_list,
    decode,
    decode_leniently,
    error_in,
    stop_of,
)
from bradawl.providers.chat.fast_path import RepeatedEvent
from bradawl.providers.chat.parts import ReplyParts
from bradawl.providers.chat.text import ReplyText
from bradawl.providers.chat.usage import is_usage, read_usage
from bradawl.providers.codec import ServerEvent, event_of_body
from bradawl.providers.encoding import untyped
from bradawl.providers.failures import failure_of_event, no_reply, read_error, truncated_stream
from bradawl.providers.surrogates import SurrogatePairs

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


class ChatReply:
    """Decodes one reply. `new_id` gives ids to calls without one.

    `text` separates reasoning and calls from the text; `on_end` is called after a complete reply.
    """

    def __init__(
        self, new_id: Callable[[], str], text: ReplyText | None = None, on_end: Callable[[], None] | None = None
    ) -> None:
        self._warnings: set[str] = set()
        self._parts = ReplyParts(new_id, text, self._warnings.add)
        self._on_end = on_end
        self._pairs = SurrogatePairs()
        self._repeated = RepeatedEvent()
        self._repeated_call: CallSlot | None = None
        self._started = ReplyStarted()
        self._usage: Mapping[str, object] | None = None
        self._raw_stop: str | None = None
        self._ended = False

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Decode one event of the stream."""
        data = event.data
        if not self._ended and (text := self._repeated.text_in(data)) is not None and not event.event:
            deltas: list[Delta] = []
            self._parts.repeat(self._repeated_call, text, deltas)
            return deltas
        if self._ended:
            return ()
        if data.startswith("[DONE]"):
            return self._end()
        if event.event == "error":
            return self._fail_with(data)
        chunk = None
        if not self._pairs.is_waiting:
            with suppress(msgspec.DecodeError, RecursionError):
                chunk = decode(data)
        if chunk is None:
            self._repeated.forget()
            chunk = decode_leniently(data, self._pairs)
            return self._take_unreadable(data) if chunk is None else self._take(chunk, data)
        calls = self._parts.call_count
        taken = self._take(chunk, data)
        if self._parts.call_count != calls:
            self._repeated.forget()  # the new call may have the index of the learnt event
        elif len(taken) == 1:
            self._learn(chunk, data, taken[0])
        return taken

    def _learn(self, chunk: Chunk, data: str, delta: Delta) -> None:
        """Learn an event that had only a piece of text or arguments, for the fast path."""
        choices = chunk.choices
        if chunk.usage is not None or chunk.x_groq is not None or not choices or len(choices) != 1:
            return
        said = choices[0].delta
        if said is None or choices[0].finish_reason or choices[0].usage is not None or choices[0].message is not None:
            return
        call = None
        match delta:
            case TextDelta(text=text) if said == ChunkDelta(content=text):
                pass
            case CallDelta(arguments=text) if said == ChunkDelta(tool_calls=said.tool_calls):
                if (call := self._parts.continued) is None:
                    return
            case _:
                return
        if self._repeated.learn(data, text):
            self._repeated_call = call

    def finish(self) -> Iterable[Delta]:
        """End of the stream; the reply is complete only if there was a finish reason."""
        if self._ended:
            return ()
        if self._raw_stop is not None:
            self._warnings.add("missing_done")
            return self._end()
        return self._fail(truncated_stream())

    def whole(self, body: bytes) -> Iterable[Delta]:
        """Decode a reply that came as one JSON document although a stream was requested."""
        event = event_of_body(body)
        deltas = list(self.feed(event))
        if self._ended:
            return deltas
        if "non_streaming_body" not in self._warnings:
            return [*deltas, *self._fail(no_reply(event.data))]
        return [*deltas, *self._end()]

    # -------------------------------------------------------------- chunks

    def _take(self, chunk: Chunk, data: str) -> list[Delta]:
        deltas: list[Delta] = []
        if self._started.model is None or self._started.response_id is None:
            self._start(chunk, deltas)
        if (error := error_in(chunk, data)) is not None:
            self._raw_stop = next(filter(None, map(stop_of, chunk.choices or ())), self._raw_stop)
            return [*deltas, *self._fail(failure_of_event(error))]
        if chunk.usage is not None or chunk.x_groq is not None:
            self._take_usage(chunk)
        if chunk.choices is None:
            return [*deltas, *self._take_unknown(chunk, data)]
        for choice in chunk.choices:
            if not choice.index:  # requests ask for one choice only
                self._take_choice(choice, deltas)
        return deltas

    def _start(self, chunk: Chunk, deltas: list[Delta]) -> None:
        response_id = str(chunk.id) if isinstance(chunk.id, str | int) and chunk.id else None
        model = chunk.model if isinstance(chunk.model, str) and chunk.model else None
        started = ReplyStarted(self._started.response_id or response_id, self._started.model or model)
        if started != self._started:
            self._started = started
            deltas.append(started)

    def _take_unknown(self, chunk: Chunk, data: str) -> list[Delta]:
        """An event with neither choices nor usage: old vLLM and some gateways send a bare error object."""
        if chunk.usage is None and read_error(untyped(data)) is not None:
            return self._fail_with(data)
        return []

    def _take_unreadable(self, data: str) -> list[Delta]:
        value = untyped(data)
        if read_error(value) is not None:
            return self._fail_with(data)
        self._warnings.add("undecodable_event")
        return []

    def _take_usage(self, chunk: Chunk) -> None:
        if is_usage(chunk.usage):
            self._usage = chunk.usage
        elif is_object(chunk.x_groq) and is_usage(inner := chunk.x_groq.get("usage")):
            self._usage = cast("Mapping[str, object]", inner)

    def _take_choice(self, choice: Choice, deltas: list[Delta]) -> None:
        delta = choice.delta
        if choice.message is not None and delta is None:
            self._warnings.add("non_streaming_body")
            delta = choice.message
            self._number_calls(delta)
        if choice.usage is not None and is_usage(choice.usage):
            self._usage = choice.usage
        if delta is not None:
            self._parts.take(delta, deltas)
        if (raw_stop := stop_of(choice)) is not None:
            self._take_finish(raw_stop, deltas)

    def _number_calls(self, message: ChunkDelta) -> None:
        """Give the calls of a whole message their places: each entry is one call, with an index or without."""
        for place, entry in enumerate(as_list(message.tool_calls) if message.tool_calls else ()):
            if is_object(entry) and entry.get("index") is None:
                self._warnings.add("index_missing")
                entry["index"] = place

    def _take_finish(self, raw_stop: str, deltas: list[Delta]) -> None:
        if self._raw_stop is None or self._raw_stop == "stop":
            self._raw_stop = raw_stop
        if _STOPS.get(raw_stop) not in _NOT_TO_BE_STARTED:
            self._finish_text(deltas)
            self._parts.close_calls(cut=self._is_cut, deltas=deltas, wait=True)

    @property
    def _is_cut(self) -> bool:
        return _STOPS.get(self._raw_stop or "") in _CUT_STOPS

    def _finish_text(self, deltas: list[Delta]) -> None:
        self._parts.finish_text(self._pairs.rest("content"), cut=self._is_cut, deltas=deltas)

    # -------------------------------------------------------------- the end

    def _end(self) -> list[Delta]:
        if _STOPS.get(self._raw_stop or "") == "error":
            message = f"The server ended the reply early ({self._raw_stop})."
            return self._fail(Failure("server", message, retryable=True, code=self._raw_stop))
        deltas: list[Delta] = []
        self._finish_text(deltas)
        self._parts.close_calls(cut=self._is_cut, deltas=deltas)
        stop = self._stop()
        self._ended = True
        self._parts.close_texts(deltas)
        deltas.extend(self._usage_deltas())
        deltas.append(ReplyEnded(stop, self._raw_stop, tuple(sorted(self._warnings))))
        if self._on_end is not None:
            self._on_end()
        return deltas

    def _stop(self) -> StopReason:
        raw = self._raw_stop
        if raw is None:
            self._warnings.add("missing_finish_reason")
        elif raw not in _STOPS:
            self._warnings.add("unknown_finish_reason")
        stop: StopReason = _STOPS.get(raw, "unknown") if raw is not None else "unknown"
        has_calls = self._parts.call_count > 0
        if has_calls and stop in ("end_turn", "unknown"):
            self._warnings.add("stop_overridden_to_tool_use")
            return "tool_use"
        if stop == "tool_use" and not has_calls:
            self._warnings.add("tool_use_without_calls")
            stop = "end_turn"
        return "refusal" if stop == "end_turn" and self._parts.has_refusal else stop

    def _usage_deltas(self) -> list[Delta]:
        if self._usage is None:
            return []
        usage, is_outside = read_usage(self._usage)
        if is_outside:
            self._warnings.add("reasoning_outside_completion_tokens")
        return [UsageReported(usage)]

    def _fail_with(self, data: str) -> list[Delta]:
        return self._fail(failure_of_event(untyped(data)))

    def _fail(self, failure: Failure) -> list[Delta]:
        self._ended = True
        deltas: list[Delta] = []
        self._parts.break_off(deltas)
        deltas.extend(self._usage_deltas())
        return [*deltas, StreamFailed(failure, self._raw_stop, tuple(sorted(self._warnings)))]
