"""The first tier of a compaction: long results that the model has used already are shortened."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from bradawl.core.events import Shortened
from bradawl.core.messages import Assistant, Message, Text, ToolResult, ToolResults
from bradawl.shaping.compaction.lines import condensed
from bradawl.shaping.compaction.measured import Measured
from bradawl.shaping.compaction.record import Key, Record, attachment_text
from bradawl.shaping.context_size import part_tokens

LONG: Final = 1_500
"""Characters from which a result is shortened."""
_LEFT: Final = 600
_PER_TOKEN: Final = 3
"""Characters."""
_WORTH: Final = 500
"""Characters that shortening a result must save."""
_WHOLE: Final = "; whole: "
MARK: Final = "[shortened"
"""The last line of a shortened result begins with it."""


def recent_from(measured: Measured, tokens: int, replies: int = 1) -> int:
    """The first message of the latest steps with this many tokens, and of the last `replies` replies at least.

    It is never a result without its call.
    """
    messages = measured.messages
    last = [number for number, message in enumerate(messages) if isinstance(message, Assistant)][-replies:]
    begin = last[0] if last else 0
    used = measured.since(begin)
    for number in range(begin - 1, -1, -1):
        used += measured.sizes[number]
        if used > tokens:
            break
        if not isinstance(messages[number], ToolResults):
            begin = number
    return begin


class Latest(NamedTuple):
    """The latest messages, which a summary leaves as they are."""

    begin: int
    too_long: tuple[Key, ...] = ()
    """Results among them that are shortened all the same."""
    left: int = 0
    """Characters that stay of each."""


def latest_in_emergency(measured: Measured, tokens: int, most: int) -> Latest:
    """The latest messages, about `tokens` of them. The last reply and its results may take `most`.

    If they take more, the longest of those results are shortened although the model has not answered them, as far as
    needed; if that is not enough nothing is kept.
    """
    messages, begin = measured.messages, recent_from(measured, tokens)
    if measured.since(begin) <= most:
        return Latest(begin)
    begin = unanswered_from(messages)
    keys = [(begin + number, place) for number, place in long_results(messages[begin:], len(messages))]
    sizes = {key: sum(map(part_tokens, result_at(messages, key).parts)) for key in keys}
    room = most - (measured.since(begin) - sum(sizes.values()))
    while keys and (fitting := [key for key in keys if sizes[key] * len(keys) <= room]):
        room -= sum(sizes[key] for key in fitting)
        keys = [key for key in keys if key not in fitting]
    if not keys or room < len(keys) * _LEFT // _PER_TOKEN:
        return Latest(len(messages))
    return Latest(begin, tuple(keys), room * _PER_TOKEN // len(keys))


def unanswered_from(messages: Sequence[Message]) -> int:
    """The number of the last reply: the model has not answered what follows it. 0 before the first reply."""
    replies = (number for number in range(len(messages) - 1, -1, -1) if isinstance(messages[number], Assistant))
    return next(replies, 0)


def long_results(messages: Sequence[Message], end: int) -> list[Key]:
    """The results before message `end` that are worth shortening."""
    return [
        (number, place)
        for number, message in enumerate(messages[:end])
        if isinstance(message, ToolResults)
        for place, result in enumerate(message.results)
        if _size(result) > LONG and not _is_short_already(result)
    ]


def older_results(messages: Sequence[Message], end: int, keep: int) -> list[Key]:
    """The results before message `end`, the last `keep` of the conversation and short ones left out."""
    found = [
        (number, place)
        for number, message in enumerate(messages)
        if isinstance(message, ToolResults)
        for place, result in enumerate(message.results)
        if number < end or _is_short_already(result)
    ]
    unanswered = sum(len(message.results) for message in messages[end:] if isinstance(message, ToolResults))
    old = found[: max(0, len(found) - max(0, keep - unanswered))]
    return [key for key in old if _size(result_at(messages, key)) > _WORTH]


def whole_results(messages: Sequence[Message]) -> int:
    """Number of the results that are not shortened."""
    results = (result for message in messages if isinstance(message, ToolResults) for result in message.results)
    return sum(not _is_short_already(result) for result in results)


def result_at(messages: Sequence[Message], key: Key) -> ToolResult:
    """The result with these numbers. Raises `TypeError` for a message that holds no results."""
    message = messages[key[0]]
    if not isinstance(message, ToolResults):
        raise TypeError(f"message {key[0]} is no message with results")
    return message.results[key[1]]


def shortened(messages: Sequence[Message], keys: Iterable[Key], left: int, why: str = "") -> list[Shortened]:
    """The results as they are after this, those left out that would not get much shorter.

    `left` is what stays of each, in characters, and `why` the reason if the model has not answered them.
    """
    found = (Shortened(*key, _short_text(result_at(messages, key), left, why)) for key in keys)
    return [each for each in found if why or _is_worth(result_at(messages, (each.message, each.result)), each.text)]


def with_places(short: Iterable[Shortened], record: Record) -> Iterator[Shortened]:
    """Shortened results with the places of the whole ones. One that was shortened before names its first place."""
    for each in short:
        where = record.where((each.message, each.result))
        is_placed = not where or _WHOLE in each.text.rpartition("\n")[2]
        yield each if is_placed else msgspec.structs.replace(each, text=f"{each.text[:-1]}{_WHOLE}{where}]")


def _short_text(result: ToolResult, left: int, why: str) -> str:
    text = text_of_result(result)
    before, _, mark = text.rpartition("\n")
    if mark.startswith(MARK):  # the mark says how long the whole is, and where
        return f"{condensed(before, left)}\n{mark}" if left else mark
    mark = f"{MARK}{why}, {len(text):,} characters]"
    return f"{condensed(text, left)}\n{mark}" if left else mark


def _is_worth(result: ToolResult, short: str) -> bool:
    size = _size(result)
    return len(short) <= size // 2 and size - len(short) >= _WORTH


def text_of_result(result: ToolResult) -> str:
    """The text of a result, with a line for each image."""
    return "\n".join(part.text if isinstance(part, Text) else attachment_text(part) for part in result.parts)


def _size(result: ToolResult) -> int:
    return sum(len(part.text) if isinstance(part, Text) else 4 * LONG for part in result.parts)


def _is_short_already(result: ToolResult) -> bool:
    return len(result.parts) == 1 and isinstance(part := result.parts[0], Text) and MARK in part.text[-600:]
