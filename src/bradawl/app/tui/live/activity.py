"""What the model or a call does now, for how long, and at what cost: the line with the spinner."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from bradawl.app.durations import duration_text
from bradawl.app.rendering import price_text, short_count
from bradawl.app.tui.render.cells import cut
from bradawl.app.tui.render.theme import Theme

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES: Final = "|/-\\"
_FRAME_S: Final = 0.1


class Activity:
    """The state of the running turn, as far as it is shown in one line."""

    def __init__(self) -> None:
        self.model = ""
        self.cost: float | None = None
        """US dollars of the turn so far; None if unknown."""
        self._verb = ""
        self._since = 0.0
        self._began = 0.0
        self._tokens = 0

    @property
    def is_active(self) -> bool:
        """A turn runs."""
        return bool(self._verb)

    @property
    def seconds(self) -> float:
        """Seconds since the turn began."""
        return time.monotonic() - self._began

    def begins(self, verb: str = "Starting") -> None:
        """A turn, or other work, begins."""
        self._began = time.monotonic()
        self._tokens = 0
        self._set(verb)

    def ends(self) -> None:
        """The turn ended."""
        self._verb = ""

    def waits_for_model(self) -> None:
        """A request was sent."""
        self._set(f"Waiting for {self.model}" if self.model else "Waiting for the model")

    def waits(self, seconds: float) -> None:
        """The request is repeated after some seconds."""
        self._set(f"Trying again in {seconds:.0f}s" if seconds >= 1 else "Trying again")

    def thinks(self) -> None:
        """The model thinks."""
        self._set("Thinking")

    def writes(self) -> None:
        """The model writes its answer."""
        self._set("Writing")

    def calls(self, name: str) -> None:
        """The model writes the arguments of a call."""
        if name:
            self._set(f"Preparing {name}")

    def runs(self, label: str) -> None:
        """Calls run; without a label they only wait."""
        self._set(f"Running {label}" if label else "Working")

    def used(self, tokens: int) -> None:
        """A reply with so many tokens has ended."""
        self._tokens += tokens

    def _set(self, verb: str) -> None:
        if self._began and verb != self._verb:
            self._verb, self._since = verb, time.monotonic()

    def line(self, theme: Theme, width: int) -> str:
        """`⠹ Running check · 4s · 2.4k tokens · $0.02 · esc stops`; empty between turns."""
        if not self._verb:
            return ""
        now = time.monotonic()
        frames = _ASCII_FRAMES if theme.symbols.bar == "|" else _FRAMES
        mark = frames[int(now / _FRAME_S) % len(frames)]
        dot = f" {theme.symbols.dot} "
        facts = [duration_text(now - self._began, grows=True)]
        if self._tokens:
            facts.append(f"{short_count(self._tokens)} token{'s' * (self._tokens != 1)}")
        if self.cost:
            facts.append(price_text(self.cost))
        tail = dot + dot.join([*facts, "esc stops"])
        verb = cut(self._verb, max(8, width - 2 - len(tail)))
        return cut(f"{theme.paint(mark, 'accent')} {theme.paint(verb, 'verb')}{theme.paint(tail, 'dim')}", width)


class Hint:
    """A line that is shown for a while."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        """`refresh` is called when its time is over."""
        self._text, self._until = "", 0.0
        self._refresh = refresh

    def show(self, text: str, seconds: float) -> None:
        """Show a text, in place of the one before."""
        self._text, self._until = text, time.monotonic() + seconds
        asyncio.get_running_loop().call_later(seconds + 0.05, self._refresh)

    @property
    def is_shown(self) -> bool:
        """Its time is not over."""
        return time.monotonic() <= self._until

    def lines(self, theme: Theme, width: int) -> list[str]:
        """The line, as long as it is shown."""
        return [theme.paint(cut(f" {self._text}", width), "warning")] if self.is_shown else []
