"""Paths that a word of a line may lead to: names for patterns, existing links, and links that the line itself makes."""

import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from posixpath import basename, dirname, join

_MOST_NAMES = 2_000
_MOST_LINKS = 50
_MOST_TURNS = 64
_ANY_CASE = re.compile(r"nocase|BASHOPTS|\b(?:zsh|fish)\b")
_HIDDEN = re.compile(r"dotglob|GLOBIGNORE|BASHOPTS|\b(?:zsh|fish)\b")
_MARKS = re.compile(r"[*?\[]|[+@!]\(")


class Links:
    """Links on the disk, and those that a line makes before it uses them."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, None]] = {}

    def add(self, link: str, target: str) -> None:
        """Count `link` as a link to `target`; both absolute."""
        if len(self._made) >= _MOST_LINKS:
            return
        for folder in self.places(dirname(link)):
            place = join(folder, basename(link))
            if place != target.rstrip("/"):
                self._made.setdefault(place, {})[target] = None

    def targets(self, path: str) -> tuple[str, ...]:
        """Where a link leads by its own text, made or existing; empty for anything else."""
        found = [target for folder in self.places(dirname(path)) for target in self._of(join(folder, basename(path)))]
        return tuple(found)

    def _of(self, place: str) -> Iterator[str]:
        yield from self._made.get(place, ())
        if (target := _read(place)) is not None:
            yield join(dirname(place), target)

    def places(self, path: str) -> tuple[str, ...]:
        """Every place that an absolute path may lead to; the first is the one without links that the line makes."""
        if not self._made:
            return (os.path.realpath(path),)
        found: dict[str, None] = {}
        waiting, seen = [path], set[str]()
        while waiting and len(seen) < _MOST_TURNS:
            each = waiting.pop(0)
            if each not in seen:
                seen.add(each)
                real, others = self._followed(each)
                found[real] = None
                waiting += others
        return tuple(found)

    def is_made(self, path: str) -> bool:
        """Whether a path is there only by links that the line makes."""
        return bool(self._made) and (path in self._made or any(map(os.path.lexists, self.places(path))))

    def _followed(self, path: str) -> tuple[str, list[str]]:
        """The real path, and the paths that links of the line make of it."""
        pending = path.split("/")[::-1]
        current, others, turns = "/", list[str](), 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            place = dirname(current) if part == ".." else join(current, part)
            rest = "/".join(pending[::-1])
            others += [join(target, rest) for target in self._made.get(place, ())]
            target = _read(place) if part != ".." else None
            if target is None or (turns := turns + 1) > _MOST_TURNS:
                current = place
                continue
            current = "/" if target.startswith("/") else current
            pending += target.split("/")[::-1]
        return current, others

    def names(self, folder: str) -> list[str]:
        """Names in a folder, with those of links that the line makes there."""
        made = [basename(place) for place in self._made if dirname(place) == folder]
        return [*_names(folder), *made]

    def folders(self, path: str) -> tuple[str, ...]:
        """The folders that a path may lead to, for patterns behind it."""
        return self.places(path or "/") if self._made else (path or "/",)


def _read(place: str) -> str | None:
    try:
        return os.readlink(place)  # noqa: PTH115 - pathlib takes ten times as long
    except OSError:
        return None


def is_folder(path: str) -> bool:
    """Whether a path leads to a folder; false where that may not be seen."""
    return _is(path, Path.is_dir)


def is_file(path: str) -> bool:
    """Whether a path leads to a file; false where that may not be seen."""
    return _is(path, Path.is_file)


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link; false where that may not be seen."""
    return _is(path, Path.is_symlink)


def _is(path: str, test: Callable[[Path], bool]) -> bool:
    try:
        return test(Path(path))
    except OSError:
        return False


def changes_case(text: str) -> bool:
    """Whether a line may make patterns match names in another case."""
    return _ANY_CASE.search(re.sub(r"['\"\\]", "", text)) is not None


def shows_hidden(text: str) -> bool:
    """Whether a line may make patterns match hidden names."""
    return _HIDDEN.search(re.sub(r"['\"\\]", "", text)) is not None


def is_pattern(text: str) -> bool:
    """Whether bash may replace a word by names."""
    return _MARKS.search(text) is not None


def expanded(pattern: str, links: Links | None = None, *, any_case: bool = False, hidden: bool = True) -> Iterator[str]:
    """Existing names that an absolute pattern may stand for; the pattern itself where it is none.

    `hidden`: a star stands for a leading dot, too. `**` descends and extended patterns are known, whether or not the
    shell is told so.
    """
    if not is_pattern(pattern):
        yield pattern
        return
    links = links or Links()
    found = [""]
    for part in pattern.split("/")[1:]:
        if "**" in part:
            found = [*found, *(each for folder in found for each in _all_below(folder))]
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
        found = found[:_MOST_NAMES]
    for path in found:
        if os.path.lexists(path) or links.is_made(path):
            yield path


def _all_below(folder: str) -> list[str]:
    found: list[str] = []
    for top, folders, _ in os.walk(folder or "/"):
        found += [join(top, name) for name in folders]
        if len(found) > _MOST_NAMES:
            break
    return found


def files_in(folder: str) -> Iterator[str]:
    """Names of what lies directly in a folder; one that may not be listed counts as full."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        yield ""


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except OSError:
        return []


@lru_cache(maxsize=256)
def _expression(part: str, *, any_case: bool) -> re.Pattern[str]:
    try:
        return re.compile(_translated(part), re.DOTALL | (re.IGNORECASE if any_case else 0))
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


def _translated(part: str) -> str:
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
                out.append(_set(match["not"], match["set"]))
            case _:
                out.append(re.escape(match[match.lastgroup or 0]))
    if any(end == ").*" for end in ends) or "!(" in part:
        return ".*"
    return "".join(out) + "".join(reversed(ends))


def _set(negated: str, members: str) -> str:
    classes = re.findall(r"\[:(\w+):\]", members)
    rest = re.sub(r"\[:\w+:\]", "", members)
    if any(name not in _CLASSES for name in classes):
        return "."
    plain = re.sub(r"([\[\]^&~|\\])", r"\\\1", rest)
    return f"[{'^' if negated else ''}{''.join(_CLASSES[name] for name in classes)}{plain}]"
