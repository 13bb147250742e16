"""A terminal emulator for tests: pyte with scrollback, an alternate screen, resizing as xterm does it, and answers."""

import codecs
import re
from typing import Any

import pyte
from wcwidth import wcwidth

_OWN = re.compile(
    r"\x1b\[(?P<mark>[<=>])(?P<parameters>[\d;]*)(?P<final>[a-zA-Z])"
    r"|\x1b\[(?P<title>2[23]);0t"
    r"|\x1b\[\?(?P<asked_mode>\d+)\$p"
    r"|(?P<asked_kitty>\x1b\[\?u)"
    r"|(?P<asked_attributes>\x1b\[0?c)"
    r"|(?P<asked_background>\x1b\]11;\?(?:\x07|\x1b\\))"
    r"|\x1b\]52;c;(?P<clipboard>[A-Za-z0-9+/=]*)(?:\x07|\x1b\\)"
)
_BEGINNING = re.compile(r"\x1b(?:\[[\d;?<=>$]*|\][^\x07\x1b]*\x1b?)?\Z")
_ALTERNATE = 1049
_SYNCHRONISED = 2026


class EmulatedScreen(pyte.Screen):
    """A screen that keeps what scrolls out of it, and knows the modes that were switched on."""

    def __init__(self, columns: int, rows: int) -> None:
        self.scrollback: list[str] = []
        self.private: set[int] = {7, 25}
        self.unknown: list[object] = []
        """Sequences that the emulator does not know."""
        self._behind: tuple[Any, Any] | None = None
        super().__init__(columns, rows)

    def index(self) -> None:
        if self.cursor.y == self.lines - 1 and self._behind is None:
            self.scrollback.append(self.line(0))
        super().index()

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        super().erase_in_display(how, *args, **kwargs)
        if how == 3:
            self.scrollback.clear()

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private"):
            self.private |= set(modes)
            if _ALTERNATE in modes and self._behind is None:
                cells = {y: dict(line) for y, line in self.buffer.items()}
                self._behind = (cells, (self.cursor.x, self.cursor.y))
                self.buffer.clear()
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private"):
            self.private -= set(modes)
            if _ALTERNATE in modes and self._behind is not None:
                cells, (self.cursor.x, self.cursor.y) = self._behind
                self._behind = None
                self.buffer.clear()
                for y, line in cells.items():
                    self.buffer[y].update(line)
        super().reset_mode(*modes, **kwargs)

    def line(self, row: int) -> str:
        """The text of a row, without blanks at its end."""
        cells = self.buffer[row]
        text, x = [], 0
        while x < self.columns:
            data = cells[x].data or " "
            text.append(data)
            x += max(1, wcwidth(data[0]))
        return "".join(text).rstrip()

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Rows leave at the top when the cursor would leave at the bottom, and come back from the scrollback."""
        lines, columns = lines or self.lines, columns or self.columns
        surplus = self.cursor.y - lines + 1
        if surplus > 0:
            if self._behind is None:
                self.scrollback += [self.line(row) for row in range(surplus)]
            self._shift(-surplus)
        elif (lacking := min(len(self.scrollback), lines - self.lines)) > 0 and self._behind is None:
            self._shift(lacking)
            taken, self.scrollback[-lacking:] = self.scrollback[-lacking:], []
            self._put(taken)
        for y in [y for y in self.buffer if y >= lines]:
            del self.buffer[y]
        for cells in self.buffer.values():
            for x in [x for x in cells if x >= columns]:
                del cells[x]
        self.lines, self.columns = lines, columns
        self.set_margins_of_screen()
        self.cursor.x, self.cursor.y = min(self.cursor.x, columns - 1), max(0, min(self.cursor.y, lines - 1))

    def set_margins_of_screen(self) -> None:
        """The whole screen scrolls."""
        self.margins = None

    def _shift(self, rows: int) -> None:
        cells = {y + rows: dict(line) for y, line in self.buffer.items() if y + rows >= 0}
        self.buffer.clear()
        for y, line in cells.items():
            self.buffer[y].update(line)
        self.cursor.y += rows

    def _put(self, texts: list[str]) -> None:
        for y, text in enumerate(texts):
            x = 0
            for character in text:
                self.buffer[y][x] = self.default_char._replace(data=character)
                x += max(1, wcwidth(character))

    def debug(self, *args: Any, **_: Any) -> None:
        self.unknown.append(args)


class Emulator:
    """Takes what a program writes, and gives back what the terminal would type by itself."""

    def __init__(
        self, rows: int, columns: int, *, answers: bool, background: str = "", has_kitty: bool = False
    ) -> None:
        """With `answers` it tells that frames can be synchronised, and its background as `rgb:0000/0000/0000`."""
        self.screen = EmulatedScreen(columns, rows)
        self.kitty_depth = 0
        self.xterm_keys = ""
        self.clipboard: list[str] = []
        self.titles: list[str] = []
        """Titles that the program kept for later."""
        self._answers, self._background, self._has_kitty = answers, background, has_kitty
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._stream = pyte.Stream(self.screen)
        self._stream.use_utf8 = True  # escapes for character sets are skipped
        self._rest = ""

    @property
    def is_in_frame(self) -> bool:
        """The program has begun a synchronised frame and not ended it."""
        return _SYNCHRONISED in self.screen.private

    def feed(self, data: bytes) -> str:
        """Draw, and return the answers to questions in the data."""
        text, self._rest = self._rest + self._decode(data), ""
        if beginning := _BEGINNING.search(text):
            text, self._rest = text[: beginning.start()], beginning[0]
        answers, place = "", 0
        for found in _OWN.finditer(text):
            self._stream.feed(text[place : found.start()])
            place = found.end()
            answers += self._own(found.groupdict())
        self._stream.feed(text[place:])
        return answers if self._answers else ""

    def _own(self, groups: dict[str, str | None]) -> str:
        """Handle a sequence that pyte does not know, and return the terminal's answer."""
        self._switch(groups)
        match groups:
            case {"asked_mode": str(mode)}:
                return f"\x1b[?{mode};{2 if int(mode) == _SYNCHRONISED else 0}$y"
            case {"asked_kitty": str()}:
                return "\x1b[?0u" if self._has_kitty else ""
            case {"asked_attributes": str()}:
                return "\x1b[?62;22c"
            case {"asked_background": str()}:
                return f"\x1b]11;{self._background}\x1b\\" if self._background else ""
            case _:
                return ""

    def _switch(self, groups: dict[str, str | None]) -> None:
        match groups:
            case {"mark": ">", "final": "u"}:
                self.kitty_depth += 1
            case {"mark": "<", "final": "u"}:
                self.kitty_depth -= 1
            case {"mark": ">", "final": "m", "parameters": str(parameters)}:
                self.xterm_keys = parameters if ";" in parameters else ""
            case {"title": "22"}:
                self.titles.append(self.screen.title)
            case {"title": "23"}:
                self.screen.title = self.titles.pop()
            case {"clipboard": str(data)}:
                self.clipboard.append(data)
            case _:
                pass
