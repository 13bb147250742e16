"""Estimates the tokens of a conversation: the last reported count, and an estimate of the messages after it."""

from collections.abc import Iterable
from typing import assert_never

from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Message,
    Note,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResults,
    User,
)
from bradawl.core.ports import Prefix, ToolSchema
from bradawl.shaping.tokens import estimate

MESSAGE_TOKENS = 4
"""Tokens of the framing of a message, and of each result in one."""
_CALL = 12
_NOTE = 10
_TOOL = 8
_IMAGE = 1_600
"""Tokens of an image of 1568 x 1568 pixels with the most expensive provider; servers scale larger images down."""
_SMALLEST_IMAGE = 85
_PIXELS_PER_TOKEN = 750
_BYTES_PER_PAGE_TOKEN = 40
"""Bytes of a PDF per token, if a page has about 60 kB and 1,500 tokens."""


def prefix_tokens(prefix: Prefix) -> int:
    """Tokens of the system prompt and the tools."""
    return MESSAGE_TOKENS + estimate(prefix.system) + sum(map(tool_tokens, prefix.tools))


def tool_tokens(tool: ToolSchema) -> int:
    """Tokens of the schema of one tool."""
    return _TOOL + estimate(tool.name) + estimate(tool.description) + estimate(bytes(tool.parameters).decode())


def message_tokens(message: Message) -> int:
    """Tokens of a message, its framing included."""
    match message:
        case User(parts, notes):
            return MESSAGE_TOKENS + sum(map(part_tokens, parts)) + sum(map(note_tokens, notes))
        case Assistant(parts):
            return MESSAGE_TOKENS + sum(map(part_tokens, parts))
        case ToolResults(results, notes):
            parts = (part for result in results for part in result.parts)
            return MESSAGE_TOKENS * len(results) + sum(map(part_tokens, parts)) + sum(map(note_tokens, notes))
        case _:
            assert_never(message)


class MessageSizes:
    """Tokens of the messages of a conversation, each estimated once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, int]] = {}
        """By identity; each with its message, so that no other one gets the same identity."""

    def of(self, message: Message) -> int:
        """Tokens of a message, its framing included."""
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = message, message_tokens(message)
        return known[1]

    def total(self, messages: Iterable[Message]) -> int:
        """Tokens of some messages."""
        return sum(map(self.of, messages))

    def keep(self, messages: Iterable[Message]) -> None:
        """Forget all other messages."""
        kept = map(id, messages)
        self._known = {each: self._known[each] for each in kept if each in self._known}


def note_tokens(note: Note) -> int:
    """Tokens of one note."""
    return _NOTE + estimate(note.text)


def part_tokens(part: Part) -> int:
    """Tokens of one part."""
    match part:
        case Text(text) | Refusal(text):
            return estimate(text)
        case Thinking(text):
            return estimate(text)
        case ToolCall(_, name, raw_arguments):
            return _CALL + estimate(name) + estimate(raw_arguments)
        case Image(_, data):
            return _image_tokens(data)
        case Document(_, data):
            return max(MESSAGE_TOKENS, len(data) // _BYTES_PER_PAGE_TOKEN)
        case Opaque(provider_data):
            return estimate(provider_data)
        case _:
            assert_never(part)


def _image_tokens(data: bytes) -> int:
    """Computed from the size in pixels of a PNG; other images count as large."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 24:
        return _IMAGE
    pixels = int.from_bytes(data[16:20], "big") * int.from_bytes(data[20:24], "big")
    return min(_IMAGE, max(_SMALLEST_IMAGE, pixels // _PIXELS_PER_TOKEN))
