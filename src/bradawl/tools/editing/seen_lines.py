"""Which lines of a file the model has seen, from the names of the parts that `FilesSeen` records."""

import re
from collections.abc import Iterable, Sequence

from bradawl.core.errors import ToolError
from bradawl.tools.editing.diffs import Block, equal_blocks
from bradawl.tools.reading.decoding import encoding_of, split_lines

_RANGES = re.compile(r"lines (\d+-\d+(?:, \d+-\d+)*)(?: of the (?:output|file))?")
_NOT_WHOLE = ("lines ", "the definitions ")
NO_LINES = "lines none"
"""The name of a part without a whole line."""


def lines_of(data: bytes, path: str) -> list[str]:
    """The lines of a file's text; none if it is not text."""
    try:
        return split_lines(encoding_of(data, path).decode(data))
    except ToolError:
        return []


def is_whole(parts: Iterable[str]) -> bool:
    """Whether one of the parts is all of the file. Images and documents count as whole."""
    return any(not part.startswith(_NOT_WHOLE) for part in parts)


def seen_of(parts: Iterable[str]) -> set[int]:
    """Numbers of the lines that the parts hold, from 1."""
    spans = (span.split("-") for part in parts if (match := _RANGES.fullmatch(part)) for span in match[1].split(", "))
    return {number for first, last in spans for number in range(int(first), int(last) + 1)}


def part_of_output(first: int, last: int) -> str:
    """The name of lines that a command printed; not that of a result of read_file."""
    return f"lines {first}-{last} of the output" if first <= last else NO_LINES


def part_after(parts: frozenset[str], before: Sequence[str], after: Sequence[str], *, is_shown: bool) -> str:
    """The name of what the model has seen of the lines `after` a change of the lines `before`, of which it has seen
    `parts`. `is_shown`: it has seen the changed lines.
    """
    if is_whole(parts) and is_shown:
        return ""
    blocks = equal_blocks(before, after)
    known = set(range(1, len(before) + 1)) if is_whole(parts) else seen_of(parts)
    seen = {j + place for i, j, size in blocks for place in range(1, size + 1) if i + place in known}
    if is_shown:
        seen |= _outside(blocks, len(after))
    return "" if len(seen) == len(after) else _named(sorted(seen))


def _outside(blocks: Sequence[Block], count: int) -> set[int]:
    return set(range(1, count + 1)).difference(*(range(j + 1, j + size + 1) for _, j, size in blocks))


def _named(numbers: Sequence[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return f"lines {', '.join(f'{first}-{last}' for first, last in spans)} of the file" if spans else NO_LINES
