"""Prints the output of a command of the user as it comes, and tells how much of it was not printed."""

from typing import Final

from bradawl.app.tui.terminal import Printer

_LINES: Final = 500
_LINE_CHARACTERS: Final = 2_000
"""Of one line."""
_CHARACTERS: Final = 100_000
"""Of all lines together."""


class PrintedOutput:
    """Prints the lines of an output, up to a number of lines and characters. What is kept of the rest is its size."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._line, self._cut = "", 0
        """The beginning of the line that is not complete, and the number of characters behind it."""
        self._lines = self._characters = self._more_lines = 0

    def show(self, text: str) -> None:
        """Print the lines that are complete."""
        printed: list[str] = []
        place = 0
        while (end := text.find("\n", place)) >= 0:
            if self._is_full:
                self._more_lines += text.count("\n", place)
                place = text.rfind("\n") + 1
                self._line, self._cut = "", 0
                break
            self._add(text, place, end)
            printed.append(self._taken())
            place = end + 1
        self._add(text, place, len(text))
        if printed:
            self._printer.dim("\n".join(printed))

    def end(self) -> None:
        """Print what is left, and how many lines were not printed."""
        if self._line or self._cut:
            if self._is_full:
                self._more_lines += 1
            else:
                self._printer.dim(self._taken())
        if self._more_lines:
            self._printer.dim(f"... {self._more_lines:,} more line{'s' if self._more_lines > 1 else ''}")

    @property
    def _is_full(self) -> bool:
        return self._lines >= _LINES or self._characters >= _CHARACTERS

    def _add(self, text: str, begin: int, end: int) -> None:
        kept = min(end, begin + _LINE_CHARACTERS - len(self._line))
        self._line += text[begin:kept]
        self._cut += end - kept

    def _taken(self) -> str:
        """The line, which is complete now."""
        line = self._line + (f" [{self._cut:,} more characters]" if self._cut else "")
        self._lines += 1
        self._characters += len(line)
        self._line, self._cut = "", 0
        return line
