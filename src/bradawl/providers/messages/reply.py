"""The decoder of Anthropic Messages: server-sent events in, deltas out. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

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
from bradawl.core.messages import StopReason
from bradawl.providers.codec import ServerEvent, event_of_body
from bradawl.providers.encoding import untyped
from bradawl.providers.failures import failure_of_event, no_reply, read_error, truncated_stream
from bradawl.providers.messages.errors import with_code
from bradawl.providers.messages.stream import (
    Fields,
    OpenBlock,
    StreamDelta,
    StreamEvent,
    decode_event,
    decode_leniently,
    string_in,
    value_in,
)
from bradawl.providers.messages.usage import merge_usage, read_usage

_STOPS: Mapping[str, StopReason] = {
    "end_turn": "end_turn",
    "stop": "end_turn",
    "tool_use": "tool_use",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "length": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_overflow",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
_CUT_STOPS: frozenset[StopReason] = frozenset({"max_tokens", "content_filter", "context_overflow", "refusal"})
_JSON = "input_json_delta"
_DELTA_OF: Mapping[str, str] = {"text": "text_delta", "thinking": "thinking_delta"}
"""The type of delta for each type of block; all other blocks have `input_json_delta`."""
_SHOWN = frozenset({"text", "thinking", "tool_use"})


class MessagesReply:
    """Decodes one reply. `new_id` gives ids to calls without one."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._open: dict[int | None, OpenBlock] = {}
        self._last: OpenBlock | None = None
        self._held: list[OpenBlock] = []
        """Closed calls with malformed arguments: the stop reason tells whether they were truncated."""
        self._used_ids: set[str] = set()
        self._next_place = 0
        self._calls = 0
        self._started = ReplyStarted()
        self._usage: dict[str, object] | None = None
        self._raw_stop: str | None = None
        self._details = ""
        self._warnings: set[str] = set()
        self._ended = False

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Decode one event of the stream."""
        if self._ended:
            return ()
        try:
            seen = decode_event(event.data)
        except (msgspec.DecodeError, RecursionError):
            return self._take_odd(event)
        delta = seen.delta
        if delta is not None and delta.type == _JSON and (fragment := delta.partial_json):
            # Fast path: arguments come in many small pieces.
            block = self._open.get(seen.index)
            if block is not None and block.kind == "tool_use":
                block.texts.append(fragment)
                return (CallDelta(block.place, block.call_id, block.name, fragment),)
        return self._take(seen, event)

    def finish(self) -> Iterable[Delta]:
        """End of the stream; the reply is complete only if there was a stop reason."""
        if self._ended:
            return ()
        if self._raw_stop is not None:
            self._warnings.add("missing_message_stop")
            return self._end()
        return self._fail(truncated_stream())

    def whole(self, body: bytes) -> Iterable[Delta]:
        """Decode a reply that came as one JSON document although a stream was requested."""
        event = event_of_body(body)
        deltas = list(self.feed(event))
        if self._ended:
            return deltas
        return [*deltas, *self._fail(no_reply(event.data))]

    # -------------------------------------------------------------- events

    def _take_odd(self, event: ServerEvent) -> Iterable[Delta]:
        """An event that the strict decoder rejects: lenient JSON, or no JSON."""
        if event.data.startswith("[DONE]"):
            return self.finish()
        value = untyped(event.data)
        if event.event == "error" or read_error(value) is not None:
            return self._fail_with(value)
        seen = decode_leniently(value)
        if seen is None:
            self._warnings.add("undecodable_event")
            return ()
        return self._take(seen, event)

    def _take(self, seen: StreamEvent, event: ServerEvent) -> Iterable[Delta]:
        match seen.type or event.event:
            case "content_block_delta":
                return self._take_delta(seen)
            case "content_block_start":
                return self._begin(seen.index, seen.content_block or {})
            case "content_block_stop":
                return self._stop_block(seen.index)
            case "ping":
                return ()
            case kind:
                return self._take_message(kind, seen, event)

    def _take_message(self, kind: str, seen: StreamEvent, event: ServerEvent) -> Iterable[Delta]:
        """Events about the message as a whole. Unknown events are skipped; errors have many forms."""
        match kind:
            case "message_start":
                return self._start(seen.message or {})
            case "message_delta":
                return self._take_message_delta(seen)
            case "message_stop":
                return self._end()
            case "message":
                return self._take_whole(event.data)
            case _:
                pass
        if event.event == "error" or seen.type == "error" or seen.error:
            return self._fail_with(untyped(event.data))
        if seen.type is None and read_error(value := untyped(event.data)) is not None:
            return self._fail_with(value)
        return ()

    def _start(self, message: Fields) -> list[Delta]:
        self._take_usage(value_in(message, "usage"))
        self._started = ReplyStarted(string_in(message, "id") or None, string_in(message, "model") or None)
        return [self._started]

    def _take_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            self._usage = merge_usage(self._usage or {}, cast("dict[str, object]", usage))

    def _take_message_delta(self, seen: StreamEvent) -> Iterable[Delta]:
        self._take_usage(seen.usage)
        if seen.delta is not None:
            self._raw_stop = seen.delta.stop_reason or self._raw_stop
            if bytes(seen.delta.stop_details) != b"null":
                self._details = bytes(seen.delta.stop_details).decode("utf-8", "replace")
        return ()

    def _take_whole(self, data: str) -> list[Delta]:
        """A complete message as one event or one body."""
        self._warnings.add("non_streaming_body")
        message = msgspec.json.decode(msgspec.json.encode(untyped(data)), type=dict[str, msgspec.Raw])
        deltas = self._start(message)
        content = message.get("content")
        blocks: list[Fields] = []
        if content is not None:
            try:
                blocks = list(msgspec.json.decode(content, type=list[dict[str, msgspec.Raw]]))
            except msgspec.DecodeError:
                self._warnings.add("undecodable_content")
        for place, fields in enumerate(blocks):
            deltas += self._begin(place, fields)
            deltas += self._stop_block(place)
        self._warnings.discard("input_in_block_start")
        self._raw_stop = string_in(message, "stop_reason")
        if "stop_details" in message and bytes(message["stop_details"]) != b"null":
            self._details = bytes(message["stop_details"]).decode()
        return [*deltas, *self._end()]

    # -------------------------------------------------------------- blocks

    def _begin(self, index: int | None, fields: Fields) -> list[Delta]:
        deltas: list[Delta] = []
        if index in self._open:
            deltas += self._close(self._open.pop(index))
        kind = string_in(fields, "type") or "text"
        block = OpenBlock(self._next_place, kind, fields)
        self._next_place += 1
        self._open[index] = self._last = block
        if kind == "tool_use":
            self._calls += 1
            self._name(block)
            deltas.append(CallDelta(block.place, block.call_id, block.name, ""))
        elif block.texts:
            deltas.append(_fragment(block, block.texts[0]))
        return deltas

    def _name(self, block: OpenBlock) -> None:
        """Give a call its id; missing and repeated ids are replaced."""
        if not block.call_id:
            self._warnings.add("id_generated")
        elif block.call_id in self._used_ids:
            self._warnings.add("duplicate_call_id")
            block.call_id = ""
        while not block.call_id or block.call_id in self._used_ids:
            block.call_id = self._new_id()
        self._used_ids.add(block.call_id)

    def _take_delta(self, seen: StreamEvent) -> Iterable[Delta]:
        delta = seen.delta
        if delta is None:
            return ()
        block = self._open.get(seen.index) if seen.index is not None else self._last
        if block is None:
            return self._take_delta_without_start(seen.index, delta)
        return self._add(block, delta)

    def _take_delta_without_start(self, index: int | None, delta: StreamDelta) -> list[Delta]:
        """A delta without `content_block_start`, which some servers omit for text."""
        kind = "thinking" if delta.thinking else "text"
        if not (delta.text or delta.thinking) or delta.partial_json is not None:
            self._warnings.add("delta_without_block")
            return []
        self._warnings.add("block_start_missing")
        deltas = self._begin(index, {"type": msgspec.Raw(f'"{kind}"'.encode())})
        return [*deltas, *self._add(self._open[index], delta)]

    def _add(self, block: OpenBlock, delta: StreamDelta) -> Iterable[Delta]:
        match delta.type or _DELTA_OF.get(block.kind, _JSON):
            case "text_delta" if block.kind == "text":
                fragment = delta.text
            case "thinking_delta" if block.kind == "thinking":
                fragment = delta.thinking
            case "input_json_delta" if block.kind not in _DELTA_OF:
                fragment = delta.partial_json
            case "signature_delta":
                block.signature = delta.signature or ""  # the complete text, each time
                return ()
            case "citations_delta":
                block.cite(delta.citation)
                return ()
            case _:
                return ()
        if not fragment:
            return ()
        block.texts.append(fragment)
        return (_fragment(block, fragment),) if block.kind in _SHOWN else ()

    def _stop_block(self, index: int | None) -> list[Delta]:
        if index is None and self._last is not None:
            index = next((key for key, block in self._open.items() if block is self._last), None)
        block = self._open.pop(index, None)
        return [] if block is None else self._close(block)

    def _close(self, block: OpenBlock) -> list[Delta]:
        if block.kind != "tool_use":
            part = block.part()
            return [] if part is None else [PartClosed(block.place, part)]
        call = block.call(cut=False)
        if call.status != "ok":
            self._held.append(block)
            return []
        if call.raw_arguments and not block.texts:
            self._warnings.add("input_in_block_start")
        elif call.raw_arguments.lstrip().startswith('"'):
            self._warnings.add("double_encoded_args")
        return [PartClosed(block.place, call)]

    # -------------------------------------------------------------- the end

    def _end(self) -> list[Delta]:
        stop = self._stop()
        deltas: list[Delta] = []
        for block in self._open.values():
            self._warnings.add("block_stop_missing")
            deltas += self._close(block)
        self._open.clear()
        cut = stop in _CUT_STOPS
        deltas += [PartClosed(block.place, block.call(cut=cut)) for block in self._held]
        self._ended = True
        ended = ReplyEnded(stop, self._raw_stop, tuple(sorted(self._warnings)), details=self._details)
        return [*deltas, *self._usage_deltas(), ended]

    def _stop(self) -> StopReason:
        stop: StopReason = _STOPS.get(self._raw_stop or "", "unknown")
        if stop == "unknown":
            self._warnings.add("unknown_stop_reason" if self._raw_stop else "missing_stop_reason")
        if self._calls and stop in ("end_turn", "unknown"):
            self._warnings.add("stop_overridden_to_tool_use")
            return "tool_use"
        if stop == "tool_use" and not self._calls:
            self._warnings.add("tool_use_without_calls")
            return "end_turn"
        return stop

    def _usage_deltas(self) -> list[Delta]:
        return [] if self._usage is None else [UsageReported(read_usage(self._usage))]

    def _fail_with(self, value: object) -> list[Delta]:
        return self._fail(with_code(failure_of_event(value), value))

    def _fail(self, failure: Failure) -> list[Delta]:
        self._ended = True
        failed = StreamFailed(failure, self._raw_stop, tuple(sorted(self._warnings)), details=self._details)
        return [*self._usage_deltas(), failed]


def _fragment(block: OpenBlock, text: str) -> Delta:
    if block.kind == "thinking":
        return ThinkingDelta(block.place, text)
    if block.kind == "tool_use":
        return CallDelta(block.place, block.call_id, block.name, text)
    return TextDelta(block.place, text)
