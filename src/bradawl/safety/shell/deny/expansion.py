"""Marks for unknown parts of words, and word expansion that needs no state: braces, patterns, operators on values."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import chain, islice, product
from math import prod
from typing import TypeVar

UNKNOWN_VALUE = "\0"
"""Marks an unknown part of a word, which may be empty."""
FIELD = chr(2)
"""Separates the words that one word expands to, and precedes each item in the value of an array."""
UNKNOWN_BUT_SET = chr(3)
"""Marks an unknown part of a word that is not taken to be empty."""
MAX_VALUES = 64  # possible values of one word, and combinations of the values of several parts

Values = tuple[str, ...]
"""Possible values of a word or variable; `UNKNOWN_VALUE` among them means that others are possible."""

_Value = TypeVar("_Value")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
SLICE = re.compile(r" *(-?[0-9]{1,4}) *(?:: *(-?[0-9]{1,4}) *)?")
MAX_LENGTH = 4_000  # of a value
_MAX_TRANSFORMED = 2_000  # characters of a value or word
_SEQUENCE = re.compile(r"\{\w+\.\.\w+(?:\.\.\w+)?\}")


def combined(choices: Sequence[Sequence[_Value]]) -> list[tuple[_Value, ...]]:
    """The combinations of one value from each; if there are too many, every value is in one of them."""
    if prod(map(len, choices)) <= MAX_VALUES:
        return list(product(*choices))
    turns = range(min(MAX_VALUES, max(map(len, choices))))
    return [tuple(each[min(turn, len(each) - 1)] for each in choices) for turn in turns]


def any_of(*values: Iterable[str]) -> Values:
    """All of these values, without repetitions."""
    return tuple(islice(dict.fromkeys(chain(*values)), MAX_VALUES))


def with_braces(word: str) -> str:
    """Expand `a{b,c}` to `ab` and `ac`, separated by `FIELD`; `{1..3}` becomes `*`."""
    words = [_SEQUENCE.sub("*", word)]
    while len(word) < _MAX_TRANSFORMED and len(words) < MAX_VALUES:
        place, match = next(
            ((place, match) for place, match in enumerate(map(_BRACES.search, words)) if match), (0, None)
        )
        if match is None:
            break
        before, after = match.string[: match.start()], match.string[match.end() :]
        words[place : place + 1] = [before + part + after for part in match[1].split(",")]
    return FIELD.join(words)


def as_fnmatch(pattern: str) -> str:
    """Translate a bash pattern for `fnmatch`; the result may match more."""
    return re.sub(r"\[\[:[a-z]+:\]\]", "?", pattern.replace("[^", "[!"))


def transformed(value: str, operator: str, rest: str) -> str:
    """Apply the operator `%`, `#`, `/` or `:` of `${name...}` to a value; `UNKNOWN_VALUE` if the result is unknown."""
    if UNKNOWN_VALUE in value + rest or len(value) > _MAX_TRANSFORMED:
        return UNKNOWN_VALUE
    match operator:
        case "%" | "%%" | "#" | "##":
            return _without_affix(value, operator, rest)
        case "/" | "//" if not re.search(r"[*?\[]", rest):
            old, _, new = rest.replace("\\/", FIELD).partition("/")
            return value.replace(old.replace(FIELD, "/"), new.replace(FIELD, "/"), 1 if operator == "/" else -1)
        case ":" if match := SLICE.fullmatch(rest):
            start, length = int(match[1]), int(match[2] or len(value))
            return value[start:][:length]
        case _:
            return UNKNOWN_VALUE


def _without_affix(value: str, operator: str, pattern: str) -> str:
    """The value without the shortest or longest prefix or suffix that matches a pattern."""
    cuts = range(len(value) + 1)
    for cut in cuts if operator in ("#", "%%") else reversed(cuts):
        kept, affix = (value[:cut], value[cut:]) if operator[0] == "%" else (value[cut:], value[:cut])
        if fnmatchcase(affix, as_fnmatch(pattern)):
            return kept
    return value
