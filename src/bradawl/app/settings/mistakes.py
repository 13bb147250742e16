"""Mistakes in settings files: the error that tells all of them, each with its line and a mark below the place."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.settings.text_positions import Position
from bradawl.core.errors import SettingsError
from bradawl.safety.control_characters import escape

DEFAULT_WIDTH: Final = 100
_MOST_TOLD: Final = 20
_LEAST_EXCERPT: Final = 20
_SECRET_NAME: Final = re.compile(r"(?i)key|token|secret|passw|auth|credential|cookie|header|proxy")
_SECRET_TEXT: Final = re.compile(r"(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9_+-]{20,}|(?<=://)[^/\s@]+(?=@)")


class Mistake(NamedTuple):
    """One mistake in a settings file."""

    file: str
    """The file's name for messages."""
    message: str
    """What is wrong and what to do, without the place."""
    position: Position | None = None
    line: str = ""
    """The text of the line."""

    @property
    def text(self) -> str:
        """`FILE:LINE: MESSAGE`."""
        line = f":{self.position.line}" if self.position else ""
        return f"{self.file}{line}: {self.message}"

    def lines(self, width: int = DEFAULT_WIDTH) -> list[str]:
        """The message, and the line of the file with carets below the mistake. The message is not wrapped."""
        shown = [escape(self.text).replace("\n", " ")]
        if self.position is None or not self.line.strip():
            return shown
        head = f"  {self.position.line} | "
        excerpt, start, length = _excerpt(self.line, self.position, max(_LEAST_EXCERPT, width - len(head)))
        if not excerpt:
            return shown
        marks = " " * start + "^" * length
        return [*shown, head + excerpt, *([f"{'| '.rjust(len(head))}{marks}"] if length else [])]


class FileMistakes(SettingsError):
    """All mistakes that were found in settings files. `str` has a line for each."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(mistake.text for mistake in self._told()) + self._rest("\n"))

    def report(self, width: int = DEFAULT_WIDTH) -> str:
        """The mistakes with the lines they are in, in order."""
        lines = [line for mistake in self._told() for line in mistake.lines(width)]
        return "\n".join(lines) + self._rest("\n")

    def _told(self) -> Sequence[Mistake]:
        return self.mistakes[:_MOST_TOLD]

    def _rest(self, before: str) -> str:
        rest = len(self.mistakes) - _MOST_TOLD
        return f"{before}There are {rest} more mistakes." if rest > 0 else ""


def shown_path(path: Path | str, home: str) -> str:
    """The path for messages, with `~` for the home folder."""
    text = str(path)
    return f"~{text[len(home) :]}" if home not in ("", "/") and text.startswith(f"{home}/") else text


# ------------------------------------------------------------------ the line


def _excerpt(line: str, position: Position, width: int) -> tuple[str, int, int]:
    """At most `width` cells of a line without secrets, and where the marks begin and how long they are."""
    from bradawl.app.text_layout import cells, cut

    before, marked, after = (_shown(part) for part in _without_secrets(line, position))
    before = before.lstrip()
    while cells(before) > width // 2:
        before = f"…{before[len(before) // 2 :]}"
    excerpt = cut(f"{before}{marked}{after}".rstrip(), width)
    start = cells(before)
    return excerpt, start, min(cells(marked), max(0, cells(excerpt) - start))


def _without_secrets(line: str, position: Position) -> tuple[str, str, str]:
    """The line before, at and after a position; a value that may be a secret is left out."""
    start = position.column - 1
    end = start + position.length
    if not _SECRET_NAME.search(line):
        return line[:start], line[start:end], line[end:]
    sign = re.search(r"[=:]", line)
    value = sign.end() if sign else 0
    if start >= value:
        return f"{line[:value]} ***", "", ""
    return line[:start], line[start:end], f"{line[end:value]} ***"


def _shown(text: str) -> str:
    return escape(_SECRET_TEXT.sub("***", text).expandtabs(2))


def located(file: str, text: str, position: Position | None, message: str) -> Mistake:
    """A mistake at a position of a file's text."""
    lines = text.split("\n") if position else ()
    line = lines[position.line - 1] if position and position.line <= len(lines) else ""
    return Mistake(file, message, position, line.rstrip("\r"))
