"""What the model sees: parts, and the messages made of them.

Everything here is an immutable value that survives a JSON round trip. What a provider
wants back unchanged (signatures, encrypted reasoning) is kept as the text it came as, so
that a replay never re-serialises it.
"""

from typing import Literal

import msgspec


class Value(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of every tagged value; the tag is the class name, under the key `type`.

    Defaults are left out of the JSON, so a default is part of the format: it may never change.
    """


ArgumentsStatus = Literal["ok", "truncated", "malformed"]
StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "context_overflow",
    "content_filter",
    "refusal",
    "pause",
    "error",
    "cancelled",
    "unknown",
]


class Text(Value, frozen=True):
    """Plain text."""

    text: str
    provider_data: str = ""
    """JSON text the provider wants back with it as it came; empty when there is none."""


class Thinking(Value, frozen=True):
    """Reasoning of the model; replayed only to the origin that wrote it."""

    text: str
    signature: str | None = None
    redacted: bool = False
    provider_data: str = ""
    """JSON text the provider wants back as it came; empty when there is none."""


class Image(Value, frozen=True):
    """A picture; `data` is the file's bytes."""

    media_type: str
    data: bytes


class Document(Value, frozen=True):
    """A file handed to the model as it is, for example a PDF."""

    media_type: str
    data: bytes
    name: str = ""


class ToolCall(Value, frozen=True):
    """One call the model asked for. Only status `ok` may ever run."""

    id: str
    name: str
    raw_arguments: str
    """As the model wrote them; see `core.arguments.parse_arguments`."""
    status: ArgumentsStatus = "ok"
    signature: str | None = None
    provider_data: str = ""


class Refusal(Value, frozen=True):
    """The model's own refusal to answer."""

    text: str


class Opaque(Value, frozen=True):
    """A block of a kind we don't know, kept for replay."""

    provider_data: str
    """JSON text."""


Part = Text | Thinking | Image | Document | ToolCall | Refusal | Opaque


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who wrote a reply. Signatures and opaque data go back only to an equal api, provider and model."""

    api: str
    """Wire format, for example `openai_chat`."""
    provider: str
    model: str


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text that enters a running turn from outside the model."""

    id: str
    text: str
    source: Literal["user", "job", "hook", "mode", "instructions", "system"] = "system"
    """`user` keeps a turn going that would otherwise have ended."""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to one call, as the model sees it."""

    call_id: str
    name: str
    parts: tuple[Text | Image | Document, ...]
    is_error: bool = False


class User(Value, frozen=True):
    """A prompt, with the notes that waited for it."""

    parts: tuple[Text | Image | Document, ...]
    notes: tuple[Note, ...] = ()


class Assistant(Value, frozen=True):
    """A reply. `complete` is false when the stream was cut or cancelled before its end."""

    parts: tuple[Part, ...]
    origin: Origin
    complete: bool = True
    response_id: str | None = None


class ToolResults(Value, frozen=True):
    """Answers to all calls of the reply before it, in call order, and the notes delivered with them."""

    results: tuple[ToolResult, ...]
    notes: tuple[Note, ...] = ()


Message = User | Assistant | ToolResults


def calls_of(message: Assistant) -> tuple[ToolCall, ...]:
    """The calls of a reply in the order the model made them."""
    return tuple(part for part in message.parts if isinstance(part, ToolCall))


def text_of(parts: tuple[Part, ...] | tuple[Text | Image | Document, ...]) -> str:
    """The plain text of some parts, joined without a separator; other kinds are left out."""
    return "".join(part.text for part in parts if isinstance(part, Text))
