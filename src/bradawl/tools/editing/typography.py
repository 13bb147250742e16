"""Characters that look alike: quotes, dashes and spaces of print, and letters composed in two ways."""

from collections.abc import Iterable

from bradawl.core.errors import ToolError

_LOOK_ALIKES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
}
_TABLE = str.maketrans(_LOOK_ALIKES)
_QUOTES = "'\""
_MARKS = frozenset("'\"-")


def folded(text: str) -> str:
    """The text with look-alikes made plain and letters composed. Lines stay lines."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text).translate(_TABLE)


def folded_evenly(text: str) -> str | None:
    """The same, when every character keeps its place; else None."""
    if text.isascii():
        return text
    from unicodedata import is_normalized

    return text.translate(_TABLE) if is_normalized("NFC", text) else None


def units(text: str) -> list[str]:
    """Characters, each with the marks that belong to it."""
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
    """What each character of a quoted text stands for in the file, learnt from the place that matched."""

    def __init__(self, whole: str) -> None:
        """`whole` is the text of the file: what it uses elsewhere counts for characters not quoted."""
        self._whole = whole
        self._seen: dict[tuple[str, bool], set[str]] = {}
        self.differs = False

    def learn(self, quoted: str, there: str) -> bool:
        """Take in a piece that matched; false if its characters can't be paired."""
        if quoted == there and not self.differs and quoted.isascii() and _MARKS.isdisjoint(quoted):
            return True
        ours, theirs = units(quoted), units(there)
        if len(ours) != len(theirs):
            return False
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one != other:
                self.differs = True
            if one != other or folded(one) in _MARKS or not one.isascii():
                self._seen.setdefault((one, _is_inside_word(ours, place)), set()).add(other)
        return True

    def rewritten(self, quoted: str, there: str, new: str) -> str:
        """`new`, which replaces `quoted`, with the file's own characters wherever it says the same as `quoted`.

        Raises `ToolError` when it can't be told which character is meant.
        """
        if not self.differs:
            return new
        from difflib import SequenceMatcher

        ours, theirs, wanted = units(quoted), units(there), units(new)
        if len(ours) * len(wanted) > 4_000_000:
            raise ToolError("the changed part is too long to keep its quotes and dashes; edit less at once")
        pieces: list[str] = []
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, ours, wanted, autojunk=False).get_opcodes():
            if tag == "equal":
                pieces += theirs[i1:i2]
            else:
                pieces += (self._one(wanted, place) for place in range(j1, j2))
        return "".join(pieces)

    def _one(self, wanted: list[str], place: int) -> str:
        """What a new character should be in the file."""
        one, inside = wanted[place], _is_inside_word(wanted, place)
        seen = self._seen.get((one, inside), set())
        plain = folded(one)
        if not seen:
            self._check_unseen(one, plain)
            return one
        (other, *more) = seen
        if not more and (other == one or not one.isascii() or (inside and plain == "'") or plain not in _MARKS):
            # A plain space stays one: the file's other kind stood at one place only.
            return one if one == " " else other
        raise _doubt(one, seen)

    def _check_unseen(self, one: str, plain: str) -> None:
        """A quote that was not quoted before is taken as it is only where the file has such quotes."""
        kin = {other for (_, __), others in self._seen.items() for other in others if folded(other) == plain}
        if plain in _QUOTES and any(other != one for other in kin) and one not in self._whole:
            raise _doubt(one, kin)


def _is_inside_word(text: list[str], place: int) -> bool:
    """As an apostrophe is."""
    return 0 < place < len(text) - 1 and text[place - 1].isalpha() and text[place + 1].isalpha()


def _doubt(one: str, others: Iterable[str]) -> ToolError:
    there = " ".join(sorted(f"{other} ({ascii(other)[1:-1]})" if not other.isascii() else other for other in others))
    return ToolError(
        f"the file has {there} there where old_string has plain characters, and new_string adds another {one}; "
        "repeat the edit with the file's own characters in old_string and new_string"
    )
