"""Decodes the events of a Messages stream and assembles its content blocks. Pure."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import Opaque, Part, Text, Thinking, ToolCall
from bradawl.providers.encoding import untyped

Fields = Mapping[str, msgspec.Raw]
_NONE = msgspec.Raw(b"null")


class StreamDelta(msgspec.Struct):
    """The fields of a delta that are used."""

    type: str | None = None
    partial_json: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: msgspec.Raw = _NONE
    stop_reason: str | None = None
    stop_details: msgspec.Raw = _NONE


class StreamEvent(msgspec.Struct):
    """One event of the stream, or a complete reply."""

    type: str | None = None
    index: int | None = None
    delta: StreamDelta | None = None
    content_block: dict[str, msgspec.Raw] | None = None
    message: dict[str, msgspec.Raw] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


decode_event = msgspec.json.Decoder(StreamEvent).decode
_decode_loosely = msgspec.json.Decoder(StreamEvent, strict=False).decode


def decode_leniently(value: object) -> StreamEvent | None:
    """An event that the strict decoder rejected, from its decoded JSON."""
    if isinstance(value, dict) and isinstance(value.get("delta"), dict):
        arguments = value["delta"].get("partial_json")
        if isinstance(arguments, dict | list):  # some gateways send an object instead of text
            value["delta"]["partial_json"] = json.dumps(arguments, ensure_ascii=False)
    try:
        return _decode_loosely(msgspec.json.encode(value))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def string_in(fields: Fields, key: str) -> str | None:
    """A string field; None if missing or of another type."""
    value = value_in(fields, key)
    return value if isinstance(value, str) else None


def value_in(fields: Fields, key: str) -> object:
    """A decoded field; None if missing."""
    raw = fields.get(key)
    return None if raw is None else untyped(bytes(raw).decode("utf-8", "replace"))


_OWN_FIELDS = {
    "text": frozenset({"type", "text", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type"}),
    "tool_use": frozenset({"type", "id", "name", "input"}),
}


class OpenBlock:
    """A content block that is still arriving."""

    __slots__ = ("_citations", "call_id", "fields", "kind", "name", "place", "signature", "texts")

    def __init__(self, place: int, kind: str, fields: Fields) -> None:
        self.place = place
        self.kind = kind
        self.fields = fields
        self.call_id = string_in(fields, "id") or ""
        self.name = string_in(fields, "name") or ""
        self.signature = string_in(fields, "signature") or ""
        self.texts: list[str] = []
        """Fragments of the block's text, thinking or arguments."""
        self._citations: list[msgspec.Raw] = []
        if kind in ("text", "thinking") and (begun := string_in(fields, kind)):
            self.texts.append(begun)
        self._cite_all(fields.get("citations"))

    def _cite_all(self, citations: msgspec.Raw | None) -> None:
        if citations is not None:
            try:
                self._citations += msgspec.json.decode(citations, type=list[msgspec.Raw])
            except msgspec.DecodeError:
                return

    def cite(self, citation: msgspec.Raw) -> None:
        """Add a citation of the text."""
        if bytes(citation) != b"null":
            self._citations.append(msgspec.Raw(bytes(citation)))

    @property
    def placed_input(self) -> str:
        """Arguments in the block's start, where compatible servers put them. Empty for the placeholder `{}`."""
        raw = bytes(self.fields.get("input", _NONE)).decode("utf-8", "replace")
        return raw if raw.strip("{}[] \t\r\n") not in ("", "null") else ""

    def call(self, *, cut: bool) -> ToolCall:
        """The block as a call; `cut` if the reply was truncated."""
        raw = "".join(self.texts)
        if not raw.strip():
            raw = self.placed_input
        _, status = parse_arguments(raw, cut=cut)
        return ToolCall(self.call_id, self.name, raw, status, provider_data=self._extras())

    def part(self) -> Part | None:
        """The block as a part of the reply, for blocks that are not calls; None if empty."""
        text = "".join(self.texts)
        match self.kind:
            case "text":
                return Text(text, provider_data=self._extras()) if text else None
            case "thinking":
                return Thinking(text, signature=self.signature or None, provider_data=self._extras())
            case "redacted_thinking":
                return Thinking("", redacted=True, provider_data=self._extras())
            case _:
                return self._opaque(text)

    def _opaque(self, text: str) -> Opaque:
        """A block of unknown kind, unchanged; arguments of server tools are put into its `input`."""
        fields = dict(self.fields)
        if text:
            arguments, status = parse_arguments(text)
            fields["input"] = msgspec.Raw(text.encode() if status == "ok" and arguments is not None else b"{}")
        return Opaque(msgspec.json.encode(fields).decode())

    def _extras(self) -> str:
        own = _OWN_FIELDS[self.kind]
        extras = {key: raw for key, raw in self.fields.items() if key not in own and bytes(raw) != b"null"}
        if self._citations:
            extras["citations"] = msgspec.Raw(msgspec.json.encode(self._citations))
        return msgspec.json.encode(extras).decode() if extras else ""
