"""Builds the new text for an inexact match: text common to both strings stays as it is in the file."""

from collections.abc import Sequence
from itertools import groupby, pairwise

from bradawl.core.errors import ToolError
from bradawl.tools.editing.indent import split_indent
from bradawl.tools.editing.inexact_place import TRAILING_BLANKS, Fit, Line, trailing_blanks

_MOST_LINES = 2_000
Code = tuple[str, int, int, int, int]


def rewritten(fit: Fit, old: Sequence[str], new: Sequence[str], line_end: str) -> str:
    """The replacement text. Raises `ToolError` if the place of a new line is ambiguous."""
    out: list[Line] = []
    for code in _codes(old, new):
        if code[0] == "equal":
            out += _kept(fit, code[1], code[2])
        else:
            _check_blank_lines(fit, code[1], code[2])
            out += _changed(fit, old, new, code)
    return "".join(line.content + (line.end or line_end) for line in out[:-1]) + (out[-1].content if out else "")


def _codes(old: Sequence[str], new: Sequence[str]) -> list[Code]:
    from difflib import SequenceMatcher

    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    stop_old, stop_new = len(old) - end, len(new) - end
    if stop_old - start + stop_new - start > _MOST_LINES:
        raise ToolError("the changed part is too long for a place that matches only loosely; edit less at once")
    # Compared without blanks at both ends: a line that is only indented more is the same line.
    ours, theirs = ([line.strip() for line in lines] for lines in (old[start:stop_old], new[start:stop_new]))
    codes: list[Code] = [("equal", 0, start, 0, start)]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        code = (tag, i1 + start, i2 + start, j1 + start, j2 + start)
        codes += _line_by_line(code, old, new) if tag == "equal" else [code]
    codes.append(("equal", stop_old, len(old), stop_new, len(new)))
    return [code for code in codes if code[1] < code[2] or code[3] < code[4]]


def _line_by_line(code: Code, old: Sequence[str], new: Sequence[str]) -> list[Code]:
    """Ranges of lines that are equal, whitespace included, and ranges that are not."""
    _, i1, i2, j1, _ = code
    shift = j1 - i1
    runs = [
        (is_same, [*places]) for is_same, places in groupby(range(i1, i2), lambda one: old[one] == new[one + shift])
    ]
    return [
        ("equal" if is_same else "replace", run[0], run[-1] + 1, run[0] + shift, run[-1] + 1 + shift)
        for is_same, run in runs
    ]


def _kept(fit: Fit, first: int, stop: int) -> tuple[Line, ...]:
    """The file's lines, including unquoted blank lines between them."""
    partners = [partner for partner in fit.partners[first:stop] if partner is not None]
    return fit.lines[partners[0] : partners[-1] + 1] if partners else ()


def _check_blank_lines(fit: Fit, first: int, stop: int) -> None:
    """Blank lines around changed lines must match the quoted ones."""
    around = fit.partners[max(first - 1, 0) : stop + 1]
    known = [partner for partner in around if partner is not None]
    if len(known) < len(around) or any(other - one != 1 for one, other in pairwise(known)):
        raise ToolError(
            "old_string has other blank lines than the file right where lines would change; "
            "repeat the edit with the blank lines as they are in the file"
        )


def _changed(fit: Fit, old: Sequence[str], new: Sequence[str], code: Code) -> list[Line]:
    _, i1, i2, j1, j2 = code
    given = [_indented(fit, line, j1 + number == 0) for number, line in enumerate(new[j1:j2])]
    if fit.typography.differs and given:
        given = _with_look_alikes(fit, old[i1:i2], fit.partners[i1:i2], given)
    is_even = i2 - i1 == j2 - j1
    return [
        Line(
            line + _blanks_kept(fit, old, new, i1 + number if is_even else None, j1 + number),
            _end(fit, min(i1 + number, i2 - 1) if i2 > i1 else i1 - 1),
        )
        for number, line in enumerate(given)
    ]


def _indented(fit: Fit, line: str, is_first: bool) -> str:
    """A new line with the file's indentation and without trailing blanks."""
    indent, rest = split_indent(line.rstrip(" \t"))
    if not rest or (is_first and fit.starts_inside):
        return indent + rest
    moved = fit.indent(indent)
    if moved is None:
        raise ToolError(
            f"old_string is indented otherwise than the file, and how {rest[:60]!r} of new_string should be indented "
            "can't be determined; repeat the edit with the file's own indentation"
        )
    return moved + rest


def _with_look_alikes(fit: Fit, old: Sequence[str], partners: Sequence[int | None], given: list[str]) -> list[str]:
    """New text with the file's typography. Lines are compared without indentation."""
    if fit.starts_inside and len(fit.lines) == 1:
        return fit.typography.rewritten(old[0], fit.lines[0].content, "\n".join(given)).split("\n")
    pairs = zip(old, partners, strict=True)
    there = "\n".join(fit.lines[partner].content.strip() for _, partner in pairs if partner is not None)
    quoted = "\n".join(line.strip() for line in old)
    parts = [split_indent(line) for line in given]
    bodies = fit.typography.rewritten(quoted, there, "\n".join(rest for _, rest in parts)).split("\n")
    return [indent + body for (indent, _), body in zip(parts, bodies, strict=True)]


def _blanks_kept(fit: Fit, old: Sequence[str], new: Sequence[str], place: int | None, number: int) -> str:
    """Keep the trailing blanks of a line that changes before them."""
    given = trailing_blanks(new[number])
    if place is None:
        is_noise = TRAILING_BLANKS in fit.ignored and given in {trailing_blanks(line) for line in old}
        return "" if is_noise else given
    partner = fit.partners[place]
    if partner is None or given != trailing_blanks(old[place]):
        return given
    return trailing_blanks(fit.lines[partner].content)


def _end(fit: Fit, place: int) -> str:
    """The line ending in the file at a quoted line."""
    partner = fit.partners[place] if 0 <= place < len(fit.partners) else None
    return "" if partner is None else fit.lines[partner].end
