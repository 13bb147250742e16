"""Reads keys, and takes out what the terminal answers by itself: colours, modes, focus."""

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TextIO

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress

_AT_ONCE: Final = 65_536
"""Bytes of one read: a long paste arrives in few pieces."""
_REPLY: Final = re.compile(
    r"\x1b\]11;rgb:(?P<red>[0-9a-fA-F]+)/(?P<green>[0-9a-fA-F]+)/(?P<blue>[0-9a-fA-F]+)(?:\x07|\x1b\\)"
    r"|\x1b\[\?(?P<mode>\d+);(?P<state>\d)\$y"
    r"|\x1b\[\?(?P<attributes>[\d;]*)c"
    r"|\x1b\[\?(?P<kitty>\d+)u"
    r"|\x1b\[(?P<focus>[IO])"
    r"|\x1b\[(?P<key>\d{1,7})(?::\d{0,7}){0,3}(?:;(?P<modifiers>\d{1,4})(?::(?P<event>\d))?)?(?:;[\d:]*)?u"
    r"|\x1b\[27;(?P<xterm_modifiers>\d+);(?P<xterm_key>\d+)~"
    r"|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)"
    r"|\x1b{1,2}(?P<sequence>\[[0-?]*[ -/]*[@-~]|O[@-~])"
)
_BEGINNING: Final = re.compile(r"\x1b(?:\][^\x07\x1b]{0,200}\x1b?|\[[\d;:?]{0,40}\$?)\Z")
_SHIFT, _ALT, _CONTROL = 1, 2, 4
_LOCKS: Final = 64 | 128
"""Caps Lock and Num Lock, as kitty tells them."""
_RELEASED: Final = "3"
_NEWLINE: Final = "\n"
"""Ctrl+J, which begins a new line in the editor."""


class TerminalReply(NamedTuple):
    """What the terminal said by itself."""

    kind: Literal["background", "synchronised", "kitty keys", "focus", "answered"]
    """`answered`: it has answered all earlier questions, or will not."""
    value: bool = True
    rgb: tuple[int, int, int] = (0, 0, 0)


class TerminalInput(Vt100Input):
    """Keys of a terminal. Answers of the terminal reach `on_reply` and never the editor."""

    def __init__(self, stdin: TextIO, on_reply: Callable[[TerminalReply], None]) -> None:
        super().__init__(stdin)
        self._on_reply = on_reply
        self._rest = ""

    def read_keys(self) -> list[KeyPress]:
        """The keys that were typed since the last call."""
        data, self._rest = self._rest + self.stdin_reader.read(_AT_ONCE), ""
        if "\x1b" in data:
            data = _REPLY.sub(self._replaced, data)
            if beginning := _BEGINNING.search(data):
                data, self._rest = data[: beginning.start()], beginning[0]
        return self._keys_of(data)

    def flush_keys(self) -> list[KeyPress]:
        """The keys of a sequence that did not go on."""
        rest, self._rest = self._rest, ""
        keys = self._keys_of(rest) if rest else []
        return keys + super().flush_keys()

    def _keys_of(self, data: str) -> list[KeyPress]:
        self.vt100_parser.feed(data)
        keys, self._buffer = self._buffer, []
        return keys

    def _replaced(self, found: re.Match[str]) -> str:
        """The keys that a sequence stands for; none for an answer of the terminal."""
        groups = found.groupdict()
        if (sequence := groups["sequence"]) is not None:
            return found[0] if _is_key(f"\x1b{sequence}") else ""
        if groups["event"] == _RELEASED:
            return ""
        if (key := groups["key"] or groups["xterm_key"]) is not None:
            return _typed(int(key), int(groups["modifiers"] or groups["xterm_modifiers"] or 1) - 1)
        if (reply := _reply_of(groups)) is not None:
            self._on_reply(reply)
        return ""


def _is_key(sequence: str) -> bool:
    """Whether it is a key that has a name, or the end of a paste; all else would be typed as text."""
    return sequence in ANSI_SEQUENCES or sequence == "\x1b[201~"


def _reply_of(groups: dict[str, str | None]) -> TerminalReply | None:
    if (red := groups["red"]) is not None:
        return TerminalReply("background", rgb=(_channel(red), _channel(groups["green"]), _channel(groups["blue"])))
    if groups["mode"] == "2026":
        return TerminalReply("synchronised", groups["state"] in ("1", "2"))
    if groups["kitty"] is not None:
        return TerminalReply("kitty keys")
    if groups["focus"] is not None:
        return TerminalReply("focus", groups["focus"] == "I")
    return TerminalReply("answered") if groups["attributes"] is not None else None


def _channel(digits: str | None) -> int:
    """8 bits of a colour that is told with 4, 8, 12 or 16 bits."""
    return int(digits, 16) * 255 // (16 ** len(digits) - 1) if digits else 0


def _typed(code: int, modifiers: int) -> str:
    """What a terminal without extended keys sends for a key; Shift+Enter and Alt+Enter begin a new line."""
    if code == 13 and modifiers & (_SHIFT | _ALT | _CONTROL):
        return _NEWLINE
    if code == 9 and modifiers & _SHIFT:
        return "\x1b[Z"
    if modifiers & ~(_SHIFT | _ALT | _CONTROL | _LOCKS):
        return ""  # with Super or Hyper it is a key of the desktop
    if code > 0x10FFFF or 0xD800 <= code < 0xE000 or 57344 <= code < 63744:
        return ""  # keys without a character, such as a modifier alone
    character = chr(code)
    if modifiers & _CONTROL:
        character = chr(ord(character.upper()) & 0x1F) if 0x40 <= ord(character.upper()) < 0x80 else character
    elif modifiers & _SHIFT:
        character = character.upper()
    return f"\x1b{character}" if modifiers & _ALT else character
