"""Splits a word of a command into parts that may be paths."""

import re

_LONGEST_WORD = 4_096
_SEPARATORS = re.compile(r"[\s'\"`;|&<>(){}=,@:!%\\]+")


def is_readable(word: str) -> bool:
    """Whether a word may name a path: not empty, at most 4,096 characters, no NUL byte."""
    return bool(word) and "\0" not in word and len(word) <= _LONGEST_WORD


def word_parts(word: str, *, separators: re.Pattern[str] = _SEPARATORS, most_letters: int = 8) -> dict[str, None]:
    """The word itself, its parts between separators, the texts after each `=`, and values attached to short options.

    Empty unless the word `is_readable`. A value may be attached within the first `most_letters` characters.
    """
    if not is_readable(word):
        return {}
    found = dict.fromkeys((word, *filter(None, separators.split(word)), *filter(None, word.split("="))))
    return found | dict.fromkeys(attached_values(word, most_letters))


def attached_values(word: str, most_letters: int = 8) -> list[str]:
    """The possible values attached to a short option: of `-rfname` these are `fname`, `name`, `ame` and so on."""
    if not re.match(r"-[^-]", word):
        return []
    return [word[start:] for start in range(2, min(len(word), most_letters))]
