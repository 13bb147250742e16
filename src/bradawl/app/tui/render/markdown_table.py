"""Draws tables. The widths of the columns follow from the first rows, so that a long table can be drawn row by row."""

from typing import Final

import msgspec

from bradawl.app.tui.render.cells import Span, painted, wrap_spans
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.markdown_inline import InlineRenderer
from bradawl.app.tui.render.markdown_tree import Node

DECIDING_ROWS: Final = 20
"""Rows below the heading that decide the widths; wider cells further down are wrapped."""
_NARROWEST: Final = 3


class Columns(msgspec.Struct, frozen=True):
    """Widths of a table whose heading and first rows are on the screen."""

    widths: tuple[int, ...]
    cells: int
    """The width of the screen they were made for."""


class TableRenderer:
    """Renders tables; a table that is too narrow for its columns becomes a list of its cells."""

    def __init__(self, inline: InlineRenderer) -> None:
        self._inline = inline

    def lines(self, table: Node, cells: int, columns: Columns | None) -> tuple[list[str], Columns]:
        """The lines of a table, of its rows alone if its columns are given, and its columns."""
        rows = table.children
        widths = columns.widths if columns and columns.cells == cells else self._widths(table, cells)
        decided = Columns(widths, cells)
        if not widths:
            return self._as_list(rows, cells, is_begun=columns is not None), decided
        lines: list[str] = []
        if columns is None:
            symbols = self._inline.theme.symbols
            lines += self._row(rows[0], widths, is_heading=True)
            rule = f"{symbols.rule}{symbols.crossing}{symbols.rule}".join(symbols.rule * size for size in widths)
            lines.append(self._inline.theme.paint(rule, "frame"))
        for row in rows[1:]:
            lines += self._row(row, widths)
        return lines, decided

    def _widths(self, table: Node, cells: int) -> tuple[int, ...]:
        """The cells of each column; empty if the table needs more columns than fit."""
        rows = [[self._natural(cell) for cell in row.children] for row in table.children[: DECIDING_ROWS + 1]]
        count = len(table.children[0].children)
        room = cells - 3 * (count - 1)
        if count == 0 or room < _NARROWEST * count:
            return ()
        natural = [max(_NARROWEST, *(row[place] for row in rows if place < len(row)), 0) for place in range(count)]
        return tuple(_shared(natural, room))

    def _natural(self, cell: Node) -> int:
        return sum(cells_of(text) for text, _ in self._inline.spans(cell.text))

    def _row(self, row: Node, widths: tuple[int, ...], *, is_heading: bool = False) -> list[str]:
        wrapped: list[list[list[Span]]] = []
        for place, size in enumerate(widths):
            cell = row.children[place] if place < len(row.children) else None
            spans = self._inline.spans(cell.text, *(("heading",) if is_heading else ())) if cell else []
            wrapped.append([_aligned(line, size, cell.info if cell else "") for line in wrap_spans(spans, size)])
        theme = self._inline.theme
        bar: Span = (f" {theme.symbols.bar} ", theme.code("frame"))
        lines: list[str] = []
        for number in range(max(map(len, wrapped))):
            line: list[Span] = []
            for place, (size, cell) in enumerate(zip(widths, wrapped, strict=True)):
                line += [bar] if place else []
                line += cell[number] if number < len(cell) else [(" " * size, "")]
            lines.append(painted(_stripped(line)))
        return lines

    def _as_list(self, rows: list[Node], cells: int, *, is_begun: bool) -> list[str]:
        """Each row as the lines `heading: cell`."""
        heads = rows[0].children
        lines: list[str] = []
        for row in rows[1:]:
            lines += [""] if lines or is_begun else []
            for head, cell in zip(heads, row.children, strict=False):
                spans = [*self._inline.spans(head.text, "heading"), (": ", ""), *self._inline.spans(cell.text)]
                lines += [painted(line) for line in wrap_spans(spans, cells)]
        if len(rows) == 1 and not is_begun:
            lines = [painted(line) for head in heads for line in wrap_spans(self._inline.spans(head.text), cells)]
        return lines


def _shared(natural: list[int], room: int) -> list[int]:
    """The natural widths; if they need too much room, the wide ones are cut to the same width."""
    level = room
    while sum(min(size, level) for size in natural) > room:
        level -= 1
    widths = [min(size, level) for size in natural]
    spare = room - sum(widths)
    for place, size in enumerate(natural):
        if spare and size > level:
            widths[place] += 1
            spare -= 1
    return widths


def _aligned(line: list[Span], size: int, alignment: str) -> list[Span]:
    left = size - sum(cells_of(text) for text, _ in line)
    before = {"right": left, "center": left // 2}.get(alignment, 0)
    return [(" " * before, ""), *line, (" " * (left - before), "")]


def _stripped(line: list[Span]) -> list[Span]:
    """A line without plain blanks at its end."""
    while line and not line[-1][1] and not line[-1][0].strip():
        line.pop()
    return line
