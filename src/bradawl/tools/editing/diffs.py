"""Short unified diffs for a model to read."""

from collections.abc import Sequence

import msgspec

from bradawl.tools.reading.decoding import split_lines

_CONTEXT = 3
_CONTEXT_OF_KNOWN = 1
_LONGEST_RUN = 12
_RUN_HEAD, _RUN_TAIL = 6, 3
_MOST_CHARACTERS = 3_000
_MOST_LINES_COMPARED = 4_000
_LONGEST_LINE = 500
_AROUND_CHANGE = 100
Codes = list[list[tuple[str, int, int, int, int]]]
Block = tuple[int, int, int]


class Difference(msgspec.Struct, frozen=True):
    """The difference between two texts."""

    added: int
    """Lines."""
    removed: int
    text: str
    """The hunks of a unified diff, at most about 3,000 characters."""
    is_whole: bool
    """False if `text` leaves something out."""


def describe_change(before: str, after: str, *, is_known: bool = False) -> tuple[int, int, str]:
    """Lines added, lines removed and the hunks of a unified diff, as `change_between` finds them."""
    change = change_between(before, after, is_known=is_known)
    return change.added, change.removed, change.text


def change_between(before: str, after: str, *, is_known: bool = False) -> Difference:
    """The edit operations from `before` to `after`; work is bounded for texts of any size.

    `is_known`: the reader gave the lines, so that little context, and of many lines in a row the first and last few,
    are enough to see the place.
    """
    old, new = _lines(before), _lines(after)
    start = common_length(old, new)
    end = common_length(old[start:][::-1], new[start:][::-1])
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    if len(old_middle) + len(new_middle) > _MOST_LINES_COMPARED:
        return Difference(len(new_middle), len(old_middle), "(too many changed lines to show)", False)
    around = _CONTEXT_OF_KNOWN if is_known else _CONTEXT
    first = start - min(start, around)
    old_window = old[first : len(old) - end + min(end, around)]
    new_window = new[first : len(new) - end + min(end, around)]
    return _render(old_window, new_window, first, around, is_known=is_known)


def equal_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The lines that two texts have in common, in order: index in `old`, index in `new`, number of lines.

    Between the common beginning and the common end of texts with very many changed lines there is none.
    """
    start = common_length(old, new)
    end = common_length(old[start:][::-1], new[start:][::-1])
    middle = (old[start : len(old) - end], new[start : len(new) - end])
    blocks = [(0, 0, start), (len(old) - end, len(new) - end, end)]
    if all(middle) and sum(map(len, middle)) <= _MOST_LINES_COMPARED:
        from difflib import SequenceMatcher

        found = SequenceMatcher(None, *middle, autojunk=False).get_matching_blocks()
        blocks[1:1] = [(start + i, start + j, size) for i, j, size in found]
    return [block for block in blocks if block[2]]


def _lines(text: str) -> list[str]:
    lines = split_lines(text)
    if lines and not text.endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Number of equal items at the beginning: lines of lists, or bytes."""
    count, step = 0, min(len(first), len(second))
    while step:  # compares slices: much faster than a loop over items
        if first[count : count + step] == second[count : count + step]:
            count += step
            step = min(step, len(first) - count, len(second) - count)
        else:
            step //= 2
    return count


def _render(old: list[str], new: list[str], skipped: int, around: int, *, is_known: bool) -> Difference:
    groups = _groups(old, new, around)
    changes = [code for group in groups for code in group if code[0] != "equal"]
    removed = sum(code[2] - code[1] for code in changes)
    added = sum(code[4] - code[3] for code in changes)
    lines: list[str] = []
    for group in groups:
        lines.append(f"@@ -{_span(group, 1, skipped)} +{_span(group, 3, skipped)} @@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines.extend(" " + line for line in old[i1:i2])
                continue
            gone, come = _around_changes(old[i1:i2], new[j1:j2])
            lines += _run("-", gone, "more lines removed", is_folded=is_known)
            lines += _run("+", come, "lines as given", is_folded=is_known)
    text, is_whole = _cut([_shown(line) for line in lines])
    is_whole = is_whole and not (is_known and any(max(c[2] - c[1], c[4] - c[3]) > _LONGEST_RUN for c in changes))
    longest = max((len(line) for c in changes for line in (*old[c[1] : c[2]], *new[c[3] : c[4]])), default=0)
    return Difference(added, removed, text, is_whole and longest <= _LONGEST_LINE)


def _around_changes(gone: list[str], come: list[str]) -> tuple[list[str], list[str]]:
    """The lines; of a very long one in the place of another only the part that changed, with a little around it."""
    if len(gone) != len(come) or max(map(len, (*gone, *come)), default=0) <= _LONGEST_LINE:
        return gone, come
    pairs = [_around_change(*pair) for pair in zip(gone, come, strict=True)]
    return [before for before, _ in pairs], [after for _, after in pairs]


def _around_change(before: str, after: str) -> tuple[str, str]:
    if max(len(before), len(after)) <= _LONGEST_LINE:
        return before, after
    start = common_length(before, after)
    end = common_length(before[start:][::-1], after[start:][::-1])
    first, rest = max(start - _AROUND_CHANGE, 0), max(end - _AROUND_CHANGE, 0)

    def part(line: str) -> str:
        shown = line[first : len(line) - rest]
        if len(shown) > _LONGEST_LINE - 60:  # room for the remarks
            shown = f"{shown[: _LONGEST_LINE - 60]} [...]"
        return (f"[{first:,} characters] " if first else "") + shown + (f" [{rest:,} characters]" if rest else "")

    return part(before), part(after)


def _run(sign: str, lines: list[str], what: str, *, is_folded: bool) -> list[str]:
    """Added or removed lines in a row."""
    signed = [sign + line for line in lines]
    if not is_folded or len(lines) <= _LONGEST_RUN:
        return signed
    left_out = len(lines) - _RUN_HEAD - _RUN_TAIL
    return [*signed[:_RUN_HEAD], f"[... {left_out:,} {what}]", *signed[-_RUN_TAIL:]]


def _groups(old: list[str], new: list[str], around: int) -> Codes:
    from difflib import SequenceMatcher

    return [list(group) for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(around)]


def _span(group: list[tuple[str, int, int, int, int]], column: int, skipped: int) -> str:
    start, end = int(group[0][column]), int(group[-1][column + 1])
    return f"{start + skipped + (1 if end > start else 0)},{end - start}"


def _shown(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} [... {len(line) - _LONGEST_LINE} more]"


def _cut(lines: list[str]) -> tuple[str, bool]:
    """The lines that fit into the limit, and whether these are all."""
    room = _MOST_CHARACTERS
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*lines[:count], f"[... {len(lines) - count} more lines of the diff]"]), False
    return "\n".join(lines), True
