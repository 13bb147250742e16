"""Functions shared by the codecs: JSON that every server accepts, ids, and texts for the model."""

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
"""The result of a call that has none: every protocol requires a result for each call."""

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
    """Decodes JSON leniently, to plain values; gives back the text if it is not JSON."""
    try:
        return without_surrogates(json.loads(data, strict=False))
    except (ValueError, RecursionError):
        return data


def valid_arguments(raw: str) -> str:
    """The arguments of a call as JSON text of an object.

    Chat templates of local servers decode them again, and the next request fails on anything else.
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
    """A `data:` URL with the content in base 64."""
    from base64 import b64encode

    return f"data:{media_type};base64,{b64encode(data).decode('ascii')}"


def replayable_arguments(call: ToolCall) -> str:
    """The arguments of a call as JSON text of an object; malformed ones go into the field `_invalid_json`."""
    raw = call.raw_arguments
    if call.status == "ok":
        return valid_arguments(raw)
    return json.dumps({"_invalid_json": without_surrogates(raw)}, ensure_ascii=False) if raw.strip() else "{}"


def tool_name(name: str) -> str:
    """A call's name, changed to one that every server accepts: models invent names."""
    return name if _NAME.fullmatch(name) else _NOT_IN_NAMES.sub("_", name)[:64] or "unknown"


def note_text(note: Note) -> str:
    """The text of a note for the model."""
    return f'<note source="{note.source}">\n{note.text}\n</note>'


def schema_in_words(schema: str) -> str:
    """The instruction to answer by a schema, for servers without such a request field."""
    return (
        "Your final answer must be one JSON value and nothing else: no words around it and no code fence. "
        f"It must satisfy this JSON Schema:\n{schema}"
    )


def digest_of(call_id: str) -> int:
    """A number derived from a call id, for servers that reject the id itself."""
    return int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest()[:12], "big")


def new_call_id() -> str:
    """A random id for a call without one: `call_` and 12 characters of base 36."""
    return "call_" + base36(int.from_bytes(os.urandom(10), "big"), 12)


def base36(number: int, length: int) -> str:
    """The lowest `length` base-36 digits of a number."""
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, 36)
        digits.append("0123456789abcdefghijklmnopqrstuvwxyz"[digit])
    return "".join(reversed(digits))
