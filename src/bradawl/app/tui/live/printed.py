"""Blocks that are finished: their lines until the screen prints them, and what Ctrl+O shows of them."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from bradawl.app.tui.render.spacing import BlockKind, has_blank_line, spaced

_OPENABLE: Final = 400
"""Blocks whose full text Ctrl+O shows."""

Full = Callable[[int], list[str]]
"""The lines of a block in full, for a width."""

DrawnBlock = tuple[BlockKind, Full]


class Openable(NamedTuple):
    """A block as Ctrl+O shows it; `draw` is None where a session begins."""

    kind: BlockKind
    draw: Full | None
    seq: int
    """The latest entry of the log when it was printed."""


class PrintedBlocks:
    """Puts the blank lines between blocks; see `render.spacing`."""

    def __init__(self) -> None:
        self._full: deque[Openable] = deque(maxlen=_OPENABLE)
        self._first_seq: int | None = None
        """The first entry of the session's log that was shown in this run."""
        self._seq = -1
        self._lines: list[str] = []
        self._last: BlockKind | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing has been printed yet."""
        return self._last is None

    def begin_session(self) -> None:
        """What follows belongs to another session."""
        self._full.append(Openable("line", None, -1))
        self._first_seq, self._seq = None, -1

    def saw(self, seq: int) -> None:
        """An entry of the session's log was shown."""
        self._first_seq = seq if self._first_seq is None else self._first_seq
        self._seq = seq

    def keep(self, kind: BlockKind, full: Full) -> None:
        """Keep a block for Ctrl+O."""
        self._full.append(Openable(kind, full, self._seq))

    def kept(self) -> "tuple[list[DrawnBlock], list[DrawnBlock], int | None]":
        """Blocks of earlier sessions of this run, those of this session, and the entry from which on these show it."""
        begin = max((place for place, each in enumerate(self._full) if each.draw is None), default=-1)
        full = list(self._full)
        earlier, own = _drawn(full[: max(0, begin)]), _drawn(full[begin + 1 :])
        is_cut = begin < 0 and len(self._full) == self._full.maxlen
        return earlier, own, self._full[0].seq if is_cut else self._first_seq

    def add(self, kind: BlockKind, lines: Sequence[str]) -> None:
        """Print a block; one without lines is left out."""
        if added := [*spaced([(kind, lines)], self._last)]:
            self._lines += added
            self._last = kind

    def begin(self, kind: BlockKind) -> None:
        """Begin a block whose lines come one after the other; `go_on` prints them."""
        if self.precedes_blank_line(kind):
            self._lines.append("")
        self._last = kind

    def go_on(self, lines: Iterable[str]) -> None:
        """Print further lines of the block that has begun."""
        self._lines += lines

    def precedes_blank_line(self, kind: BlockKind) -> bool:
        """Whether a blank line would stand between what was printed last and such a block."""
        return has_blank_line(self._last, kind)

    def take(self) -> list[str]:
        """The lines since the last call."""
        taken, self._lines = self._lines, []
        return taken


def _drawn(blocks: Iterable[Openable]) -> list[DrawnBlock]:
    found: list[DrawnBlock] = []
    for each in blocks:
        if each.draw is not None:
            found.append((each.kind, each.draw))
    return found
