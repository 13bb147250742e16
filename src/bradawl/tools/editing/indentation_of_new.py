"""Decides whether new_string is indented like old_string or like the file, where old_string is indented otherwise.

A model that quotes a block with a wrong indentation mostly writes both strings alike; then new_string is moved as
old_string has to be. But it may also write new_string with the indentation that the file has; then it must stay.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal

import msgspec

from bradawl.tools.editing.indent import split_indent, unchanged
from bradawl.tools.editing.inexact import InexactMatch

Reading = Literal["like old_string", "like the file", "unclear"]
_MOST_LINES = 2_000
_TAB = 4
_OPENINGS = (":", "{", "(", "[", "do", "then", "else", "=>", "->", "begin", "try", ",", "\\", "=", "|")
"""Ends of lines after which deeper lines follow."""
_HERE_DOCUMENT = re.compile(r"<<[ \t]*[\"']?([A-Za-z_]\w*)")


def reading_of(match: InexactMatch) -> Reading:
    """How new_string is indented, by its least indented line, its first line, and the lines that both strings have."""
    old = [(split_indent(line), there) for line, there in zip(match.old, _file_indents(match), strict=True)]
    known = [(quoted, there) for (quoted, rest), there in old if rest.strip() and there is not None]
    new = [split_indent(line) for line in match.new]
    written = [indent for indent, rest in new if rest.strip()]
    if not written or all(quoted == there for quoted, there in known):
        return "like old_string"
    common = _common_lines(old, new)
    if match.fit.margin and len(known) > 1 and len(written) > 1:  # the other lines are whole in both
        return "like old_string" if written[0] == known[0][0] else "like the file"
    least = _vote(_least(quoted for quoted, _ in known), _least(there for _, there in known), _least(written))
    place = next(place for place, (_, rest) in enumerate(new) if rest.strip())
    first = _vote(*common.get(place, known[0]), written[0])
    if least is False and first is False:
        is_split = _is_split(new, common, {quoted for quoted, _ in known}) or _ends_here_document(match.new, common)
        return "unclear" if is_split else "like old_string"
    if least and first:
        return "like the file"
    votes = {least, first, *(_vote(*pair, new[each][0]) for each, pair in common.items())} - {None}
    if len(votes) > 1:
        return "unclear"
    return "like the file" if True in votes else "like old_string"


def _is_split(new: Sequence[tuple[str, str]], common: Mapping[int, tuple[str, str]], quoted: Set[str]) -> bool:
    """Whether new_string changes from the indentation of old_string to that of the file where no block begins."""
    before: tuple[str, str] | None = None
    for place, (indent, rest) in enumerate(new):
        if not rest.strip():
            continue
        is_deeper = before is not None and len(before[0].expandtabs(_TAB)) < len(indent.expandtabs(_TAB))
        is_block = before is None or not is_deeper or before[1].rstrip().endswith(_OPENINGS)
        if not is_block and (_vote(*common[place], indent) if place in common else indent not in quoted):
            return True
        before = indent, rest
    return False


def _ends_here_document(new: Sequence[str], common: Mapping[int, tuple[str, str]]) -> bool:
    """Whether lines that new_string adds end a here-document of a shell, which must not be indented."""
    ends = {found[1] for line in new for found in _HERE_DOCUMENT.finditer(line)}
    return any(line.strip() in ends and place not in common for place, line in enumerate(new))


def in_file_indentation(match: InexactMatch) -> InexactMatch:
    """The match with old_string indented as the file is and with whole lines, so that new_string is taken as it is
    written.
    """
    old = tuple(
        line if there is None or not line.strip() else there + split_indent(line)[1]
        for line, there in zip(match.old, _file_indents(match), strict=True)
    )
    fit, head = match.fit, match.fit.lines[0]
    whole = msgspec.structs.replace(
        fit,
        start=fit.start - len(fit.margin),
        lines=(msgspec.structs.replace(head, content=fit.margin + head.content), *fit.lines[1:]),
        indent=unchanged,
        starts_inside=False,
        margin="",
    )
    return InexactMatch(whole, old, match.new)


def changes_more_than_indentation(match: InexactMatch) -> bool:
    """Whether the strings differ in anything but the indentation of their lines."""
    return [line.strip() for line in match.old] != [line.strip() for line in match.new]


def _file_indents(match: InexactMatch) -> Iterator[str | None]:
    """The indentation of each quoted line in the file; None for a line that the file does not have."""
    fit = match.fit
    for place, _ in enumerate(match.old):
        partner = fit.partners[place] if place < len(fit.partners) else None
        if partner is None:
            yield None
        else:
            yield (fit.margin if partner == 0 else "") + split_indent(fit.lines[partner].content)[0]


def _vote(quoted: str, there: str, written: str) -> bool | None:
    """Whether an indentation is the file's (True) or that of old_string; None if it tells nothing."""
    if quoted == there or written not in (quoted, there):
        return None
    return written == there


def _least(indents: Iterator[str] | Sequence[str]) -> str:
    return min(indents, key=lambda indent: len(indent.expandtabs(_TAB)))


def _common_lines(
    old: Sequence[tuple[tuple[str, str], str | None]], new: Sequence[tuple[str, str]]
) -> dict[int, tuple[str, str]]:
    """For each line of new_string that is in old_string, too: its indentation there and in the file."""
    if len(old) + len(new) > _MOST_LINES:
        return {}
    from difflib import SequenceMatcher

    ours, theirs = [rest.strip() for (_, rest), _ in old], [rest.strip() for _, rest in new]
    found: dict[int, tuple[str, str]] = {}
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        for place in range(block.size):
            (quoted, rest), there = old[block.a + place]
            if rest.strip() and there is not None:
                found[block.b + place] = quoted, there
    return found
