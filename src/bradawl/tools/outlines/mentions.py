"""Finds the definitions of a file that the conversation names: in prompts, in results of searches, in tracebacks."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bradawl.core.messages import Assistant, Message, User, text_of
from bradawl.tools.outlines.symbol import Symbol, enclosing
from bradawl.tools.outlines.thresholds import NAMED_AT_MOST, SEARCHED_CHARACTERS

_NAME = re.compile(r"(?P<quote>[`'\"]?)(?P<name>[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*)(?P<after>\(|(?P=quote)|)")
_NUMBERED = re.compile(r"\s*(\d{1,9})[:-] ")
_BEFORE_PATH = re.compile(r"[\s\"':(]")
_LONGEST_PATH = 1_000


def mentioned(symbols: Sequence[Symbol], path: str, messages: Sequence[Message]) -> list[Symbol]:
    """Functions, methods and classes that the messages name or point to, those of the newest messages first.

    `path` is absolute. A prompt names a definition by a word that looks like a name: one with an underscore, a dot or
    capitals inside, in quotes, or before a bracket. A result points to one by a line of the file: `path:12`,
    `File "path", line 12`, or below a line with the path alone `12: text`.
    """
    found: dict[Symbol, None] = {}
    named = _by_name(symbols)
    for message, text in _texts(messages):
        if isinstance(message, User):
            found |= dict.fromkeys(one for name in names_in(text) for one in _of_name(name, named))
        else:
            found |= dict.fromkeys(one for line in _places(text, path) if (one := enclosing(symbols, line)))
        if len(found) >= NAMED_AT_MOST:
            break
    return list(found)[:NAMED_AT_MOST]


def _texts(messages: Sequence[Message]) -> Iterator[tuple[Message, str]]:
    """Texts of prompts and results, the newest first; none of the model's own."""
    room = SEARCHED_CHARACTERS
    for message in reversed(messages):
        if isinstance(message, Assistant):
            continue
        parts = [message.parts] if isinstance(message, User) else [each.parts for each in reversed(message.results)]
        for text in map(text_of, parts):
            yield message, text[:room]
            room -= len(text)
            if room <= 0:
                return


def _by_name(symbols: Iterable[Symbol]) -> dict[str, list[Symbol]]:
    """Symbols by their whole name and by its last part."""
    named: dict[str, list[Symbol]] = {}
    for one in symbols:
        if one.kind == "constant":
            continue
        for name in {one.name, one.name.rpartition(".")[2]}:
            named.setdefault(name, []).append(one)
    return named


def _of_name(name: str, named: dict[str, list[Symbol]]) -> list[Symbol]:
    """Of `queue.remove` the definitions of that name or, because `queue` may be a variable, of its last part."""
    return named.get(name) or named.get(name.rpartition(".")[2], [])


def names_in(text: str) -> Iterator[str]:
    """Words of a text that look like names of definitions, in its order: see `mentioned`."""
    for match in _NAME.finditer(text):
        name = match["name"].replace("::", ".").replace("#", ".")
        is_quoted = bool(match["quote"]) and match["after"] == match["quote"]
        if is_quoted or match["after"] == "(" or "." in name or "_" in name or name[1:].lower() != name[1:]:
            yield name


def _places(text: str, path: str) -> Iterator[int]:
    """Numbers of lines of the file that the text points to."""
    base = path.rpartition("/")[2]
    if base not in text:
        return
    pointed = re.compile(rf'{re.escape(base)}(?:"?, line |[:(])(\d{{1,9}})')
    is_heading = False
    for line in text.splitlines():
        if (numbered := _NUMBERED.match(line)) and is_heading:
            yield int(numbered[1])
            continue
        if not line.startswith("  in ") and not numbered and line != "--":
            is_heading = line.endswith(base) and _is_same(line, path)
        for match in pointed.finditer(line):
            before = line[max(0, match.start() - _LONGEST_PATH) : match.start()]
            if _is_same(_BEFORE_PATH.split(before)[-1] + base, path):
                yield int(match[1])


def _is_same(given: str, path: str) -> bool:
    """Whether a path of a text may be the file's: equal, or the end of it."""
    return path == given or path.endswith("/" + given.removeprefix("./"))
