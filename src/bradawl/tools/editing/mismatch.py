"""Explains a failed match: the most similar place in the file and its first differences."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from bradawl.tools.editing.typography import folded

_LINES_SHOWN = 12
_LINE_LENGTH = 200
_LONG_LINE = 2_000
_ANCHORS = 40
_ANCHOR_LENGTH = 80
_OCCURRENCES = 50
_SCANNED = 80_000_000
_DIFFERENCES = 3
_LEAST_LIKENESS = 0.5
_LEAST_LINE_LIKENESS = 0.6
_LEAST_VOTES = 60
_LINES_COMPARED = 2_000
_INVISIBLE = {"\t": "a tab", " ": "a space", "\xa0": "a no-break space", "\r": "a carriage return"}


def explain_absence(text: str, old: str) -> str:
    """A hint for the next attempt: what is wrong with the string, or the closest place and its first differences."""
    old = old.replace("\r\n", "\n")
    slip = _slip(text, old)
    if slip:
        return slip
    place = _closest(text, old)
    if place is None:
        return "Nothing in the file is like it: read_file shows what is there."
    first, start = place
    wanted = old.removesuffix("\n").split("\n")
    if start is not None:
        return _inside_long_line(text, wanted[0], first, start)
    lines = _lines_from(text, first, len(wanted))
    shown = "\n".join(f"{number}\t{_cut(line)}" for number, line in enumerate(lines[:_LINES_SHOWN], first + 1))
    more = f"\n[... to line {first + len(lines)}]" if len(lines) > _LINES_SHOWN else ""
    return f"The closest place is line {first + 1}:\n{shown}{more}\n{_differences(lines, wanted, first)}"


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


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]} [... {len(line) - _LINE_LENGTH} more]"


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

    sample = [(place, line.strip()[:_LINE_LENGTH]) for place, line in enumerate(quoted) if line.strip()]
    sample = sorted(sample, key=lambda item: -len(item[1]))[:6]
    likeness: dict[int, float] = {}
    for number, _ in votes.most_common(6):
        total = 0.0
        for place, line in sample:
            there = _line_at(text, starts, number + place)
            total += 1.0 if line in there else SequenceMatcher(None, line, there[:_LINE_LENGTH], autojunk=False).ratio()
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
    lines = [line.strip()[:_LINE_LENGTH] for line in text.split("\n")]
    found = get_close_matches(longest.strip()[:_LINE_LENGTH], set(lines), 1, _LEAST_LINE_LIKENESS)
    return max(lines.index(found[0]) - place, 0) if found else None


def _line_at(text: str, starts: list[int], number: int) -> str:
    if number >= len(starts):
        return ""
    return text[starts[number] : starts[number] + _length(starts, number, len(text))].strip()


def _inside_long_line(text: str, wanted: str, number: int, start: int) -> str:
    there = text[start : start + len(wanted) + 100][:_LONG_LINE].partition("\n")[0]
    shown = there[:_LINE_LENGTH]
    return (
        f"The closest place is in line {number + 1}, which is very long, near character {start}:\n{shown}\n"
        "Copy a short piece of it exactly."
    )


# ------------------------------------------------------------------ how it differs


def _differences(lines: Sequence[str], wanted: Sequence[str], first: int) -> str:
    said: list[str] = []
    for number, (there, given) in enumerate(zip(lines, wanted, strict=False), first + 1):
        if there != given:
            said.append(f"Line {number} differs {_kind(there, given)}: {_detail(there, given)}.")
    if len(lines) < len(wanted):
        said.append("The file ends there, old_string goes on.")
    if not said:
        return "It differs in the line breaks at its ends."
    more = f"\n({len(said) - _DIFFERENCES} more lines differ)" if len(said) > _DIFFERENCES else ""
    return "\n".join(said[:_DIFFERENCES]) + more


def _kind(there: str, given: str) -> str:
    if "".join(there.split()) == "".join(given.split()):
        return "only in white space"
    if there.casefold() == given.casefold():
        return "only in upper and lower case"
    if folded(there) == folded(given):
        return "only in typographic characters"
    return "in its text"


def _detail(there: str, given: str) -> str:
    """The differing indentation and text, with invisible characters named."""
    indents = [line[: len(line) - len(line.lstrip())] for line in (there, given)]
    said: list[str] = []
    if indents[0] != indents[1]:
        said.append(f"the file has {_counted(indents[0])} before the text, old_string has {_counted(indents[1])}")
    ours, theirs = there[len(indents[0]) :], given[len(indents[1]) :]
    if ours != theirs:
        start, one, other = _stretch(ours, theirs)
        column = len(indents[0]) + start + 1
        said.append(f"at column {column} the file has {_counted(one)}, old_string has {_counted(other)}")
    return "; ".join(said)


def _stretch(there: str, given: str) -> tuple[int, str, str]:
    """The text from the first to the last difference, in whole words, and its offset; cut if it is long."""
    start, shortest = 0, min(len(there), len(given))
    while start < shortest and there[start] == given[start]:
        start += 1
    end = 0
    while end < shortest - start and there[-1 - end] == given[-1 - end]:
        end += 1
    ours, theirs = there[start : len(there) - end], given[start : len(given) - end]
    if _is_word(ours[:1]) or _is_word(theirs[:1]):
        while start > 0 and _is_word(there[start - 1]):
            start -= 1
    if _is_word(ours[-1:]) or _is_word(theirs[-1:]):
        while end > 0 and _is_word(there[-end]):
            end -= 1
    return start, _cut(there[start : len(there) - end]), _cut(given[start : len(given) - end])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _counted(text: str) -> str:
    """The text with invisible characters made visible."""
    if not text:
        return "nothing"
    if len(set(text)) == 1 and text[0] in _INVISIBLE:
        name = _INVISIBLE[text[0]]
        return name if len(text) == 1 else f"{len(text)} {name.partition(' ')[2]}s"
    return repr(text) if text.isascii() else f"{text!r} ({ascii(text)[1:-1]})"
