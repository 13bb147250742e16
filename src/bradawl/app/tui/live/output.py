"""Writes to the terminal a frame at a time, and switches the terminal's modes on and off."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from bradawl.app.console import silence
from bradawl.safety.control_characters import escape

_BEGIN_SYNC: Final = "\x1b[?2026h"
_END_SYNC: Final = "\x1b[?2026l"
_MODES_ON: Final = "\x1b[22;0t\x1b[?2004h\x1b[?1004h"
"""The title is kept for later; marks around pasted text; reports of focus."""
_MODES_OFF: Final = "\x1b[23;0t\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0m\x1b[?25h"
_XTERM_KEYS_ON, _XTERM_KEYS_OFF = "\x1b[>4;1m", "\x1b[>4m"
"""Shift+Enter and its kind, in xterm and tmux. Other terminals may take the sequence for a colour."""
_KITTY_KEYS_ON, _KITTY_KEYS_OFF = "\x1b[>1u", "\x1b[<u"
"""The same, in terminals that answer the question for it."""
_QUERIES: Final = "\x1b]11;?\x1b\\\x1b[?2026$p\x1b[?u\x1b[c"
"""The background colour; whether a frame can be synchronised; kitty's keys; and what every terminal answers."""
_LIMITED: Final = ("linux", "dumb", "eterm-color", "vt100", "vt102", "vt220", "cons25")
"""Terminals that may show a sequence that they do not know."""


class FrameOutput(Vt100_Output):
    """Output that reaches the terminal in whole frames, each with one write.

    A terminal that is gone is no error: nothing is written any more, and `on_gone` is called once.
    """

    def __init__(
        self, stdout: TextIO, get_size: Callable[[], Size], term: str, *, has_xterm_keys: bool = False
    ) -> None:
        """`has_xterm_keys`: the terminal names keys with modifiers when it is asked to, as xterm does."""
        super().__init__(stdout, get_size, term=term, enable_cpr=False)
        self.is_synchronised = False
        """The terminal said that it can show a frame at once."""
        self.is_gone = False
        self.on_gone: Callable[[], None] | None = None
        self.is_limited = term in _LIMITED
        self._has_xterm_keys, self._has_kitty_keys = has_xterm_keys, False
        self._depth = 0
        self._has_modes = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """A context whose output is written at its end. Contexts may be nested."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.flush()

    def flush(self) -> None:
        """Write what is left, outside of a frame."""
        if self._depth or not self._buffer:
            return
        if self.is_gone:
            self._buffer.clear()
            return
        if self.is_synchronised:
            self._buffer = [_BEGIN_SYNC, *self._buffer, _END_SYNC]
        try:
            super().flush()
        except (OSError, ValueError):
            self._buffer.clear()
            self.is_gone = True
            silence(self.stdout)
            if self.on_gone is not None:
                asyncio.get_running_loop().call_soon(self.on_gone)

    def modes_on(self) -> None:
        """Switch on what the input needs."""
        if self._has_modes:
            return
        self._has_modes = True
        self.write_raw(self._keys_on() + ("\x1b[?2004h" if self.is_limited else _MODES_ON))
        self.flush()

    def use_kitty_keys(self) -> None:
        """Have keys with modifiers named as kitty names them; only for a terminal that said that it can."""
        if not self._has_kitty_keys:
            self._has_kitty_keys = True
            self.write_raw(_KITTY_KEYS_ON)
            self.flush()

    def set_title(self, title: str) -> None:
        """Set the window's title, where the terminal has one."""
        if not self.is_limited and self._has_modes:
            self.write_raw(f"\x1b]0;{escape(title)}\x07")
            self.flush()

    def ask_terminal(self) -> None:
        """Ask what the terminal can do, and for its background colour; the answers come as input."""
        if not self.is_limited:
            self.write_raw(_QUERIES)
            self.flush()

    def modes_off(self) -> None:
        """Leave the terminal as other programs expect it. Can be called at any time."""
        if not self._has_modes:
            return
        self._has_modes = False
        keys = (_KITTY_KEYS_OFF if self._has_kitty_keys else "") + (_XTERM_KEYS_OFF if self._has_xterm_keys else "")
        self.write_raw(keys + ("\x1b[?2004l\x1b[?7h\x1b[0m\x1b[?25h" if self.is_limited else _MODES_OFF))
        self._cursor_visible = True
        self.flush()

    def _keys_on(self) -> str:
        return (_XTERM_KEYS_ON if self._has_xterm_keys else "") + (_KITTY_KEYS_ON if self._has_kitty_keys else "")

    def erase_down(self) -> None:
        """Erase from the beginning of the line to the end of the screen.

        From the screen's first cell it would be taken for the screen as a whole, which tmux keeps in its scrollback.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    # The marks around pasted text stay on between frames: switching them with each frame could break a paste.

    def enable_bracketed_paste(self) -> None:
        """See `modes_on`."""

    def disable_bracketed_paste(self) -> None:
        """See `modes_off`."""

    def reset_cursor_key_mode(self) -> None:
        """The mode is the terminal's usual one."""


def size_of(stream: TextIO) -> Callable[[], Size]:
    """Returns the terminal's present size; 80x24 where it says none."""
    import os

    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(stream.fileno())
        except (OSError, ValueError):
            columns, rows = 80, 24
        return Size(rows=rows or 24, columns=columns or 80)

    return size
