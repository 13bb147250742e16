"""Encodes the parts of a conversation as content blocks of the Messages protocol. Pure."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from bradawl.core.messages import (
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from bradawl.providers.encoding import Json, encode_json, replayable_arguments, tool_name

Shown = Text | Image | Document
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The media types that the API accepts."""


class Block(NamedTuple):
    """An encoded block."""

    encoded: bytes
    is_markable: bool = True
    """False for thinking and unknown kinds, which accept no cache marker."""
    is_thinking: bool = False
    ends_blank: bool = False
    """True for text that ends in white space: a request must not end with it in a reply."""
    is_result: bool = False


def block(fields: Json) -> Block:
    """A block of a kind that accepts a cache marker."""
    text = fields.get("text")
    return Block(encode_json(fields), ends_blank=isinstance(text, str) and text != text.rstrip())


def text_block(text: str) -> Json | None:
    """A text block; None for blank text, which the API rejects."""
    return {"type": "text", "text": text} if text.strip() else None


def attachment(part: Image | Document) -> Json:
    """A block for an image or document, or for a line that says why it can't be shown."""
    if isinstance(part, Image):
        if part.media_type not in _IMAGES:
            return _unshown("image", part.media_type, part.data)
        return {"type": "image", "source": _base64(part.media_type, part.data)}
    if part.media_type == "application/pdf":
        encoded: Json = {"type": "document", "source": _base64(part.media_type, part.data)}
    elif (text := _as_text(part)) is not None:
        encoded = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}
    else:
        return _unshown(part.name or "document", part.media_type, part.data)
    if part.name.strip():
        encoded["title"] = part.name[:500]
    return encoded


def _base64(media_type: str, data: bytes) -> Json:
    return {"type": "base64", "media_type": media_type, "data": b64encode(data).decode("ascii")}


def _as_text(part: Document) -> str | None:
    try:
        text = part.data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.strip() and "\0" not in text else None


def _unshown(name: str, media_type: str, data: bytes) -> Json:
    return {"type": "text", "text": f"[{name}: {len(data)} bytes of {media_type}, which this model can't be shown.]"}


def shown(parts: Iterable[Shown]) -> list[Json]:
    """The blocks for the parts of a prompt or result, in order, without blank texts."""
    encoded = (text_block(part.text) if isinstance(part, Text) else attachment(part) for part in parts)
    return [fields for fields in encoded if fields is not None]


# ------------------------------------------------------------------ replies


def reply_block(part: Part, *, is_own: bool, needs_signature: bool, call_id: str = "") -> Block | None:
    """The block that replays a part of a reply; None if it can't be replayed. `is_own`: by the same model.

    `call_id` is the id to send for a call.
    """
    match part:
        case Text() | Refusal():
            return _text(part, is_own=is_own)
        case ToolCall():
            return _tool_use(part, call_id, is_own=is_own)
        case Thinking() if is_own:
            return _thinking(part, needs_signature=needs_signature)
        case Opaque(provider_data) if is_own and _has_type(provider_data):
            return Block(provider_data.encode("utf-8", "replace"), is_markable=False)
        case _:
            return None


def _text(part: Text | Refusal, *, is_own: bool) -> Block | None:
    fields = text_block(part.text)
    if fields is None:
        return None
    if is_own and isinstance(part, Text):
        fields |= _known(part.provider_data, "citations")
    return block(fields)


def _tool_use(call: ToolCall, call_id: str, *, is_own: bool) -> Block:
    arguments = msgspec.Raw(replayable_arguments(call).encode("utf-8", "replace"))
    fields: Json = {"type": "tool_use", "id": call_id, "name": tool_name(call.name), "input": arguments}
    if is_own:
        fields |= _known(call.provider_data, "caller", "toolset_name")
    return block(fields)


def _thinking(part: Thinking, *, needs_signature: bool) -> Block | None:
    extras = extras_of(part.provider_data)
    if part.redacted:
        return _thought({"type": "redacted_thinking", **extras}) if "data" in extras else None
    if part.signature is None and (needs_signature or not part.text):
        return None
    return _thought({"type": "thinking", "thinking": part.text, "signature": part.signature or "", **extras})


def _thought(fields: Json) -> Block:
    return Block(encode_json(fields), is_markable=False, is_thinking=True)


def extras_of(provider_data: str) -> Json:
    """The additional fields of a received block, as encoded JSON, to send back with it."""
    if not provider_data:
        return {}
    try:
        return dict(msgspec.json.decode(provider_data, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}


def _known(provider_data: str, *names: str) -> Json:
    """Those of the fields that requests accept; the API rejects fields that only replies have."""
    extras = extras_of(provider_data)
    return {name: extras[name] for name in names if name in extras}


class _Typed(msgspec.Struct):
    type: str


def _has_type(provider_data: str) -> bool:
    try:
        return bool(msgspec.json.decode(provider_data, type=_Typed).type)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


# ------------------------------------------------------------------ results


def result_block(
    result: ToolResult, call_id: str, notes: Sequence[Json], *, takes_documents: bool
) -> tuple[Block, list[Json]]:
    """The result block of a call with its notes, and the blocks that must follow all results.

    The result of a failed call may contain only text, and only Claude is known to accept documents in results.
    """
    content: list[Json] = []
    behind: list[Json] = []
    for part in result.parts:
        if isinstance(part, Text):
            fields = text_block(part.text)
        else:
            fields = attachment(part)
            if fields["type"] != "text" and (result.is_error or (isinstance(part, Document) and not takes_documents)):
                behind.append(fields)
                continue
        if fields is not None:
            content.append(fields)
    content.extend(notes)
    encoded: Json = {"type": "tool_result", "tool_use_id": call_id}
    if len(content) == 1 and content[0]["type"] == "text":
        encoded["content"] = content[0]["text"]
    elif content:
        encoded["content"] = content
    if result.is_error:
        encoded["is_error"] = True
    if behind:
        behind.insert(0, {"type": "text", "text": f"Attached to the result of {result.name or 'the tool'}:"})
    return Block(encode_json(encoded), is_result=True), behind


def narrated(calls: Sequence[tuple[ToolCall, ToolResult]]) -> list[Json]:
    """The calls of a reply that can't be replayed, with their results, as text."""
    narration: list[Json] = [
        {"type": "text", "text": "Your last reply broke off. Before it did, you had made these calls:"}
    ]
    for call, result in calls:
        how = "It failed with" if result.is_error else "It gave"
        narration.append({"type": "text", "text": f"{tool_name(call.name)} {replayable_arguments(call)}\n{how}:"})
        narration.extend(shown(result.parts) or [{"type": "text", "text": "(nothing)"}])
    return narration
