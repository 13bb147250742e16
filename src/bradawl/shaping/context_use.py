"""What fills the context window: the tokens of a conversation by part.

The estimate of each part is scaled so that the sum is what the model reported: the last request to its prompt, the last
reply to its output. What came after the reply is estimated, times the factor of earlier reports.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, assert_never

import msgspec

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
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import ToolSchema
from bradawl.core.usage import Usage
from bradawl.shaping.context_size import MESSAGE_TOKENS, note_tokens, part_tokens, tool_tokens
from bradawl.shaping.tokens import estimate

_OfPrefix = Literal["system", "tools", "lost"]
_OfMessages = Literal["compaction", "prompts", "notes", "replies", "thinking", "calls", "results", "images", "files"]
Kind = _OfPrefix | _OfMessages | Literal["other"]
"""`lost`: the system prompt or the tools, where their text can't be read any more. `files`: documents such as PDFs."""

_MEASURED: Final = 131_072
"""Characters of one kind and name that are estimated one by one; of later parts only each eighth is, and the others get
the same tokens for each character. The sum is scaled to what was reported all the same.
"""
_ENVIRONMENT: Final = ("<environment>", "</environment>")


class ContextPart(msgspec.Struct, frozen=True):
    """A part of the context, and what it consists of."""

    name: str
    tokens: int
    count: int
    """Number of its items: texts, tools, calls, results, images."""
    parts: tuple["ContextPart", ...] = ()
    """The largest first; empty if it is not divided."""


