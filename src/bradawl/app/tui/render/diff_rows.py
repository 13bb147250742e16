"""The rows of a diff: from two texts, or from the text of a unified diff."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

Sign = Literal[" ", "-", "+", "gap", "note"]
_MOST_PAIRS: Final = 50_000
"""Pairs of equal lines up to which a stretch without common unique lines is compared line by line."""
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FOLDED: Final = re.compile(r"\[\.\.\. ([\d,]+) (more lines removed|lines as given)\]")
_NAME: Final = re.compile(r"\+\+\+ (?:b/)?(\S+)|(?:Edited |Wrote .* to )?(\S+\.\w+):")
Block = tuple[int, int, int]
"""Equal lines: their first index in the old and in the new text, and their number."""


class Row(msgspec.Struct, frozen=True):
    """One line of a diff. `gap` stands for lines that are left out, `note` for a line that is not of a file."""

    sign: Sign
    text: str = ""
    number: int | None = None
    """The number of the line: in the old text for a removed one, else in the new text."""
    path: str = ""
    """The file it belongs to, as far as it is known."""


def rows_of_texts(old: str, new: str, path: str, context: int) -> list[Row]:
    """The changed lines of two texts, with `context` lines around them."""
    before, after = _lines(old), _lines(new)
    if before and after and all(line.endswith(("\r", "\n")) for line in (*before, *after)):
        before, after = ([line.removesuffix("\r") for line in lines] for lines in (before, after))
    if before and after and before[-1].endswith("\n") and after[-1].endswith("\n"):
        before[-1], after[-1] = before[-1].removesuffix("\n"), after[-1].removesuffix("\n")
    blocks = [*_equal_blocks(before, after), (len(before), len(after), 0)]
    ends = len(before), len(after)
    rows: list[Row] = []
    i = j = 0
    for first, second, size in blocks:
        rows += (Row("-", before[place], place + 1, path) for place in range(i, first))
        rows += (Row("+", after[place], place + 1, path) for place in range(j, second))
        i, j = first + size, second + size
        rows += _around(after, range(second, j), context, path, is_first=not rows, is_last=(i, j) == ends)
    return rows if any(row.sign in "-+" for row in rows) else []


def rows_of_unified(diff: str, path: str) -> list[Row]:
    """The rows of a unified diff; lines outside of hunks are notes. Remarks about lines left out are counted."""
    reader = _UnifiedReader(path)
    for line in diff.split("\n"):
        reader.read(line)
    return reader.rows


class _UnifiedReader:
    def __init__(self, path: str) -> None:
        self.rows: list[Row] = []
        self._path = path
        self._old = self._new = 0
        self._old_left = self._new_left = 0

    def read(self, line: str) -> None:
        if found := _HUNK.match(line):
            if self.rows and self.rows[-1].sign not in ("note", "gap"):
                self.rows.append(Row("gap"))
            self._old, self._new = int(found[1]), int(found[3])
            self._old_left, self._new_left = int(found[2] or 1), int(found[4] or 1)
        elif self._old_left <= 0 and self._new_left <= 0:
            self._outside(line)
        else:
            self._inside(line)

    def _outside(self, line: str) -> None:
        if found := _NAME.match(line):
            self._path = found[1] or found[2]
        if line.strip() and not line.startswith(("--- ", "+++ ", "index ")):
            self.rows.append(Row("note", line, path=self._path))

    def _inside(self, line: str) -> None:
        sign, text = line[:1], line[1:]
        if sign == "-":
            self._add("-", text, self._old, old=1)
        elif sign == "+":
            self._add("+", text, self._new, new=1)
        elif sign in (" ", ""):
            self._add(" ", text, self._new, old=1, new=1)
        else:
            self.rows.append(Row("note", line, path=self._path))
            if found := _FOLDED.fullmatch(line):
                count = int(found[1].replace(",", ""))
                is_old = found[2].endswith("removed")
                self._count(count if is_old else 0, 0 if is_old else count)

    def _add(self, sign: Sign, text: str, number: int, *, old: int = 0, new: int = 0) -> None:
        self.rows.append(Row(sign, text, number, self._path))
        self._count(old, new)

    def _count(self, old: int, new: int) -> None:
        self._old, self._new = self._old + old, self._new + new
        self._old_left, self._new_left = self._old_left - old, self._new_left - new


def _lines(text: str) -> list[str]:
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n"  # differs from the same line with an end
    else:
        lines.pop()
    return lines


def _around(lines: list[str], equal: range, context: int, path: str, *, is_first: bool, is_last: bool) -> Iterator[Row]:
    """The rows of equal lines: the first and last few, and a gap for the others."""
    head = equal[:0] if is_first else equal[:context]
    tail = equal[:0] if is_last else equal[max(len(head), len(equal) - context) :]
    yield from (Row(" ", lines[place], place + 1, path) for place in head)
    if len(head) + len(tail) < len(equal) and not is_first and not is_last:
        yield Row("gap")
    yield from (Row(" ", lines[place], place + 1, path) for place in tail)


def _equal_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The lines that two texts have in common, in order. The work is nearly linear for texts of any size."""
    blocks: list[Block] = []
    i = j = 0
    for first, second in [*_anchors(old, new), (len(old), len(new))]:
        blocks += _between(old, new, (i, first), (j, second))
        if first < len(old):
            blocks.append((first, second, 1))
        i, j = first + 1, second + 1
    return _merged(blocks)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines that occur once in both texts, as many in the same order as there are."""
    counts_old, counts_new = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if counts_new[line] == 1}
    pairs = [(i, places[line]) for i, line in enumerate(old) if counts_old[line] == 1 and line in places]
    tails: list[int] = []
    last: list[int] = []
    links: list[int] = []
    for index, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        links.append(last[at - 1] if at else -1)
        tails[at : at + 1] = [j]
        last[at : at + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = links[index]
    return chain[::-1]


def _between(old: Sequence[str], new: Sequence[str], ours: tuple[int, int], theirs: tuple[int, int]) -> list[Block]:
    """Equal lines of two stretches without common unique ones."""
    (i, i_end), (j, j_end) = ours, theirs
    start = 0
    while i + start < i_end and j + start < j_end and old[i + start] == new[j + start]:
        start += 1
    blocks = [(i, j, start)] if start else []
    i, j = i + start, j + start
    end = 0
    while i_end - end > i and j_end - end > j and old[i_end - end - 1] == new[j_end - end - 1]:
        end += 1
    middle = old[i : i_end - end], new[j : j_end - end]
    counts = Counter(middle[1])
    if 0 < sum(counts[line] for line in middle[0]) <= _MOST_PAIRS:
        from difflib import SequenceMatcher

        found = SequenceMatcher(None, *middle, autojunk=False)
        blocks += [(i + block.a, j + block.b, block.size) for block in found.get_matching_blocks() if block.size]
    return [*blocks, *([(i_end - end, j_end - end, end)] if end else [])]


def _merged(blocks: list[Block]) -> list[Block]:
    merged: list[Block] = []
    for i, j, size in blocks:
        if merged and merged[-1][0] + merged[-1][2] == i and merged[-1][1] + merged[-1][2] == j:
            merged[-1] = (*merged[-1][:2], merged[-1][2] + size)
        else:
            merged.append((i, j, size))
    return merged
