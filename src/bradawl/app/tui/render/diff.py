"""Draws diffs: numbered rows in two tints, the changed words marked, and long ones shortened on both sides."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from bradawl.app.tui.render.cells import Span, chop_spans, cut, painted, width, wrap_spans
from bradawl.app.tui.render.code import CodeState, Highlighter, language_of
from bradawl.app.tui.render.diff_cap import Capped, Hidden, capped
from bradawl.app.tui.render.diff_rows import Row, rows_of_texts, rows_of_unified
from bradawl.app.tui.render.folding import more_text
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme
from bradawl.safety.control_characters import escape

_COLOURED_ROWS: Final = 400
"""Rows of a diff up to which the code has syntax colours; 256 colours have no tints on which these are readable."""
_COMPARED: Final = 400
"""Characters of a line up to which its words are compared, and pairs of lines of a diff."""
_LEAST_ALIKE: Final = 0.4
_TAB: Final = 4
_NARROWEST: Final = 8
_ROLES: Final[dict[str, tuple[Role, Role]]] = {"-": ("removed", "removed_word"), "+": ("added", "added_word")}
_NO_END: Final = " (no line end)"


def change_lines(
    old: str, new: str, theme: Theme, width: int, *, context: int = 2, path: str = "", limit: int | None = None
) -> list[str]:
    """The difference of two texts as rows; at most `limit` lines. `path` names the language of the code."""
    return _Drawer(theme, width, limit).lines(rows_of_texts(old, new, path, context))


def unified_lines(diff: str, theme: Theme, width: int, *, path: str = "", limit: int | None = None) -> list[str]:
    """A unified diff as rows; at most `limit` lines. Lines outside of hunks are dimmed.

    `path` is the file until the diff names one.
    """
    return _Drawer(theme, width, limit).lines(rows_of_unified(diff, path))


class _Drawer:
    def __init__(self, theme: Theme, cells: int, limit: int | None) -> None:
        self._theme = theme
        self._cells = max(1, cells)
        self._limit = limit
        self._numbers = 0
        """Cells of the column of numbers."""
        self._codes: dict[int, list[Span]] = {}
        self._words: dict[int, list[tuple[int, int]]] = {}

    def lines(self, rows: list[Row]) -> list[str]:
        digits = max((len(str(row.number)) for row in rows if row.number), default=0)
        self._numbers = digits + 3 if self._cells - digits - 3 >= _NARROWEST else 0
        kept = capped(rows, self._limit, self._height)
        shown = [part for part in kept.parts if isinstance(part, Row)]
        if self._theme.depth == "true" and len(shown) <= _COLOURED_ROWS:
            self._codes = _coloured(shown, self._theme)
        self._words = _changed_words(shown)
        return [line for part in kept.parts for line in self._part(part, kept)]

    def _height(self, row: Row) -> int:
        cells = self._cells - self._numbers
        if row.sign == "note":
            return len(wrap_spans([(_visible(row.text), "")], self._cells))
        return 1 if row.sign == "gap" else max(1, -(-width(_visible(row.text)) // max(1, cells - 1)))

    def _part(self, part: Row | Hidden, kept: Capped) -> list[str]:
        dim = self._theme.code("dim")
        if isinstance(part, Hidden):
            has_hint = part is kept.last_hidden
            text = more_text(part.count, self._theme, self._cells - self._indent, has_hint=has_hint)
            return [painted([(" " * self._indent + text, dim)])]
        if part.sign == "gap":
            return [painted([(cut(" " * self._indent + self._theme.symbols.ellipsis, self._cells, ""), dim)])]
        if part.sign == "note":
            return [painted(line) for line in wrap_spans([(_visible(part.text), dim)], self._cells)]
        return self._row(part, kept.tallest)

    @property
    def _indent(self) -> int:
        return max(0, self._numbers - 2) if self._numbers else 0

    def _row(self, row: Row, tallest: int | None) -> list[str]:
        tint, word = (self._theme.code(role) for role in _ROLES.get(row.sign, ("plain", "plain")))
        spans = self._codes.get(id(row)) or [(_visible(row.text), "")]
        spans = list(_marked(spans, self._words.get(id(row), []), tint, word))
        cells = self._cells - self._numbers
        lines = chop_spans(spans, cells)
        if tallest is not None and len(lines) > tallest:
            lines = lines[:tallest]
            lines[-1] = [*lines[-1][:-1], (self._theme.symbols.ellipsis[:1], self._theme.code("dim"))]
        drawn = [
            painted([*self._head(row, tint, is_first=place == 0), *self._filled(line, cells, tint)])
            for place, line in enumerate(lines)
        ]
        return drawn if tint else [line.rstrip() for line in drawn]

    def _head(self, row: Row, tint: str, *, is_first: bool) -> list[Span]:
        if not self._numbers:
            return []
        sign = {"-": self._theme.symbols.minus, "+": "+"}.get(row.sign, " ")
        number = str(row.number or "").rjust(self._numbers - 3) if is_first else " " * (self._numbers - 3)
        sign_code = ";".join(filter(None, (tint, self._theme.code("error" if row.sign == "-" else "ok"))))
        return [
            (f"{number} ", self._theme.code("dim")),
            (f"{sign if is_first else ' '} ", sign_code if row.sign in "-+" else ""),
        ]

    def _filled(self, line: list[Span], cells: int, tint: str) -> list[Span]:
        """The line, with the tint up to the edge."""
        if not self._theme.has_tints or not tint:
            return line
        return [*line, (" " * (cells - sum(width(text) for text, _ in line)), tint)]


def _visible(text: str) -> str:
    """The text of a line, with blanks for tabs and everything invisible spelled out: the user may decide about it."""
    return escape(text.removesuffix("\n").expandtabs(_TAB)) + (_NO_END if text.endswith("\n") else "")


def _coloured(rows: Sequence[Row], theme: Theme) -> dict[int, list[Span]]:
    """The spans of each row, by its identity. Old and new lines have a state of the lexer each."""
    found: dict[int, list[Span]] = {}
    highlighters: dict[str, Highlighter] = {}
    states = {"-": CodeState(), "+": CodeState()}
    for row in rows:
        if row.sign in ("gap", "note"):
            states = {"-": CodeState(), "+": CodeState()}
            continue
        if row.path not in highlighters:
            highlighters[row.path] = Highlighter(language_of(row.path) if row.path else "", theme)
        for side in ("-", "+") if row.sign == " " else (row.sign,):
            found[id(row)], states[side] = highlighters[row.path].line(_visible(row.text), states[side])
    return found


def _changed_words(rows: Sequence[Row]) -> dict[int, list[tuple[int, int]]]:
    """Where the characters are that a line does not share with its counterpart, by the row's identity."""
    words: dict[int, list[tuple[int, int]]] = {}
    pairs = 0
    for removed, added in _pairs(rows):
        pairs += 1
        texts = _visible(removed.text), _visible(added.text)
        if pairs > _COMPARED or max(map(len, texts)) > _COMPARED:
            continue
        words[id(removed)], words[id(added)] = _differences(*texts)
    return words


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Removed lines with the lines that take their place."""
    place = 0
    while place < len(rows):
        begin = place
        while place < len(rows) and rows[place].sign == "-":
            place += 1
        middle = place
        while middle > begin and place < len(rows) and rows[place].sign == "+":
            place += 1
        yield from zip(rows[begin:middle], rows[middle:place], strict=False)
        place += place == begin


def _differences(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    from difflib import SequenceMatcher

    parts = [re.findall(r"\w+|\s+|[^\w\s]", text) for text in (old, new)]
    matcher = SequenceMatcher(None, *parts, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return [], []
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            for spans, words, first, last in ((gone, parts[0], i1, i2), (come, parts[1], j1, j2)):
                begin = len("".join(words[:first]))
                spans.append((begin, begin + len("".join(words[first:last]))))
    return gone, come


def _marked(spans: list[Span], words: list[tuple[int, int]], tint: str, word: str) -> Iterator[Span]:
    """Spans over a tint, with a stronger one for the parts between the given places."""
    if not tint:
        yield from spans
        return
    edges = [edge for pair in words for edge in pair]
    place = 0
    for text, code in spans:
        end = place + len(text)
        stops = [place, *(edge for edge in edges if place < edge < end), end]
        for begin, stop in pairwise(stops):
            is_changed = any(first <= begin < last for first, last in words)
            look = ";".join(filter(None, (code, word if is_changed else tint)))
            yield text[begin - place : stop - place], look
        place = end
