"""Expands the patterns of a shell word into the existing paths that they may stand for."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from posixpath import join

from bradawl.safety.shell.links import MOST_NAMES, Links

_ANY_CASE = re.compile(r"nocase|BASHOPTS|\b(?:zsh|fish)\b")
_HIDDEN = re.compile(r"dotglob|GLOBIGNORE|BASHOPTS|\b(?:zsh|fish)\b")
_MARKS = re.compile(r"[*?\[]|[+@!]\(")


def ignores_case(text: str) -> bool:
    """Whether a line may switch the shell to case-insensitive patterns (`shopt -s nocasematch`, zsh)."""
    return _ANY_CASE.search(re.sub(r"['\"\\]", "", text)) is not None


def matches_hidden(text: str) -> bool:
    """Whether a line may make patterns match names that begin with a dot (`shopt -s dotglob`, zsh)."""
    return _HIDDEN.search(re.sub(r"['\"\\]", "", text)) is not None


def is_pattern(text: str) -> bool:
    """Whether a word contains a pattern: `*`, `?`, `[` or an extended pattern such as `@(a|b)`."""
    return _MARKS.search(text) is not None


def expanded(pattern: str, links: Links | None = None, *, any_case: bool = False, hidden: bool = True) -> Iterator[str]:
    """Yield the existing paths that an absolute pattern may match; a text without a pattern is yielded as it is.

    With `hidden`, `*` also matches a leading dot. `**` and extended patterns are expanded even if the shell does not
    enable them.
    """
    if not is_pattern(pattern):
        yield pattern
        return
    links = links or Links()
    found = [""]
    for part in pattern.split("/")[1:]:
        if "**" in part:
            found = [*found, *(each for folder in found for each in _folders_below(folder))]
        if is_pattern(part):
            matches = _expression(part, any_case=any_case).fullmatch
            found = [
                f"{real.rstrip('/')}/{name}"
                for folder in found
                for real in links.folders(folder)
                for name in links.names(real)
                if matches(name) and (hidden or name[0] != "." or part[0] == ".")
            ]
        else:
            found = [f"{folder}/{part}" for folder in found]
        found = found[:MOST_NAMES]
    for path in found:
        if os.path.lexists(path) or links.is_created(path):
            yield path


def _folders_below(folder: str) -> list[str]:
    found: list[str] = []
    for top, folders, _ in os.walk(folder or "/"):
        found += [join(top, name) for name in folders]
        if len(found) > MOST_NAMES:
            break
    return found


@lru_cache(maxsize=256)
def _expression(part: str, *, any_case: bool) -> re.Pattern[str]:
    try:
        return re.compile(_to_regex(part), re.DOTALL | (re.IGNORECASE if any_case else 0))
    except re.error:
        return re.compile(".*", re.DOTALL)


_ELEMENT = re.compile(
    r"(?P<many>\*+(?!\())|(?P<one>\?(?!\())|(?P<open>[*?+@!]\()|\[(?P<not>[!^]?)(?P<set>\]?(?:\[:\w+:\]|[^\]])*)\]"
    r"|(?P<bar>\|)|(?P<close>\))|\\?(?P<char>.)",
    re.DOTALL,
)
_REPEATS = {"*(": "*", "+(": "+", "?(": "?", "@(": ""}
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "word": r"\w",
}


def _to_regex(part: str) -> str:
    out: list[str] = []
    ends: list[str] = []
    for match in _ELEMENT.finditer(part):
        match match.lastgroup:
            case "many":
                out.append(".*")
            case "one":
                out.append(".")
            case "open":
                out.append(".*(?:" if match[0] == "!(" else "(?:")
                ends.append(").*" if match[0] == "!(" else ")" + _REPEATS[match[0]])
            case "close" if ends:
                out.append(ends.pop())
            case "bar" if ends:
                out.append("|")
            case "set" | "not":
                out.append(_class_to_regex(match["not"], match["set"]))
            case _:
                out.append(re.escape(match[match.lastgroup or 0]))
    if any(end == ").*" for end in ends) or "!(" in part:
        return ".*"
    return "".join(out) + "".join(reversed(ends))


def _class_to_regex(negated: str, members: str) -> str:
    classes = re.findall(r"\[:(\w+):\]", members)
    rest = re.sub(r"\[:\w+:\]", "", members)
    if any(name not in _CLASSES for name in classes):
        return "."
    plain = re.sub(r"([\[\]^&~|\\])", r"\\\1", rest)
    return f"[{'^' if negated else ''}{''.join(_CLASSES[name] for name in classes)}{plain}]"
