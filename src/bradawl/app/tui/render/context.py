"""The picture of `/context`: the window as a grid of coloured cells, with a legend."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bradawl.app.context_report import ContextReport
from bradawl.app.context_text import text_around_picture
from bradawl.app.tui.render.cells import pad, wrap
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme

_ROWS, _COLUMNS = 7, 20
_GAP: Final = "   "
_LABEL: Final = 17
_BESIDE: Final = 2 * _COLUMNS + len(_GAP) + 2 + _LABEL + 10 + 7
"""Columns from which on the legend is beside the grid."""
_WIDEST: Final = 100
"""Columns up to which the text is wrapped."""


class Group(NamedTuple):
    """A part of the window."""

    mark: str
    label: str
    role: Role
    tokens: int


def groups_of(report: ContextReport) -> list[Group]:
    """The parts of the window, in the order of a request; their sum is the window, or what is used if that is more."""
    sizes = {part.name: part.tokens for part in report.parts}
    system = next((part for part in report.parts if part.name == "system"), None)
    instructions = sum(each.tokens for each in (system.parts if system else ()) if each.name == "instructions")
    rules = sizes.pop("system", 0) + sizes.pop("lost", 0) - instructions
    tools, results = sizes.pop("tools", 0), sizes.pop("results", 0)
    return [
        Group("s", "system prompt", "keyword", rules),
        Group("t", "tools", "function", tools),
        Group("i", "instruction files", "string", instructions),
        Group("c", "conversation", "warning", sum(sizes.values())),
        Group("r", "results", "error", results),
        Group(".", "free", "dim", report.free),
        Group("=", "for the reply", "frame", report.reserved_output),
    ]


def context_summary(report: ContextReport, theme: Theme, width: int) -> list[str]:
    """The picture and what is compacted next; it fits on a usual screen."""
    text = text_around_picture(report, min(width, _WIDEST))
    hint = theme.paint("Ctrl+O shows the parts, the cache and the requests", "dim")
    return _wrapped((*text.above, "", *_picture(report, theme, width), "", *text.compaction, hint), width)


def context_lines(report: ContextReport, theme: Theme, width: int) -> list[str]:
    """All of it, at most `width` cells wide; letters stand for colours where there are none."""
    text = text_around_picture(report, min(width, _WIDEST))
    picture = _picture(report, theme, width)
    return _wrapped((*text.above, "", *picture, "", *text.compaction, "", *text.details), width)


def _wrapped(lines: Iterable[str], width: int) -> list[str]:
    return [part for line in lines for part in wrap(line, width)]


def _picture(report: ContextReport, theme: Theme, width: int) -> list[str]:
    groups = groups_of(report)
    columns = min(_COLUMNS, max(1, (width + 1) // 2))
    grid = [*_grid(groups, columns, theme)]
    legend = [_legend_line(group, report.window.tokens, theme) for group in groups]
    if width >= _BESIDE:
        return [f"{pad(row, 2 * columns - 1)}{_GAP}{line}" for row, line in zip(grid, legend, strict=True)]
    return [*grid, "", *legend]


def _grid(groups: Sequence[Group], columns: int, theme: Theme) -> Iterator[str]:
    marks = [
        mark
        for group, count in zip(groups, cells_of_groups([each.tokens for each in groups], _ROWS * columns), strict=True)
        for mark in [_mark(group, theme)] * count
    ]
    for row in range(_ROWS):
        yield " ".join(marks[row * columns : (row + 1) * columns])


def cells_of_groups(tokens: Sequence[int], cells: int) -> list[int]:
    """How many of the cells each group gets: in proportion, and at least one for a group that has tokens."""
    whole = max(1, sum(tokens))
    counts = [max(1, each * cells // whole) if each else 0 for each in tokens]
    by_rest = sorted(range(len(tokens)), key=lambda place: -(tokens[place] * cells % whole))
    for place in by_rest[: max(0, cells - sum(counts))]:
        counts[place] += 1
    while sum(counts) != cells:
        largest = max(range(len(counts)), key=lambda place: counts[place])
        counts[largest] += 1 if sum(counts) < cells else -1
    return counts


def _mark(group: Group, theme: Theme) -> str:
    if not theme.codes:
        return group.mark
    return theme.paint(theme.symbols.dot if group.mark == "." else theme.symbols.stopped, group.role)


def _legend_line(group: Group, window: int, theme: Theme) -> str:
    share = 100 * group.tokens / max(1, window)
    percent = f"{share:.0f}" if share >= 9.95 or not group.tokens else f"{max(0.1, share):.1f}"
    return f"{_mark(group, theme)} {group.label:<{_LABEL}}{theme.paint(f'{group.tokens:>10,}{percent:>5} %', 'dim')}"
