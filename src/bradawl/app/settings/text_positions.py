"""Finds the line and column of each key and value in the text of a TOML or JSON file.

Parsers of TOML return values without places. This scanner reads text that a parser has accepted already, so it only
needs to find where keys and values begin and end. One scanner serves both formats: an inline table and an object
differ in the sign between key and value alone.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

Keys = tuple[str | int, ...]
"""Names of tables, a key, and places in lists, from the outermost: `("permissions", "allow", 0)`."""


class Position(NamedTuple):
    """A part of a line."""

    line: int
    """1 for the first line."""
    column: int
    """1 for the first character of the line."""
    length: int = 1
    """Characters; the part may not reach beyond the line."""


class Span(NamedTuple):
    """A part of a text by its characters."""

    start: int
    end: int


class Positions(NamedTuple):
    """Where keys and values are. An item of a list has a value only."""

    keys: Mapping[Keys, Position]
    values: Mapping[Keys, Position]
    spans: Mapping[Keys, Span]
    """Of values."""
    headers: Mapping[Keys, Span]
    """Of the lines `[table]`."""

    def line_of(self, *keys: str | int) -> int:
        """The line of a key; 0 if it is unknown."""
        found = self.keys.get(keys)
        return found.line if found else 0

    def nearest(self, keys: Keys, *, is_value: bool = False) -> Position | None:
        """The position of a value or key, or else of the nearest table around it."""
        if is_value and (found := self.values.get(keys)):
            return found
        while keys:
            if found := self.keys.get(keys) or self.values.get(keys):
                return found
            keys = keys[:-1]
        return None


_BLANKS: Final = re.compile(r"[ \t]*")
_GAP: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING: Final = re.compile(r"""\"{3}(?:[^\\]|\\.)*?\"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""", re.DOTALL)
_BARE_KEY: Final = re.compile(r"[^\s.=:\[\]{},\"'#]+")
_BARE_VALUE: Final = re.compile(r"[^,\]}\n#]*")


def positions_in(text: str, *, is_toml: bool = True) -> Positions:
    """The positions in a text that its parser accepts; of other text, those found before the first mistake."""
    scanner = _Scanner(text)
    try:
        if is_toml:
            scanner.scan_document()
        else:
            scanner.scan_json()
    except (_Unexpected, RecursionError):
        pass  # what was found is enough for a message
    return Positions(scanner.keys, scanner.values, scanner.spans, scanner.headers)


def unfinished_at(text: str) -> Position | None:
    """The beginning of the first text, list or table in a TOML text that has no end; None if there is none."""
    scanner = _Scanner(text)
    try:
        scanner.scan_document()
    except (_Unexpected, RecursionError):
        return scanner.unfinished
    return None


def _line_starts(text: str) -> list[int]:
    """The index of the first character of each line, and one that is beyond the text."""
    return [0, *(found.end() for found in re.finditer("\n", text)), len(text) + 1]


def _position(starts: Sequence[int], index: int, length: int) -> Position:
    line = bisect_right(starts, index)
    rest = starts[line] - 1 - index
    return Position(line, index - starts[line - 1] + 1, max(1, min(length, rest)))


class _Unexpected(Exception):
    """The text is not what a parser would accept."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.keys: dict[Keys, Position] = {}
        self.values: dict[Keys, Position] = {}
        self.spans: dict[Keys, Span] = {}
        self.headers: dict[Keys, Span] = {}
        self._text = text
        self._at = 0
        self._lists: dict[Keys, int] = {}
        """Number of the last element of each `[[list of tables]]`."""
        self._starts = _line_starts(text)
        self.unfinished: Position | None = None

    def scan_document(self) -> None:
        table: Keys = ()
        while self._skip(_GAP) < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)

    def scan_json(self) -> None:
        self._skip(_GAP)
        self._value(())

    # -------------------------------------------------------------- parts

    def _header(self) -> Keys:
        beginning = self._at
        is_list = self._text.startswith("[[", self._at)
        self._at += 2 if is_list else 1
        parts = self._dotted_key()
        self._expect("]]" if is_list else "]")
        table: Keys = ()
        for number, (name, start, end) in enumerate(parts, 1):
            table = (*table, name)
            self._note(self.keys, table, start, end)
            if is_list and number == len(parts):
                self._lists[table] = self._lists.get(table, -1) + 1
            if table in self._lists:
                table = (*table, self._lists[table])
                self._note(self.keys, table, start, end)
        self.headers.setdefault(table, Span(beginning, self._at))
        return table

    def _pair(self, table: Keys) -> None:
        for name, start, end in self._dotted_key():
            table = (*table, name)
            self._note(self.keys, table, start, end)
        if self._text[self._at : self._at + 1] not in ("=", ":"):
            raise _Unexpected
        self._at += 1
        self._skip(_GAP)
        self._value(table)

    def _dotted_key(self) -> list[tuple[str, int, int]]:
        parts: list[tuple[str, int, int]] = []
        while True:
            start = self._skip(_BLANKS)
            found = _STRING.match(self._text, start) or _BARE_KEY.match(self._text, start)
            if not found:
                raise _Unexpected
            self._at = found.end()
            parts.append((_name(found[0]), start, self._at))
            self._skip(_BLANKS)
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _value(self, keys: Keys) -> None:
        start = self._at
        opening = self._text[start : start + 1]
        if found := _STRING.match(self._text, start):
            self._at = found.end()
        elif opening == "{":
            self._members(keys, "}")
        elif opening == "[":
            self._members(keys, "]")
        elif opening in ("'", '"'):
            self._fail_at(start)
        elif found := _BARE_VALUE.match(self._text, start):
            self._at = start + len(found[0].rstrip())
        if self._at == start:
            raise _Unexpected
        self._note(self.values, keys, start, self._at)
        self.spans.setdefault(keys, Span(start, self._at))

    def _members(self, keys: Keys, closing: str) -> None:
        start = self._at
        self._at += 1
        count = 0
        while True:
            if self._skip(_GAP) == len(self._text):
                self._fail_at(start)
            if self._text.startswith(closing, self._at):
                self._at += 1
                return
            if closing == "}":
                self._pair(keys)
            else:
                self._value((*keys, count))
            count += 1
            if self._skip(_GAP) == len(self._text):
                self._fail_at(start)
            if self._text.startswith(",", self._at):
                self._at += 1
            elif not self._text.startswith(closing, self._at):
                raise _Unexpected

    # -------------------------------------------------------------- steps

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise _Unexpected
        self._at += len(text)

    def _fail_at(self, start: int) -> NoReturn:
        self.unfinished = _position(self._starts, start, 1)
        raise _Unexpected

    def _note(self, places: dict[Keys, Position], keys: Keys, start: int, end: int) -> None:
        places.setdefault(keys, _position(self._starts, start, end - start))


def _name(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    if key[0] != '"':
        return key
    import json

    try:
        return json.loads(key)  # the escapes of TOML and JSON are nearly the same
    except ValueError:
        return key[1:-1]
