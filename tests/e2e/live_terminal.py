"""The program at a pseudo-terminal with an emulated screen: waits for what the screen shows, and its end."""

import re
import termios
import time
from collections.abc import Callable
from typing import Any

from pseudo_terminal import PATIENCE_S, PseudoTerminal
from shown_screen import ShownScreen

MARK = "\u276f"
"""Stands before a prompt, and before a chosen answer."""
LEAKS = re.compile(r"\x1b|\[\?\d|\[[\d;]+[mHJKuR~]|\d+;\d+[Ru]|20[01]~|rgb:|\^\[")
"""What a sequence looks like when it was taken for text."""
_USED = re.compile(r"^\S \d[\dhms. ]*s? · \d+ steps?\b", re.MULTILINE)


class LiveTerminal(ShownScreen, PseudoTerminal):
    """A terminal that is read until it shows what a test waits for."""

    def send(self, text: str) -> None:
        """Type a text, and once it is on the screen, Enter."""
        self.type(text)
        self.until(lambda: self.typed.replace("\n", " ").endswith(text[-20:]), f"{text!r} in the input line")
        self.press("enter")

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Read until a claim about the screen holds, between two frames."""
        end = time.monotonic() + PATIENCE_S
        while self.emulator.is_in_frame or not holds():
            left = end - time.monotonic()
            if left < 0 or not self.read(left):
                raise AssertionError(f"never saw {what} in:\n{self.text}\nand before it:\n{self._before()}")

    def _before(self) -> str:
        return "\n".join(self.screen.scrollback[-40:])

    def wait_for(self, *texts: str) -> None:
        """Read until the screen shows all the texts."""
        for text in texts:
            self.until(lambda text=text: text in self.text, repr(text))

    def wait_for_whole(self, text: str) -> None:
        """Read until the screen or the scrollback has a text."""
        self.until(lambda: text in self.whole_text, repr(text))

    def wait_for_words(self, text: str) -> None:
        """Read until the screen or the scrollback has a text that may be wrapped."""
        self.until(lambda: text in self.words, repr(text))

    def wait_until_gone(self, text: str) -> None:
        """Read until the screen does not show a text any more."""
        self.until(lambda: text not in self.text, f"the end of {text!r}")

    def wait_for_output(self, data: bytes) -> None:
        """Read until the program has written the bytes."""
        self.until(lambda: data in self.raw, repr(data))

    def wait_idle(self) -> None:
        """Read until the program waits for a prompt."""
        self.until(lambda: self.is_idle, "an idle input line")

    def wait_turns(self, count: int) -> None:
        """Read until so many turns have ended, the program says what the last cost, and waits for a prompt."""
        self.until(lambda: len(_USED.findall(self.whole_text)) == count and self.is_idle, f"the end of turn {count}")

    def wait_for_question(self, title: str) -> None:
        """Read until a question with the text takes keys."""
        self.until(lambda: title in self.text and self.is_asking, f"the question {title!r}")

    def leave(self) -> None:
        """Leave with Ctrl+D; the program must end well and leave the terminal as it was."""
        self.press("ctrl+d")
        code = self.end()
        assert code == 0, (code, self.text)
        self.assert_restored()

    def assert_restored(self) -> None:
        """The terminal is as it was before the program, and nothing that was no text is on it."""
        assert termios.tcgetattr(self.fd) == self.termios, "the terminal's settings"
        assert self.screen.private == {7, 25}, f"modes {self.screen.private}"
        assert (self.emulator.kitty_depth, self.emulator.xterm_keys) == (0, "")
        assert (self.screen.title, self.emulator.titles) == ("", []), "the title"
        assert self.screen.cursor.attrs == self.screen.default_char, "colours"
        self.assert_no_leaks()

    def assert_no_leaks(self) -> None:
        """No part of a sequence is on the screen as text, and the program sends none that is unknown."""
        assert (found := LEAKS.search(self.whole_text)) is None, (found, self.whole_text)
        assert not self.screen.unknown, self.screen.unknown
        assert "Traceback" not in self.whole_text, self.whole_text


def bash(command: str, **entry: Any) -> dict[str, Any]:
    """A reply of the model that runs a command."""
    return {"tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": command}}], **entry}
