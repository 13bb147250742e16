"""Asks questions at a terminal. Only keys that are typed after a question was shown answer it."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from bradawl.app.console import Console
from bradawl.app.tui.plain.lines import LineReader, descriptor_of_terminal
from bradawl.app.tui.plain.typed_text import unread_keys
from bradawl.safety.control_characters import clean

QUIET_S: Final = 0.3
"""Seconds without a key before a question accepts one, if the user was typing when it was shown."""
_SOON_S: Final = 1.0
"""A question that follows an answer within this time waits as well: a key may have been pressed twice."""
_CONTROL_C: Final = b"\x03"
_PASTE_MARKS: Final = ("\x1b[200~", "\x1b[201~")


class QuestionReader:
    """A `LineReader` in front of another one: keys that were typed before a question was shown do not answer it.

    At a terminal, `ask` takes what has been typed and not been read, and passes it to `set_aside`. Lines from a pipe
    or a file answer questions in their order.
    """

    def __init__(self, console: Console, reader: LineReader, *, quiet_s: float = QUIET_S) -> None:
        self.set_aside: Callable[[str], None] = _discard
        """Called with the text of keys that answer nothing, unless it is blank."""
        self._reader = reader
        self._descriptor = descriptor_of_terminal(console)
        self._quiet_s = quiet_s
        self._answered_at = -_SOON_S
        self._shown = ""
        """The question that is on the screen."""
        self._interrupted: asyncio.Event | None = None
        """Exists while a question waits until no key is pressed."""

    async def prompt(self) -> str:
        """See `LineReader`."""
        return await self._reader.prompt()

    async def ask(self, question: str) -> str:
        """See `LineReader`. The text that the question is about must be on the screen.

        After an unclear answer the same question is still there: what was typed since then answers it.
        """
        if self._descriptor is not None and question != self._shown:
            await self._wait_for_quiet(self._descriptor)
        self._shown = question
        return await self._reader.ask(question)

    def end_question(self) -> None:
        """Call this after the last `ask` about one matter: what follows is a new question."""
        self._shown = ""
        self._answered_at = asyncio.get_running_loop().time()

    def interrupt(self) -> bool:
        """See `LineReader`."""
        if self._interrupted is None:
            return self._reader.interrupt()
        self._interrupted.set()
        return True

    def take_unread(self) -> bytes:
        """See `LineReader`."""
        return self._reader.take_unread()

    async def _wait_for_quiet(self, descriptor: int) -> None:
        """Take what was typed so far; while keys arrive, or shortly after an answer, also what follows."""
        typed = self._take(descriptor)
        was_just_answered = asyncio.get_running_loop().time() < self._answered_at + _SOON_S
        self._interrupted = asyncio.Event()
        try:
            while typed or was_just_answered:
                was_just_answered = False
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._interrupted.wait(), self._quiet_s)
                    raise KeyboardInterrupt
                typed = self._take(descriptor)
        finally:
            self._interrupted = None

    def _take(self, descriptor: int) -> bool:
        """Set aside what has been typed, and return whether there was anything. Raises `KeyboardInterrupt`."""
        typed = self._reader.take_unread() + unread_keys(descriptor)
        if _CONTROL_C in typed:
            raise KeyboardInterrupt
        if text := _as_text(typed):
            self.set_aside(text)
        return bool(typed)


def _as_text(typed: bytes) -> str:
    """The lines of typed keys, without control characters."""
    text = typed.decode("utf-8", "replace")
    for mark in _PASTE_MARKS:
        text = text.replace(mark, "")
    return clean(text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _discard(_: str) -> None:
    """The text is not kept."""
