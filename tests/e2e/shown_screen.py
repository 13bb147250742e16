"""What the program shows on the emulated screen of a terminal."""

import re
from typing import Any

from emulator import Emulator

_STATUS = re.compile(r"^ (?:default|plan|accept-edits|auto|bypass)\b")


class ShownScreen:
    """Facts about the screen of an emulator."""

    emulator: Emulator

    @property
    def screen(self) -> Any:
        return self.emulator.screen

    @property
    def lines(self) -> list[str]:
        """The rows of the screen down to the last that is not empty."""
        rows = [self.screen.line(row) for row in range(self.screen.lines)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def whole(self) -> list[str]:
        """The scrollback and the screen."""
        return [*self.screen.scrollback, *self.lines]

    @property
    def whole_text(self) -> str:
        return "\n".join(self.whole)

    @property
    def words(self) -> str:
        """The scrollback and the screen as one line, for texts that may be wrapped anywhere between words."""
        return " ".join(self.whole_text.split())

    @property
    def typed(self) -> str:
        """The rows of the input line, without its frame and mark; empty lines at its end are lost."""
        rows = [row for row in self.box if row.startswith("│")]
        return "\n".join(row.removesuffix("│").rstrip()[4:] for row in rows).rstrip()

    @property
    def box(self) -> list[str]:
        """The rows of the input line with its frame; empty if it is not shown."""
        rows = self.lines
        end = max((number for number, row in enumerate(rows) if row.startswith("╰")), default=None)
        if end is None or self.is_asking:
            return []
        begin = max((number for number in range(end) if rows[number].startswith("╭")), default=None)
        return [] if begin is None else rows[begin : end + 1]

    @property
    def box_columns(self) -> int:
        """The width of the input line's frame; 0 while a part of it is missing."""
        box = self.box
        return len(box[0]) if box and box[0].endswith("╮") and box[-1].endswith("╯") else 0

    @property
    def is_asking(self) -> bool:
        """A question takes the keys: there is no cursor."""
        return 25 not in self.screen.private

    @property
    def is_idle(self) -> bool:
        """The status line is there, nothing runs, and the input line takes text."""
        rows = self.lines
        return bool(rows and _STATUS.match(rows[-1]) and self.box and "esc stops" not in self.text)
