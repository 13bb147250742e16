"""Re-indents the new text of an edit by the rule that maps the quoted indentation to the indentation of the file."""

from collections.abc import Callable, Sequence
from itertools import pairwise

Indent = Callable[[str], str | None]
"""Maps an indentation in old_string to the file's; returns None if unknown."""
_TAB_WIDTHS = (2, 3, 4, 8)


def split_indent(line: str) -> tuple[str, str]:
    """Leading blanks, and the rest."""
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)], rest


def unchanged(indent: str) -> str | None:
    """The rule for text with the file's own indentation."""
    return indent


def rule_of(pairs: Sequence[tuple[str, str]]) -> Indent | None:
    """The rule that fits all pairs of (quoted, in the file); None if there is none. Equal indentations must be equal in
    the file and deeper ones deeper, else the structure of the block differs.
    """
    seen = dict(pairs)
    if any(seen[quoted] != there for quoted, there in pairs) or not _keeps_order(seen):
        return None
    if all(quoted == there for quoted, there in seen.items()):
        return unchanged
    rule = _shift(seen) or _spaces_to_tabs(seen) or _tabs_to_spaces(seen)
    return lambda indent: seen[indent] if indent in seen else rule(indent) if rule else None


def _keeps_order(seen: dict[str, str]) -> bool:
    ordered = sorted((len(quoted.expandtabs(4)), len(there.expandtabs(4))) for quoted, there in seen.items())
    return all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(ordered))


def _shift(seen: dict[str, str]) -> Indent | None:
    """The rule that shifts every line by the same spaces or tabs."""
    before, after = _common_start(list(seen)), _common_start(list(seen.values()))
    if any(quoted[len(before) :] != there[len(after) :] for quoted, there in seen.items()):
        return None

    def moved(indent: str) -> str | None:
        if not indent.startswith(before):
            return None  # less indented than any quoted line
        result = after + indent[len(before) :]
        return result if len(set(result + before)) <= 1 else None

    return moved if len(set(before + after)) <= 1 else None


def _common_start(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    count = 0
    while count < min(len(first), len(last)) and first[count] == last[count]:
        count += 1
    return first[:count]


def _line_through(points: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The width of a tab and the number of tabs by which the block moved, from pairs of (spaces, tabs)."""
    points = sorted(points)
    if len(points) == 1:
        spaces, tabs = points[0]
        # A single level may be a shift or a different width: only the usual widths are accepted.
        width = spaces // tabs if tabs and spaces % tabs == 0 else 0
        return (width, 0) if width in {4, 8} or (width == 2 and tabs == 1) else None
    (spaces, tabs), (more_spaces, more_tabs) = points[0], points[-1]
    width, rest = divmod(more_spaces - spaces, more_tabs - tabs)
    if rest or width not in _TAB_WIDTHS or spaces % width:
        return None
    moved = tabs - spaces // width
    return (width, moved) if all(one == (other - moved) * width for one, other in points) else None


def _is_all(texts: Sequence[str], character: str) -> bool:
    return not "".join(texts).strip(character)


def _spaces_to_tabs(seen: dict[str, str]) -> Indent | None:
    if not (_is_all(tuple(seen), " ") and _is_all(tuple(seen.values()), "\t")):
        return None
    line = _line_through([(len(quoted), len(there)) for quoted, there in seen.items()])
    if line is None:
        return None
    width, moved = line

    def tabs(indent: str) -> str | None:
        levels, rest = divmod(len(indent), width)
        return "\t" * (levels + moved) if _is_all([indent], " ") and not rest and levels + moved >= 0 else None

    return tabs


def _tabs_to_spaces(seen: dict[str, str]) -> Indent | None:
    if not (_is_all(tuple(seen), "\t") and _is_all(tuple(seen.values()), " ")):
        return None
    line = _line_through([(len(there), len(quoted)) for quoted, there in seen.items()])
    if line is None:
        return None
    width, moved = line

    def spaces(indent: str) -> str | None:
        return " " * (width * (len(indent) - moved)) if _is_all([indent], "\t") and len(indent) >= moved else None

    return spaces
