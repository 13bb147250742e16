"""Messages of a conversation with a model, and the parts they consist of.

All are immutable and survive a JSON round trip. Data that a provider wants back unchanged, such as signatures, is kept
as the text it arrived as.
"""

from typing import Literal

import msgspec


class Value(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of tagged values; in JSON the key `type` holds the class name.

    JSON leaves defaults out, so a default is part of the session format and never changes.
    """


ArgumentsStatus = Literal["ok", "truncated", "malformed"]
_Finished = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence", "context_overflow"]
_Stopped = Literal["content_filter", "refusal", "pause", "error", "cancelled"]
StopReason = Literal[_Finished, _Stopped, "unknown"]


class Text(Value, frozen=True):
    """Plain text."""

    text: str
    provider_data: str = ""
    """JSON text that goes back to the provider unchanged; empty if there is none."""


class Thinking(Value, frozen=True):
    """Reasoning of the model; sent again only to the origin that wrote it."""

    text: str
    signature: str | None = None
    redacted: bool = False
    provider_data: str = ""
    """JSON text that goes back to the provider unchanged; empty if there is none."""


class Image(Value, frozen=True):
    """An image; `data` is the content of its file."""

    media_type: str
    data: bytes


class Document(Value, frozen=True):
    """A file the model gets unchanged, for example a PDF."""

    media_type: str
    data: bytes
    name: str = ""


class ToolCall(Value, frozen=True):
    """A tool call of the model. It runs only if its status is `ok`."""

    id: str
    name: str
    raw_arguments: str
    """As the model wrote them; `core.arguments.parse_arguments` decodes them."""
    status: ArgumentsStatus = "ok"
    signature: str | None = None
    provider_data: str = ""


class Refusal(Value, frozen=True):
    """The model's refusal to answer."""

    text: str


class Opaque(Value, frozen=True):
    """A block of an unknown kind, kept to be sent again."""

    provider_data: str
    """JSON text."""


Part = Text | Thinking | Image | Document | ToolCall | Refusal | Opaque


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a reply came from. Signatures and opaque data go back only to an equal origin."""

    api: str
    """Wire format, for example `openai_chat`."""
    provider: str
    model: str


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text for the model that does not come from the user's prompt or a tool."""

    id: str
    text: str
    source: Literal["user", "job", "hook", "mode", "instructions", "system"] = "system"
    """A note of the `user` continues a turn that would otherwise end."""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one call, as the model sees it."""

    call_id: str
    name: str
    parts: tuple[Text | Image | Document, ...]
    is_error: bool = False


class User(Value, frozen=True):
    """A prompt, and the notes delivered with it."""

    parts: tuple[Text | Image | Document, ...]
    notes: tuple[Note, ...] = ()


class Assistant(Value, frozen=True):
    """A reply. `complete` is false if the stream ended early or was cancelled."""

    parts: tuple[Part, ...]
    origin: Origin
    complete: bool = True
    response_id: str | None = None


class ToolResults(Value, frozen=True):
    """Results of all calls of the reply before, in call order, and the notes delivered with them."""

    results: tuple[ToolResult, ...]
    notes: tuple[Note, ...] = ()


Message = User | Assistant | ToolResults


def calls_of(message: Assistant) -> tuple[ToolCall, ...]:
    """The calls of a reply in the order the model made them."""
    return tuple(part for part in message.parts if isinstance(part, ToolCall))


def text_of(parts: tuple[Part, ...] | tuple[Text | Image | Document, ...]) -> str:
    """The plain text of some parts, joined without a separator; other kinds are left out."""
    return "".join(part.text for part in parts if isinstance(part, Text))
