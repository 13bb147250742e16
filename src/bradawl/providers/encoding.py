"""What the codecs of all wire formats share: JSON any server can read or write, ids, words for the model."""

import hashlib
import json
import os
import re
from typing import cast

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import Note, ToolCall

Json = dict[str, object]

UNANSWERED = "No result: the call was not run to its end."
"""What a call is answered with when nothing else is there: every format wants an answer to each."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def encode_json(value: object) -> bytes:
    """JSON in UTF-8; a lone surrogate, which UTF-8 can't hold, becomes U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(without_surrogates(value))


def without_surrogates(value: object) -> object:
    """The value with lone surrogates replaced by U+FFFD; a pair becomes the character it stands for."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in cast("Json", value).items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in cast("list[object]", value)]
    return value


def untyped(data: str) -> object:
    """JSON as forgivingly as it can be read, as plain values; the text itself if it is none."""
    try:
        return without_surrogates(json.loads(data, strict=False))
    except (ValueError, RecursionError):
        return data


def valid_arguments(raw: str) -> str:
    """The arguments of a call as text that every server can parse to an object.

    Chat templates of local servers decode them again and fail a step later on anything else.
    """
    if not raw.strip():
        return "{}"
    try:
        if isinstance(msgspec.json.decode(raw), dict):
            return raw
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass
    arguments, status = parse_arguments(raw)
    if status == "ok":
        try:
            return json.dumps(without_surrogates(arguments), ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError):
            pass
    return json.dumps({"_invalid_json": without_surrogates(raw)}, ensure_ascii=False)


def data_url(media_type: str, data: bytes) -> str:
    """A file as the URL it travels in."""
    from base64 import b64encode

    return f"data:{media_type};base64,{b64encode(data).decode('ascii')}"


def replayable_arguments(call: ToolCall) -> str:
    """The arguments of a call as an object; those that did not run are shown as what they were."""
    raw = call.raw_arguments
    if call.status == "ok":
        return valid_arguments(raw)
    return json.dumps({"_invalid_json": without_surrogates(raw)}, ensure_ascii=False) if raw.strip() else "{}"


def tool_name(name: str) -> str:
    """The name of a call as every server takes it: models invent others."""
    return name if _NAME.fullmatch(name) else _NOT_IN_NAMES.sub("_", name)[:64] or "unknown"


def note_text(note: Note) -> str:
    """A note as the model reads it."""
    return f'<note source="{note.source}">\n{note.text}\n</note>'


def schema_in_words(schema: str) -> str:
    """What the model is told about its answer where the server isn't told."""
    return (
        "Your final answer must be one JSON value and nothing else: no words around it and no code fence. "
        f"It must satisfy this JSON Schema:\n{schema}"
    )


def digest_of(call_id: str) -> int:
    """A number that stands for an id a server would not take, the same each time."""
    return int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest()[:12], "big")


def new_call_id() -> str:
    """A fresh id for a call the server left without one: `call_` and 12 characters of base 36."""
    return "call_" + base36(int.from_bytes(os.urandom(10), "big"), 12)


def base36(number: int, length: int) -> str:
    """The lowest `length` base-36 digits of a number."""
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, 36)
        digits.append("0123456789abcdefghijklmnopqrstuvwxyz"[digit])
    return "".join(reversed(digits))
