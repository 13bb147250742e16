"""The blank lines between the blocks of a conversation: one or none, by the kinds of both blocks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

BlockKind = Literal["prompt", "text", "thinking", "call", "note", "line", "error", "remark", "end"]
"""`note`: a message of the user during a turn; `line`: the answer to a command; `remark`: a dim line about the block
before it; `end`: the last line of a turn."""
_WITHOUT_BLANK_LINE: Final[frozenset[tuple[BlockKind, BlockKind]]] = frozenset(
    (
        ("call", "call"),
        ("note", "note"),
        ("error", "error"),
        ("remark", "remark"),
        ("prompt", "remark"),
        ("call", "remark"),
        ("note", "remark"),
        ("line", "remark"),
        ("error", "remark"),
    )
)


def has_blank_line(before: BlockKind | None, after: BlockKind) -> bool:
    """Whether a blank line stands between a block and the next one; `before` is None at the beginning."""
    return before is not None and (before, after) not in _WITHOUT_BLANK_LINE


def trimmed(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a block, without blank ones at its beginning and end."""
    first, end = 0, len(lines)
    while first < end and not lines[first].strip():
        first += 1
    while end > first and not lines[end - 1].strip():
        end -= 1
    return lines[first:end]


def spaced(blocks: Iterable[tuple[BlockKind, Sequence[str]]], before: BlockKind | None = None) -> Iterator[str]:
    """The lines of some blocks, with the blank lines between them; a block without lines is left out."""
    for kind, lines in blocks:
        if not (kept := trimmed(lines)):
            continue
        if has_blank_line(before, kind):
            yield ""
        yield from kept
        before = kind
