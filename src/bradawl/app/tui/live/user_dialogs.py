"""Questions and long texts of slash commands in the live region."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from bradawl.app.terminal_user import FileDiff, KeyChoice, Option, Whole
from bradawl.app.tui.live.dialogs import CLOSED, Key, KeyDialog
from bradawl.app.tui.live.pager import Pager
from bradawl.app.tui.live.picker import Picker
from bradawl.app.tui.render.cells import cut, wrap, wrap_behind
from bradawl.app.tui.render.diff import change_lines
from bradawl.app.tui.render.theme import Theme
from bradawl.safety.control_characters import clean, escape

if TYPE_CHECKING:
    from bradawl.app.tui.live.painter import LivePainter
    from bradawl.app.tui.live.view import LiveView

_WHOLE: Final = "whole"
_COLUMN: Final = re.compile(r"( *\S+ {2,})(?=\S)")
"""A first column, behind which the rest of a line is wrapped."""
_MORE: Final = "Ctrl+O shows all of it"
_PAGE_TITLE: Final = 30
_ROWS_AROUND: Final = 8
"""Rows of the screen that a printed text leaves to the input line, the status line and what was said before."""


class LiveDialogs:
    """`Dialogs` with a live region."""

    def __init__(self, view: "LiveView", painter: "LivePainter") -> None:
        self._view, self._painter = view, painter

    async def choose(
        self, title: str, text: str, choices: Sequence[KeyChoice], whole: Callable[[], Whole]
    ) -> str | None:
        """See `Dialogs`."""
        keys = [Key(each.key, escape(each.label), each.value) for each in choices]
        keys.append(Key("v", "", _WHOLE, is_hidden=True))

        def body(_: Theme, width: int) -> list[str]:
            return [part for line in text.split("\n") for part in wrap(escape(line), width)]

        while True:
            dialog = KeyDialog(escape(title), body, "v shows what would change · Esc goes back", keys)
            pressed = await self._view.open_dialog(dialog)
            if pressed != _WHOLE:
                return None if pressed == CLOSED else pressed
            await self._open(title, whole())

    async def pick_from(self, title: str, options: Sequence[Option], start: str) -> str | None:
        """See `Dialogs`."""
        return await self._view.open_dialog(Picker(title, options, start=start)) if options else None

    async def show(self, summary: str, title: str, whole: Whole, *, opens: bool | None = None) -> None:
        """See `Dialogs`."""
        painter = self._painter

        def head(width: int) -> list[str]:
            more = painter.theme.paint(_MORE, "dim")
            return [*self._lines([summary], width), *wrap(more, width)] if summary else []

        def full(width: int) -> list[str]:
            return [*(self._lines([summary], width) if summary else []), *self._lines(whole, width)]

        is_long = opens is not None or len(full(self._view.screen.width)) > self._view.screen.rows - _ROWS_AROUND
        painter.folded(head if is_long else full, full)
        self._view.screen.refresh()
        if is_long and opens is not False:
            await self._open(title, whole)

    async def _open(self, title: str, whole: Whole) -> None:
        title = cut(escape(title), _PAGE_TITLE)
        await Pager(title, lambda width: self._lines(whole, width)).show(self._view.screen)

    def _lines(self, whole: Whole, width: int) -> list[str]:
        return [line for each in whole for line in self._block_lines(each, width)]

    def _block_lines(self, block: str | FileDiff, width: int) -> list[str]:
        theme = self._painter.theme
        if isinstance(block, str):
            return [part for line in clean(block).split("\n") for part in _wrapped(line, width)]
        title = [theme.paint(line, "verb") for line in wrap(escape(block.title), width)]
        return [*title, *change_lines(block.old, block.new, theme, width, path=block.path)]


def _wrapped(line: str, width: int) -> list[str]:
    found = _COLUMN.match(line)
    return wrap_behind(found[1], line[found.end() :], width) if found else wrap(line, width)
