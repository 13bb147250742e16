"""Lines of many blocks, of which only the last are drawn until earlier ones are asked for."""

from collections.abc import Sequence

from bradawl.app.tui.live.printed import DrawnBlock
from bradawl.app.tui.render.spacing import BlockKind, has_blank_line, trimmed


class LazyLines:
    """`lines` are those drawn so far, up to the end. Blocks are drawn from the last to the first."""

    def __init__(self, blocks: Sequence[DrawnBlock], width: int) -> None:
        self.lines: list[str] = []
        self._left = list(blocks)
        self._width = width
        self._next: BlockKind | None = None
        """The kind of the first block that is drawn."""

    @property
    def is_whole(self) -> bool:
        """All blocks are drawn."""
        return not self._left

    def extend(self, count: int | None) -> int:
        """Draw earlier blocks of at least so many lines, or all; returns by how many lines the present ones moved."""
        parts: list[list[str]] = []
        added = 0
        while self._left and (count is None or added < count):
            kind, draw = self._left.pop()
            if not (lines := list(trimmed(draw(self._width)))):
                continue
            if self._next is not None and has_blank_line(kind, self._next):
                lines.append("")
            self._next = kind
            parts.append(lines)
            added += len(lines)
        self.lines = [line for part in reversed(parts) for line in part] + self.lines
        return added
