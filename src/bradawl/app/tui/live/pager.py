"""Shows a long text on a screen of its own, above which the conversation stays as it is."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from bradawl.app.tui.live.lazy_lines import LazyLines
from bradawl.app.tui.render.cells import cut, width
from bradawl.app.tui.render.theme import Theme

if TYPE_CHECKING:
    from bradawl.app.tui.live.screen import Screen

_LINES: Final = {"up": -1, "k": -1, "down": 1, "j": 1, "enter": 1}
_AHEAD: Final = 200
"""Earlier lines that are drawn at once, where they are drawn as they are wanted."""
_AT_ONCE: Final = 2_000
"""The same for a search."""
_LEAST_HELP: Final = 36
"""Cells of the foot that a long title leaves to the place and to the first keys."""
_HELP: Final = "q closes · / search · n next · ↑ ↓ PgUp PgDn Home End"


class Pager:
    """Lines with a place; drawing one costs no more for a long text than for a short one."""

    def __init__(self, title: str, lines: Callable[[int], Sequence[str] | LazyLines], *, at_end: bool = False) -> None:
        """`lines` gives all lines for a width, or lines that are drawn from the end on."""
        self._title, self._source = title, lines
        self._lines: Sequence[str] = ()
        self._lazy: LazyLines | None = None
        self._width = 0
        self._top = 1 << 30 if at_end else 0
        self._search: str | None = None
        """What is being typed after `/`; None while nothing is."""
        self._wanted = ""
        self._is_missing = False
        """The last search found nothing; said until the next key."""

    async def show(self, screen: "Screen") -> None:
        """Show it until the user closes it."""
        app = self._application(screen)
        async with in_terminal():
            await app.run_async(handle_sigint=False)
        screen.refresh()

    def _application(self, screen: "Screen") -> Application[None]:
        keys = KeyBindings()
        keys.add("<any>")(lambda event: self._press(event, screen))
        control = FormattedTextControl(lambda: self._text(screen.theme, screen.width, screen.rows))
        return Application(
            Layout(Window(control, always_hide_cursor=True)),
            key_bindings=keys,
            full_screen=True,
            input=screen.app.input,
            output=screen.app.output,
            color_depth=screen.app.color_depth,
        )

    def _press(self, event: KeyPressEvent, screen: "Screen") -> None:
        from bradawl.app.tui.live.screen import key_of

        key, text = key_of(event)
        key = "enter" if key == "c-m" else key
        page = max(1, screen.rows - 2)
        self._is_missing = False
        if self._search is not None:
            self._press_in_search(key, text)
        elif key in ("q", "escape", "c-c", "c-o", "c-d"):
            event.app.exit()
        elif key in _LINES:
            self._top += _LINES[key]
        elif key in ("pagedown", " ", "pageup", "b"):
            self._top += page if key in ("pagedown", " ") else -page
        elif key in ("home", "g", "end", "G"):
            if key in ("home", "g"):
                self._draw_earlier(None)
            self._top = 0 if key in ("home", "g") else len(self._lines)
        elif key == "/":
            self._search = ""
        elif key in ("n", "N"):
            self._find(1 if key == "n" else -1)

    def _press_in_search(self, key: str, text: str) -> None:
        if key == "enter":
            self._wanted, self._search = self._search or self._wanted, None
            self._find(0)
        elif key in ("escape", "c-c"):
            self._search = None
        elif key in ("c-h", "backspace"):
            self._search = (self._search or "")[:-1]
        elif text.isprintable():
            self._search = (self._search or "") + text

    def _find(self, step: int) -> None:
        """Go to the next line that contains the wanted text, or with -1 to the one before."""
        if not self._wanted:
            return
        while not (places := self._places()) and self._lazy is not None and not self._lazy.is_whole:
            self._draw_earlier(_AT_ONCE)
        if not places:
            self._is_missing = True
            return
        later = [place for place in places if (place > self._top if step else place >= self._top)]
        earlier = [place for place in places if place < self._top]
        if step < 0:
            self._top = earlier[-1] if earlier else places[-1]
        else:
            self._top = later[0] if later else places[0]

    def _places(self) -> list[int]:
        return [number for number, line in enumerate(self._lines) if self._wanted.casefold() in _plain(line)]

    def _text(self, theme: Theme, columns: int, rows: int) -> StyleAndTextTuples:
        room = max(1, rows - 1)
        if columns != self._width:
            self._open(columns)
        if self._top < room:
            self._draw_earlier(_AHEAD)
        self._top = max(0, min(self._top, len(self._lines) - room))
        shown = [*self._lines[self._top : self._top + room]]
        shown += [""] * (room - len(shown))
        if self._search is not None:
            foot = f"/{self._search}"
        elif self._is_missing:
            foot = f"not found: {self._wanted}"
        else:
            last = min(len(self._lines), self._top + room)
            more = "" if self._lazy is None or self._lazy.is_whole else "+"
            place = f"{self._top + 1 if last else 0}-{last} of {len(self._lines)}{more} · {_HELP}"
            title = cut(self._title, columns - _LEAST_HELP)
            foot = f"{title} · {place}" if title else place
        foot = cut(foot, columns)
        foot = theme.paint(foot + " " * (columns - width(foot)), "status")
        return to_formatted_text(ANSI("\n".join([*shown, foot])))

    def _open(self, columns: int) -> None:
        from_end = len(self._lines) - self._top if self._width else 0
        found, self._width = self._source(columns), columns
        if not isinstance(found, LazyLines):
            self._lines = found
            return
        self._lazy, self._lines = found, ()
        moved = found.extend(from_end + _AHEAD)
        self._lines = found.lines
        self._top = moved - from_end if from_end else self._top

    def _draw_earlier(self, count: int | None) -> None:
        """Draw earlier lines, where not all are drawn; the same line stays at the top."""
        if self._lazy is not None and not self._lazy.is_whole:
            self._top = max(0, self._top) + self._lazy.extend(count)
            self._lines = self._lazy.lines


def _plain(line: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", line).casefold()
