"""Compiles path patterns of rules, in the syntax of `.gitignore`, to regular expressions over absolute, resolved paths.

Each expression matches in linear time: the pieces between two stars are found from left to right without backtracking.
No match is lost, since "and everything below it" always follows the last piece.
"""

import re
from collections.abc import Callable, Iterator
from posixpath import dirname, join
from typing import NamedTuple

Resolve = Callable[[str], str]
"""Resolves an absolute path, which need not exist."""


class Bases(NamedTuple):
    """The folders that patterns are relative to."""

    folder: str
    """For `/name`: the folder of the file that contains the rule."""
    home: str
    """For `~/name`."""
    cwd: str
    """For all other patterns."""


class PathPattern(NamedTuple):
    """A compiled pattern, and where to search for its matches."""

    expression: str
    """A regular expression for the matching paths, and everything below them."""
    places: tuple[str, ...]
    """Literal prefixes: every match is one of these paths or lies below one."""


def path_pattern(spec: str, bases: Bases, resolve: Resolve, *, widens: bool) -> str:
    """A regular expression for the paths that `spec` matches, and everything below them. Raises `ValueError`."""
    return located_pattern(spec, bases, resolve, widens=widens).expression


def located_pattern(spec: str, bases: Bases, resolve: Resolve, *, widens: bool) -> PathPattern:
    """As `path_pattern`, with the literal prefixes. Raises `ValueError`.

    With `widens` (allow rules) only the base folder is resolved, since programs can create links in a workspace.
    Without it (deny and ask rules) the pattern also matches below the resolved literal prefix, and in any case.
    """
    if widens:
        return _allow_pattern(spec, bases, resolve)
    found = dict(_readings(spec, bases, resolve))
    if not (spec + "".join(found.values())).isascii():
        from unicodedata import normalize

        found |= {normalize("NFC", expression): place for expression, place in found.items()}
    return PathPattern(f"(?i:{'|'.join(found)})", tuple(dict.fromkeys(found.values())))


def _allow_pattern(spec: str, bases: Bases, resolve: Resolve) -> PathPattern:
    base, rest, is_anchored = _start(spec, bases)
    base, segments = _segments(resolve(base), rest)
    literals = _literal_start(segments)
    if not is_anchored:
        segments = ["**", *segments]
    elif base == "/" and literals:
        # Only root can create entries of `/`, so resolving one such as /tmp is safe.
        base, segments = resolve("/" + literals[0]), segments[1:]
    return PathPattern(_expression(base, segments), ())


def _readings(spec: str, bases: Bases, resolve: Resolve) -> Iterator[tuple[str, str]]:
    """Each reading of a deny or ask pattern: an expression, and its literal prefix.

    `..` is applied to the text, and also to the target of a link before it.
    """
    start, rest, is_anchored = _start(spec, bases)
    start = resolve(start)
    base, segments = _segments(start, rest)
    if not is_anchored:
        yield _expression(base, ["**", *segments]), base
        return
    literals = _literal_start(segments)
    named, behind = join(base, *literals), segments[len(literals) :]
    yield _expression(base, segments), named
    as_written = _literal_start([part for part in rest.split("/") if part not in ("", ".")])
    for real in (resolve(named), resolve(join(start, *as_written)) if ".." in as_written else named):
        if real != named:
            yield _expression(real, behind), real


def name_pattern(glob: str) -> str:
    """A regular expression for names, in which `*` matches any characters. Raises `ValueError`."""
    return _segment(glob)


