"""The context compaction of CoreCoder 0.4, written anew from a description of it, on bradawl's messages.

It serves as a comparison. In CoreCoder each result is a message of its own, and so it is here; a note is a message of
the user. Where the description leaves something open, the choice that keeps more was made.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from bradawl.core.messages import Assistant, Message, Origin, Text, ToolResults, User, calls_of, text_of

SNIP_AT, SUMMARISE_AT, COLLAPSE_AT = 0.5, 0.7, 0.9
"""Shares of the window from which on each layer runs."""
_KEPT_BY_SUMMARY, _KEPT_BY_COLLAPSE = 8, 4
_LEAST_FOR_SUMMARY, _LEAST_FOR_COLLAPSE = 10, 4
_SNIPPED_CHARACTERS, _SNIPPED_LINES, _KEPT_LINES = 1_500, 6, 3
_OF_A_MESSAGE, _OF_ALL = 400, 15_000
_MOST_FILES, _MOST_ERRORS, _OF_AN_ERROR = 20, 5, 150
_FILE = re.compile(r"[\w./-]+\.[A-Za-z]{1,5}\b")
_ORIGIN = Origin("openai_chat", "openai", "gpt-x")


def one_result_each(messages: Sequence[Message]) -> list[Message]:
    """The conversation in CoreCoder's form: one message for each result and each note."""
    split: list[Message] = []
    for message in messages:
        match message:
            case ToolResults(results, notes):
                split += [ToolResults((result,)) for result in results]
                split += [User((Text(note.text),)) for note in notes]
            case User(parts, notes):
                split += [User(parts)] if parts else []
                split += [User((Text(note.text),)) for note in notes]
            case _:
                split.append(message)
    return split


def estimated_tokens(messages: Sequence[Message]) -> int:
    """A third of the characters of the contents and the calls."""
    return sum(
        (len(_content(message)) + (len(str(calls_of(message))) if isinstance(message, Assistant) else 0)) // 3
        for message in messages
    )


def _content(message: Message) -> str:
    if isinstance(message, ToolResults):
        return "".join(text_of(result.parts) for result in message.results)
    return text_of(message.parts)


def snipped(messages: Sequence[Message]) -> list[Message]:
    """Long results without the lines between the first three and the last three, the newest result included."""
    return [_snipped(message) if isinstance(message, ToolResults) else message for message in messages]


def _snipped(message: ToolResults) -> ToolResults:
    results = []
    for result in message.results:
        text = text_of(result.parts)
        lines = text.split("\n")
        if len(text) > _SNIPPED_CHARACTERS and len(lines) > _SNIPPED_LINES:
            mark = f"... ({len(lines)} lines, snipped to save context) ..."
            kept = "\n".join([*lines[:_KEPT_LINES], mark, *lines[-_KEPT_LINES:]])
            result = msgspec.structs.replace(result, parts=(Text(kept),))
        results.append(result)
    return ToolResults(tuple(results))


def summarised(messages: Sequence[Message], *, with_perfect_model: bool = False) -> list[Message]:
    """A summary, and the last 8 messages.

    Without a model the summary is a list of file names and error lines. The best that a model could do is to repeat all
    that it was sent; `with_perfect_model` takes that as the summary.
    """
    old, kept = _split(messages, _KEPT_BY_SUMMARY)
    summary = summary_input(old) if with_perfect_model else _found_by_patterns(old)
    return [_user("[Context compressed - conversation summary]\n" + summary), _reply("Got it."), *kept]


def collapsed(messages: Sequence[Message]) -> list[Message]:
    """The summary without a model, and the last 4 messages."""
    old, kept = _split(messages, _KEPT_BY_COLLAPSE)
    return [_user("[Hard context reset]\n" + _found_by_patterns(old)), _reply("Context restored."), *kept]


def summary_input(messages: Sequence[Message]) -> str:
    """What the model is sent to be summarised: 400 characters of each message, 15,000 in all."""
    return "\n".join(f"[{_role(message)}] {_content(message)[:_OF_A_MESSAGE]}" for message in messages)[:_OF_ALL]


def compacted(messages: Sequence[Message], window: int, *, with_perfect_model: bool = False) -> list[Message]:
    """The three layers as their thresholds start them, on a conversation in CoreCoder's form."""
    now = list(messages)
    if estimated_tokens(now) > SNIP_AT * window:
        now = snipped(now)
    if estimated_tokens(now) > SUMMARISE_AT * window and len(now) > _LEAST_FOR_SUMMARY:
        now = summarised(now, with_perfect_model=with_perfect_model)
    if estimated_tokens(now) > COLLAPSE_AT * window and len(now) > _LEAST_FOR_COLLAPSE:
        now = collapsed(now)
    return now


def _split(messages: Sequence[Message], kept: int) -> tuple[Sequence[Message], Sequence[Message]]:
    """The old part, and the last messages with the reply whose results they begin with."""
    cut = max(0, len(messages) - kept)
    while cut > 0 and isinstance(messages[cut], ToolResults):
        cut -= 1
    return messages[:cut], messages[cut:]


def _found_by_patterns(messages: Sequence[Message]) -> str:
    texts = [_content(message) for message in messages]
    errors = list(islice(_error_lines(texts), _MOST_ERRORS))
    return "\n".join(["Files: " + ", ".join(_first_files(texts)), "Errors:", *errors])


def _first_files(texts: Sequence[str]) -> list[str]:
    files: dict[str, None] = {}
    for found in (found for text in texts for found in _FILE.finditer(text)):
        files[found[0]] = None
        if len(files) == _MOST_FILES:
            break
    return list(files)


def _error_lines(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from (line[:_OF_AN_ERROR] for line in text.split("\n") if "error" in line.lower())


def _role(message: Message) -> str:
    return "tool" if isinstance(message, ToolResults) else "assistant" if isinstance(message, Assistant) else "user"


def _user(text: str) -> User:
    return User((Text(text),))


def _reply(text: str) -> Assistant:
    return Assistant((Text(text),), _ORIGIN)
