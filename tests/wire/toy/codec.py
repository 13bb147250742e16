"""A toy wire protocol, the smallest one that can carry a turn with tools: one JSON object per message and per event.

Request: `{"model": ..., "messages": [{"from": "user", "text": ...}, {"from": "model", "text": ..., "calls": [...]},
{"from": "tool", "id": ..., "text": ...}]}`. Reply: events `{"text": ...}`, `{"call": {"id", "name", "arguments"}}`
and, at last, `{"end": STOP_REASON}`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

from bradawl.core.deltas import CallDelta, Delta, PartClosed, ReplyEnded, StreamFailed, TextDelta
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Message, Text, ToolCall, ToolResults, calls_of, text_of
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.codec import Endpoint, ServerEvent
from bradawl.providers.deadlines import Deadlines, deadlines_for
from bradawl.providers.failures import failure_of_response
from bradawl.providers.openai_urls import openai_target


def open_codec(base_url: str, model: str, compat: Mapping[str, object]) -> "tuple[ToyCodec, Deadlines]":
    """The toy has no fields of `compat`."""
    del model
    if compat:
        raise ValueError(f"`{next(iter(compat))}` is not a field of the toy.")
    return ToyCodec(), deadlines_for(base_url)


class ToyCodec:
    api = "toy"

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> "ToyRequests":
        del session_id
        return ToyRequests(prefix, info.origin.model)

    def decoder(self) -> "ToyReply":
        return ToyReply()

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        return openai_target(endpoint, "/toy", "authorization")

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return failure_of_response(status, headers, body, 0.0)


class ToyRequests:
    def __init__(self, prefix: Prefix, model: str) -> None:
        self._head = json.dumps(
            {"model": model, "system": prefix.system, "tools": [tool.name for tool in prefix.tools]}
        ).encode()[:-1]
        self._messages: list[bytes] = []

    def append(self, message: Message) -> None:
        self._messages += [json.dumps(entry).encode() for entry in _entries(message)]

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        del params
        return (self._head, b', "messages": [', b", ".join(self._messages), b"]}")

    def prefix_hash(self) -> str:
        return hashlib.sha256(b"".join((self._head, *self._messages))).hexdigest()


def _entries(message: Message) -> Iterator[dict[str, object]]:
    if isinstance(message, Assistant):
        calls = [{"id": one.id, "name": one.name, "arguments": one.raw_arguments} for one in calls_of(message)]
        yield {"from": "model", "text": text_of(message.parts), "calls": calls}
    elif isinstance(message, ToolResults):
        for result in message.results:
            yield {"from": "tool", "id": result.call_id, "text": text_of(result.parts)}
    else:
        yield {"from": "user", "text": text_of(message.parts)}


class ToyReply:
    def __init__(self) -> None:
        self._parts = 0
        self._has_ended = False

    def feed(self, event: ServerEvent) -> Iterator[Delta]:
        fields = json.loads(event.data)
        if "end" in fields:
            self._has_ended = True
            yield ReplyEnded(fields["end"], fields["end"])
            return
        index, self._parts = self._parts, self._parts + 1
        if "text" in fields:
            yield TextDelta(index, fields["text"])
            yield PartClosed(index, Text(fields["text"]))
        else:
            call = fields["call"]
            yield CallDelta(index, call["id"], call["name"], call["arguments"])
            yield PartClosed(index, ToolCall(call["id"], call["name"], call["arguments"]))

    def finish(self) -> Iterator[Delta]:
        if not self._has_ended:
            yield StreamFailed(Failure("connection", "The reply broke off."))

    def whole(self, body: bytes) -> Iterator[Delta]:
        del body
        yield StreamFailed(Failure("server", "The toy only streams."))
