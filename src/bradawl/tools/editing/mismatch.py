"""Explains a failed match: the most similar place in the file and its first differences."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from bradawl.tools.editing.differences import (
    LINE_LENGTH,
    aligned,
    cut,
    difference_in_line,
    differences,
    in_words,
    offset_in,
)

_LINES_SHOWN = 12
_LONG_LINE = 2_000
_ANCHORS = 40
_ANCHOR_LENGTH = 80
_OCCURRENCES = 50
_SCANNED = 80_000_000
_LEAST_LIKENESS = 0.5
_LEAST_LINE_LIKENESS = 0.6
_LEAST_VOTES = 60
_LINES_COMPARED = 2_000
_LINES_AROUND = 4
_AROUND = 100
_LEAST_BEGINNING = 8


def explain_absence(text: str, old: str) -> str:
    """A hint for the next attempt: what is wrong with the string, or the closest place and its first differences."""
    old = old.replace("\r\n", "\n")
    slip = _slip(text, old)
    if slip:
        return slip
    if not text.strip():
        return "The file is empty: write_file gives it its content." if not text else "The file has only white space."
    place = _closest(text, old)
    if place is None:
        return _in_long_line(text, old) or "Nothing in the file is like it: read_file shows what is there."
    first, start = place
    if start is not None:
        return _inside_long_line(text, old.removesuffix("\n"), first, start)
    return _compared(text, old, first)


def _compared(text: str, old: str, first: int) -> str:
    """The closest place with the lines it differs in."""
    wanted, is_end = old.removesuffix("\n").split("\n"), old.endswith("\n")
    # Of a wider view each repeated line could be the one that is meant.
    most = _LINES_AROUND + len(wanted) // 8
    compared = (_lines_and_differences(text, wanted, first, above, is_end) for above in sorted({0, 1, 2, most}))
    lines, number, said = min(compared, key=lambda each: (len(each[2]), len("".join(each[2]))))
    last = number + len(lines) - 1
    if is_end and not said and _ends_without_break(text, last):
        return f"old_string ends with a line break, and the file ends without one after line {last}: leave it out."
    shown = "\n".join(f"{place}\t{cut(line)}" for place, line in enumerate(lines[:_LINES_SHOWN], number))
    more = f"\n[... to line {last}]" if len(lines) > _LINES_SHOWN else ""
    return f"The closest place is line {number}:\n{shown}{more}\n{in_words(said)}"


def _lines_and_differences(
    text: str, wanted: list[str], first: int, above: int, is_end: bool
) -> tuple[list[str], int, list[str]]:
    """The lines that are meant, the number of the first one, and what differs, as seen from some lines above."""
    above = min(first, above)
    lines = _lines_from(text, first - above, len(wanted) + 2 * above)
    if first - above + len(lines) == text.count("\n") + 1 and not lines[-1] and len(lines) > 1:
        lines.pop()  # after the last line break
    pairs = aligned(lines, wanted, above)
    places = [place for place, _ in pairs if place is not None] or [above]
    said = list(differences(lines, wanted, pairs, first - above, is_end=is_end))
    return lines[places[0] : places[-1] + 1], first - above + places[0] + 1, said


def _ends_without_break(text: str, last: int) -> bool:
    return not text.endswith("\n") and text.count("\n") + 1 == last


def _slip(text: str, old: str) -> str:
    """A hint about text added to old_string that the file does not have, if the rest matches."""
    plain = re.sub(r"^ *\d+\t", "", old, flags=re.MULTILINE)
    lines = text.replace("\r\n", "\n")
    if plain != old and plain.strip() and plain in lines:
        return (
            "It would match without the line numbers in front of the lines: leave them out of both strings "
            "(they count only where all of them are right)."
        )
    if "\\n" in old and old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"') in lines:
        return "It would match with real line breaks where it has a backslash and an n: write both strings so."
    if "\\" in old and re.sub(r"\\(.)", r"\1", old) in lines:
        return "It would match with one layer of backslashes less: write both strings so."
    if "&" in old and _without_entities(old) in lines:
        return "It would match with plain characters where it has &lt; &gt; &amp; or &quot;: write both strings so."
    return ""


def _without_entities(text: str) -> str:
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text


def _lines_from(text: str, first: int, count: int) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")[first : first + count]]


# ------------------------------------------------------------------ where


def _closest(text: str, old: str) -> tuple[int, int | None] | None:
    """Index of the first line of the place most similar to `old`; in a very long line also the offset."""
    starts = _line_starts(text)
    quoted = old.removesuffix("\n").split("\n")
    votes: Counter[int] = Counter()
    inside: dict[int, Counter[int]] = {}
    for place, column, piece in _anchors(quoted, len(text)):
        found = list(_occurrences(text, piece))
        if len(found) == _OCCURRENCES and piece != quoted[place].strip()[:_ANCHOR_LENGTH]:
            continue  # a frequent word does not identify a place
        for offset in found:
            number = bisect_right(starts, offset) - 1
            votes[max(number - place, 0)] += 1 + len(piece) * 10 // len(found)
            inside.setdefault(max(number - place, 0), Counter())[(offset - column) // 64] += 1
    best = _best(votes, text, starts, quoted)
    if best is None:
        return None
    is_long = len(quoted) == 1 and _length(starts, best, len(text)) > _LONG_LINE
    if not is_long:
        return best, None
    bucket = max(inside[best].items(), key=lambda item: item[1])[0]
    return best, max(bucket * 64, starts[best])


def _line_starts(text: str) -> list[int]:
    return [*accumulate((len(line) + 1 for line in text.split("\n")), initial=0)][:-1]


def _length(starts: list[int], number: int, total: int) -> int:
    return (starts[number + 1] if number + 1 < len(starts) else total) - starts[number]


def _anchors(quoted: Sequence[str], size: int) -> Iterator[tuple[int, int, str]]:
    """Pieces to search for, with their line and column: whole lines, the longest first, then their words."""
    most = max(3, min(_ANCHORS, _SCANNED // (size + 1)))
    lines = sorted(enumerate(quoted), key=lambda item: -len(item[1].strip()))
    pieces = [(place, len(line) - len(line.lstrip()), line.strip()[:_ANCHOR_LENGTH]) for place, line in lines]
    chosen = [piece for piece in pieces if len(piece[2]) >= 3][: most // 2 + 1]
    words = (
        (place, match.start(), match[0])
        for place, line in lines[:8]
        for match in re.finditer(r"[^\W\d]{3,}|\d{2,}", line[:_LONG_LINE])
    )
    chosen += sorted(words, key=lambda item: -len(item[2]))[: most - len(chosen)]
    return iter(dict.fromkeys(chosen))


def _occurrences(text: str, piece: str) -> Iterator[int]:
    place = text.find(piece)
    for _ in range(_OCCURRENCES):
        if place < 0:
            return
        yield place
        place = text.find(piece, place + len(piece))


def _best(votes: Counter[int], text: str, starts: list[int], quoted: Sequence[str]) -> int | None:
    """Of the places with the most votes, the one with the most similar lines; None if none is similar."""
    from difflib import SequenceMatcher

    sample = [(place, line.strip()[:LINE_LENGTH]) for place, line in enumerate(quoted) if line.strip()]
    sample = sorted(sample, key=lambda item: -len(item[1]))[:6]
    likeness: dict[int, float] = {}
    for number, _ in votes.most_common(6):
        total = 0.0
        for place, line in sample:
            there = _line_at(text, starts, number + place)
            total += 1.0 if line in there else SequenceMatcher(None, line, there[:LINE_LENGTH], autojunk=False).ratio()
        likeness[number] = total / max(len(sample), 1)
    best = max(likeness, key=lambda number: (round(likeness[number], 3), votes[number], -number), default=None)
    if best is not None and likeness[best] >= _LEAST_LIKENESS:
        return best
    return _by_votes(votes) if len(starts) == 1 else _by_likeness(text, starts, quoted)


def _by_votes(votes: Counter[int]) -> int | None:
    """Whether a very long line contains enough pieces of the text."""
    ranked = votes.most_common(1)
    return ranked[0][0] if ranked and ranked[0][1] >= _LEAST_VOTES else None


def _by_likeness(text: str, starts: list[int], quoted: Sequence[str]) -> int | None:
    """Compare line by line, in short files only; used if no piece of the text occurs."""
    from difflib import get_close_matches

    if len(starts) > _LINES_COMPARED:
        return None
    place, longest = max(enumerate(quoted), key=lambda item: len(item[1].strip()))
    lines = [line.strip()[:LINE_LENGTH] for line in text.split("\n")]
    found = get_close_matches(longest.strip()[:LINE_LENGTH], set(lines), 1, _LEAST_LINE_LIKENESS)
    return max(lines.index(found[0]) - place, 0) if found else None


def _line_at(text: str, starts: list[int], number: int) -> str:
    if number >= len(starts):
        return ""
    return text[starts[number] : starts[number] + _length(starts, number, len(text))].strip()


def _inside_long_line(text: str, wanted: str, number: int, start: int) -> str:
    there = text[start : start + len(wanted) + 100][:_LONG_LINE].partition("\n")[0]
    begin = offset_in(there[: 2 * LINE_LENGTH], wanted[:LINE_LENGTH])
    there, start = there[begin : begin + len(wanted)], start + begin
    offset, what = difference_in_line(there, wanted[:_LONG_LINE])
    return _around(text, number, start + offset, f"There {what}.")


def _in_long_line(text: str, old: str) -> str:
    """The place in a very long line where the longest beginning of the text is; empty if there is none."""
    low, high = 0, len(old)
    while low < high:  # each shorter beginning is there as well
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] in text else (low, middle - 1)
    start = text.find(old[:low])
    line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
    if low < _LEAST_BEGINNING or len(line) <= _LONG_LINE:
        return ""
    place = start + low
    goes_on = f"{text[place : place + 30]!r}, old_string with {old[low : low + 30]!r}"
    said = f"It has the first {low} characters of old_string; then it goes on with {goes_on}."
    return _around(text, text.count("\n", 0, place), place, said)


def _around(text: str, number: int, place: int, said: str) -> str:
    """The text around an offset in a very long line."""
    begin = text.rfind("\n", 0, place) + 1
    shown = text[max(place - _AROUND, begin) : place + _AROUND].partition("\n")[0]
    return (
        f"The closest place is in line {number + 1}, which is very long, near character {place - begin + 1}:\n{shown}\n"
        f"{said} Copy a short piece of it exactly."
    )
