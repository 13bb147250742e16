"""Shortens lists of lines, and says how many are left out and how to see them."""

from collections.abc import Sequence
from typing import Final

from bradawl.app.tui.render.cells import cut
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.theme import Theme

_KEY: Final = "Ctrl+O"
OPENS: Final = f"{_KEY} shows all"


def more_line(count: int, theme: Theme, width: int, what: str = "more", indent: str = "") -> str:
    """`… 37 more lines (Ctrl+O shows all)`, dimmed."""
    return theme.paint(cut(indent + more_text(count, theme, width - len(indent), what), width, ""), "dim")


def more_text(count: int, theme: Theme, width: int, what: str = "more", *, has_hint: bool = True) -> str:
    """`… 37 more lines (Ctrl+O shows all)`, shorter where that does not fit."""
    symbol = theme.symbols.ellipsis
    if not count:  # only parts of long lines are left out
        return cut(f"{symbol} ({OPENS})", width, symbol)
    lines = f"{symbol} {count:,} {what} line{'' if count == 1 else 's'}"
    if not has_hint:
        return cut(lines, width, symbol)
    forms = (f"{lines} ({OPENS})", f"{lines} ({_KEY})", f"{symbol} {count:,} ({_KEY})", f"{symbol} {_KEY}")
    return next((form for form in forms if cells_of(form) <= width), cut(forms[-1], width, symbol))


def first_lines(lines: Sequence[str], limit: int, theme: Theme, width: int, indent: str = "") -> list[str]:
    """At most `limit` lines: the first ones, and how many more there are."""
    if len(lines) <= limit:
        return list(lines)
    kept = max(0, limit - 1)
    return [*lines[:kept], more_line(len(lines) - kept, theme, width, indent=indent)][: max(0, limit)]


def last_rows(lines: Sequence[list[str]], limit: int, theme: Theme, width: int, missing: int | None = 0) -> list[str]:
    """At most `limit` of the rows that lines take: how many lines there are before, and the last rows.

    `missing`: number of further lines that are left out; None if that is not known.
    """
    rows = [row for line in lines for row in line]
    if len(rows) <= limit and missing == 0:
        return rows
    kept = max(0, limit - 1)
    room, whole = kept, len(lines)
    while whole and room >= len(lines[whole - 1]):
        whole -= 1
        room -= len(lines[whole])
    if missing is None:
        text = cut(f"{theme.symbols.ellipsis} earlier lines ({OPENS})", width, theme.symbols.ellipsis)
    else:
        text = more_text(whole - (1 if whole and room else 0) + missing, theme, width, "earlier")
    return [theme.paint(text, "dim"), *rows[max(0, len(rows) - kept) :]][: max(0, limit)]
