"""The live region at the bottom of the terminal, below the printed conversation.

From top to bottom: what grows or runs now, an open question or the input line, and the status line. Finished lines are
printed once above it and belong to the terminal's scrollback from then on.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.margins import Margin
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from bradawl.app.tui.live.application import LiveApplication
from bradawl.app.tui.live.dialogs import box_of, completion_lines
from bradawl.app.tui.render.cells import cut
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.theme import Theme

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindingsBase
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    from bradawl.app.tui.live.editor import Editor
    from bradawl.app.tui.live.input import TerminalInput
    from bradawl.app.tui.live.output import FrameOutput

FRAME_S: Final = 1 / 22
"""Least time between two frames that new output causes, in seconds; a key is shown at once."""
_ROWS_ABOVE: Final = 3
"""Rows that an open dialog leaves to what runs, where there are enough."""
_LOW, _LOWEST = 14, 8
"""Rows up to which a dialog leaves none to what runs, and none to the status line."""
_BOX_ROWS: Final = 2
_NARROW: Final = 40
"""Columns of a terminal that has become narrow."""
_LEAST_LINES: Final = 10
"""Lines of a question that are shown where there is room, whatever would happen in a narrow terminal."""


class Region(NamedTuple):
    """What the live region shows, besides question and input line."""

    printed: Sequence[str] = ()
    """Finished lines, printed above the region with this frame."""
    above: Sequence[str] = ()
    """Above the input line: what grows or runs."""
    below: Sequence[str] = ()
    """Below it: the status line."""


class Dialog(Protocol):
    """A question that stands where the input line was."""

    def lines(self, theme: Theme, width: int, rows: int) -> list[str]:
        """Its lines, at most `rows`."""
        ...

    def press(self, key: str, text: str) -> None:
        """A key by its name of prompt_toolkit, with the text that it types."""
        ...


class Screen:
    """Draws the region, and prints above it. All of it runs in the event loop's thread."""

    def __init__(
        self,
        editor: "Editor",
        output: "FrameOutput",
        keyboard: "TerminalInput",
        theme: Theme,
        *,
        depth: str,
        reflows: bool,
    ) -> None:
        self.editor = editor
        self.theme = theme
        self.label = ""
        """What the text is about, if it is not a prompt; shown in the frame of the input line."""
        self.dialog: Dialog | None = None
        self.is_armed = False
        """The dialog gets the keys; until then they go to the input line."""
        self.compose: Callable[[int, int], Region] = lambda _width, _rows: Region()
        """Gives the region for a width and a number of rows above the input line."""
        self.output = output
        self._pending: list[str] = []
        self._top: Sequence[str] = ()
        self._bottom: Sequence[str] = ()
        self._above: Sequence[str] = ()
        self._reflows = reflows
        self._reach = 0
        """Rows from the first of the region to the lowest that it has used; those it uses no more stay empty."""
        self._status: Sequence[str] = ()
        self._timer: asyncio.TimerHandle | None = None
        self._last_frame = 0.0
        self._has_ended = False
        self._question: Sequence[str] = ()
        self._input_rows = 1
        self._focusable = FormattedTextControl(
            lambda: _fragments(tuple(self._question)), focusable=True, show_cursor=False
        )
        self.search = SearchToolbar(
            ignore_case=True, forward_search_prompt="search: ", backward_search_prompt="search: "
        )
        self._input = Window(
            BufferControl(editor.buffer, search_buffer_control=self.search.control, preview_search=True),
            height=lambda: Dimension(min=1, preferred=self._input_rows, max=self._input_rows),
            wrap_lines=True,
            get_line_prefix=self._line_prefix,
            dont_extend_height=True,
            right_margins=[_RightEdge(lambda: self.theme.paint(f" {box_of(self.theme).bar}", "frame"))],
        )
        self.app = LiveApplication(
            Layout(self._container(), focused_element=self._input),
            output,
            keyboard,
            self,
            style=_STYLE,
            colours=_DEPTHS[depth],
            reflows=reflows,
        )

    def bind(self, keys: "KeyBindingsBase", touched: Callable[[], None]) -> None:
        """Use these keys; `touched` is called before each key."""
        self.app.key_bindings = keys
        self.app.key_processor.before_key_press += lambda _: touched()

    def end(self) -> None:
        """Draw the last frame, without the input line and what is below it."""
        self._has_ended = True
        self.draw()

    # -------------------------------------------------------------- for the view

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.output.get_size().columns

    @property
    def rows(self) -> int:
        """Rows of the terminal."""
        return self.output.get_size().rows

    def print(self, lines: Sequence[str]) -> None:
        """Print finished lines above the region, with the next frame."""
        self._pending += lines
        self.refresh()

    def refresh(self) -> None:
        """Draw a frame soon; several calls within 33 ms are one frame."""
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(loop.time(), self._last_frame + FRAME_S), self.draw)

    def draw(self) -> None:
        """Draw a frame now."""
        self._cancel_timer()
        self.app._redraw()

    @contextmanager
    def showing(self, dialog: Dialog) -> Iterator[None]:
        """A context in which a dialog is open. It gets keys once `arm` was called."""
        self.dialog, self.is_armed = dialog, False
        try:
            self._draw_anew()
            yield
        finally:
            self.dialog, self.is_armed = None, False
            self.app.layout.focus(self._input)
            self.refresh()

    def arm(self) -> None:
        """Give the keys to the open dialog, in place of the input line."""
        if self.dialog is not None:
            self.is_armed = True
            self.app.layout.focus(self._focusable)
            self._draw_anew()

    def _draw_anew(self) -> None:
        """Draw a frame on erased rows. In others some terminals keep the length of what was erased, and break them."""
        with self.output.frame():
            self.app.erase()
            self.draw()

    @property
    def is_asking(self) -> bool:
        """A dialog gets the keys."""
        return self.dialog is not None and self.is_armed

    # -------------------------------------------------------------- drawing

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def next_frame(self) -> list[str]:
        """Take what the next frame shows, and return what is printed above it."""
        self._cancel_timer()
        self._last_frame = asyncio.get_running_loop().time()
        self._question = self._dialog_lines()
        self._input_rows = self._rows_of_text()
        box = box_of(self.theme)
        border = [self._border(box.bottom_left, box.bottom_right, "")] if self._has_box else []
        bottom = [*border, *self._completion_lines()]
        used = len(self._question) + len(bottom) + len(self._status)
        used += self._input_rows + 1 if self._has_box else 0
        room = self.rows - used
        region = self.compose(self.width, max(1, room))
        printed, self._pending = [*self._pending, *region.printed], []
        if self._has_ended:
            self._top = self._bottom = ()
            return printed
        self._status = () if self.dialog is not None and self.rows <= _LOWEST else region.below
        self._above = region.above if room > 0 or self.dialog is None else ()
        if self.is_asking:
            # The cursor is at the first row of the region, which no terminal moves out of the screen then.
            self._top, self._question = (), [*self._above, *self._question]
        else:
            self._top = [*self._above, *self._question]
        if self._has_box:
            self._top = [*self._top, self._border(box.top_left, box.top_right, self.label)]
        self._bottom = [*bottom, *self._status]
        self._reach = max(self.height(), self._reach - len(printed))
        return printed

    def _completion_lines(self) -> list[str]:
        state = self.editor.buffer.complete_state
        if state is None or not state.completions or not self._has_box:
            return []
        chosen = state.complete_index if state.complete_index is not None else -1
        options = [(each.display_text, each.display_meta_text) for each in state.completions]
        return completion_lines(options, chosen, self.theme, self.width)

    def _rows_of_text(self) -> int:
        """Rows of the input line; counted once a frame, because its text may be long."""
        most = max(1, min(10, self.rows // 2 - _BOX_ROWS))
        width = max(1, self.width - 6)
        needed = sum(max(1, -(-cells_of(line) // width)) for line in self.editor.text.split("\n"))
        return min(most, needed)

    def _container(self) -> HSplit:
        """Few windows, because each costs processor time in every frame."""
        has_box = Condition(lambda: self._has_box)
        dialog = Window(self._focusable, height=lambda: _exactly(len(self._question)), dont_extend_height=True)
        return HSplit(
            [
                _lines(lambda: self._top),
                ConditionalContainer(dialog, Condition(lambda: self.is_asking)),
                ConditionalContainer(HSplit([self._input, self.search]), has_box),
                _lines(lambda: self._bottom),
            ]
        )

    @property
    def _has_box(self) -> bool:
        return not self.is_asking and not self._has_ended

    def height(self) -> int:
        """Rows that the region needs."""
        rows = len(self._top) + len(self._bottom)
        if self.is_asking:
            return rows + len(self._question)
        return rows + (self._input_rows + self.is_searching if self._has_box else 0)

    @property
    def is_searching(self) -> bool:
        """The user searches in the history."""
        return self.app.layout.is_searching

    def _dialog_lines(self) -> list[str]:
        if self.dialog is None:
            return []
        left = 0 if self.rows <= _LOWEST else len(self._status) + (_ROWS_ABOVE if self.rows > _LOW else 0)
        box = 0 if self.is_armed else self._rows_of_text() + _BOX_ROWS
        room = self.rows - left - box
        lines = self.dialog.lines(self.theme, self.width, room) if room > 0 else []
        while self._would_not_fit(lines):
            fewer = self.dialog.lines(self.theme, self.width, len(lines) - 1)
            if len(fewer) < _LEAST_LINES:
                break
            lines = fewer
        if self._reflows and not self.is_armed:  # no rows that are empty once the input line is gone
            return self.dialog.lines(self.theme, self.width, max(1, len(lines) - box))
        return lines

    def _would_not_fit(self, question: Sequence[str]) -> bool:
        """Whether rows of the region would leave the screen if the terminal became narrow.

        A terminal that breaks lines anew moves them into its scrollback, where nothing can erase them.
        """
        narrow = max(_NARROW, self.width // 3)
        if not self._reflows or self.width <= narrow:
            return False
        lines = (*self._above, *question, *self._status)
        rows_below = max(0, self._reach - len(lines))
        return sum(max(1, -(-cells_of(line) // narrow)) for line in lines) + rows_below > self.rows

    def _border(self, left: str, right: str, label: str) -> str:
        rule = box_of(self.theme).rule
        shown = f"{rule} {cut(label, max(4, self.width - 8))} " if label else ""
        rest = max(0, self.width - 2 - cells_of(shown))
        return self.theme.paint(left + shown + rule * rest + right, "frame")

    def _line_prefix(self, number: int, wrapped: int) -> StyleAndTextTuples:
        mark = self.theme.paint(self.theme.symbols.prompt, "accent") if number == 0 and wrapped == 0 else " "
        return _line_fragments(f"{self.theme.paint(box_of(self.theme).bar, 'frame')} {mark} ")


_STYLE: Final = Style([])
"""One for all themes, because another style would have the whole region drawn anew with each frame."""

_DEPTHS: Final = {
    "none": ColorDepth.DEPTH_1_BIT,
    "16": ColorDepth.DEPTH_4_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "true": ColorDepth.DEPTH_24_BIT,
}


def _exactly(rows: int) -> Dimension:
    """So many rows, or fewer where there is no room."""
    return Dimension(min=0, preferred=rows, max=rows)


def _lines(source: Callable[[], Sequence[str]]) -> Window:
    """A window as high as its lines."""
    return Window(
        FormattedTextControl(lambda: _fragments(tuple(source())), focusable=False),
        height=lambda: _exactly(len(source())),
        dont_extend_height=True,
    )


class _RightEdge(Margin):
    """The right border of the input line."""

    def __init__(self, edge: Callable[[], str]) -> None:
        self._edge = edge

    def get_width(self, get_ui_content: object) -> int:
        """Its cells."""
        return 2

    def create_margin(self, window_render_info: object, width: int, height: int) -> StyleAndTextTuples:
        """The border in each row."""
        return _fragments((self._edge(),) * height)


@lru_cache(maxsize=512)
def _line_fragments(line: str) -> StyleAndTextTuples:
    return to_formatted_text(ANSI(line))


def _fragments(lines: tuple[str, ...]) -> StyleAndTextTuples:
    fragments: StyleAndTextTuples = []
    for number, line in enumerate(lines):
        if number:
            fragments.append(("", "\n"))
        fragments += _line_fragments(line)
    return fragments


def key_of(event: "KeyPressEvent") -> tuple[str, str]:
    """The name of the last key of an event, and the text that it types."""
    press = event.key_sequence[-1]
    return (str(getattr(press.key, "value", press.key)), press.data)
