"""A list in the live region in which the user searches by typing."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from bradawl.app.terminal_user import Option
from bradawl.app.tui.live.dialogs import framed, one_line
from bradawl.app.tui.render.cells import cut, pad
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.theme import Theme
from bradawl.safety.control_characters import escape

_PAGE: Final = 8
_MOST_ROWS: Final = 16
_LOW, _LEAST_ROWS = 9, 4
"""Rows up to which the title has one line, and up to which the keys are left out."""
_LEAST_LABEL: Final = 36
"""Cells of a label that its detail leaves beside it at least; else the detail has a line of its own."""
_ROWS_FOR_DETAILS: Final = 4
"""Rows from which on details are shown on lines of their own."""
_NOW: Final = "now  "


class _Columns(NamedTuple):
    """How the options of a list are drawn at a width; the same for all of them, whatever is searched for."""

    label: int
    is_beside: bool
    """The details are beside the labels, not below them."""


class Picker:
    """`Dialog`: the answer is an option's value, or None if the user leaves the list."""

    def __init__(self, title: str, options: Sequence[Option], *, start: str = "") -> None:
        """It begins at the option with the value `start`, else at the current one."""
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._title = one_line(title)
        self._options = [each._replace(label=one_line(each.label), detail=one_line(each.detail)) for each in options]
        self._typed = ""
        places = [number for number, each in enumerate(options) if (each.value == start if start else each.is_current)]
        self._chosen = places[0] if places else 0

    def press(self, key: str, text: str) -> None:
        """See `Dialog`."""
        found = self._found()
        chosen = max(0, min(self._chosen, len(found) - 1))
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -_PAGE, "pagedown": _PAGE}
        steps |= {"home": -len(found), "end": len(found)}
        if key in ("escape", "c-c"):
            self._answer(None)
        elif key in ("c-m", "enter"):
            if found:
                self._answer(found[chosen].value)
        elif key in steps:
            self._chosen = max(0, min(chosen + steps[key], len(found) - 1))
        elif key in ("c-h", "backspace"):
            self._search(self._typed[:-1])
        elif key == "c-u":
            self._search("")
        elif text and text.isprintable():
            self._search(self._typed + text)

    def _search(self, typed: str) -> None:
        self._typed, self._chosen = typed, 0

    def _answer(self, value: str | None) -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def _found(self) -> list[Option]:
        """The options that contain all typed words; those whose label begins so come first."""
        typed = one_line(self._typed).casefold()
        words = typed.split()
        found = [each for each in self._options if all(word in _searched(each) for word in words)]
        return sorted(found, key=lambda each: not each.label.casefold().startswith(typed))

    # -------------------------------------------------------------- drawing

    def lines(self, theme: Theme, width: int, rows: int) -> list[str]:
        """See `Dialog`. The height does not change while the user searches."""
        found = self._found()
        cells = width - 4
        columns = self._columns(cells)
        title = self._title if rows > _LOW else cut(self._title, width - 6, theme.symbols.ellipsis)
        keys = [theme.paint(cut(" Enter chooses · Esc leaves", width), "dim")] if rows > _LEAST_ROWS else []
        around = len(framed(theme, width, title, (), "", "frame")) + 1 + len(keys)
        per_option = 1 if columns.is_beside or rows - around < _ROWS_FOR_DETAILS else 2
        shown = max(1, min(_MOST_ROWS, rows - around) // per_option)
        shown = min(shown, len(self._options))
        chosen = max(0, min(self._chosen, len(found) - 1))
        first = max(0, min(chosen - shown // 2, len(found) - shown))
        body = [
            line
            for number, each in enumerate(found[first : first + shown], first)
            for line in self._option_lines(theme, cells, columns, each, is_chosen=number == chosen)[:per_option]
        ]
        if not found:
            body = [theme.paint("  nothing found", "dim")]
        body += [""] * (shown * per_option - len(body))
        if rows < around + per_option:
            return body[: max(1, rows)]
        foot = f"{chosen + 1} of {len(found)}" if found else f"0 of {len(self._options)}"
        return [*framed(theme, width, title, [self._search_line(theme, cells), *body], foot, "frame"), *keys]

    def _search_line(self, theme: Theme, cells: int) -> str:
        if not self._typed:
            return theme.paint("type to search", "dim")
        head = "search: "
        return theme.paint(head, "dim") + _end_of(escape(self._typed), cells - len(head))

    def _columns(self, cells: int) -> _Columns:
        longest = max((cells_of(each.label) for each in self._options), default=0)
        detail = max((cells_of(each.detail) for each in self._options), default=0)
        if any(each.is_current for each in self._options):
            detail += len(_NOW)
        room = cells - 4 - detail
        if not detail or room >= min(longest, _LEAST_LABEL):
            return _Columns(min(longest, room if detail else cells - 2), is_beside=True)
        return _Columns(cells - 2, is_beside=False)

    @staticmethod
    def _option_lines(theme: Theme, cells: int, columns: _Columns, option: Option, *, is_chosen: bool) -> list[str]:
        mark = theme.paint(f"{theme.symbols.prompt} ", "accent") if is_chosen else "  "
        end = theme.symbols.ellipsis
        label = cut(option.label, columns.label, end)
        current = theme.paint(_NOW, "ok") if option.is_current else ""
        role = "verb" if is_chosen else "plain"
        if columns.is_beside:
            detail = theme.paint(cut(option.detail, cells - columns.label - 4, end), "dim")
            line = f"{mark}{theme.paint(pad(label, columns.label), role)}  {current}{detail}"
            return [line.rstrip()]
        detail = theme.paint(cut(option.detail, cells - 4 - cells_of(current), end), "dim")
        return [f"{mark}{theme.paint(label, role)}", f"    {current}{detail}".rstrip()]


def _searched(option: Option) -> str:
    return f"{option.label} {option.detail}".casefold()


def _end_of(text: str, cells: int) -> str:
    """The text, or as much of its end as has room: what was typed last stays visible."""
    while cells_of(text) > cells:
        text = text[1:]
    return text
