"""Feeds recorded streams to a codec, and returns the outcome in the format of the samples' `expect`."""

import itertools
import json
from pathlib import Path

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.deltas import CallDelta, Delta, PartClosed, ReplyEnded, StreamFailed
from bradawl.core.messages import Origin, Part, Refusal, Text, Thinking, ToolCall
from bradawl.folds.assembler import Assembler
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.codec import Codec
from bradawl.providers.sse import SseDecoder

SAMPLES = Path(__file__).parent / "samples"
ORIGIN = Origin("openai_chat", "demo", "demo-model")


def read_sample(name: str) -> dict[str, object]:
    """The description of a recorded stream."""
    return json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))


def reject_constant(name: str) -> None:
    """Refuses NaN and the infinities, as `parse_constant` of `json.loads`."""
    raise ValueError(f"{name} is not JSON")


def numbered_ids():
    """Generated ids, all different."""
    count = itertools.count(1)
    return lambda: f"call_generated{next(count)}"


def chat(base_url: str = "") -> OpenAIChat:
    return OpenAIChat(base_url, new_id=numbered_ids(), now_s=lambda: 1_790_000_000.0)


def decode(codec: Codec, chunks) -> list[Delta]:
    """The deltas of a stream that ends after these chunks."""
    sse, reply = SseDecoder(), codec.decoder()
    deltas: list[Delta] = []
    for chunk in chunks:
        for event in sse.feed(chunk):
            deltas.extend(reply.feed(event))
    for event in sse.close():
        deltas.extend(reply.feed(event))
    deltas.extend(reply.finish())
    return deltas


def stream_of(*events: object, done: bool = True) -> bytes:
    """Events as a server sends them."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    """One `chat.completion.chunk`."""
    return {
        "id": "r1",
        "model": "demo-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def call(arguments: object = "", **fields: object) -> dict[str, object]:
    """One entry of `tool_calls`; `name` is put into its `function`."""
    function = {"arguments": arguments}
    if "name" in fields:
        function["name"] = fields.pop("name")
    return {**fields, "function": function}


def outcome(deltas: list[Delta]) -> dict[str, object]:
    """Outcome of a list of deltas, in the format of the samples' `expect`."""
    assembler = Assembler(ORIGIN)
    for delta in deltas:
        assembler.feed(delta)
    ends = [delta for delta in deltas if isinstance(delta, ReplyEnded | StreamFailed)]
    assert len(ends) == 1
    assert ends[0] is deltas[-1]
    for index in sorted(assembler.open_calls):
        assembler.feed(PartClosed(index, _unclosed(index, deltas)))
    usage, failure = assembler.usage, assembler.failure
    shown: dict[str, object] = {
        "parts": [_part(part) for part in assembler.reply().parts],
        "stop_reason": assembler.stop,
        "raw_stop": ends[0].raw_stop,
        "usage": usage
        and {name: getattr(usage, name) for name in ("input", "output", "cache_read", "cache_write", "reasoning")},
        "complete": assembler.has_ended,
        "error": failure
        and {
            "kind": failure.kind,
            "retryable": failure.retryable,
            "code": failure.code,
            "message": failure.message,
            "status": failure.status,
            "retry_after": failure.retry_after_s,
        },
        "warnings": list(assembler.warnings),
        "id": assembler.response_id,
        "model": assembler.model,
    }
    if ends[0].details:
        shown["stop_details"] = json.loads(ends[0].details)
    return shown


def _unclosed(index: int, deltas: list[Delta]) -> ToolCall:
    """The received part of an unfinished call. It is not part of the reply, but the samples list it."""
    pieces = [delta for delta in deltas if isinstance(delta, CallDelta) and delta.index == index]
    raw = "".join(piece.arguments for piece in pieces)
    _, status = parse_arguments(raw, cut=True)
    return ToolCall(pieces[-1].call_id, pieces[-1].name, raw, status if raw else "truncated")


def compared(seen: dict[str, object], told: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """An outcome and a sample's `expect`, without the fields that the samples leave to each client.

    These are the id of a call that came without one, the type of a reply's id, the names of warnings, and
    whether a text has provider data.
    """
    seen, told = (
        {**one, "warnings": None, "id": None if one["id"] is None else str(one["id"])} for one in (seen, told)
    )
    parts = [dict(part) for part in seen["parts"]]
    ids = [part["id"] for part in parts if part["type"] == "tool_call"]
    assert len(set(ids)) == len(ids)
    wanted = []
    for part, want in itertools.zip_longest(parts, told["parts"], fillvalue={}):
        if want.get("id") == "@generated":
            assert part.get("id")
            want = {**want, "id": part["id"]}
        if want.get("type") == "text" and "provider_data" not in want:
            part.pop("provider_data", None)
        wanted.append(want)
    return {**seen, "parts": parts}, {**told, "parts": wanted}


def _part(part: Part) -> dict[str, object]:
    match part:
        case Refusal(text):
            return {"type": "refusal", "text": text}
        case Text(text):
            shown: dict[str, object] = {"type": "text", "text": text}
        case Thinking(text):
            shown = {"type": "thinking", "text": text}
            if part.redacted:
                shown["redacted"] = True
        case ToolCall(id=call_id, name=name, raw_arguments=raw, status=status):
            args, _ = parse_arguments(raw, cut=status == "truncated")
            shown = {"type": "tool_call", "id": call_id, "name": name, "raw_args": raw}
            shown["args"] = args if status == "ok" else None
            shown["args_status"] = status
        case _:
            raise AssertionError(part)
    if not isinstance(part, Text) and part.signature is not None:
        shown["signature"] = part.signature
    if part.provider_data:
        shown["provider_data"] = msgspec.json.decode(part.provider_data)
    return shown
