"""What words of bash become before a command gets them, as far as that can be told without running anything."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

UNTOLD = "\0"
"""Stands in a word for what can't be told."""
LISTED = chr(2)
"""Stands in a value before each element of an array."""
DOUBT = chr(3)
"""Stands in a word for an untold part that is not taken to be empty, as there are told values, or bash makes sure."""
MOST_WORDS = 24  # that one word of the text may become

Piece = tuple[tuple[str, ...], bool]
"""What it may be, and whether it was quoted."""

_ANSI = {"n": "\n", "t": "\t", "e": "\x1b", "\\": "\\", "'": "'", '"': '"', "a": "\a", "r": "\r"}


def ansi(text: str) -> str:
    """What `$'...'` stands for."""

    def char(match: re.Match[str]) -> str:
        if code := match[1] or match[2] or match[3]:
            return chr(min(int(code, 16), 0x10FFFF))
        return chr(int(match[4], 8) & 0xFF) if match[4] else _ANSI.get(match[5], match[5])

    shape = r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))"
    return re.sub(shape, char, text, flags=re.DOTALL)


def words_of(pieces: list[Piece]) -> list[str]:
    """What one word of the text becomes: at least one."""
    if any(len(alternatives) > 1 for alternatives, _ in pieces):
        pieces = [(_doubted(alternatives), is_quoted) for alternatives, is_quoted in pieces]
    if len(pieces) == 1:
        (alternatives, is_quoted) = pieces[0]
        if is_quoted or alternatives == (UNTOLD,):
            return list(alternatives)
        words = [word for each in alternatives for word in (each.split() if " " in each else (each,))]
    else:
        words = together([alternatives for alternatives, _ in pieces])
    if words and "{" in words[0] and not any(is_quoted for _, is_quoted in pieces):
        words = [each for word in words for each in _braces(word)][:MOST_WORDS]
    return words or [""]


def _doubted(alternatives: tuple[str, ...]) -> tuple[str, ...]:
    """`UNTOLD` beside told values means any other value, not an empty one."""
    if all(UNTOLD in each for each in alternatives):
        return alternatives
    return tuple(each.replace(UNTOLD, DOUBT) for each in alternatives)


def as_fnmatch(pattern: str) -> str:
    """A pattern of bash in the spelling of `fnmatch`, which may match more."""
    if "[" not in pattern:
        return pattern
    return re.sub(r"\[\[:[a-z]+:\]\]", "?", pattern.replace("[^", "[!"))


def in_order(words: list[str]) -> list[str]:
    """Words with untold parts first, so that one of several values is not taken for the only one."""
    return sorted(words, key=lambda word: UNTOLD not in word and DOUBT not in word)


def elements(value: str) -> list[str]:
    """The words of an array; a plain value is the only one."""
    return value[1:].split(LISTED) if value[:1] == LISTED else [value]


def listed(words: Iterable[str]) -> str:
    """Words as an array holds them."""
    return "".join(LISTED + word for word in words)


def as_text(value: str) -> str:
    """What an array becomes where there is room for one word only."""
    return " ".join(elements(value)) if LISTED in value else value


def apart(words: list[str]) -> list[str]:
    """The words themselves, where arrays stand among them."""
    if not any(LISTED in word for word in words):
        return words
    found: list[str] = []
    for word in words:
        before, mark, rest = word.partition(LISTED)
        first, *others = rest.split(LISTED)
        found += [before + first, *others] if mark else [word]
    return found[:MOST_WORDS]


def together(pieces: list[tuple[str, ...]]) -> list[str]:
    """All ways to choose one of each."""
    words, plain = [""], list[str]()
    for alternatives in pieces:
        if len(alternatives) == 1:
            plain.append(alternatives[0])
            continue
        before = "".join(plain)
        words, plain = [word + before + each for word in words for each in alternatives][:MOST_WORDS], []
    rest = "".join(plain)
    return [word + rest for word in words]


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _braces(word: str) -> list[str]:
    """`a{b,c}` is two words."""
    waiting, done = [word], list[str]()
    while waiting and len(done) + len(waiting) < MOST_WORDS:
        each = waiting.pop()
        match = _BRACES.search(each)
        if match is None:
            done.append(each)
        else:
            waiting += [each[: match.start()] + part + each[match.end() :] for part in match[1].split(",")[::-1]]
    return done + waiting


# ------------------------------------------------------------------ parts of values

_SLICE = re.compile(r"[ ]*(-?[0-9]{1,4})[ ]*(?::[ ]*(-?[0-9]{1,4})[ ]*)?")
_LONGEST_CUT = 200


def changed(value: str, operator: str, rest: str) -> str:
    """A value behind `%`, `#`, `/`, `:`, `^` or `,` in braces; a mark where that can't be told."""
    if UNTOLD in value or UNTOLD in rest or len(value) > _LONGEST_CUT:
        return UNTOLD
    match operator:
        case "%" | "%%" | "#" | "##":
            return _cut(value, operator, rest)
        case "/" | "//" | "/#" | "/%":
            return _replaced(value, operator, rest)
        case ":":
            return _sliced(value, rest)
        case "^^" | ",,":
            return value.upper() if operator == "^^" else value.lower()
        case "^" | ",":
            return (value[:1].upper() if operator == "^" else value[:1].lower()) + value[1:]
        case _:
            return UNTOLD


def _cut(value: str, operator: str, pattern: str) -> str:
    """Without the shortest or longest beginning or end of this shape."""
    places = range(len(value) + 1)
    if operator in ("#", "%%"):
        ends = [place for place in places if _fits(value, operator, place, pattern)]
    else:
        ends = [place for place in reversed(places) if _fits(value, operator, place, pattern)]
    if not ends:
        return value
    return value[: ends[0]] if operator[0] == "%" else value[ends[0] :]


def _fits(value: str, operator: str, place: int, pattern: str) -> bool:
    return fnmatchcase(value[place:] if operator[0] == "%" else value[:place], pattern)


def _replaced(value: str, operator: str, rest: str) -> str:
    pattern, _, put = rest.replace("\\/", LISTED).partition("/")
    pattern = pattern.replace(LISTED, "/")
    if not pattern or re.search(r"[*?\[]", pattern):
        return UNTOLD
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
    if (place := cut_at(rest, len(value))) is None:
        return UNTOLD
    return value[place]


def cut_at(rest: str, length: int) -> slice | None:
    """What `:1:2` means in something of this length."""
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
