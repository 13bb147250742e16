"""Finds the text an edit is about, in bytes, and says where it may have been meant when it is not there."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import msgspec

from bradawl.tools.decoding import Encoding, split_lines

MOST_MATCHES = 10_000
_LINES_SHOWN = 12
_LINE_LENGTH = 200
_CANDIDATES = 20
_NUMBERED = re.compile(r"^\s*\d+\t", re.MULTILINE)


class Match(msgspec.Struct, frozen=True):
    """One place in a file, as byte offsets."""

    start: int
    end: int


def find_matches(data: bytes, old: str, encoding: Encoding) -> tuple[Match, ...]:
    """Every place where `old` stands, overlapping ones too, at most `MOST_MATCHES`.

    The bytes themselves first; when there are none, with either line ending for each line feed.
    """
    unit = 2 if encoding.codec.startswith("utf-16") else 1
    first = len(encoding.bom)
    wanted = encoding.encode(old)
    exact = (Match(place, place + len(wanted)) for place in _finds(wanted, data, first))
    found = tuple(islice((match for match in exact if (match.start - first) % unit == 0), MOST_MATCHES))
    if found or "\n" not in old:
        return found
    either = _with_either_ending(old.replace("\r\n", "\n"), data, encoding)
    return tuple(islice((match for match in either if (match.start - first) % unit == 0), MOST_MATCHES))


def _finds(wanted: bytes, data: bytes, first: int) -> Iterator[int]:
    place = data.find(wanted, first)
    while place >= 0:
        yield place
        place = data.find(wanted, place + 1)


def _with_either_ending(old: str, data: bytes, encoding: Encoding) -> Iterator[Match]:
    """Matches in the data with all CRLF made LF, as places in the data as it is."""
    feed, crlf = encoding.encode("\n"), encoding.encode("\r\n")
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


def line_ending_at(data: bytes, match: Match, encoding: Encoding) -> str:
    """How lines end where `match` is: its own first line break, else the next one, else the one before."""
    feed, crlf = encoding.encode("\n"), encoding.encode("\r\n")
    place = data.find(feed, match.start)
    if place < 0:
        place = data.rfind(feed, 0, match.start)
    start = place - len(crlf) + len(feed)
    return "\r\n" if place >= 0 and start >= 0 and data[start : place + len(feed)] == crlf else "\n"


def explain_absence(text: str, old: str) -> str:
    """Where in a file the text may have been meant, and how it differs there; bounded work for any file."""
    plain = _NUMBERED.sub("", old)
    if plain != old and plain in text.replace("\r\n", "\n"):
        return "It would match without the line numbers in front of the lines: leave them out."
    if "\\n" in old and old.replace("\\n", "\n") in text.replace("\r\n", "\n"):
        return "It would match with real line breaks where it has a backslash and an n."
    lines = [line.removesuffix("\r") for line in split_lines(text)]
    wanted = old.replace("\r\n", "\n").split("\n")
    first = _nearest(lines, wanted)
    if first is None:
        return "Nothing in the file is like it: read_file shows what is there."
    place = lines[first : first + len(wanted)]
    shown = "\n".join(f"{number}\t{line[:_LINE_LENGTH]}" for number, line in enumerate(place[:_LINES_SHOWN], first + 1))
    return f"The closest place is line {first + 1}:\n{shown}\n{_difference(place, wanted, first)}"


def _nearest(lines: list[str], wanted: list[str]) -> int | None:
    """Index of the first line of the window most like `wanted`."""
    places: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        if stripped := _folded(line):
            places.setdefault(stripped, []).append(offset)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for offset in places.get(_folded(line), ())[:_CANDIDATES]:
            votes[max(number - offset, 0)] += 1
    if votes:
        best = max(votes.values())
        return min(start for start, count in votes.items() if count == best)
    return _nearest_by_words(lines, wanted)


def _folded(line: str) -> str:
    return "".join(line.split())


def _nearest_by_words(lines: list[str], wanted: list[str]) -> int | None:
    import heapq
    from difflib import SequenceMatcher

    offset, longest = max(enumerate(wanted), key=lambda item: len(item[1]))
    longest = longest.strip()[:_LINE_LENGTH]
    words = set(re.findall(r"\w+", longest)) or {longest}
    scored = ((sum(word in line for word in words), -number) for number, line in enumerate(lines))
    candidates = [-number for score, number in heapq.nlargest(_CANDIDATES, scored) if score]
    if not candidates:
        return None
    ratios = {
        number: SequenceMatcher(None, longest, lines[number].strip()[:_LINE_LENGTH]).ratio() for number in candidates
    }
    best = max(candidates, key=lambda number: ratios[number])
    return max(best - offset, 0) if ratios[best] > 0.5 else None


def _difference(place: list[str], wanted: list[str], first: int) -> str:
    """The first line that differs, and in what."""
    for number, (there, given) in enumerate(zip(place, wanted, strict=False), first + 1):
        if there == given or (number - first == len(wanted) and there.startswith(given)):
            continue
        kind = "only in white space" if _folded(there) == _folded(given) else "in its text"
        if there.casefold() == given.casefold():
            kind = "only in upper and lower case"
        shown = f"the file has {there[:_LINE_LENGTH]!r}, old_string has {given[:_LINE_LENGTH]!r}"
        return f"Line {number} differs {kind}: {shown}."
    if len(place) < len(wanted):
        return "The file ends there, old_string goes on."
    return "It differs in the line breaks at its ends."
