"""Counts which facts of a planted session a conversation still holds, and at what size."""

from collections.abc import Iterator, Mapping, Sequence

from planted_sessions import KINDS, Fact, Kind

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import Assistant, Document, Image, Message, Part, Refusal, Text, ToolCall, ToolResults, User
from bradawl.shaping.context_size import message_tokens


def texts_of(message: Message) -> Iterator[str]:
    """All text of a message that the model sees: parts, arguments as written and decoded, results, notes."""
    match message:
        case User(parts, notes):
            yield from _texts(parts)
            yield from (note.text for note in notes)
        case Assistant(parts):
            yield from _texts(parts)
        case ToolResults(results, notes):
            for result in results:
                yield from _texts(result.parts)
            yield from (note.text for note in notes)


def _texts(parts: Sequence[Part] | Sequence[Text | Image | Document]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text | Refusal):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.raw_arguments
            yield from _strings(parse_arguments(part.raw_arguments)[0])


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def visible_text(messages: Sequence[Message]) -> str:
    """All text of the conversation; texts are separated by NUL."""
    return "\0".join(text for message in messages for text in texts_of(message))


def missing(messages: Sequence[Message], facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts that are not verbatim in the conversation."""
    text = visible_text(messages)
    return tuple(fact for fact in facts if fact.text not in text)


def held(messages: Sequence[Message], facts: Sequence[Fact]) -> dict[Kind, tuple[int, int]]:
    """For each kind, how many facts are verbatim in the conversation, and how many there are."""
    gone = missing(messages, facts)
    totals = {kind: sum(fact.kind == kind for fact in facts) for kind in KINDS}
    return {kind: (total - sum(fact.kind == kind for fact in gone), total) for kind, total in totals.items()}


def pinned_held(messages: Sequence[Message], facts: Sequence[Fact]) -> tuple[int, int]:
    """The same for the pinned facts of all kinds."""
    pinned = [fact for fact in facts if fact.is_pinned]
    return len(pinned) - len(missing(messages, pinned)), len(pinned)


def tokens(messages: Sequence[Message]) -> int:
    """Estimated tokens of the conversation."""
    return sum(map(message_tokens, messages))


class Measure:
    """Facts and tokens before and after a compaction, summed over sessions."""

    def __init__(self) -> None:
        self.counts: dict[str, tuple[int, int]] = {}
        self.before = self.after = self.sessions = 0

    def add(self, tokens_before: int, after: Sequence[Message], facts: Sequence[Fact]) -> None:
        """Count one session."""
        counts: dict[str, tuple[int, int]] = {**held(after, facts), "pinned": pinned_held(after, facts)}
        for name, (found, total) in counts.items():
            old = self.counts.get(name, (0, 0))
            self.counts[name] = (old[0] + found, old[1] + total)
        self.before += tokens_before
        self.after += tokens(after)
        self.sessions += 1

    def share(self, name: str) -> float:
        """Share of the facts of a kind, or of the pinned ones, that were found."""
        found, total = self.counts[name]
        return found / total

    @property
    def freed(self) -> float:
        """Share of the tokens that the compaction freed."""
        return 1 - self.after / self.before


def table(measures: Mapping[str, Measure]) -> str:
    """One row for each compaction: shares of facts held, by kind, and tokens for each session."""
    names = [*KINDS, "pinned"]
    rows = [["", *names, "before", "after", "freed"]]
    for name, measure in measures.items():
        sizes = [f"{round(total / measure.sessions):,}" for total in (measure.before, measure.after)]
        rows.append([name, *(f"{measure.share(kind):.0%}" for kind in names), *sizes, f"{measure.freed:.0%}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.rjust, row, widths)) for row in rows)
