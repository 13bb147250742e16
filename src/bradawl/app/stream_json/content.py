"""Blocks of a message in the stream, in the form of the Anthropic Messages API, made from the parts of a message."""

from base64 import b64encode
from typing import assert_never

import msgspec

from bradawl.app.json_values import call_input
from bradawl.core.messages import Document, Image, Opaque, Part, Refusal, Text, Thinking, ToolCall


class Base64Source(msgspec.Struct, frozen=True, tag="base64"):
    """The content of a file."""

    media_type: str
    data: str


class TextBlock(msgspec.Struct, frozen=True, tag="text"):
    """Text, also a refusal of the model."""

    text: str


class ThinkingBlock(msgspec.Struct, frozen=True, tag="thinking"):
    """Reasoning of the model; the signature is empty if the provider gives none."""

    thinking: str
    signature: str = ""


class ToolUseBlock(msgspec.Struct, frozen=True, tag="tool_use"):
    """A call. Arguments that are no JSON object are the text `_raw` of `input`."""

    id: str
    name: str
    input: dict[str, object]


class ImageBlock(msgspec.Struct, frozen=True, tag="image"):
    """An image."""

    source: Base64Source


class DocumentBlock(msgspec.Struct, frozen=True, tag="document"):
    """A file that the model gets unchanged, such as a PDF."""

    source: Base64Source
    title: str = ""


class ToolResultBlock(msgspec.Struct, frozen=True, tag="tool_result"):
    """The result of a call, as the model sees it."""

    tool_use_id: str
    content: str | tuple[TextBlock | ImageBlock | DocumentBlock, ...]
    is_error: bool = False


ReplyBlock = TextBlock | ThinkingBlock | ToolUseBlock
ResultBlock = TextBlock | ImageBlock | DocumentBlock


def reply_blocks(parts: tuple[Part, ...]) -> tuple[ReplyBlock, ...]:
    """The blocks of a reply, without parts that only the provider can read."""
    return tuple(block for part in parts if (block := _reply_block(part)) is not None)


def _reply_block(part: Part) -> ReplyBlock | None:
    match part:
        case Text(text) | Refusal(text):
            return TextBlock(text)
        case Thinking(text, signature, redacted):
            return None if redacted else ThinkingBlock(text, signature or "")
        case ToolCall():
            return ToolUseBlock(part.id, part.name, call_input(part.raw_arguments))
        case Image() | Document() | Opaque():
            return None
        case _:
            assert_never(part)


def result_content(shown: tuple[Text | Image | Document, ...]) -> str | tuple[ResultBlock, ...]:
    """The content of a result: one text if it has nothing else."""
    texts = [part.text for part in shown if isinstance(part, Text)]
    return "".join(texts) if len(texts) == len(shown) else tuple(map(_result_block, shown))


def _result_block(part: Text | Image | Document) -> ResultBlock:
    match part:
        case Text(text):
            return TextBlock(text)
        case Image(media_type, data):
            return ImageBlock(Base64Source(media_type, b64encode(data).decode()))
        case Document(media_type, data, name):
            return DocumentBlock(Base64Source(media_type, b64encode(data).decode()), name)
        case _:
            assert_never(part)