class ContextUse(msgspec.Struct, frozen=True):
    """The tokens of a conversation, by part."""

    tokens: int
    """The sum of the parts."""
    reported: int
    """Of these, the tokens that the model counted itself; the rest is estimated."""
    parts: tuple[ContextPart, ...]


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What the next request would hold."""

    system: str | None
    """The system prompt; empty if there is none yet, None if it is not known."""
    tools: tuple[ToolSchema, ...] | None
    """The tools; None if they are not known."""
    messages: Sequence[Message]
    replied_at: int = 0
    """Number of messages up to the last reply, which is included."""
    is_compacted: bool = False
    """The first message replaces earlier ones: first the summary, then the texts that were pinned."""
    request_tokens: int = 0
    """Estimate of the last request, from which the size of a system prompt or tools that are not known follows."""


class _Tally:
    """Estimated tokens and items by kind and name."""

    def __init__(self) -> None:
        self.tokens: dict[tuple[Kind, str], int] = {}
        self.counts: dict[tuple[Kind, str], int] = {}
        self._measured: dict[tuple[Kind, str], tuple[int, int, int]] = {}
        """Parts, and the characters and tokens of those that were estimated one by one."""

    def add_part(self, kind: Kind, part: Part, name: str = "", count: int = 1) -> None:
        """Add a part of a message."""
        size = _characters(part)
        number, characters, tokens = self._measured.get((kind, name), (0, 0, 0))
        if size and characters >= _MEASURED and number % 8:
            estimated = round(size * tokens / characters)
        else:
            estimated = part_tokens(part)
            characters, tokens = characters + size, tokens + (estimated if size else 0)
        self._measured[kind, name] = number + 1, characters, tokens
        self.add(kind, estimated, name, count)

    def add(self, kind: Kind, tokens: int, name: str = "", count: int = 1) -> None:
        key = kind, name
        self.tokens[key] = self.tokens.get(key, 0) + tokens
        self.counts[key] = self.counts.get(key, 0) + count

    def scale(self, total: int, kind: Kind = "other") -> None:
        """Make the sum `total`; it goes to `kind` if nothing is there."""
        if not any(self.tokens.values()):
            self.add(kind, 0, count=0)
            self.tokens[kind, ""] = total
            return
        self.tokens = dict(zip(self.tokens, shares(tuple(self.tokens.values()), total), strict=True))

    def take(self, other: "_Tally") -> None:
        for (kind, name), tokens in other.tokens.items():
            self.add(kind, tokens, name, other.counts[kind, name])

    def parts(self) -> Iterable[ContextPart]:
        """The kinds in the order of a request, each divided by name if it has names."""
        by_kind: dict[Kind, list[ContextPart]] = {}
        for (kind, name), tokens in self.tokens.items():
            by_kind.setdefault(kind, []).append(ContextPart(name, tokens, self.counts[kind, name]))
        for kind in sorted(by_kind, key=_ORDER.index):
            inner = sorted(by_kind[kind], key=_size, reverse=True)
            tokens, count = sum(map(_size, inner)), sum(each.count for each in inner)
            if tokens or count:
                yield ContextPart(kind, tokens, count, tuple(inner) if any(each.name for each in inner) else ())


_ORDER: Final[tuple[Kind, ...]] = (
    *("system", "tools", "lost", "compaction", "prompts", "notes"),
    *("replies", "thinking", "calls", "results", "images", "files", "other"),
)


def _characters(part: Part) -> int:
    """The length of its text; 0 if its tokens do not depend on a text."""
    match part:
        case Text(text) | Refusal(text) | Thinking(text) | Opaque(text) | ToolCall(raw_arguments=text):
            return len(text)
        case Image() | Document():
            return 0
        case _:
            assert_never(part)


def _size(part: ContextPart) -> int:
    return part.tokens


def shares(estimates: Sequence[int], total: int) -> tuple[int, ...]:
    """Whole numbers in the proportions of `estimates` with the sum `total`. The estimates must have a sum above 0."""
    whole = sum(estimates)
    found = [each * total // whole for each in estimates]
    by_rest = sorted(range(len(found)), key=lambda place: -(estimates[place] * total % whole))
    for place in by_rest[: total - sum(found)]:
        found[place] += 1
    return tuple(found)


def context_use(context: Context, report: Usage | None, factor: float) -> ContextUse:
    """The tokens of the context by part.

    `report` is what the model counted for the last reply and its request, None if it did not, or if the request would
    now be another one. `factor` is the ratio of reported to estimated tokens.
    """
    messages, replied_at = context.messages, context.replied_at
    if report is None or not 0 < replied_at <= len(messages):
        tally = _prefix(context)
        _add_messages(tally, messages, is_compacted=context.is_compacted)
        _add_lost(tally, context)
        tally.scale(round(factor * sum(tally.tokens.values())))
        return ContextUse(sum(tally.tokens.values()), 0, tuple(tally.parts()))
    has_reply = isinstance(messages[replied_at - 1], Assistant)
    sent_to = replied_at - 1 if has_reply else replied_at
    tally = _prefix(context)
    _add_messages(tally, messages[:sent_to], is_compacted=context.is_compacted)
    _add_lost(tally, context)
    tally.scale(report.prompt)
    tally.take(_reply(messages[sent_to:replied_at], report))
    after = _Tally()
    _add_messages(after, messages[replied_at:])
    if after.tokens:
        after.scale(round(factor * sum(after.tokens.values())))
        tally.take(after)
    return ContextUse(sum(tally.tokens.values()), report.prompt + report.output, tuple(tally.parts()))


def _prefix(context: Context) -> _Tally:
    tally = _Tally()
    if context.system:
        for name, text in system_parts(context.system):
            tally.add("system", estimate(text), name)
        tally.add("system", MESSAGE_TOKENS, "rules", count=0)
    for tool in context.tools or ():
        tally.add("tools", tool_tokens(tool), tool.name)
    return tally


def _add_lost(tally: _Tally, context: Context) -> None:
    """Add what the last request held besides the texts that are known."""
    if context.system is None or context.tools is None:
        tally.add("lost", max(0, context.request_tokens - sum(tally.tokens.values())))


def system_parts(system: str) -> tuple[tuple[str, str], ...]:
    """The system prompt divided into rules, environment and instructions, in this order; what is not there is left out.

    The environment is in a tag of this name; the instructions are what comes after it.
    """
    rules, begin, rest = system.partition(_ENVIRONMENT[0])
    inside, end, after = rest.partition(_ENVIRONMENT[1])
    named = (("rules", rules), ("environment", f"{begin}{inside}{end}"), ("instructions", after))
    return tuple((name, text) for name, text in named if text.strip())


def _reply(messages: Sequence[Message], report: Usage) -> _Tally:
    """The last reply. Reasoning that was counted but not shown is thinking all the same."""
    thinking, rest = _Tally(), _Tally()
    whole = _Tally()
    _add_messages(whole, messages)
    if not report.reasoning:
        if report.output:
            whole.scale(report.output, "replies")
        return whole
    for (kind, name), tokens in whole.tokens.items():
        (thinking if kind == "thinking" else rest).add(kind, tokens, name, whole.counts[kind, name])
    reasoning = min(report.reasoning, report.output)
    thinking.scale(reasoning, "thinking")
    rest.scale(report.output - reasoning, "replies")
    thinking.take(rest)
    return thinking


def _add_messages(tally: _Tally, messages: Iterable[Message], *, is_compacted: bool = False) -> None:
    for place, message in enumerate(messages):
        match message:
            case User(parts, notes) if place == 0 and is_compacted and parts:
                _add_compaction(tally, parts)
                _add_notes(tally, notes)
            case User(parts, notes):
                tally.add("prompts" if parts else "notes", MESSAGE_TOKENS, count=0)
                _add_parts(tally, parts, "prompts")
                _add_notes(tally, notes)
            case Assistant(parts):
                tally.add("replies", MESSAGE_TOKENS, count=0)
                _add_parts(tally, parts, "replies")
            case ToolResults(results, notes):
                for result in results:
                    _add_result(tally, result)
                _add_notes(tally, notes)
            case _:
                assert_never(message)


def _add_compaction(tally: _Tally, parts: tuple[Text | Image | Document, ...]) -> None:
    summary, *pins = parts
    for pin in pins:
        tally.add_part("compaction", pin, "pins")
    tally.add("compaction", MESSAGE_TOKENS, "summary", count=0)
    tally.add_part("compaction", summary, "summary")


def _add_notes(tally: _Tally, notes: tuple[Note, ...]) -> None:
    for note in notes:
        tally.add("notes", note_tokens(note))


def _add_result(tally: _Tally, result: ToolResult) -> None:
    tally.add("results", MESSAGE_TOKENS, result.name)
    for part in result.parts:
        if isinstance(part, Text):
            tally.add_part("results", part, result.name, count=0)
        else:
            _add_parts(tally, (part,), "results")


def _add_parts(tally: _Tally, parts: Iterable[Part], texts: Kind) -> None:
    """Add parts of a prompt or a reply; `texts` is the kind of plain texts."""
    for part in parts:
        match part:
            case Text() | Refusal():
                tally.add_part(texts, part)
            case Thinking():
                tally.add_part("thinking", part)
            case ToolCall(_, name):
                tally.add_part("calls", part, name)
            case Image():
                tally.add_part("images", part)
            case Document():
                tally.add_part("files", part)
            case Opaque():
                tally.add_part("other", part)
            case _:
                assert_never(part)
