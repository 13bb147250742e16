"""Finds exact matches of a text in the bytes of a file, with either kind of line ending."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from bradawl.tools.reading.decoding import Encoding

MOST_MATCHES = 10_000


class Match(msgspec.Struct, frozen=True):
    """One place in a file, as byte offsets."""

    start: int
    end: int


def find_exactly(data: bytes, old: str, encoding: Encoding) -> tuple[Match, ...]:
    """All matches of the bytes of `old`, including overlapping ones, at most `MOST_MATCHES`. A match that begins with a
    line feed includes a carriage return before it: they are one line break.
    """
    try:
        wanted = encoding.encode(old)
    except UnicodeEncodeError:
        return ()
    found = (Match(place, place + len(wanted)) for place in _finds(wanted, data, len(encoding.bom)))
    matches = tuple(islice(_aligned(found, encoding), MOST_MATCHES))
    if not old.startswith("\n"):
        return matches
    back = encoding.encode("\r")
    return tuple(
        Match(match.start - len(back), match.end) if data.endswith(back, len(encoding.bom), match.start) else match
        for match in matches
    )


def find_with_other_line_ends(data: bytes, old: str, encoding: Encoding) -> tuple[Match, ...]:
    """Like `find_exactly`, but each line break of `old` matches either line ending."""
    try:
        encoding.encode(old)
    except UnicodeEncodeError:
        return ()
    either = _with_either_ending(old.replace("\r\n", "\n"), data, encoding)
    return tuple(islice(_aligned(either, encoding), MOST_MATCHES))


def _aligned(matches: Iterable[Match], encoding: Encoding) -> Iterator[Match]:
    """The matches that begin at a character boundary."""
    unit = 2 if encoding.codec.startswith("utf-16") else 1
    return (match for match in matches if (match.start - len(encoding.bom)) % unit == 0)


def _finds(wanted: bytes, data: bytes, first: int) -> Iterator[int]:
    place = data.find(wanted, first)
    while place >= 0:
        yield place
        place = data.find(wanted, place + 1)


def _with_either_ending(old: str, data: bytes, encoding: Encoding) -> Iterator[Match]:
    """Matches in the data with every CRLF replaced by LF, as offsets in the original data."""
    feed, crlf = encoding.encode("\n"), encoding.encode("\r\n")
    if crlf not in data:
        yield from (Match(place, place + len(encoding.encode(old))) for place in _finds(encoding.encode(old), data, 0))
        return
    shrink = len(crlf) - len(feed)
    breaks = [place - count * shrink for count, place in enumerate(_disjoint_finds(crlf, data))]
    wanted = encoding.encode(old)
    for place in _finds(wanted, data.replace(crlf, feed), len(encoding.bom)):
        start = place + bisect_left(breaks, place) * shrink
        end = place + len(wanted) + bisect_left(breaks, place + len(wanted)) * shrink
        if encoding.decode_piece(data[start:end]).replace("\r\n", "\n") == old:
            yield Match(start, end)


def _disjoint_finds(wanted: bytes, data: bytes) -> Iterator[int]:
    place = data.find(wanted)
    while place >= 0:
        yield place
        place = data.find(wanted, place + len(wanted))


def disjoint(matches: Iterable[Match]) -> tuple[Match, ...]:
    """Matches from the left without overlaps."""
    taken: list[Match] = []
    for match in matches:
        if not taken or match.start >= taken[-1].end:
            taken.append(match)
    return tuple(taken)


def line_number(data: bytes, match: Match, encoding: Encoding) -> int:
    """The line in which a match begins, from 1."""
    if encoding.codec.startswith("utf-16"):
        return encoding.decode(data[: match.start]).count("\n") + 1
    return data.count(b"\n", 0, match.start) + 1


def line_ending_at(data: bytes, match: Match, encoding: Encoding) -> str:
    """The line ending at a match: its first line break, else the next one, else the one before."""
    if encoding.codec.startswith("utf-16"):
        before, after = (encoding.decode_piece(piece) for piece in (data[: match.start], data[match.start :]))
        return _first_ending(before[-1:] + after) or _last_ending(before)
    after = data.find(b"\n", match.start)
    place = after if after >= 0 else data.rfind(b"\n", 0, match.start)
    return "\r\n" if place > 0 and data[place - 1] == 13 else "\n"


def _first_ending(text: str) -> str:
    place = text.find("\n", 1)
    return "" if place < 0 else "\r\n" if text[place - 1] == "\r" else "\n"


def _last_ending(text: str) -> str:
    return "\r\n" if text.rpartition("\n")[0].endswith("\r") else "\n"
