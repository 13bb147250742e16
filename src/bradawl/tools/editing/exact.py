"""Adjusts the replacement of an exact match that begins or ends inside a line: keeps indentation and line breaks."""

import msgspec

from bradawl.tools.editing.indent import split_indent
from bradawl.tools.editing.matching import Match
from bradawl.tools.reading.decoding import Encoding

_LEAST_LETTERS = 4
_NEAR = 4_000


class MatchContext(msgspec.Struct, frozen=True):
    """The text around a match: before it in its first line, after it in its last line, and the next line."""

    before: str
    after: str
    next_line: str

    @staticmethod
    def of(data: bytes, match: Match, encoding: Encoding) -> "MatchContext":
        """Reads a few thousand bytes around the match."""
        feed = encoding.encode("\n")
        first = max(len(encoding.bom), match.start - _NEAR)
        head = encoding.decode_piece(data[first : match.start]).rpartition("\n")[2]
        tail = encoding.decode_piece(data[match.end : match.end + _NEAR])
        after, _, rest = tail.partition("\n")
        return MatchContext(
            head,
            after.removesuffix("\r"),
            (tail if data[match.start : match.end].endswith(feed) else rest).partition("\n")[0],
        )


def joins_lines(place: MatchContext, old: str, new: str) -> bool:
    """True if the edit would remove the line break after whole lines and so join two lines."""
    return (
        old.endswith("\n")
        and bool(new)
        and not new[-1].isspace()
        and not place.before.strip()
        and bool(place.next_line.strip())
        and min(_letters(old), _letters(new.rpartition("\n")[2])) >= _LEAST_LETTERS
    )


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def writes_margin(place: MatchContext, old: str, new: str) -> bool:
    """True if `new` begins with the indentation of a whole line and `old` inside that of its line, so that `new` in its
    place would be indented twice. False for edits that do nothing but indent further.
    """
    if not place.before or place.before.strip(" \t") or len(place.before) >= _NEAR:
        return False
    quoted, written = split_indent(old)[0], split_indent(new)[0]
    ours, theirs = old.split("\n"), new.split("\n")
    if written == quoted or [line.strip() for line in ours] == [line.strip() for line in theirs]:
        return False
    # The other lines of `old` are whole lines of the file, so those of `new` are, too.
    return written == place.before + quoted or (len(ours) > 1 and len(theirs) > 1 and bool(theirs[0].strip()))


def reframed(place: MatchContext, old: str, new: str) -> str | None:
    """`new` with the indentation of the line it replaces, if both strings were written without it; else None. Applies
    to one whole line that becomes several, and only if `new` is wrong as given: its first line opens a block that the
    second line would not be in, or the replaced line occurs again further down without indentation.
    """
    content = old.strip(" \t")
    is_whole = place.before and not place.before.strip(" \t") and not place.after.strip(" \t")
    if "\n" in old or "\n" not in new.rstrip() or not is_whole or _letters(content) < _LEAST_LETTERS:
        return None
    quoted = split_indent(old)[0]
    first, *rest = new.split("\n")
    indents = [split_indent(line)[0] for line in (first, *rest) if line.strip()]
    if not all(indent.startswith(quoted) for indent in indents) or len(set("".join((place.before, *indents)))) > 1:
        return None
    if not quoted and not _is_relative(place.before, content, first, rest):
        return None
    return "\n".join([first, *(place.before + line if line.strip() else line for line in rest)])


def _is_relative(before: str, content: str, first: str, rest: list[str]) -> bool:
    if content in rest:
        return True
    following = next((split_indent(line)[0] for line in rest if line.strip()), "")
    return first.rstrip().endswith((":", "{", "(", "[")) and 0 < len(following) < len(before)