def _start(spec: str, bases: Bases) -> tuple[str, str, bool]:
    """The folder that a pattern starts from, the rest of it, and whether it is anchored there."""
    if spec.startswith("!"):
        raise ValueError("`!` makes no exceptions here: deny goes before ask, and ask before allow")
    if spec.startswith("//"):
        return "/", spec[2:], True
    if spec.startswith("/"):
        return _require_known(bases.folder, "the folder of this rule"), spec[1:], True
    if spec == "~" or spec.startswith("~/"):
        return _require_known(bases.home, "the home folder"), spec[2:], True
    if spec.startswith("~"):
        raise ValueError("`~` stands for your own home folder only, as in ~/notes/**")
    if spec.startswith("$"):
        raise ValueError("variables are not filled in; write ~/ for the home folder, or //the/whole/path")
    return _require_known(bases.cwd, "the working directory"), spec, "/" in spec.rstrip("/")


def _require_known(folder: str, name: str) -> str:
    if not folder.startswith("/"):
        raise ValueError(f"{name} is not known, so it can't start there")
    return folder


def _segments(base: str, rest: str) -> tuple[str, list[str]]:
    """The names in a pattern, with `.` and `..` applied."""
    segments: list[str] = []
    for segment in rest.split("/"):
        if segment in ("", "."):
            continue
        if segment != "..":
            segments.append(segment)
        elif not segments:
            base = dirname(base)
        elif _literal(segments[-1]) is None:
            raise ValueError("`..` can't follow a pattern")
        else:
            segments.pop()
    return base, segments


def _literal_start(segments: list[str]) -> list[str]:
    names: list[str] = []
    for segment in segments:
        if (name := _literal(segment)) is None:
            break
        names.append(name)
    return names


def _literal(segment: str) -> str | None:
    """The name that a segment stands for; None if it is a pattern."""
    bare = re.sub(r"\\.", "", segment)
    return None if any(mark in bare for mark in "*?[") else re.sub(r"\\(.)", r"\1", segment)


# ------------------------------------------------------------------ expressions

_ENDS = r"(?=/|\Z)"


def _expression(base: str, segments: list[str]) -> str:
    out = [re.escape(base.rstrip("/"))]
    floats = False
    chunk: list[str] = []
    for segment in [*segments, "**"]:
        if segment != "**":
            chunk.append(_segment(segment))
            continue
        if chunk:
            found = "/" + "/".join(chunk) + _ENDS
            out.append(f"(?>(?:/[^/]+)*?{found})" if floats else found)
        floats, chunk = True, []
    return "".join(out) + "(?:/.*)?"


def _segment(glob: str) -> str:
    """One name. Each piece between two stars matches at its first occurrence; the last must end the name."""
    first, *others = _pieces(glob)
    if not others:
        return first
    *middle, last = others
    found = (f"(?>[^/]*?{piece})" for piece in middle if piece)
    return first + "".join(found) + "[^/]*" + last


def _pieces(glob: str) -> list[str]:
    """The pieces between the stars of a name, each as a regular expression of fixed length."""
    pieces = [""]
    place = 0
    while place < len(glob):
        if glob[place] == "*":
            pieces.append("")
            place += 1
        else:
            piece, place = _element(glob, place)
            pieces[-1] += piece
    return pieces


def _element(glob: str, place: int) -> tuple[str, int]:
    char = glob[place]
    match char:
        case "?":
            return "[^/]", place + 1
        case "[":
            return _class(glob, place)
        case "\\":
            if place + 1 == len(glob):
                raise ValueError("it ends with a single backslash")
            return re.escape(glob[place + 1]), place + 2
        case _:
            return re.escape(char), place + 1


def _class(glob: str, place: int) -> tuple[str, int]:
    found = re.compile(r"\[([!^]?)(\]?(?:\\.|[^\]\\])*)\]").match(glob, place)
    if found is None:
        raise ValueError("a `[` is not closed; for the character itself write \\[")
    if "[:" in found[2]:
        raise ValueError("classes such as [:alpha:] are not known here; write a-zA-Z")
    members = re.sub(r"\\(.)|([\[\]^&~|\\])", lambda one: re.escape(one[1] or one[2]), found[2])
    expression = f"(?!/)[{'^' if found[1] else ''}{members}]"
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"{found[0]} is no class of characters") from error
    return expression, found.end()
