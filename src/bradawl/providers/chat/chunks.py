"""The chunks of a Chat Completions stream, read from whatever JSON servers send. Pure."""

import json
from typing import Any, cast

import msgspec

from bradawl.providers.chat.calls import is_object
from bradawl.providers.encoding import without_surrogates
from bradawl.providers.surrogates import SurrogatePairs


class ChunkDelta(msgspec.Struct):
    """What a chunk brings, loosely typed: servers put anything there."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class Choice(msgspec.Struct):
    """One of the replies a chunk belongs to; only the first was asked for."""

    delta: ChunkDelta | None = None
    message: ChunkDelta | None = None
    finish_reason: Any = None
    index: Any = None
    usage: Any = None


class Chunk(msgspec.Struct):
    """Only what is used, and loosely typed: servers put anything into the rest."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
    id: Any = None
    model: Any = None
    x_groq: Any = None


decode = msgspec.json.Decoder(Chunk).decode
"""A chunk from its text. Raises `msgspec.DecodeError`."""


def decode_leniently(data: str, pairs: SurrogatePairs) -> Chunk | None:
    """A chunk that is JSON only to a forgiving reader; None if it is not even that."""
    try:
        return msgspec.convert(pairs.mend(json.loads(data, strict=False)), Chunk)
    except (ValueError, RecursionError):
        return None


def is_groq_error(chunk: Chunk) -> bool:
    """True when Groq says so in its own place."""
    return is_object(chunk.x_groq) and bool(chunk.x_groq.get("error"))


def untyped(data: str) -> object:
    """An event as plain values, or its text when it is no JSON."""
    try:
        return without_surrogates(json.loads(data, strict=False))
    except (ValueError, RecursionError):
        return data


def joined_text(value: object) -> str:
    """The text of a piece of content: a string, `{"text": ...}`, or a list of these."""
    if isinstance(value, str):
        return value
    if is_object(value):
        text = value.get("text")
        return text if isinstance(text, str) else ""
    return "".join(joined_text(item) for item in cast("list[object]", value)) if isinstance(value, list) else ""
