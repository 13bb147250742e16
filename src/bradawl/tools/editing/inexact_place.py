"""Finds where a quoted text occurs in a file although indentation, whitespace, blank lines or typography differ."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from bradawl.tools.editing.file_text import FileText
from bradawl.tools.editing.indent import Indent, rule_of, split_indent, unchanged
from bradawl.tools.editing.typography import Typography, folded

MOST_PLACES = 50
BLANK_LINES = "blank lines"
NO_FINAL_BREAK = "the missing line break at the end of the file"
TRAILING_BLANKS = "trailing blanks"
INVISIBLE = frozenset({TRAILING_BLANKS, NO_FINAL_BREAK})
"""Differences that leave new_string as it is: an edit that breaks a file for a while is as good as an exact one."""
_BLANKS = " \t\r"
_RIVALS = 20
_RIVAL_LIKENESS = 0.6
_COMPARED = 200
_LOOKED_FOR = 8


class Line(msgspec.Struct, frozen=True):
    """A line of the file and its line ending; the last line of a place has no ending."""

    content: str
    end: str


class Fit(msgspec.Struct, frozen=True):
    """One place, and how the quoted lines map to it."""

    start: int
    """Offset in the text."""
    stop: int
    lines: tuple[Line, ...]
    partners: tuple[int | None, ...]
    """For each quoted line its index in `lines`; None for a blank line that the file does not have. A line break at the
    end is followed by an empty line, unless the file ends without a line break.
    """
    indent: Indent
    typography: Typography
    starts_inside: bool
    """The quoted text begins after the indentation of its first line."""
    ignored: tuple[str, ...]
    """The ignored differences, in words."""
    margin: str = ""
    """The indentation before the place in its first line."""


class LineRange(msgspec.Struct, frozen=True):
    """Lines of the file that match the quoted ones; both ends are inclusive and count from 0."""

    first: int
    last: int
    partners: tuple[int | None, ...]
    """For each quoted line the number of its line in the file."""


def quoted_lines(old: str) -> list[str]:
    """The lines of old_string; a line break at its end ends the last one."""
    return old.removesuffix("\n").split("\n")


def bare_lines(text: str) -> list[str]:
    """Lines in the form they are compared: stripped, with plain typography."""
    return [line.strip(_BLANKS) for line in folded(text).split("\n")]


def may_have(text: str, old: str) -> bool:
    """False if one of the longest quoted lines does not occur; a fast test that rejects most absent texts."""
    plain, quoted = folded(text), bare_lines(old)
    return all(line in plain for line in sorted(quoted, key=len)[-_LOOKED_FOR:])


def matching_ranges(lines: Sequence[str], old: str) -> tuple[LineRange, ...]:
    """Sequences of lines in the file that equal the quoted lines."""
    quoted = bare_lines("\n".join(quoted_lines(old)))
    numbers = _line_numbers(quoted, lines)
    return tuple(
        LineRange(first, first + len(quoted) - 1, tuple(range(first, first + len(quoted)))) for first in numbers
    )


def ranges_without_blank_lines(lines: Sequence[str], old: str) -> tuple[LineRange, ...]:
    """The same without comparing blank lines; needs at least two other lines."""
    quoted = bare_lines("\n".join(quoted_lines(old)))
    places = [place for place, line in enumerate(quoted) if line]
    if len(places) < 2:
        return ()
    numbers = [number for number, line in enumerate(lines) if line]
    found = _line_numbers([quoted[place] for place in places], [lines[number] for number in numbers])
    return tuple(_loose(places, numbers[first : first + len(places)], len(quoted)) for first in found)


def _line_numbers(wanted: Sequence[str], lines: Sequence[str]) -> Iterator[int]:
    needle, joined = "\n" + "\n".join(wanted) + "\n", "\n" + "\n".join(lines) + "\n"
    place, number, counted = joined.find(needle), 0, 0
    for _ in range(MOST_PLACES):
        if place < 0:
            return
        number += joined.count("\n", counted, place)
        counted = place
        yield number
        place = joined.find(needle, place + 1)


def _loose(places: list[int], numbers: list[int], count: int) -> LineRange:
    """Pair blank lines only if both texts have the same number of them between the same two lines."""
    partners: list[int | None] = [None] * count
    partners[places[-1]] = numbers[-1]
    for here, there, after, beyond in zip(places, numbers, places[1:], numbers[1:], strict=False):
        partners[here] = there
        if after - here == beyond - there:
            partners[here:after] = range(there, beyond)
    return LineRange(numbers[0], numbers[-1], tuple(partners))


def has_rival(text: str, old: str, line_range: LineRange) -> bool:
    """True if another place that does not match is more similar to the quoted text, indentation included. The text may
    then be an older version of that place.
    """
    places: dict[str, list[int]] = {}
    quoted = [line.rstrip(_BLANKS) for line in quoted_lines(old)]
    for place, line in enumerate(quoted):
        if line:
            places.setdefault(line, []).append(place)
    lines = [line.rstrip(_BLANKS) for line in text.split("\n")]
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for place in places.get(line, ()):
            votes[number - place] += 1
    pairs = [(place, number) for place, number in enumerate(line_range.partners) if number is not None]
    own = sum(quoted[place] == lines[number] != "" for place, number in pairs)
    starts = {number - place for place, number in pairs}
    others = Counter({start: count for start, count in votes.items() if start not in starts and count > own})
    return any(
        _likeness(quoted, lines[max(start, 0) : start + len(quoted)]) >= _RIVAL_LIKENESS
        for start, _ in others.most_common(_RIVALS)
    )


def _likeness(quoted: Sequence[str], lines: Sequence[str]) -> float:
    """Similarity of the lines that are not blank, from 0 to 1."""
    from difflib import SequenceMatcher

    pairs = [(one[:_COMPARED], other[:_COMPARED]) for one, other in zip(quoted, lines, strict=False) if one]
    total = sum(1.0 if one == other else SequenceMatcher(None, one, other).ratio() for one, other in pairs[:_COMPARED])
    return total / max(sum(1 for line in quoted[:_COMPARED] if line), 1)


def fit_of(file_text: FileText, old: str, line_range: LineRange) -> Fit | None:
    """How the quoted lines map to a range of lines; None if no single rule fits all."""
    quoted, raw = quoted_lines(old), file_text.text.split("\n")
    lines = [_line(raw, number) for number in range(line_range.first, line_range.last + 1)]
    partners = tuple(None if number is None else number - line_range.first for number in line_range.partners)
    pairs = [(quoted[place], lines[partner].content) for place, partner in enumerate(partners) if partner is not None]
    cut, indent = _indentation(pairs)
    typography = Typography()
    if indent is None or not all(typography.learn(one.strip(_BLANKS), other.strip(_BLANKS)) for one, other in pairs):
        return None
    is_closed = old.endswith("\n")
    ignored = [*_ignored(pairs, indent, typography)]
    if None in partners or len(lines) != len(partners):
        ignored.append(BLANK_LINES)
    if is_closed and not lines[-1].end:
        ignored.append(NO_FINAL_BREAK)
    start = sum(map(len, raw[: line_range.first])) + line_range.first
    stop = start + sum(len(line.content) + len(line.end) for line in lines)
    margin, lines[0] = lines[0].content[:cut], Line(lines[0].content[cut:], lines[0].end)
    if is_closed and lines[-1].end:
        partners, lines = (*partners, len(lines)), [*lines, Line("", "")]
    else:
        stop -= len(lines[-1].end)
        lines[-1] = Line(lines[-1].content, "")
    return Fit(start + cut, stop, tuple(lines), partners, indent, typography, cut > 0, tuple(ignored), margin)


def _line(raw: list[str], number: int) -> Line:
    content, end = raw[number], "\n" if number + 1 < len(raw) else ""
    return Line(content[:-1], "\r\n") if end and content.endswith("\r") else Line(content, end)


def _indentation(pairs: list[tuple[str, str]]) -> tuple[int, Indent | None]:
    """The indentation of the first line that is not quoted, and the rule for the other lines."""
    indents = [(split_indent(one)[0], split_indent(other)[0]) for one, other in pairs if one.strip(_BLANKS)]
    if not indents:
        return 0, None
    (quoted, there), rest = indents[0], indents[1:]
    begins_inside = there != quoted and there.endswith(quoted) and bool(pairs[0][0].strip(_BLANKS))
    if begins_inside and rest and all(one == other for one, other in rest):
        return len(there) - len(quoted), unchanged
    return 0, rule_of(indents)


def _ignored(pairs: list[tuple[str, str]], indent: Indent, typography: Typography) -> Iterator[str]:
    if any(trailing_blanks(one) != trailing_blanks(other) for one, other in pairs):
        yield TRAILING_BLANKS
    if indent is not unchanged:
        yield "indentation"
    if typography.differs:
        yield "typographic characters"


def trailing_blanks(line: str) -> str:
    """Spaces and tabs at the end of a line."""
    return line[len(line.rstrip(" \t")) :]


def fit_of_span(text: str, start: int, ignored: tuple[str, ...]) -> Fit:
    """The match of `text` at `start` whose lines differ from the quoted ones only in their line endings."""
    raw = text.split("\n")
    lines = tuple(_line(raw, number) for number in range(len(raw)))
    partners = tuple(range(len(lines)))
    return Fit(start, start + len(text), lines, partners, unchanged, Typography(), False, ignored)


def fit_in_line(file_text: FileText, old: str) -> Fit | None:
    """A match inside a line that differs only in typography; None unless there is exactly one."""
    from bradawl.tools.editing.typography import folded_evenly

    text, wanted = folded_evenly(file_text.text), folded_evenly(old)
    if text is None or wanted is None or "\n" in old or text.count(wanted) != 1:
        return None
    start = text.find(wanted)
    stop = start + len(wanted)
    if _splits_word(text, start) or _splits_word(text, stop) or text.find(wanted, start + 1) >= 0:
        return None
    there, typography = file_text.text[start:stop], Typography()
    typography.learn(old, there)
    ignored = ("typographic characters",)
    return Fit(start, stop, (Line(there, ""),), (0,), unchanged, typography, True, ignored)


def _splits_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
