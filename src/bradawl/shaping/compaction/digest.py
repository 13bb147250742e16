"""A summary without a model: what the agent said, which calls it made, and the lines of the results that say most."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

from bradawl.core.arguments import Arguments, is_object, parse_arguments
from bradawl.core.messages import Assistant, Message, ToolCall, ToolResults, User, calls_of, text_of
from bradawl.shaping.compaction.lines import cut_line, rating, shape_of, shapes_of
from bradawl.shaping.compaction.snip import MARK, text_of_result
from bradawl.shaping.reminder_notes import PLAN_TOOL

_CHANGES: Final = frozenset({"edit_file", "multi_edit", "write_file"})
_NAMED: Final = ("file_path", "path", "file_paths", "paths", "command", "pattern", "url", "prompt", "query", "question")
_CHANGING_COMMAND: Final = (
    r"\b(?:mv|cp|rm|mkdir|touch|ln|install|commit|checkout|apply|sed -i|tee|patch|migrate|push|add|init)\b|>"
)
_INTENTION: Final = r"(?i)(?:let me|now |i'll|i will|next|let's|ok|okay|first|good|great|looking|checking|running)\b"
_REASON: Final = (
    r"(?i)\b(?:because|since|so that|instead|rather|decid|chose|choose|keep|kept|must|never|always|only|avoid|cause|"
    r"root|due to|therefore|turns out|means|requires?|not? longer|won't|will not|should|agreed|prefer|trade-?off)"
)
_SENTENCES: Final = r"(?<=[.!?:])\s+(?=[A-Z`\"'(\[])|\n+"
_OF_USER: Final = "- user: "
_SAYS_NOTHING: Final = r"\[exit code 0\]|\[stderr\]|\(no output\)|(?:import|from) [\w.]+(?: import .*)?|.*\bPASSED\b.*"
_PER_TOKEN: Final = 3.3
"""Characters per token, for a first selection."""
_LONGEST_SENTENCE: Final = 600
_LEAST: Final = 0.5
_MOST_LINES: Final = 40
"""Lines of one result that are considered."""


class _Line(NamedTuple):
    text: str
    score: float
    head: int | None
    """The line above it without which it says nothing; None for none."""


class Earlier(NamedTuple):
    """What an earlier compaction left: the summary in the first message."""

    body: str = ""
    is_first_message: bool = False


def digest(messages: Sequence[Message], tokens: int, earlier: Earlier | None = None) -> str:
    """A summary of the messages with at most about this many tokens. `earlier` is the summary before them."""
    lines = list(_lines(messages, earlier or Earlier()))
    last = {line.text: number for number, line in enumerate(lines)}
    room = tokens * _PER_TOKEN
    chosen: set[int] = set()
    for number in sorted(range(len(lines)), key=lambda number: (-lines[number].score, -number)):
        if lines[number].score < _LEAST or (last[lines[number].text] != number and lines[number].head is not None):
            continue  # noise, or the same line of a result comes again later
        added = {number} | ({lines[number].head} if lines[number].head is not None else set[int]())
        size = sum(len(lines[each or 0].text) + 1 for each in added - chosen)
        if size <= room:
            chosen |= {each for each in added if each is not None}
            room -= size
    shown = [lines[number].text for number in sorted(chosen)]
    return "\n".join(shown) if any(not line.startswith(_OF_USER) for line in shown) else ""


def _lines(messages: Sequence[Message], earlier: Earlier) -> Iterator[_Line]:
    counted = _Counted()
    for line in earlier.body.splitlines():
        yield counted.line(line, 3.5 + _say(line))
    results = [result for message in messages if isinstance(message, ToolResults) for result in message.results]
    said = shapes_of(
        sentence
        for message in messages
        if isinstance(message, Assistant)
        for sentence in re.split(_SENTENCES, text_of(message.parts).strip())
    )
    shapes = shapes_of(text_of_result(result) for result in results)
    for number, message in enumerate(messages):
        match message:
            case User(parts, notes):
                if not (number == 0 and earlier.is_first_message):
                    yield counted.line(f"{_OF_USER}{' '.join(text_of(parts).split())[:100]}", 2.0)
                for note in notes:
                    yield from _note(counted, note.source, note.text)
            case Assistant():
                following = messages[number + 1] if number + 1 < len(messages) else None
                yield from _reply(counted, message, following, shapes, said)
            case ToolResults(_, notes):
                for note in notes:
                    yield from _note(counted, note.source, note.text)


class _Counted:
    def __init__(self) -> None:
        self.count = 0

    def line(self, text: str, score: float, head: int | None = None) -> _Line:
        self.count += 1
        return _Line(text, score, head)


def _note(counted: _Counted, source: str, text: str) -> Iterator[_Line]:
    if source in ("job", "hook"):
        yield counted.line(f"- {source}: {cut_line(' '.join(text.split()), 200)}", 2.5)


def _reply(
    counted: _Counted, reply: Assistant, following: Message | None, shapes: Counter[str], said: Counter[str]
) -> Iterator[_Line]:
    for place, sentence in enumerate(re.split(_SENTENCES, text_of(reply.parts).strip())):
        if sentence := " ".join(sentence.split()):
            shown = sentence[:_LONGEST_SENTENCE]
            repeated = math.log2(max(1, said[shape_of(sentence)]))
            yield counted.line(f"- {shown}", 3.0 + _say(sentence) + (0.5 if not place else 0.0) - repeated)
    for call in calls_of(reply):
        if call.name == PLAN_TOOL:
            yield from _plan(counted, call)
    results = following.results if isinstance(following, ToolResults) else ()
    shown = {result.call_id: result for result in results}
    for call in calls_of(reply):
        head = counted.count
        yield counted.line(f"> {call_text(call)}", _weight(call))
        if (result := shown.get(call.id)) is not None:
            yield from _result(counted, head, call, text_of_result(result), shapes, is_error=result.is_error)


def _plan(counted: _Counted, call: ToolCall) -> Iterator[_Line]:
    """The lines of a plan; the one that was approved last is pinned besides."""
    for line in str((parse_arguments(call.raw_arguments)[0] or {}).get("plan", "")).splitlines():
        if line := " ".join(line.split()):
            yield counted.line(f"- plan: {line[:_LONGEST_SENTENCE]}", 2.5 + _say(line))


def _say(text: str) -> float:
    """How much a sentence of the agent says, beyond that it was said."""
    text = text[:_LONGEST_SENTENCE]
    score = 1.5 if re.search(_REASON, text) else 0.0
    if re.search(r"\d|`|\w/\w|\w\.\w{1,4}\b|\w_\w|[a-z][A-Z]", text):
        score += 1.5
    return score - (1.5 if re.match(_INTENTION, text.lstrip("- ")) else 0.0)


def call_text(call: ToolCall) -> str:
    """The tool and what it is called with, on one line."""
    arguments = parse_arguments(call.raw_arguments)[0]
    if not arguments:
        return f"{call.name} {cut_line(call.raw_arguments, 120)}".rstrip()
    named = [_text(arguments[name]) for name in _NAMED if arguments.get(name)]
    if not named:
        edits = [each for each in _list(arguments.get("edits")) if is_object(each)]
        named = sorted({str(each["file_path"]) for each in edits if "file_path" in each})
    return f"{call.name}: {cut_line(' '.join(named or [_rest(arguments)]), 300)}"


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    text = ", ".join(map(str, several)) if (several := _list(value)) else str(value)
    return " ".join(text.split())


def _rest(arguments: Arguments) -> str:
    return " ".join(f"{name}={_text(value)[:80]}" for name, value in arguments.items())


def _weight(call: ToolCall) -> float:
    if call.name in _CHANGES:
        return 6.0
    if call.name == "bash":
        return 3.5 if re.search(_CHANGING_COMMAND, call.raw_arguments) else 1.8
    return 1.0


def _result(
    counted: _Counted, head: int, call: ToolCall, text: str, shapes: Counter[str], *, is_error: bool
) -> Iterator[_Line]:
    # A file can be read again; what a command printed can't.
    less = 2.0 if call.name in ("read_file", "grep", "glob") and not is_error else 0.0
    more = 1.0 if is_error or call.name == "agent" else 0.0
    lines = [line for line in text.splitlines() if not line.startswith(MARK)]
    lines = [line for line in lines if not re.fullmatch(_SAYS_NOTHING, line.strip())]
    rated = sorted(
        ((rating(line, shapes) + more - less, number) for number, line in enumerate(lines)), key=lambda each: -each[0]
    )[:_MOST_LINES]
    for score, number in sorted(rated, key=lambda each: each[1]):
        if score >= _LEAST:
            yield counted.line(f"  {cut_line(lines[number].strip(), 240)}", score, head)
