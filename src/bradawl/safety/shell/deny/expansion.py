"""Word expansion without running anything: alternatives, arrays, braces, and the operators on values."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

UNKNOWN_VALUE = "\0"
"""Marks an unknown part of a word, which may be empty."""
ARRAY_ITEM = chr(2)
"""Precedes each item of an array in a value."""
UNKNOWN_BUT_SET = chr(3)
"""Marks an unknown part of a word that is not taken to be empty: other values are known, or bash requires one."""
MAX_WORDS = 24  # limit on the words that one word of the text expands to

Piece = tuple[tuple[str, ...], bool]
"""Possible values of a part of a word, and whether it was quoted."""

_ANSI = {"n": "\n", "t": "\t", "e": "\x1b", "\\": "\\", "'": "'", '"': '"', "a": "\a", "r": "\r"}


def ansi_c_text(text: str) -> str:
    """Decode the content of `$'...'`."""

    def char(match: re.Match[str]) -> str:
        if code := match[1] or match[2] or match[3]:
            return chr(min(int(code, 16), 0x10FFFF))
        return chr(int(match[4], 8) & 0xFF) if match[4] else _ANSI.get(match[5], match[5])

    shape = r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))"
    return re.sub(shape, char, text, flags=re.DOTALL)


def expanded_words(pieces: list[Piece]) -> list[str]:
    """The words that one word of the text expands to, joined from its pieces; at least one."""
    if any(len(alternatives) > 1 for alternatives, _ in pieces):
        pieces = [(_with_unknown_set(alternatives), is_quoted) for alternatives, is_quoted in pieces]
    if len(pieces) == 1:
        (alternatives, is_quoted) = pieces[0]
        if is_quoted or alternatives == (UNKNOWN_VALUE,):
            return list(alternatives)
        words = [word for each in alternatives for word in (each.split() if " " in each else (each,))]
    else:
        words = combinations([alternatives for alternatives, _ in pieces])
    if words and "{" in words[0] and not any(is_quoted for _, is_quoted in pieces):
        words = [each for word in words for each in _braces(word)][:MAX_WORDS]
    return words or [""]


def _with_unknown_set(alternatives: tuple[str, ...]) -> tuple[str, ...]:
    """`UNKNOWN_VALUE` beside known values means any other value, but not an empty one."""
    if all(UNKNOWN_VALUE in each for each in alternatives):
        return alternatives
    return tuple(each.replace(UNKNOWN_VALUE, UNKNOWN_BUT_SET) for each in alternatives)


def as_fnmatch(pattern: str) -> str:
    """Translate a bash pattern for `fnmatch`; the result may match more."""
    if "[" not in pattern:
        return pattern
    return re.sub(r"\[\[:[a-z]+:\]\]", "?", pattern.replace("[^", "[!"))


def unknown_first(words: list[str]) -> list[str]:
    """Sort words with unknown parts first, so that one of several values is not taken for the only one."""
    return sorted(words, key=lambda word: UNKNOWN_VALUE not in word and UNKNOWN_BUT_SET not in word)


def array_items(value: str) -> list[str]:
    """The items of an array; a plain value is its own only item."""
    return value[1:].split(ARRAY_ITEM) if value[:1] == ARRAY_ITEM else [value]


def array_value(words: Iterable[str]) -> str:
    """The value of an array with these items."""
    return "".join(ARRAY_ITEM + word for word in words)


def array_as_text(value: str) -> str:
    """The items of an array joined by spaces, for contexts that take one word."""
    return " ".join(array_items(value)) if ARRAY_ITEM in value else value


def split_arrays(words: list[str]) -> list[str]:
    """Replace arrays among words by their items; text before an array joins its first item."""
    if not any(ARRAY_ITEM in word for word in words):
        return words
    found: list[str] = []
    for word in words:
        before, mark, rest = word.partition(ARRAY_ITEM)
        first, *others = rest.split(ARRAY_ITEM)
        found += [before + first, *others] if mark else [word]
    return found[:MAX_WORDS]


def combinations(pieces: list[tuple[str, ...]]) -> list[str]:
    """All concatenations of one alternative from each piece, at most `MAX_WORDS`."""
    words, plain = [""], list[str]()
    for alternatives in pieces:
        if len(alternatives) == 1:
            plain.append(alternatives[0])
            continue
        before = "".join(plain)
        words, plain = [word + before + each for word in words for each in alternatives][:MAX_WORDS], []
    rest = "".join(plain)
    return [word + rest for word in words]


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _braces(word: str) -> list[str]:
    """Expand `a{b,c}` to `ab` and `ac`."""
    waiting, done = [word], list[str]()
    while waiting and len(done) + len(waiting) < MAX_WORDS:
        each = waiting.pop()
        match = _BRACES.search(each)
        if match is None:
            done.append(each)
        else:
            waiting += [each[: match.start()] + part + each[match.end() :] for part in match[1].split(",")[::-1]]
    return done + waiting


# ------------------------------------------------------------------ parts of values

_SLICE = re.compile(r"[ ]*(-?[0-9]{1,4})[ ]*(?::[ ]*(-?[0-9]{1,4})[ ]*)?")
_MAX_VALUE_LENGTH = 200


def transformed(value: str, operator: str, rest: str) -> str:
    """Apply the operator `%`, `#`, `/`, `:`, `^` or `,` to a value; `UNKNOWN_VALUE` if the result is unknown."""
    if UNKNOWN_VALUE in value or UNKNOWN_VALUE in rest or len(value) > _MAX_VALUE_LENGTH:
        return UNKNOWN_VALUE
    match operator:
        case "%" | "%%" | "#" | "##":
            return _without_affix(value, operator, rest)
        case "/" | "//" | "/#" | "/%":
            return _replaced(value, operator, rest)
        case ":":
            return _sliced(value, rest)
        case "^^" | ",,":
            return value.upper() if operator == "^^" else value.lower()
        case "^" | ",":
            return (value[:1].upper() if operator == "^" else value[:1].lower()) + value[1:]
        case _:
            return UNKNOWN_VALUE


def _without_affix(value: str, operator: str, pattern: str) -> str:
    """Remove the shortest or longest prefix or suffix that matches a pattern."""
    places = range(len(value) + 1)
    if operator in ("#", "%%"):
        ends = [place for place in places if _affix_matches(value, operator, place, pattern)]
    else:
        ends = [place for place in reversed(places) if _affix_matches(value, operator, place, pattern)]
    if not ends:
        return value
    return value[: ends[0]] if operator[0] == "%" else value[ends[0] :]


def _affix_matches(value: str, operator: str, place: int, pattern: str) -> bool:
    return fnmatchcase(value[place:] if operator[0] == "%" else value[:place], pattern)


def _replaced(value: str, operator: str, rest: str) -> str:
    pattern, _, put = rest.replace("\\/", ARRAY_ITEM).partition("/")
    pattern = pattern.replace(ARRAY_ITEM, "/")
    if not pattern or re.search(r"[*?\[]", pattern):
        return UNKNOWN_VALUE
    match operator:
        case "//":
            return value.replace(pattern, put)
        case "/#":
            return put + value.removeprefix(pattern) if value.startswith(pattern) else value
        case "/%":
            return value.removesuffix(pattern) + put if value.endswith(pattern) else value
        case _:
            return value.replace(pattern, put, 1)


def _sliced(value: str, rest: str) -> str:
    if (place := slice_of(rest, len(value))) is None:
        return UNKNOWN_VALUE
    return value[place]


def slice_of(rest: str, length: int) -> slice | None:
    """The slice that an offset and length as in `${name:1:2}` select; None if they are not plain numbers."""
    match = _SLICE.fullmatch(rest)
    if match is None:
        return None
    begin = int(match[1]) + (length if int(match[1]) < 0 else 0)
    if begin < 0:
        return slice(0, 0)
    if match[2] is None:
        return slice(begin, length)
    count = int(match[2])
    return slice(begin, max(begin, length + count) if count < 0 else begin + count)
