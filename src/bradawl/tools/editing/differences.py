"""Describes how a part of a file differs from the text that was quoted for it, line by line."""

from collections.abc import Iterator, Sequence

from bradawl.tools.editing.typography import folded

LINE_LENGTH = 200
_DIFFERENCES = 3
_MOST_ALIGNED = 400
_MOST_CHARACTERS_ALIGNED = 2_000
_INVISIBLE = {"\t": "a tab", " ": "a space", "\xa0": "a no-break space", "\r": "a carriage return"}
Pair = tuple[int | None, int | None]
"""Index of a line of the file and of the quoted line; None where one of them has no such line."""


def aligned(lines: Sequence[str], wanted: Sequence[str], expected: int) -> list[Pair]:
    """The quoted lines with the lines of the file that they mean, in order; the first is expected at `expected`.

    Blank lines that only one of the two has stand alone.
    """
    codes = _equal_runs(lines, wanted)
    if not codes:
        return list(_walk(lines, wanted, range(expected, len(lines)), range(len(wanted)), is_open=True))
    first, last = codes[0], codes[-1]
    before = _walk(lines, wanted, range(first[0] - 1, -1, -1), range(first[1] - 1, -1, -1), is_open=True)
    pairs: list[Pair] = [*reversed(list(before))]
    for (i, j, size), (i2, j2, _) in zip(codes, [*codes[1:], (0, 0, 0)], strict=True):
        pairs += [(i + number, j + number) for number in range(size)]
        if (i, j, size) != last:
            pairs += _walk(lines, wanted, range(i + size, i2), range(j + size, j2))
    end = last[0] + last[2], last[1] + last[2]
    pairs += _walk(lines, wanted, range(end[0], len(lines)), range(end[1], len(wanted)), is_open=True)
    return pairs


def _equal_runs(lines: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int, int]]:
    if len(wanted) > _MOST_ALIGNED:
        return []
    from difflib import SequenceMatcher

    ours, theirs = ([line.strip() for line in each] for each in (lines, wanted))
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return [(i, j, size) for i, j, size in blocks if any(theirs[j : j + size])]  # blank lines are no anchor


def _walk(
    lines: Sequence[str], wanted: Sequence[str], ours: Sequence[int], theirs: Sequence[int], *, is_open: bool = False
) -> Iterator[Pair]:
    """Pairs of two stretches, in the order of both. Of an open stretch of the file only the beginning is meant."""
    place = other = 0
    while place < len(ours) and other < len(theirs):
        there, given = lines[ours[place]].strip(), wanted[theirs[other]].strip()
        is_edge = theirs[other] in (0, len(wanted) - 1)
        if not given and there and not is_edge:
            yield None, theirs[other]
            other += 1
        elif given and not there:
            yield ours[place], None
            place += 1
        else:
            yield ours[place], theirs[other]
            place, other = place + 1, other + 1
    yield from ((None, number) for number in theirs[other:])
    if not is_open:
        yield from ((number, None) for number in ours[place:])


def in_words(said: Sequence[str]) -> str:
    """The first differences."""
    rest = len(said) - _DIFFERENCES
    more = f"\n({rest} more {'difference' if rest == 1 else 'differences'})" if rest > 0 else ""
    return "\n".join(said[:_DIFFERENCES]) + more if said else "It differs in the line breaks at its ends."


def differences(
    lines: Sequence[str], wanted: Sequence[str], pairs: Sequence[Pair], shift: int, *, is_end: bool
) -> Iterator[str]:
    """One sentence for each difference; the first of `lines` is line `shift` + 1 of the file.

    `is_end`: the last quoted line ends with a line break.
    """
    before = next((place for place, _ in pairs if place is not None), 0) - 1
    for place, other in pairs:
        if place is not None and other is not None:
            line = _quoted_part(lines[place], wanted[other], other == 0, other == len(wanted) - 1 and not is_end)
            if line != wanted[other]:
                yield f"Line {shift + place + 1} differs {_kind(line, wanted[other])}: {_detail(line, wanted[other])}."
        elif place is not None:
            blank = "" if lines[place].strip() else "the blank "
            yield f"old_string lacks {blank}line {shift + place + 1}."
        elif other is not None and before == len(lines) - 1:
            yield "The file ends there, old_string goes on."
            return
        elif other is not None:
            what = f": {cut(wanted[other].strip())!r}" if wanted[other].strip() else ""
            yield f"old_string has a {'' if what else 'blank '}line more after line {shift + before + 1}{what}."
        before = before if place is None else place


def _quoted_part(line: str, given: str, is_first: bool, is_last: bool) -> str:
    """The part of the line that is meant by a first or last line that may begin or end inside it."""
    if is_first and line.endswith(given):
        return given
    if is_last and line.startswith(given):
        return given
    start, stop = _span(line, given) if is_first or is_last else (0, len(line))
    return line[start if is_first else 0 : stop if is_last else len(line)]


def _span(line: str, given: str) -> tuple[int, int]:
    """Where the text begins and ends in the line, as far as its first and last characters are found there."""
    from difflib import SequenceMatcher

    if max(len(line), len(given)) > _MOST_CHARACTERS_ALIGNED:
        return 0, len(line)
    blocks = [
        each for each in SequenceMatcher(None, line, given, autojunk=False).get_matching_blocks() if each.size > 2
    ]
    if not blocks:
        return 0, len(line)
    first, last = blocks[0], blocks[-1]
    start, stop = max(first.a - first.b, 0), min(last.a + len(given) - last.b, len(line))
    # What is left out must be something before or after the text, not a difference in it.
    is_whole_start = first.b == 0 or not line[:start].strip()
    is_whole_stop = last.b + last.size == len(given)
    return (start if is_whole_start else 0), (stop if is_whole_stop else len(line))


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
    return start, cut(there[start : len(there) - end]), cut(given[start : len(given) - end])


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


def cut(line: str) -> str:
    """The beginning of a long line."""
    return line if len(line) <= LINE_LENGTH else f"{line[:LINE_LENGTH]} [... {len(line) - LINE_LENGTH} more]"


def difference_in_line(there: str, given: str) -> tuple[int, str]:
    """The offset of the first difference, and what differs, in words."""
    start, ours, theirs = _stretch(there, given)
    return start, f"the file has {_counted(ours)}, old_string has {_counted(theirs)}"


def offset_in(line: str, given: str) -> int:
    """The offset at which a similar text begins in the line, from the longest part that both have; 0 if unknown."""
    from difflib import SequenceMatcher

    found = SequenceMatcher(None, line, given, autojunk=False).find_longest_match()
    return max(found.a - found.b, 0) if found.size >= 3 else 0
