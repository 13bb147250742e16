"""Separates reasoning in `<think>...</think>` at the beginning of a reply's text. Pure."""

import re
from typing import Literal

Piece = tuple[Literal["thinking", "text"], str]

_OPENERS = ("<think>", "<thinking>")
_OPENER = re.compile(r"\s*<(think(?:ing)?)>")


class InlineThinking:
    """Splits the text of one reply into reasoning and answer, if it begins with the tag.

    Text is returned as soon as it can't be part of a tag.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "inside", "behind", "done"] = "start"
        self._pending = ""
        self._closer = ""
        self._has_thought = False

    @property
    def is_untouched(self) -> bool:
        """True before the first text."""
        return self._state == "start" and not self._pending

    @property
    def is_done(self) -> bool:
        """True when no further text can be reasoning."""
        return self._state == "done"

    def feed(self, text: str) -> list[Piece]:
        """Split more text."""
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
        """End of the text: the part that was held back."""
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
            # The line break before the closing tag is dropped with the tag.
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
    """The number of characters at the end of a text that may begin a marker."""
    longest = min(len(text), max(map(len, markers)) - 1)
    for size in range(longest, 0, -1):
        end = text[-size:]
        if any(marker.startswith(end) for marker in markers):
            return size
    return 0
