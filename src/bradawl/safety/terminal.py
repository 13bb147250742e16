"""Text from models, tools and files, made fit for a terminal: no escape sequences, no hidden characters.

All that reaches a screen and is not bradawl's own passes `clean`, or `escape` where a user has to judge it.
"""

import re
from typing import Final

# Patterns are compiled when first used, which is after the first request has left. Each is linear: nothing in them
# can match a text in two ways, and what a sequence may hold has a limit.
_LONGEST_STRING: Final = 5_000
"""Characters a string without an end may swallow; a line's end always ends it, too."""
_STRING_BODY: Final = r"[^\n\x07\x18\x1a\x1b\x80-\x9f]"
_STRING_BEGIN: Final = r"\[[0-?]{0,256}[ -/]{0,16}|[\]PX^_][0-9;]{0,16}|[ -/]{0,16}"
# An ESC begins anew whatever stood before it, and so do its 8-bit forms, which are written as ESC first. What ends a
# string (BEL, ST) is a control or a sequence of its own and goes for that reason.
_SEQUENCE: Final = (
    r"\x1b+(?:\[[0-?]{0,256}[ -/]{0,16}[@-~]?"
    rf"|[\]PX^_][0-9;]{{0,16}}{_STRING_BODY}{{0,{_LONGEST_STRING}}}|[ -/]{{0,16}}[0-~]?)"
)
_CUT_SEQUENCE: Final = rf"\x1b(?:{_STRING_BEGIN})"
_CUT_STRING: Final = rf"\x1b[\]PX^_][0-9;]{{0,16}}({_STRING_BODY}{{0,{_LONGEST_STRING}}})"
_EIGHT_BIT: Final = (("\x90", "P"), ("\x98", "X"), ("\x9b", "["), ("\x9d", "]"), ("\x9e", "^"), ("\x9f", "_"))
_LINE_ENDS: Final = "\u2028\u2029"

