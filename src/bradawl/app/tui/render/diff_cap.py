"""Shortens diffs to a number of lines, so that both sides of each shown change are seen."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from bradawl.app.tui.render.diff_rows import Row

_SMALLEST: Final = 3


class Hidden(msgspec.Struct, frozen=True):
    """Rows that are left out."""

    count: int
    """0 if only parts of long rows are."""


class Capped(msgspec.Struct, frozen=True):
    """The parts of a shortened diff."""

    parts: list[Row | Hidden]
    tallest: int | None = None
    """Lines that one row may take; None for as many as it needs."""

    @property
    def last_hidden(self) -> Hidden | None:
        """What says how to see the rest."""
        return next((part for part in reversed(self.parts) if isinstance(part, Hidden)), None)


def capped(rows: Sequence[Row], limit: int | None, height: Callable[[Row], int]) -> Capped:
    """The rows if they fit into `limit` lines, else the beginning of each stretch of equal signs."""
    if limit is None or _fits(rows, limit, height):
        return Capped(list(rows))
    if limit < _SMALLEST:
        return Capped([Hidden(len(rows))] if limit > 0 else [])
    tallest = max(1, (limit - 1) // 3)

    def low(row: Row) -> int:
        return min(tallest, height(row))

    runs = _runs(rows)
    most = min(limit, max(map(len, runs)))
    for size in range(most, 0, -1):
        parts = _shortened(runs, size)
        if _lines_of(parts, low, limit) <= limit - 1:
            return Capped(_with_total(parts, rows, height, tallest), tallest)
    return Capped(_with_total(_first(runs, limit - 1, low), rows, height, tallest), tallest)


def _fits(rows: Sequence[Row], limit: int, height: Callable[[Row], int]) -> bool:
    return len(rows) <= limit and sum(map(height, rows)) <= limit


def _runs(rows: Sequence[Row]) -> list[list[Row]]:
    """Stretches of rows with the same sign."""
    runs: list[list[Row]] = []
    for row in rows:
        if runs and runs[-1][0].sign == row.sign:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _shortened(runs: list[list[Row]], size: int) -> list[Row | Hidden]:
    """The first `size` rows of each stretch, and what is left out of it if that is more than one row."""
    parts: list[Row | Hidden] = []
    for run in runs:
        kept = run if len(run) <= size + 1 else run[:size]
        parts += kept
        if len(kept) < len(run):
            parts.append(Hidden(len(run) - len(kept)))
    return parts


def _lines_of(parts: list[Row | Hidden], height: Callable[[Row], int], limit: int) -> int:
    lines = 0
    for part in parts:
        lines += 1 if isinstance(part, Hidden) else height(part)
        if lines > limit:
            break
    return lines


def _first(runs: list[list[Row]], room: int, height: Callable[[Row], int]) -> list[Row | Hidden]:
    """One row of each of the first changes, context left out; a removed line is not shown without the added one."""
    parts: list[Row | Hidden] = []
    changes = [run for run in runs if run[0].sign in ("-", "+", "note")]
    place = 0
    while place < len(changes):
        both = changes[place : place + 2] if changes[place][0].sign == "-" else changes[place : place + 1]
        both = both if both[-1][0].sign == "+" else both[:1]
        needed = sum(height(run[0]) + (len(run) > 1) for run in both)
        if needed > room:
            break
        for run in both:
            parts.append(run[0])
            parts += [Hidden(len(run) - 1)] if len(run) > 1 else []
        room -= needed
        place += len(both)
    return parts


def _with_total(
    parts: list[Row | Hidden], rows: Sequence[Row], height: Callable[[Row], int], tallest: int
) -> list[Row | Hidden]:
    """The parts, with the last line saying how many rows are left out behind what is shown."""
    known = sum(part.count if isinstance(part, Hidden) else 1 for part in parts)
    match parts:
        case [*others, Hidden(count)]:
            return [*others, Hidden(count + len(rows) - known)]
        case _:
            is_cut = known < len(rows) or any(isinstance(part, Row) and height(part) > tallest for part in parts)
            return [*parts, Hidden(len(rows) - known)] if is_cut else parts
