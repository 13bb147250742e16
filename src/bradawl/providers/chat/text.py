"""The text of a Chat Completions reply as it streams: reasoning and tool calls found in it become parts."""

from collections.abc import Mapping

import msgspec

from bradawl.providers.chat.inline_thinking import InlineThinking, Piece
from bradawl.providers.chat.text_call_forms import WrittenCall
from bradawl.providers.chat.text_calls import TextCalls
from bradawl.providers.compat import CompatProfile


class ReplyText:
    """Splits the text of one reply into reasoning, text and calls, as far as the profile allows them in it."""

    def __init__(self, profile: CompatProfile, tools: Mapping[str, msgspec.Raw]) -> None:
        self._thinking = InlineThinking() if profile.inline_thinking else None
        self._calls = TextCalls(tools) if profile.text_calls and tools else None

    @property
    def is_plain(self) -> bool:
        """True if text can contain neither reasoning nor calls."""
        return self._thinking is None and self._calls is None

    def feed(self, text: str) -> list[Piece]:
        """Split more text; returns the pieces to show, with their kinds."""
        if self._thinking is None:
            return self._without_calls([("text", text)])
        pieces = self._thinking.feed(text)
        if self._thinking.is_done:
            self._thinking = None
        return self._without_calls(pieces)

    def finish(self, *, cut: bool) -> tuple[list[Piece], tuple[WrittenCall, ...]]:
        """End of the text (`cut` if truncated): the text held back and the calls found."""
        pieces = self._without_calls(self._thinking.finish() if self._thinking else [])
        self._thinking = None
        if self._calls is None:
            return pieces, ()
        calls, self._calls = self._calls, None
        if rest := calls.finish(cut=cut):
            pieces.append(("text", rest))
        return pieces, calls.calls

    def break_off(self) -> list[Piece]:
        """The stream broke: the text held back, without incomplete calls."""
        pieces = self._without_calls(self._thinking.finish() if self._thinking else [])
        left = self._calls.break_off() if self._calls else ""
        return [*pieces, ("text", left)]

    def expect_no_thinking(self) -> None:
        """The server sends reasoning in a field of its own, so a tag in the text is text."""
        if self._thinking is not None and self._thinking.is_untouched:
            self._thinking = None

    def expect_no_calls(self) -> str:
        """The server parses calls itself: returns the text that was held back as a possible call."""
        if self._calls is None:
            return ""
        calls, self._calls = self._calls, None
        return calls.give_up()

    def _without_calls(self, pieces: list[Piece]) -> list[Piece]:
        if self._calls is None:
            return pieces
        shown: list[Piece] = []
        for kind, text in pieces:
            left = text if kind == "thinking" else self._calls.feed(text)
            if left:
                shown.append((kind, left))
        return shown
