"""Removes control characters, escape sequences and invisible characters from text that a terminal will print.

All text from models, tools and files must pass `clean` before it is printed, or `escape` if the user decides about it.
"""

import re
from typing import Final

# Patterns are compiled when first used, which is after the first request was sent. Each is linear: no part can match a
# text in two ways, and the length of a sequence is limited.
_LONGEST_STRING: Final = 5_000
"""The number of characters that an unterminated string may consume. A newline always ends it."""
_STRING_BODY: Final = r"[^\n\x07\x18\x1a\x1b\x80-\x9f]"
_STRING_BEGIN: Final = r"\[[0-?]{0,256}[ -/]{0,16}|[\]PX^_][0-9;]{0,16}|[ -/]{0,16}"
# An ESC starts a new sequence, whatever precedes it. 8-bit introducers are converted to ESC first. Terminators of
# strings (BEL, ST) are control characters or sequences themselves, and are removed as such.
_SEQUENCE: Final = (
    r"\x1b+(?:\[[0-?]{0,256}[ -/]{0,16}[@-~]?"
    rf"|[\]PX^_][0-9;]{{0,16}}{_STRING_BODY}{{0,{_LONGEST_STRING}}}|[ -/]{{0,16}}[0-~]?)"
)
_CUT_SEQUENCE: Final = rf"\x1b(?:{_STRING_BEGIN})"
_CUT_STRING: Final = rf"\x1b[\]PX^_][0-9;]{{0,16}}({_STRING_BODY}{{0,{_LONGEST_STRING}}})"
_EIGHT_BIT: Final = (("\x90", "P"), ("\x98", "X"), ("\x9b", "["), ("\x9d", "]"), ("\x9e", "^"), ("\x9f", "_"))
_LINE_ENDS: Final = "\u2028\u2029"

# Unicode's categories Cc (except newline and tab), Cf and Cs, and default-ignorable characters, except those below.
_HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SEEN_SOMEWHERE: Final = (
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ud800-\udfff\U000110bd\U000110cd]+"
)
# Two joiners and two variation selectors are useful: in and behind emoji, and between letters of joining scripts.
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe0e\ufe0f"
_EMOJI: Final = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING: Final = "\u0620-\u06d3\u0750-\u077f\u08a0-\u08c7\u0900-\u0dff"
_SOFT: Final = f"[{_JOINERS}{_SELECTORS}]"
_USELESS: Final = (
    f"{_SOFT}(?:(?<={_SOFT * 3}){_SOFT}*|"  # from the third in a row on
    f"(?<![{_EMOJI}][{_SELECTORS}])"
    "(?!(?<=[0-9#*]\ufe0f)\u20e3)"
    f"(?!(?:(?<=[{_EMOJI}]\u200d)|(?<=[{_EMOJI}][{_SELECTORS}]\u200d))[{_EMOJI}])"
    f"(?!(?<=[{_JOINING}][{_JOINERS}])[{_JOINING}]))"
)
# The end of a text on which the usefulness of the next characters depends.
_UNDECIDED: Final = f"[{_EMOJI}{_JOINING}0-9#*][{_SELECTORS}]?[{_JOINERS}]?\\Z"
# Printable according to Unicode, but invisible.
_BLANK: Final = (
    f"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164{_SELECTORS}\ufe00-\ufe0d\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def clean(text: str) -> str:
    """`text` without escape sequences and hidden characters, safe to send to a terminal.

    Removes control characters (except newline and tab), bidi controls, tags, zero-width and other invisible characters,
    and lone surrogates. Joiners that emoji and joining scripts need are kept. Markup is not interpreted.
    """
    if text.isascii() and text.isprintable():
        return text
    return _without_useless(_without_hidden(_with_short_escapes(text)))


def escape(text: str) -> str:
    """`text` with every invisible character spelled out; newlines and tabs are kept.

    For text that the user decides about: nothing is removed.
    """
    if text.isprintable() and not re.search(_BLANK, text):
        return text
    return text.translate({ord(character): _spelled(character) for character in set(text) if not _is_plain(character)})


def in_remark(name: str) -> str:
    """A path or name for a remark in square brackets, on one line: none of its characters can end the remark."""
    return re.sub(r"[\[\]\n\t]", lambda found: f"\\x{ord(found[0]):02x}", escape(name))


def json_for_terminals(json: str) -> str:
    """The same JSON value, in which everything that `clean` could remove is a JSON escape."""
    if json.isascii() and "\x7f" not in json:
        return json
    return re.sub(f"[{_HIDDEN}{_JOINERS}{_SELECTORS}{_LINE_ENDS}]", lambda found: _in_json(found[0]), json)


def hidden_count(text: str) -> int:
    """The number of invisible characters in a text: tags, zero-width characters, bidi controls and the like.

    Control characters, soft hyphens, Arabic number signs and a leading byte order mark are not counted.
    """
    if text.isascii():
        return 0
    counted = re.sub(_SEEN_SOMEWHERE, "", text.removeprefix("\ufeff"))
    return len(counted) - len(_without_useless(re.sub(f"[{_HIDDEN}]+", "", counted)))


def hidden_note(text: str) -> str:
    """A note for the model about invisible characters in a text; empty if there are none."""
    if not (count := hidden_count(text)):
        return ""
    what = "1 invisible character is" if count == 1 else f"{count:,} invisible characters are"
    return f"[{what} in this text (tags, zero-width, bidi controls or the like); they can't be seen on a screen]"


def _is_plain(character: str) -> bool:
    return character in "\n\t" or (character.isprintable() and not re.match(_BLANK, character))


def _spelled(character: str) -> str:
    """The escape that Python writes for a character; a carriage return is `\\x0d`, as all other control characters."""
    return ascii(character)[1:-1].replace("\\r", "\\x0d")


def _in_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _with_short_escapes(text: str) -> str:
    """Replaces 8-bit introducers by their two-character forms, and other line separators by newlines."""
    if not text.isascii():
        for long, short in _EIGHT_BIT:
            while long * 2 in text:  # the first of two has no contents
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
    """`clean` for text that arrives in pieces. The result does not depend on where the text was cut."""

    def __init__(self) -> None:
        self._cut = ""
        """The start of an incomplete sequence."""
        self._swallowing = 0
        """The number of characters that the started string may still consume."""
        self._undecided = ""

    def feed(self, text: str) -> str:
        """The cleaned text that can be shown so far."""
        text = self._cut + self._behind_string(_with_short_escapes(text))
        text = self._undecided + _without_hidden(self._up_to_cut(text))
        undecided = re.search(_UNDECIDED, text[-3:])
        self._undecided = undecided[0] if undecided else ""
        # A joiner whose usefulness depends on the character that is held back.
        shown = _without_useless(text)
        return shown[: len(shown) - len(_without_useless(self._undecided))]

    def finish(self) -> str:
        """The remaining text. The cleaner can be reused afterwards."""
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
        """The text before an incomplete sequence, which is stored."""
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
