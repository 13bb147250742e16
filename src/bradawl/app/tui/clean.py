"""Text from models, tools and files, made fit for a terminal: no escape sequences, no hidden characters."""

import re
from typing import Final

# Patterns are compiled when first used, which is after the first request has left.
# A string without its end is no string: only its first characters go, or it would hide all that follows.
_STRINGS: Final = r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
_CONTROLS: Final = r"\x1b\[[0-?]*[ -/]*[@-~]?"
_OTHERS: Final = r"\x1b[ -/]*[0-~]?"
_C1_STRINGS: Final = r"[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
_C1_CONTROLS: Final = r"\x9b[0-?]*[ -/]*[@-~]?"
_SEQUENCE: Final = "|".join((_STRINGS, _CONTROLS, _OTHERS, _C1_STRINGS, _C1_CONTROLS))
_UNFINISHED: Final = (
    r"(?:\x1b(?:[\]PX^_][^\x07\x1b\x9c]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)"
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*\x1b?|\x9b[0-?]*[ -/]*)\Z"
)
_HIDDEN: Final = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
# Printable by the letter of Unicode, and yet nothing to see.
_INVISIBLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
_HELD_LIMIT: Final = 4096


def clean(text: str) -> str:
    """`text` without escape sequences, C0 (but newline and tab), C1, bidi controls and lone surrogates."""
    return re.sub(_HIDDEN, "", re.sub(_SEQUENCE, "", text))


def escape(text: str) -> str:
    """`text` with every character that is not plainly visible spelled out; newlines and tabs stay.

    For what a user has to judge: nothing of it disappears.
    """
    if text.isprintable() and not re.search(_INVISIBLE, text):
        return text
    return "".join(character if _is_plain(character) else _spelled(character) for character in text)


def _is_plain(character: str) -> bool:
    return character in "\n\t" or (character.isprintable() and not re.match(_INVISIBLE, character))


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class StreamCleaner:
    """`clean` for text that comes in pieces: a sequence that is cut between two of them is still found."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """What can be shown by now."""
        text = self._held + text
        unfinished = re.search(_UNFINISHED, text)
        start = unfinished.start() if unfinished else len(text)
        if len(text) - start > _HELD_LIMIT:
            start = len(text)
        self._held = text[start:]
        return clean(text[:start])

    def finish(self) -> str:
        """The rest; the cleaner is ready for another text."""
        rest, self._held = clean(self._held), ""
        return rest
