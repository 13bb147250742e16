"""Parses `.gitignore` rules and matches paths against them as git does."""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

_CLASS = re.compile(r"\[([!^]?)(\]?+(?:\\.|[^\]\\])*+)\]")
_STAR = "[^/]*"
_FOLDERS = "(?:.*/)?"
_IN_CLASS = re.compile(r"\\(.)|([\[\]^&~|])")


class Rule(msgspec.Struct, frozen=True):
    """One line of a `.gitignore`."""

    pattern: re.Pattern[str]
    """Matches a path relative to the folder of the `.gitignore`."""
    is_negated: bool
    only_folders: bool


class RuleSet(msgspec.Struct, frozen=True):
    """The rules of one folder."""

    folder: str
    """Absolute, without a trailing slash; empty for the root of the file system."""
    rules: tuple[Rule, ...]

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """True: ignored. False: a negated rule keeps it. None: no rule matches. `path` is absolute, below `folder`."""
        relative = path[len(self.folder) + 1 :]
        for rule in reversed(self.rules):
            if rule.only_folders and not is_folder:
                continue
            if rule.pattern.match(relative):
                return not rule.is_negated
        return None


def is_ignored(chain: tuple[RuleSet, ...], path: str, *, is_folder: bool) -> bool:
    """Whether a path is ignored. `chain` is ordered outermost first; the innermost rule set with a match decides."""
    for rules in reversed(chain):
        verdict = rules.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def parse_rules(folder: str, text: str) -> RuleSet | None:
    """The rules of a `.gitignore` in `folder`; None if it has none."""
    rules = tuple(_rules(text.removeprefix("\ufeff").split("\n")))
    return RuleSet(folder.rstrip("/"), rules) if rules else None


def _rules(lines: Iterable[str]) -> Iterable[Rule]:
    for line in lines:
        rule = _rule(line.removesuffix("\r"))
        if rule is not None:
            yield rule


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and stripped != line else stripped


def _rule(line: str) -> Rule | None:
    line = _without_trailing_spaces(line)
    if not line or line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    line = line[1:] if is_negated else line
    only_folders = line.endswith("/")
    line = line.rstrip("/") if only_folders else line
    if not line:
        return None
    is_anchored = "/" in line
    line = line.removeprefix("/")
    try:
        pattern = _compiled(line, is_anchored)
    except re.error:
        return None  # git also lets an invalid pattern match nothing
    return Rule(pattern, is_negated, only_folders)


@lru_cache(maxsize=512)
def _compiled(pattern: str, is_anchored: bool) -> re.Pattern[str]:
    prefix = "" if is_anchored else _FOLDERS
    return re.compile(prefix + _translate(pattern) + r"\Z", re.DOTALL)


def _translate(pattern: str) -> str:
    """The regular expression of a pattern. Its time is bounded also for a hostile one, such as `*a*a*a*a*b`."""
    out: list[str] = []
    segment: list[str] = []
    """Pieces of the present path component."""
    place = 0
    while place < len(pattern):
        piece, place = _piece(pattern, place)
        if piece not in ("/", _FOLDERS):
            segment.append(piece)
            continue
        out += _without_backtracking(segment)
        segment = []
        if piece == "/" or out[-1:] != [_FOLDERS]:  # `**/**/` is `**/`
            out.append(piece)
    return "".join([*out, *_without_backtracking(segment)])


def _without_backtracking(segment: list[str]) -> list[str]:
    """What follows a star is taken at its first place and no other one is tried, except behind the last star. In one
    path component that finds the same matches.
    """
    last = max((place for place, piece in enumerate(segment) if piece == _STAR), default=0)
    out: list[str] = []
    is_open = False
    for place, piece in enumerate(segment):
        if piece == _STAR:
            out += [")"] if is_open else []
            is_open = place != last
            out.append("(?>[^/]*?" if is_open else _STAR)
        else:
            out.append(piece)
    return out


def _stars(pattern: str, place: int) -> tuple[str, int]:
    end = place
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    at_start = place == 0 or pattern[place - 1] == "/"
    if end - place == 2 and at_start:
        if pattern[end : end + 1] == "/":
            return _FOLDERS, end + 1
        if end == len(pattern):
            return ".+", end
    return _STAR, end


def _piece(pattern: str, place: int) -> tuple[str, int]:
    """Translate one element of a pattern to a regular expression; also returns the position of the next one."""
    char = pattern[place]
    if char == "*":
        return _stars(pattern, place)
    if char == "?":
        return "[^/]", place + 1
    if char == "[":
        match = _CLASS.match(pattern, place)
        if match is None:
            return "(?!)", len(pattern)  # git: an unclosed class matches nothing
        process_states = _IN_CLASS.sub(lambda found: re.escape(found[1]) if found[1] else "\\" + found[2], match[2])
        return f"(?!/)[{'^' if match[1] else ''}{process_states}]", match.end()
    if char == "\\" and place + 1 < len(pattern):
        return re.escape(pattern[place + 1]), place + 2
    return re.escape(char), place + 1