# Unicode's categories Cc (but newline and tab), Cf and Cs, and what it calls default-ignorable; but those below.
_HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SEEN_SOMEWHERE: Final = (
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ud800-\udfff\U000110bd\U000110cd]+"
)
# Two joiners and two selectors have a use: between emoji, behind them, and between letters of scripts that join.
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe0e\ufe0f"
_EMOJI: Final = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING: Final = "\u0620-\u06d3\u0750-\u077f\u08a0-\u08c7\u0900-\u0dff"
_SOFT: Final = f"[{_JOINERS}{_SELECTORS}]"
_USELESS: Final = (
    f"{_SOFT}(?:(?<={_SOFT * 3}){_SOFT}*|"  # from the third of a row on
    f"(?<![{_EMOJI}][{_SELECTORS}])"
    "(?!(?<=[0-9#*]\ufe0f)\u20e3)"
    f"(?!(?:(?<=[{_EMOJI}]\u200d)|(?<=[{_EMOJI}][{_SELECTORS}]\u200d))[{_EMOJI}])"
    f"(?!(?<=[{_JOINING}][{_JOINERS}])[{_JOINING}]))"
)
# The end of a text that says of the next characters whether they have a use.
_UNDECIDED: Final = f"[{_EMOJI}{_JOINING}0-9#*][{_SELECTORS}]?[{_JOINERS}]?\\Z"
# Printable by the letter of Unicode, and yet nothing to see.
_BLANK: Final = (
    f"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164{_SELECTORS}\ufe00-\ufe0d\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def clean(text: str) -> str:
    """`text` without escape sequences and hidden characters: what a terminal may be sent.

    Controls go (but newline and tab), and so do bidi controls, tags, zero-width characters, whatever else is not
    to be seen, and lone surrogates. Emoji and joining scripts keep the joiners that they need. Markup stays text.
    """
    if text.isascii() and text.isprintable():
        return text
    return _without_useless(_without_hidden(_with_short_escapes(text)))


def escape(text: str) -> str:
    """`text` with every character that is not plainly visible spelled out; newlines and tabs stay.

    For what a user has to judge: nothing of it disappears.
    """
    if text.isprintable() and not re.search(_BLANK, text):
        return text
    return text.translate({ord(character): _spelled(character) for character in set(text) if not _is_plain(character)})


def json_for_terminals(json: str) -> str:
    """The same JSON value, with all that `clean` might take away as the escapes that JSON has for it."""
    if json.isascii() and "\x7f" not in json:
        return json
    return re.sub(f"[{_HIDDEN}{_JOINERS}{_SELECTORS}{_LINE_ENDS}]", lambda found: _in_json(found[0]), json)


def hidden_count(text: str) -> int:
    """How many characters of a text nobody sees who looks at it: tags, zero-width, bidi controls and the like.

    Controls, soft hyphens and Arabic number signs are not counted, nor is a byte order mark at the beginning.
    """
    if text.isascii():
        return 0
    counted = re.sub(_SEEN_SOMEWHERE, "", text.removeprefix("\ufeff"))
    return len(counted) - len(_without_useless(re.sub(f"[{_HIDDEN}]+", "", counted)))


def hidden_note(text: str) -> str:
    """A line that tells a model of such characters in what it is shown; empty where there are none."""
    if not (count := hidden_count(text)):
        return ""
    what = "1 invisible character is" if count == 1 else f"{count:,} invisible characters are"
    return f"[{what} in this text (tags, zero-width, bidi controls or the like); nobody who looks at it sees them]"


def _is_plain(character: str) -> bool:
    return character in "\n\t" or (character.isprintable() and not re.match(_BLANK, character))


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _with_short_escapes(text: str) -> str:
    """8-bit introducers as the two characters they stand for, and newlines for what else separates lines."""
    if not text.isascii():
        for long, short in _EIGHT_BIT:
            while long * 2 in text:  # the first of two holds nothing
                text = text.replace(long * 2, long)
            text = text.replace(long, f"\x1b{short}")
        for end in _LINE_ENDS:
            text = text.replace(end, "\n")
    return text


def _without_hidden(text: str) -> str:
    if "\x1b" in text:
        text = re.sub(_SEQUENCE, "", text)
    return re.sub(f"[{_HIDDEN}]+", "", text)


def _without_useless(text: str) -> str:
    if text.isascii() or not any(character in text for character in _JOINERS + _SELECTORS):
        return text
    return re.sub(_USELESS, "", text)


class StreamCleaner:
    """`clean` for text that comes in pieces: together they are shown as the whole would be, wherever it was cut."""

    def __init__(self) -> None:
        self._cut = ""
        """The beginning of a sequence."""
        self._swallowing = 0
        """Characters that the string which has begun may still swallow."""
        self._undecided = ""

    def feed(self, text: str) -> str:
        """What can be shown by now."""
        text = self._cut + self._behind_string(_with_short_escapes(text))
        text = self._undecided + _without_hidden(self._up_to_cut(text))
        undecided = re.search(_UNDECIDED, text[-3:])
        self._undecided = undecided[0] if undecided else ""
        # The joiner before what is held back is decided by it.
        shown = _without_useless(text)
        return shown[: len(shown) - len(_without_useless(self._undecided))]

    def finish(self) -> str:
        """The rest; the cleaner is ready for another text."""
        rest = _without_useless(self._undecided)
        self._cut, self._swallowing, self._undecided = "", 0, ""
        return rest

    def _behind_string(self, text: str) -> str:
        if not self._swallowing:
            return text
        body = re.compile(f"{_STRING_BODY}*").match(text, 0, self._swallowing)
        end = body.end() if body else 0
        self._swallowing = self._swallowing - end if end == len(text) else 0
        return text[end:]

    def _up_to_cut(self, text: str) -> str:
        """What comes before a sequence that has no end yet; that is remembered."""
        self._cut = ""
        start = text.rfind("\x1b")
        if start < 0:
            return text
        if re.compile(_CUT_SEQUENCE).fullmatch(text, start):
            self._cut = text[start:]
        elif string := re.compile(_CUT_STRING).fullmatch(text, start):
            self._swallowing = _LONGEST_STRING - len(string[1])
        else:
            return text
        return text[:start]
