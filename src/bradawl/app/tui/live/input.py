"""Reads keys and pastes, and takes out what the terminal sends by itself: answers, focus, reports of the mouse."""

import re
import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TextIO

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from bradawl.app.tui.live.key_codes import function_key, typed_key

LONGEST_PASTE: Final = 4_000_000
"""Characters of a paste; of a longer one no more than the first is kept."""
_AT_ONCE: Final = 65_536
"""Bytes of one read: a long paste arrives in few pieces."""
_READS: Final = 64
"""Reads of a paste before other work is done."""
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
_STUCK_S: Final = 1.0
"""Ctrl+C alone after such a pause ends a paste whose end was lost."""
_CONTROL_C: Final = ("\x03", "\x1b[99;5u", "\x1b[27;5;99~")
_STRING: Final = r"[^\x07\x1b\r\n]*"
_ANSWER: Final = rf"(?:\][0-9lLI]|P[0-9>$+!|=?]|_G){_STRING}"
"""How an answer begins that is a string; Alt and a letter differ from it."""
_SEQUENCE: Final = re.compile(
    r"\x1b\]11;rgb:(?P<red>[0-9a-fA-F]{1,4})/(?P<green>[0-9a-fA-F]{1,4})/(?P<blue>[0-9a-fA-F]{1,4})(?:\x07|\x1b\\)"
    r"|\x1b\[\?(?P<mode>\d+);(?P<state>\d)\$y"
    r"|\x1b\[\?(?P<attributes>[\d;]*)c"
    r"|\x1b\[\?(?P<kitty>\d+)u"
    r"|\x1b\[(?P<focus>[IO])"
    r"|\x1b\[(?P<key>\d{1,7})(?::\d{0,7}){0,3}(?:;(?P<modifiers>\d{1,4})?(?::(?P<event>\d))?)?(?:;[\d:]*)?u"
    r"|\x1b\[27;(?P<xterm_modifiers>\d{1,4});(?P<xterm_key>\d{1,7})~"
    rf"|\x1b[\]PX^_]{_STRING}(?:\x07|\x1b\\)|\x1b{_ANSWER}(?=[\r\n]|\x1b[^\\])"
    r"|\x1b\[M[\s\S]{3}"
    r"|\x1b{1,2}(?P<named>\[\[[A-E]|\[(?![\[M])[0-?]*[ -/]*[@-~]|O\d?[@-~])"
)
_BEGINNING: Final = re.compile(
    r"\x1b{1,2}(?:\[(?:M[\s\S]{0,2}|\[|[0-?]*[ -/]*)|O\d?"
    rf"|[\]P_]|{_ANSWER}\x1b?)?\Z"
)
_KEY: Final = 2
"""A longer beginning of a sequence is no key that was pressed with Alt."""
_KEPT: Final = 1_000
"""Characters of an incomplete sequence that are kept; no longer one has a meaning."""
_LATE_S: Final = 2.0
"""The rest of a sequence comes within this time, or not at all."""
_RELEASED: Final = "3"


class TerminalReply(NamedTuple):
    """What the terminal said by itself."""

    kind: Literal["background", "synchronised", "kitty keys", "focus", "answered"]
    """`answered`: it has answered all earlier questions, or will not."""
    value: bool = True
    rgb: tuple[int, int, int] = (0, 0, 0)


class TerminalInput(Vt100Input):
    """Keys of a terminal. Answers of the terminal reach `on_reply` and never the editor.

    A paste is one key press, `Keys.BracketedPaste`, of at most `LONGEST_PASTE` + 1 characters.
    """

    def __init__(self, stdin: TextIO, on_reply: Callable[[TerminalReply], None]) -> None:
        super().__init__(stdin)
        self._on_reply = on_reply
        self._rest = ""
        """The beginning of a sequence, or of the mark at the end of a paste."""
        self._paste: _Paste | None = None
        self._read_at = 0.0

    def read_keys(self) -> list[KeyPress]:
        """The keys that were typed since the last call."""
        for _ in range(_READS):
            data = self.stdin_reader.read(_AT_ONCE)
            self._take(data)
            if self._paste is None or not data:
                break
        keys, self._buffer = self._buffer, []
        return keys

    def flush_keys(self) -> list[KeyPress]:
        """The keys of a sequence that did not go on."""
        if self._paste is None and len(self._rest) <= _KEY:
            rest, self._rest = self._rest, ""
            self._press(rest)
        keys, self._buffer = self._buffer, []
        return keys

    def _take(self, data: str) -> None:
        """Find keys, pastes and answers in what was read."""
        now = time.monotonic()
        waited, self._read_at = now - self._read_at, now
        if self._paste is not None and data in _CONTROL_C and waited > _STUCK_S:
            data = _PASTE_END
        if self._paste is None and len(self._rest) > _KEY and waited > _LATE_S:
            self._rest = ""
        data, self._rest = self._rest + data, ""
        while data:
            if self._paste is not None:
                data = self._pasted(self._paste, data)
            else:
                typed, begin, data = data.partition(_PASTE_BEGIN)
                self._typed(typed, is_all=bool(begin))
                self._paste = _Paste() if begin else None

    def _pasted(self, paste: "_Paste", data: str) -> str:
        """Add to the paste; returns what follows its end."""
        text, end, behind = data.partition(_PASTE_END)
        if end:
            paste.add(text)
            self._paste = None
            self._buffer.append(KeyPress(Keys.BracketedPaste, paste.text))
            return behind
        cut = next((size for size in range(len(_PASTE_END) - 1, 0, -1) if data.endswith(_PASTE_END[:size])), 0)
        self._rest = data[len(data) - cut :]
        paste.add(data[: len(data) - cut])
        return ""

    def _typed(self, data: str, *, is_all: bool) -> None:
        """Press the keys; what may be the beginning of a sequence waits, unless that `is_all`."""
        place = 0
        for found in _SEQUENCE.finditer(data):
            self.vt100_parser.feed(data[place : found.start()])
            place = found.end()
            if key := self._key_of(found):
                self._press(key)
        if not is_all and (beginning := _BEGINNING.search(data, place)):
            self._rest = beginning[0]
            if len(self._rest) > _KEPT:
                self._rest = self._rest[:_KEPT] + "\x1b" * self._rest.endswith("\x1b")
            data = data[: beginning.start()]
        self.vt100_parser.feed(data[place:])
        if is_all:
            self.vt100_parser.flush()

    def _press(self, key: str) -> None:
        """Press one key, which does not go on in what follows."""
        self.vt100_parser.flush()
        self.vt100_parser.feed_and_flush(key)

    def _key_of(self, found: re.Match[str]) -> str:
        """The key that a sequence stands for, as a terminal without extended keys sends it; empty if there is none."""
        groups = found.groupdict()
        if groups["named"] is not None:
            return function_key(found[0])
        if groups["event"] == _RELEASED:
            return ""
        if (key := groups["key"] or groups["xterm_key"]) is not None:
            return typed_key(int(key), int(groups["modifiers"] or groups["xterm_modifiers"] or 1) - 1)
        if (reply := _reply_of(groups)) is not None:
            self._on_reply(reply)
        return ""


class _Paste:
    """A paste that is being read."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = LONGEST_PASTE + 1

    def add(self, piece: str) -> None:
        if self._room:
            self._pieces.append(piece[: self._room])
            self._room -= len(self._pieces[-1])

    @property
    def text(self) -> str:
        return "".join(self._pieces)


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
