"""The chunks of a Chat Completions stream, read from whatever JSON servers send. Pure."""

import json
from typing import Any, cast

import msgspec

from bradawl.providers.chat.calls import is_object
from bradawl.providers.encoding import untyped
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
    error: Any = None


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


def stop_of(choice: Choice) -> str | None:
    """Why the server stopped; None as long as it has not, which some servers write as the word `null`."""
    reason = choice.finish_reason
    return reason if isinstance(reason, str) and reason not in ("", "null") else None


def error_in(chunk: Chunk, data: str) -> object:
    """The error a chunk reports, as an error body; None if it reports none. `data` is the chunk's text.

    Most servers put it at the top, OpenRouter also into the choice, Groq into a place of its own.
    """
    if chunk.error:
        return untyped(data)
    places = [chunk.x_groq.get("error") if is_object(chunk.x_groq) else None]
    places += [choice.error for choice in chunk.choices or ()]
    return next(({"error": place} for place in places if place), None)


def as_list(value: object) -> list[object]:
    """The items of a list; a value that should have been in one is its only item."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


def joined_text(value: object) -> str:
    """The text of a piece of content: a string, `{"text": ...}`, or a list of these."""
    if isinstance(value, str):
        return value
    if is_object(value):
        text = value.get("text")
        return text if isinstance(text, str) else ""
    return "".join(joined_text(item) for item in cast("list[object]", value)) if isinstance(value, list) else ""
