"""What words of bash become before a command gets them, as far as that can be told without running anything."""

import re

UNTOLD = "\0"
"""Stands in a word for what can't be told."""
MOST_WORDS = 24  # that one word of the text may become

Piece = tuple[tuple[str, ...], bool]
"""What it may be, and whether it was quoted."""

_ANSI = {"n": "\n", "t": "\t", "e": "\x1b", "\\": "\\", "'": "'", '"': '"', "a": "\a", "r": "\r"}


def ansi(text: str) -> str:
    """What `$'...'` stands for."""

    def char(match: re.Match[str]) -> str:
        if match[1]:
            return chr(min(int(match[1], 16), 0x10FFFF))
        return chr(int(match[2], 8) & 0xFF) if match[2] else _ANSI.get(match[3], match[3])

    return re.sub(r"\\(?:[xuU]([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", char, text, flags=re.DOTALL)


def words_of(pieces: list[Piece]) -> list[str]:
    """What one word of the text becomes: at least one."""
    if len(pieces) == 1:
        (alternatives, is_quoted) = pieces[0]
        if is_quoted or alternatives == (UNTOLD,):
            return list(alternatives)
        words = [word for each in alternatives for word in (each.split() if " " in each else (each,))]
    else:
        words = together([alternatives for alternatives, _ in pieces])
    if "{" in words[0] and not any(is_quoted for _, is_quoted in pieces):
        words = [each for word in words for each in _braces(word)][:MOST_WORDS]
    return words or [""]


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
