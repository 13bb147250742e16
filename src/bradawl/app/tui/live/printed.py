"""Blocks that are finished: their lines until the screen prints them, and what Ctrl+O shows of them."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bradawl.app.tui.render.spacing import BlockKind, has_blank_line, spaced

_OPENABLE: Final = 400
"""Blocks whose full text Ctrl+O shows."""

Full = Callable[[int], list[str]]
"""The lines of a block in full, for a width."""


class PrintedBlocks:
    """Puts the blank lines between blocks; see `render.spacing`."""

    def __init__(self) -> None:
        self.full: deque[tuple[BlockKind, Full]] = deque(maxlen=_OPENABLE)
        self._lines: list[str] = []
        self._last: BlockKind | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing has been printed yet."""
        return self._last is None

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
