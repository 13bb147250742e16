"""Reads a line at a terminal without echo. A pasted text is one input, whatever line breaks it has."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from bradawl.app.console import Console
from bradawl.core.errors import SettingsError

_MOST_BYTES: Final = 100_000
_PASTE_PAUSE_S: Final = 0.1
"""Input that follows an Enter this soon was pasted with it: without bracketed paste, its lines arrive together."""
_PASTE_BEGINS: Final = b"\x1b[200~"
_PASTE_ENDS: Final = b"\x1b[201~"
_INTERRUPT, _END, _ERASE_LINE, _ESCAPE = 0x03, 0x04, 0x15, 0x1B
_BACKSPACES: Final = (0x08, 0x7F)
_ENTERS: Final = (0x0A, 0x0D)


class TypedText:
    """The text of an input so far, from the bytes of a terminal that edits no lines. Pure."""

    def __init__(self) -> None:
        self._waiting = b""
        self._text = bytearray()
        self._is_pasting = False
        self.is_ended = False
        """Enter was pressed last."""

    def feed(self, data: bytes) -> None:
        """Take further bytes. Raises `KeyboardInterrupt` for Ctrl+C and `EOFError` for Ctrl+D in an empty input."""
        data, self._waiting = self._waiting + data, b""
        at = 0
        while at < len(data):
            if data[at] != _ESCAPE:
                self._take(data[at])
                at += 1
            elif (size := _sequence_size(data, at)) == 0:
                self._waiting = data[at:]
                return
            else:
                self._is_pasting = _pastes(data[at : at + size], self._is_pasting)
                at += size

    def text(self) -> str:
        """The text without the Enter that ended it."""
        return self._text.decode("utf-8", "replace").removesuffix("\n")

    def _take(self, byte: int) -> None:
        if byte == _INTERRUPT:
            raise KeyboardInterrupt
        if byte in _ENTERS:
            self._text += b"\n"
            self.is_ended = not self._is_pasting
            return
        self.is_ended = False
        if self._is_pasting:
            self._text.append(byte)
        elif byte == _END:
            if not self._text:
                raise EOFError
        elif byte in _BACKSPACES:
            self._text = bytearray(self._text.decode("utf-8", "replace")[:-1].encode())
        elif byte == _ERASE_LINE:
            self._text.clear()
        elif byte >= 0x20 or byte == 0x09:
            self._text.append(byte)


def _sequence_size(data: bytes, at: int) -> int:
    """Bytes of the escape sequence that begins there; 0 if its end has not arrived."""
    if len(data) < at + 2:
        return 0
    if data[at + 1 : at + 2] not in (b"[", b"O"):
        return 2
    for end in range(at + 2, len(data)):
        if 0x40 <= data[end] <= 0x7E:
            return end - at + 1
    return 0


def _pastes(sequence: bytes, is_pasting: bool) -> bool:
    return {_PASTE_BEGINS: True, _PASTE_ENDS: False}.get(sequence, is_pasting)


def read_secret(console: Console, question: str) -> str:
    """Ask a question at the console's terminal and return what is typed or pasted, which is not shown.

    The terminal's modes are restored, however it ends; what arrives after the input is thrown away, so that no rest of
    a key is shown. Raises `KeyboardInterrupt`, `EOFError` and `SettingsError`.
    """
    descriptor = console.stdin.fileno()
    with _without_echo(descriptor), console.marking_pastes():
        console.answer(question)
        try:
            return _read(descriptor)
        finally:
            console.answer("\n")


def _read(descriptor: int) -> str:
    typed, count = TypedText(), 0
    while not typed.is_ended or select.select([descriptor], [], [], _PASTE_PAUSE_S)[0]:
        data = os.read(descriptor, 4096)
        if not data:
            raise EOFError
        count += len(data)
        if count > _MOST_BYTES:
            raise SettingsError(f"More than {_MOST_BYTES:,} bytes were pasted; that is no key.")
        typed.feed(data)
    return typed.text()


@contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    """A context in which the terminal shows nothing and passes on each key; signals that end the program restore it."""
    import termios

    before = termios.tcgetattr(descriptor)
    quiet = termios.tcgetattr(descriptor)
    # Ctrl+C and Ctrl+Z arrive as characters: a program that is stopped or killed here would leave no echo behind.
    quiet[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
    with _ended_by_signals():
        try:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)  # keeps what was pasted before the question
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A context in which SIGTERM and SIGHUP raise `SystemExit`, as their default action would restore nothing."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)
