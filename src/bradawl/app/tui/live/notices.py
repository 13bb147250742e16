"""Tells a user who looks elsewhere that a turn ended or a question waits: the window's title, a notice or the bell."""

import asyncio
from collections.abc import Mapping
from typing import Final, Literal

from bradawl.app.rendering import cut, one_line
from bradawl.app.tui.live.output import FrameOutput

_LONG_S: Final = 10.0
"""A turn, or a time without a key, from which on the user may be elsewhere."""
_OSC_9: Final = ("iTerm.app", "WezTerm", "ghostty")
_TITLE: Final = 60


class Attention:
    """Knows whether the user looks at the terminal, as far as that can be told."""

    def __init__(
        self, output: FrameOutput, how: Literal["auto", "bell", "off"], folder: str, environ: Mapping[str, str]
    ) -> None:
        self.has_focus: bool | None = None
        """None until the terminal reports it; some never do."""
        self._output, self._how = output, how
        self._name = cut(one_line(folder.rstrip("/").rpartition("/")[2] or "/"), _TITLE)
        self._kind = _kind_of(environ)
        self._key_at = 0.0

    def key_pressed(self) -> None:
        """The user is here."""
        self._key_at = asyncio.get_running_loop().time()

    def title(self, state: str = "") -> None:
        """Set the window's title: the folder, and what goes on there."""
        self._output.set_title(f"{self._name}: {state}" if state else f"bradawl: {self._name}")

    def turn_ended(self, seconds: float) -> None:
        """Tell it, if the turn was long."""
        self.title()
        if seconds >= _LONG_S:
            self._tell("the turn has ended")

    def asks(self, text: str) -> None:
        """Tell that a question waits."""
        self.title("needs your answer")
        self._tell(text)

    def _tell(self, text: str) -> None:
        is_away = self.has_focus is False or (
            self.has_focus is None and asyncio.get_running_loop().time() - self._key_at >= _LONG_S
        )
        if self._how == "off" or not is_away:
            return
        message = cut(one_line(f"bradawl in {self._name}: {text}"), 120).replace(";", ",")
        if self._how == "bell" or self._kind == "bell":
            self._output.bell()
        elif self._kind == "osc9":
            self._output.write_raw(f"\x1b]9;{message}\x07")
        else:
            self._output.write_raw(f"\x1b]777;notify;bradawl;{message}\x07")
        self._output.flush()


def _kind_of(environ: Mapping[str, str]) -> Literal["osc9", "osc777", "bell"]:
    """How the terminal shows notices; the bell where that is not known, and in multiplexers, which keep notices."""
    if environ.get("TMUX") or environ.get("STY"):
        return "bell"
    if environ.get("TERM_PROGRAM") in _OSC_9 or environ.get("KITTY_WINDOW_ID"):
        return "osc9"
    return "osc777" if environ.get("VTE_VERSION") or environ.get("TERM", "").startswith(("foot", "rxvt")) else "bell"
