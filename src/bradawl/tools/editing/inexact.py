"""Accepts a place that `inexact_place` found for an old_string without an exact match, if it is the only one."""

import msgspec

from bradawl.core.errors import ToolError
from bradawl.tools.editing.file_text import FileText
from bradawl.tools.editing.inexact_place import (
    BLANK_LINES,
    MOST_PLACES,
    NO_FINAL_BREAK,
    Fit,
    LineRange,
    bare_lines,
    fit_in_line,
    fit_of,
    has_rival,
    matching_ranges,
    may_have,
    ranges_without_blank_lines,
)

_PLACES_NAMED = 10


class InexactMatch(msgspec.Struct, frozen=True):
    """A match, and both strings as lines, without their last line break if that did not match."""

    fit: Fit
    old: tuple[str, ...]
    new: tuple[str, ...]


def find_inexact(file_text: FileText, old: str, new: str, shown: str) -> InexactMatch | None:
    """The only matching place; None if there is none. Raises `ToolError` if there are several."""
    if not may_have(file_text.text, old):
        return None
    lines = bare_lines(file_text.text)
    found = matching_ranges(lines, old)
    if not found and (inside := fit_in_line(file_text, old)):
        return InexactMatch(inside, (old,), tuple(new.split("\n")))
    quoted = old
    if not found:
        old, new = _without_blank_edges(old, new)
        found = matching_ranges(lines, old) or ranges_without_blank_lines(lines, old)
    _check_unique(found, shown)
    if not found or has_rival(file_text.text, old, found[0]):
        return None
    fit = fit_of(file_text, old, found[0])
    if fit is None:
        return None
    _check_ends(fit, old, new)
    if old != quoted and BLANK_LINES not in fit.ignored:
        fit = msgspec.structs.replace(fit, ignored=(*fit.ignored, BLANK_LINES))
    if NO_FINAL_BREAK in fit.ignored:
        old, new = old.removesuffix("\n"), new.removesuffix("\n")
    return InexactMatch(fit, tuple(old.split("\n")), tuple(new.split("\n")))


def _without_blank_edges(old: str, new: str) -> tuple[str, str]:
    """Drop blank lines that both strings begin or end with."""
    ours, theirs = old.split("\n"), new.split("\n")
    while len(ours) > 1 and len(theirs) > 1 and not ours[0].strip() and not theirs[0].strip():
        ours, theirs = ours[1:], theirs[1:]
    while min(len(ours), len(theirs)) > 2 and not any(line.strip() for line in (*ours[-2:], *theirs[-2:])):
        ours, theirs = ours[:-1], theirs[:-1]
    return "\n".join(ours), "\n".join(theirs)


def _check_unique(found: tuple[LineRange, ...], shown: str) -> None:
    if len(found) < 2:
        return
    numbers = ", ".join(str(line_range.first + 1) for line_range in found[:_PLACES_NAMED])
    more = ", ..." if len(found) > _PLACES_NAMED else ""
    count = f"{len(found)} or more" if len(found) == MOST_PLACES else str(len(found))
    raise ToolError(
        f"old_string is not in {shown} as it stands, and {count} places are like it but for blanks, indentation or "
        f"typographic characters (lines {numbers}{more}); nothing was changed. Copy the text exactly as it is in the "
        "file, with lines around it that make it unique"
    )


def _check_ends(fit: Fit, old: str, new: str) -> None:
    """Whether common lines at both ends can be separated from the changed ones."""
    # An empty line at the end of new_string alone may be one of old_string whose successors are deleted.
    if new and old.endswith("\n") != new.endswith("\n") and (old.endswith("\n") or "\n\n" not in old):
        raise ToolError(
            "of old_string and new_string only one ends with a line break, and the place matches only loosely; "
            "end both alike"
        )
    lines = [line for line in fit.lines if line.content.strip()]
    first = fit.lines[0].content
    if len(lines) == 1 and first[:1] in " \t" and old[:1] not in " \t" and len(new.strip().split("\n")) > 1:
        raise ToolError(
            "old_string leaves out the indentation of its line, so that of new_string's lines can't be determined; "
            "give both as whole lines with the file's indentation"
        )
