"""Glob patterns as models write them: `*`, `?`, `**`, `[...]` and `{a,b}`."""

import re
from functools import lru_cache

_SPECIAL = r"[*?\[{]"
_CLASS = r"\[([!^]?)(\]?+[^\]/]*)\]"


def literal_prefix(pattern: str) -> tuple[str, str]:
    """The leading folders of a pattern without wildcards, and the rest; without any wildcard the rest is empty."""
    match = re.search(_SPECIAL, pattern)
    if match is None:
        return pattern, ""
    cut = pattern.rfind("/", 0, match.start()) + 1
    return pattern[:cut], pattern[cut:]


@lru_cache(maxsize=64)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches whole relative paths; `*` and `?` stop at a slash, `**` does not. Raises
    `re.error`.
    """
    return re.compile(_alternatives(pattern) + r"\Z", re.DOTALL)


def _alternatives(pattern: str) -> str:
    out: list[str] = []
    depth = place = 0
    balanced = pattern.count("{") == pattern.count("}")
    while place < len(pattern):
        char = pattern[place]
        if balanced and char == "{":
            depth, piece, place = depth + 1, "(?:", place + 1
        elif char == "}" and depth:
            depth, piece, place = depth - 1, ")", place + 1
        elif char == "," and depth:
            piece, place = "|", place + 1
        else:
            piece, place = _piece(pattern, place)
        out.append(piece)
    return "".join(out) + ")" * depth


def _piece(pattern: str, place: int) -> tuple[str, int]:
    """One element as a regular expression, and the offset of the next."""
    char = pattern[place]
    if pattern.startswith("**/", place) and (place == 0 or pattern[place - 1] in "/{,"):
        return "(?:.*/)?", place + 3
    if pattern.startswith("**", place):
        return ".*", place + 2
    if char == "*":
        return "[^/]*", place + 1
    if char == "?":
        return "[^/]", place + 1
    if char == "[":
        match = re.compile(_CLASS).match(pattern, place)
        if match is None:
            raise re.error(f"the [ at character {place + 1} is not closed; \\[ is the bracket itself")
        members = re.sub(r"([\\\[\]^&~|])", r"\\\1", match[2])
        return f"(?!/)[{'^' if match[1] else ''}{members}]", match.end()
    if char == "\\" and place + 1 < len(pattern):
        return re.escape(pattern[place + 1]), place + 2
    return re.escape(char), place + 1
