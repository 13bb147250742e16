"""The conversation as a text that the model can read and search: what a compaction takes out, word for word."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Message,
    Note,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)

Place = tuple[int, int]
"""First and last line, from 1."""
Key = tuple[int, int]
"""Number of a message, and of a result or a part in it; the number -1 is the whole message."""


class Record(NamedTuple):
    """The text, where in it each message, each part of a prompt and each result is, and its file."""

    text: str
    places: dict[Key, Place]
    file: str = ""
    """Empty if it is not on the disk."""
    ref: str = ""
    """Name of the blob."""

    def where(self, key: Key) -> str:
        """`FILE lines 3-9`; empty if the text is not on the disk."""
        if not self.file or (place := self.places.get(key)) is None:
            return ""
        return f"{self.file} lines {place[0]}-{place[1]}"


class _Writer:
    def __init__(self, mark: str) -> None:
        self.lines: list[str] = []
        self._mark = f" [{mark}]" if mark else ""

    def head(self, text: str) -> None:
        """A heading. What a tool returned can look like one, but it does not know the mark."""
        self.add(f"{text}{self._mark}")

    def add(self, text: str) -> None:
        """What somebody said or a tool returned."""
        self.lines += text.splitlines() or [""]


def record_of(messages: Sequence[Message], earlier: str = "", mark: str = "") -> Record:
    """The record of some messages. `earlier` is the file with what came before them; empty for none.

    `mark` is at the end of each heading: text that nothing in the conversation can know.
    """
    writer, places = _Writer(mark), dict[Key, Place]()
    writer.add("Part of the conversation with bradawl, word for word, as it was before a compaction.")
    if mark:
        writer.head("Only lines that end like this one are headings.")
    if earlier:
        writer.add(f"Earlier part: {earlier}")
    for number, message in enumerate(messages):
        begin = len(writer.lines) + 2
        writer.add("")
        writer.head(f"## {number + 1} {_kind(message)}")
        match message:
            case User(parts, notes):
                for place, part in enumerate(parts):
                    first = len(writer.lines) + 1
                    _add_parts(writer, (part,))
                    places[number, place] = (first, len(writer.lines))
                _add_notes(writer, notes)
            case Assistant(parts):
                _add_parts(writer, parts)
            case ToolResults(results, notes):
                for place, result in enumerate(results):
                    places[number, place] = _add_result(writer, result)
                _add_notes(writer, notes)
        places[number, -1] = (begin, len(writer.lines))
    return Record("\n".join(writer.lines) + "\n", places)


def _kind(message: Message) -> str:
    match message:
        case User():
            return "user"
        case Assistant():
            return "assistant"
        case ToolResults():
            return "results"


def _add_parts(writer: _Writer, parts: Sequence[Part]) -> None:
    for part in parts:
        match part:
            case Text(text) | Refusal(text):
                writer.add(text)
            case ToolCall(call_id, name):
                writer.head(f"### call {call_id} {name}")
                writer.add(arguments_text(part))
            case Image() | Document():
                writer.add(attachment_text(part))
            case _:
                pass  # thinking, and blocks that only their provider can read


def _add_result(writer: _Writer, result: ToolResult) -> Place:
    begin = len(writer.lines) + 1
    writer.head(f"### result of {result.name} {result.call_id}{' (an error)' if result.is_error else ''}")
    _add_parts(writer, result.parts)
    return begin, len(writer.lines)


def _add_notes(writer: _Writer, notes: Sequence[Note]) -> None:
    for note in notes:
        writer.head(f'<note source="{note.source}">')
        writer.add(note.text)
        writer.head("</note>")


def arguments_text(call: ToolCall) -> str:
    """The arguments of a call, one a line, with texts as they are."""
    arguments = parse_arguments(call.raw_arguments)[0]
    if not arguments:
        return call.raw_arguments
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


def attachment_text(part: Image | Document) -> str:
    """What stands for an image or a document."""
    kind = "image" if isinstance(part, Image) else part.name or "document"
    return f"[{kind}: {len(part.data):,} bytes of {part.media_type}]"
