"""Reasoning that a server left in the text, as `<think>...</think>` before the answer. Pure."""

import re
from typing import Literal

Piece = tuple[Literal["thinking", "text"], str]

_OPENERS = ("<think>", "<thinking>")
_OPENER = re.compile(r"\s*<(think(?:ing)?)>")


class InlineThinking:
    """Splits the text of one reply; only a text that begins with the tag is split, and only once.

    Each piece is given back as soon as it can't be part of a tag.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "inside", "behind", "done"] = "start"
        self._pending = ""
        self._closer = ""
        self._has_thought = False

    @property
    def is_untouched(self) -> bool:
        """True while there has been no text."""
        return self._state == "start" and not self._pending

    @property
    def is_done(self) -> bool:
        """True when all further text is only text."""
        return self._state == "done"

    def feed(self, text: str) -> list[Piece]:
        """Take more text."""
        if self._state == "done":
            return [("text", text)]
        text, self._pending = self._pending + text, ""
        pieces: list[Piece] = []
        if self._state == "start":
            text = self._begin(text)
        if self._state == "inside":
            text = self._think(text, pieces)
        if self._state == "behind":
            text = text.lstrip()
            self._state = "done" if text else "behind"
        if self._state == "done" and text:
            pieces.append(("text", text))
        return pieces

    def finish(self) -> list[Piece]:
        """The text is over: what was kept back."""
        rest, self._pending = self._pending, ""
        if not rest:
            return []
        return [("thinking" if self._state == "inside" else "text", rest)]

    def _begin(self, text: str) -> str:
        if (found := _OPENER.match(text)) is not None:
            self._state = "inside"
            self._closer = f"</{found[1]}>"
            return text[found.end() :]
        bare = text.lstrip()
        if any(opener.startswith(bare) for opener in _OPENERS):
            self._pending = text
            return ""
        self._state = "done"
        return text

    def _think(self, text: str, pieces: list[Piece]) -> str:
        if not self._has_thought:
            text = text.lstrip("\n")
            self._has_thought = bool(text)
        place = text.find(self._closer)
        if place < 0:
            kept = possible_start(text, (self._closer,))
            # A line break before the closing tag belongs to the tag.
            edge = len(text[: len(text) - kept].rstrip("\n")) if kept or text.endswith("\n") else len(text)
            self._pending = text[edge:]
            if text[:edge]:
                pieces.append(("thinking", text[:edge]))
            return ""
        self._state = "behind"
        if thought := text[:place].rstrip("\n"):
            pieces.append(("thinking", thought))
        return text[place + len(self._closer) :]


def possible_start(text: str, markers: tuple[str, ...]) -> int:
    """How many characters at the end of a text could be the beginning of a marker."""
    longest = min(len(text), max(map(len, markers)) - 1)
    for size in range(longest, 0, -1):
        end = text[-size:]
        if any(marker.startswith(end) for marker in markers):
            return size
    return 0
