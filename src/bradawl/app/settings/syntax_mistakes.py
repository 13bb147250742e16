"""What is wrong with a settings file that its parser refuses, and where."""

import re
from typing import Final

from bradawl.app.settings.mistakes import FileMistakes, located
from bradawl.app.settings.text_positions import Position, unfinished_at

_PLACE: Final = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)|: line (\d+) column (\d+) .*")
_AT_THE_END: Final = "(at end of document)"
_BARE_WORD: Final = re.compile(r"[^=]*=\s*([^\s\"'\[{#][^#]*?)\s*(?:#.*)?")
_LONGEST_WORD: Final = 40
_NO_QUOTE: Final = "; a quotation mark is missing at the end of this text"
_TWICE: Final = "; this key or table is there twice, or is both a key and a table"
_ADVICE: Final = {
    "Expected '=' after a key": "; a line is KEY = VALUE or a [table]",
    "Invalid statement": "; a line is KEY = VALUE or a [table]",
    "Expected newline": "; a line has one KEY = VALUE",
    "overwrite a value": _TWICE,
    "Cannot declare": _TWICE,
    "character '\\n'": _NO_QUOTE,
    "Unterminated string": _NO_QUOTE,
    "Expected \"'": _NO_QUOTE,
    "Unescaped": "; write two backslashes, or put the text between single quotation marks",
}
"""What to do, by a part of the parser's message."""
_CLOSING: Final = {"[": "; its ] is missing", "{": "; its } is missing"}


def syntax_mistake(name: str, text: str, error: Exception, *, is_toml: bool) -> FileMistakes:
    """The error of a parser as a mistake in the file of this name."""
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RecursionError):
        message = "it is nested too deep"
    unfinished = unfinished_at(text) if is_toml and _AT_THE_END in message else None
    position = unfinished or _position(message, text)
    line = text.split("\n")[position.line - 1] if position else ""
    what = "TOML" if is_toml else "JSON"
    reason = _PLACE.sub("", message)[:300]
    opening = line[unfinished.column - 1] if unfinished else ""
    advice = _CLOSING.get(opening) or _advice(reason, line)
    told = f"this is not valid {what}: {reason[:1].lower()}{reason[1:].rstrip('.')}{advice}"
    return FileMistakes([located(name, text, position, told)])


def _position(message: str, text: str) -> Position | None:
    found = _PLACE.search(message)
    if not found:
        return None
    numbers = [int(each) for each in found.groups() if each]
    if not numbers:  # the end: the last line with text
        lines = text.rstrip().split("\n")
        return Position(len(lines), max(1, len(lines[-1])))
    line, column = numbers
    lines = text.split("\n")
    length = len(lines[line - 1]) if line <= len(lines) else 0
    return Position(min(line, len(lines)), max(1, min(column, length)))


def _advice(reason: str, line: str) -> str:
    """What to do, where the kind of mistake is known."""
    if reason.startswith("Invalid value"):
        word = _BARE_WORD.fullmatch(line.strip())
        if line.rstrip().endswith("="):
            return "; the value is missing"
        if word and word[1] in ("True", "False"):
            return f"; write {word[1].lower()}"
        return f'; a text needs quotes: "{word[1]}"' if word and len(word[1]) <= _LONGEST_WORD else ""
    return next((advice for part, advice in _ADVICE.items() if part in reason), "")
