"""prompt_toolkit's application with frames, printed lines above it, and a resize that leaves nothing behind."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import BaseStyle

from bradawl.app.tui.live.input import TerminalInput
from bradawl.app.tui.live.output import FrameOutput

_ESCAPE_S: Final = 0.05
"""Seconds until the Esc key counts as pressed alone."""
_SEQUENCE_S: Final = 1.0
_REFLOWING: Final = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "ALACRITTY_WINDOW_ID", "KONSOLE_VERSION")
_REFLOWING_PROGRAMS: Final = ("iTerm.app", "Apple_Terminal", "vscode", "WezTerm", "ghostty", "WarpTerminal", "Hyper")


def does_reflow(environ: Mapping[str, str]) -> bool:
    """Whether the terminal breaks printed lines anew when it becomes narrower; false where that is not known.

    To take it for granted would erase printed lines of a terminal that does not.
    """
    return any(environ.get(name) for name in _REFLOWING) or environ.get("TERM_PROGRAM") in _REFLOWING_PROGRAMS


class FrameSource(Protocol):
    """What the live region shows."""

    def next_frame(self) -> list[str]:
        """Called before each frame; returns the lines to print above the region."""
        ...

    def height(self) -> int:
        """Rows that the region needs."""
        ...


class LiveApplication(Application[None]):
    """Draws the live region, and prints finished lines above it."""

    def __init__(
        self,
        layout: Layout,
        output: FrameOutput,
        keyboard: TerminalInput,
        region: FrameSource,
        *,
        style: BaseStyle,
        colours: ColorDepth,
        reflows: bool,
    ) -> None:
        super().__init__(
            layout=layout, output=output, input=keyboard, style=style, color_depth=colours, erase_when_done=True
        )
        self._frames = output
        self._region = region
        self._reflows = reflows
        self._drawn_size: Size | None = None
        self.ttimeoutlen = _ESCAPE_S

    @property
    def timeoutlen(self) -> float | None:
        """Seconds to wait for the rest of a sequence of keys."""
        buffer = self.key_processor.key_buffer
        return _ESCAPE_S if buffer and buffer[0].key == Keys.Escape else _SEQUENCE_S

    @timeoutlen.setter
    def timeoutlen(self, value: float | None) -> None:
        """The base class sets a default, which does not depend on the key."""

    @property
    def _is_shown(self) -> bool:
        """The region is on the screen: no other program and no opened text has the terminal."""
        return self.is_running and not getattr(self, "_running_in_terminal", False)

    def erase(self) -> None:
        """Erase the region, where it is shown; the next frame draws all of it."""
        if self._is_shown:
            self.renderer.erase()

    def _redraw(self, render_as_done: bool = False) -> None:
        if not self._is_shown:
            return
        with self._frames.frame():
            self._erase_moved()
            self._print_above(self._region.next_frame())
            super()._redraw(render_as_done)

    def _print_above(self, lines: list[str]) -> None:
        """Print lines above the region, which is drawn below them afterwards; or only make the region shorter."""
        last = self.renderer.last_rendered_screen
        if lines:
            self.renderer.erase()
            self._frames.write_raw("\r\n".join(lines) + "\r\n")
        elif last is not None and self._region.height() < last.height:
            self.renderer.erase()

    def _on_resize(self) -> None:
        """Draw the region again; see `_erase_moved`."""
        self._redraw()

    def _erase_moved(self) -> None:
        """Erase the region where the terminal has moved it, if its size has changed since the last frame.

        Asked before each frame: a frame may come before the signal that tells of the new size.
        """
        size = self.output.get_size()
        if self._drawn_size not in (None, size) and self.renderer.last_rendered_screen is not None:
            self._frames.cursor_up(self._rows_added_above_cursor())
            self.renderer.erase(leave_alternate_screen=False)
        self._drawn_size = size

    def _rows_added_above_cursor(self) -> int:
        """Rows by which the region grew above the cursor when the terminal broke its lines anew."""
        screen = self.renderer.last_rendered_screen
        if not self._reflows or screen is None:
            return 0
        columns = self.output.get_size().columns
        cursor: Any = getattr(self.renderer, "_cursor_pos")  # noqa: B009 - it has no public name
        added = cursor.x // columns
        for row in range(cursor.y):
            cells = [place for place, char in screen.data_buffer[row].items() if char.char.strip()]
            added += max(cells, default=0) // columns
        return added
