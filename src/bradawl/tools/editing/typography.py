"""Typographic quotes, dashes and spaces, and composed letters: matches them with plain ones and keeps the file's."""

from collections.abc import Iterable

from bradawl.core.errors import ToolError

_LOOK_ALIKES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
}
_TABLE = str.maketrans(_LOOK_ALIKES)
_MARKS = frozenset("'\"-")


def folded(text: str) -> str:
    """The text with plain quotes, dashes and spaces, and with composed letters (NFC). Line breaks stay."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text).translate(_TABLE)


def folded_evenly(text: str) -> str | None:
    """Like `folded`, but None unless every character keeps its position."""
    if text.isascii():
        return text
    from unicodedata import is_normalized

    return text.translate(_TABLE) if is_normalized("NFC", text) else None


def units(text: str) -> list[str]:
    """The characters, each with its combining marks."""
    if text.isascii():
        return list(text)
    from unicodedata import combining

    found: list[str] = []
    for character in text:
        if found and combining(character):
            found[-1] += character
        else:
            found.append(character)
    return found


class Typography:
    """Maps each character of a quoted text to the character of the file at the matched place."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}
        self.differs = False

    def learn(self, quoted: str, there: str) -> bool:
        """Add a matched piece of `old_string` and of the file; false if their characters can't be paired."""
        if quoted == there and not self.differs and quoted.isascii() and _MARKS.isdisjoint(quoted):
            return True
        ours, theirs = units(quoted), units(there)
        if len(ours) != len(theirs):
            return False
        for one, other in zip(ours, theirs, strict=True):
            self.differs |= one != other
            self._seen.setdefault(one, set()).add(other)
        return True

    def rewritten(self, quoted: str, there: str, new: str) -> str:
        """`new`, which replaces `quoted`, with the file's own characters for the text they have in common.

        Raises `ToolError` if `new` adds a character that could be either the plain or the file's one.
        """
        if not self.differs:
            return new
        from difflib import SequenceMatcher

        ours, theirs, wanted = units(quoted), units(there), units(new)
        if len(ours) * len(wanted) > 4_000_000:
            raise ToolError("the changed part is too long to keep its quotes and dashes; edit less at once")
        pieces: list[str] = []
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, ours, wanted, autojunk=False).get_opcodes():
            pieces += theirs[i1:i2] if tag == "equal" else (self._added(wanted, place) for place in range(j1, j2))
        return "".join(pieces)

    def _added(self, wanted: list[str], place: int) -> str:
        one = wanted[place]
        seen = self._seen.get(one, {one})
        if one == " " or seen == {one}:
            return one
        is_apostrophe = folded(one) == "'" and _is_inside_word(wanted, place)
        if len(seen) == 1 and (is_apostrophe or not one.isascii() or folded(one) not in _MARKS):
            return next(iter(seen))
        raise _doubt(one, seen)


def _is_inside_word(text: list[str], place: int) -> bool:
    return 0 < place < len(text) - 1 and text[place - 1].isalpha() and text[place + 1].isalpha()


def _doubt(one: str, others: Iterable[str]) -> ToolError:
    there = " ".join(sorted(f"{other} ({ascii(other)[1:-1]})" if not other.isascii() else other for other in others))
    return ToolError(
        f"the file has {there} there where old_string has plain characters, and new_string adds another {one}; "
        "repeat the edit with the file's own characters in old_string and new_string"
    )
