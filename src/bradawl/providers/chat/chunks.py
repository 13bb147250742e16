"""Decodes the chunks of a Chat Completions stream leniently. Pure."""

import json
from typing import Any, cast

import msgspec

from bradawl.providers.chat.calls import is_object
from bradawl.providers.encoding import untyped
from bradawl.providers.surrogates import SurrogatePairs


class ChunkDelta(msgspec.Struct):
    """The delta of a chunk, loosely typed, because servers send any JSON type."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class Choice(msgspec.Struct):
    """One choice of a chunk; requests ask for one only."""

    delta: ChunkDelta | None = None
    message: ChunkDelta | None = None
    finish_reason: Any = None
    index: Any = None
    usage: Any = None
    error: Any = None


class Chunk(msgspec.Struct):
    """One chunk; only the fields used here, loosely typed, because servers send any JSON type."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
    id: Any = None
    model: Any = None
    x_groq: Any = None


decode = msgspec.json.Decoder(Chunk).decode
"""A chunk from its text. Raises `msgspec.DecodeError`."""


def decode_leniently(data: str, pairs: SurrogatePairs) -> Chunk | None:
    """A chunk of JSON that msgspec rejects; None if it is not JSON at all."""
    try:
        return msgspec.convert(pairs.mend(json.loads(data, strict=False)), Chunk)
    except (ValueError, RecursionError):
        return None


def stop_of(choice: Choice) -> str | None:
    """The finish reason; None while there is none, which some servers send as the string `null`."""
    reason = choice.finish_reason
    return reason if isinstance(reason, str) and reason not in ("", "null") else None


def error_in(chunk: Chunk, data: str) -> object:
    """The error a chunk reports, as an error body; None if it reports none. `data` is the chunk's text.

    Most servers put it at the top level, OpenRouter also into the choice, Groq into `x_groq`.
    """
    if chunk.error:
        return untyped(data)
    places = [chunk.x_groq.get("error") if is_object(chunk.x_groq) else None]
    places += [choice.error for choice in chunk.choices or ()]
    return next(({"error": place} for place in places if place), None)


def as_list(value: object) -> list[object]:
    """The items of a list; any other value is a single item."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


def joined_text(value: object) -> str:
    """The text of content: a string, `{"text": ...}`, or a list of these."""
    if isinstance(value, str):
        return value
    if is_object(value):
        text = value.get("text")
        return text if isinstance(text, str) else ""
    return "".join(joined_text(item) for item in cast("list[object]", value)) if isinstance(value, list) else ""
