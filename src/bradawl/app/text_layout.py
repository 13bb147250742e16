"""Layout of text for a terminal: wrapping by words, cutting, and tables, measured in terminal cells.

All functions are pure. They expect text that has been through `clean` or `escape`: control characters count as no cell.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

NARROWEST: Final = 2
"""A character can be two cells wide, so a smaller width counts as this one."""
_LEAST_TEXT: Final = 8
"""Cells that an indentation leaves for text; a wider one is shortened."""
_GAP: Final = 2
_ONE_CELL: Final = str.maketrans("", "", "…·✓✗⊘■›")
"""Removes bradawl's own symbols, which are one cell wide each: a text that is else ASCII needs no tables."""


class Column(NamedTuple):
    """One column of a `table`."""

    title: str = ""
    """Its heading, and the label of its values where the table is stacked."""
    align: Literal["left", "right"] = "left"
    is_wrapped: bool = False
    """Its text is wrapped where the table is too wide."""


def cells(text: str) -> int:
    """The number of terminal cells that a text on one line takes."""
    if _has_one_cell_each(text):
        return len(text)
    return sum(width for _, width in _clusters(text))


def cut(text: str, width: int, end: str = "…") -> str:
    """`text`, or its beginning and `end`, in at most `width` cells; no character is cut in two."""
    width = max(NARROWEST, width)
    if cells(text) <= width:
        return text
    end = end if cells(end) <= width else ""
    return _beginning(text, width - cells(end)).rstrip(" ") + end


def pad(text: str, width: int, align: Literal["left", "right"] = "left") -> str:
    """`text` filled up with blanks to `width` cells; a wider text is returned as it is."""
    blanks = " " * (width - cells(text))
    return blanks + text if align == "right" else text + blanks


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of at most `width` cells. A word is split only if it is wider than a whole line.

    Blanks between words become one; a newline begins a new line; empty lines are kept, and an empty text is one.
    `first` precedes the first line, `rest` the others (default: as many blanks as `first` has cells).
    """
    width = max(NARROWEST, width)
    first = _short_prefix(first, width)
    rest = _short_prefix(" " * cells(first) if rest is None else rest, width)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        for line in _wrapped(_words(paragraph), width, first if not lines else rest, rest):
            lines.append(line.rstrip(" "))
    return lines


def fitted(text: str, width: int) -> str:
    """The text with the lines that are wider than `width` wrapped by words; each keeps its indentation."""
    return "\n".join(line for each in text.split("\n") for line in _fitted_lines(each, width))


def _fitted_lines(line: str, width: int) -> list[str]:
    if cells(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip(" "))]
    return wrap(line, width, indent, indent)


def table(rows: Sequence[Sequence[str]], columns: Sequence[Column], width: int) -> list[str]:
    """Rows in columns, with a line of titles if a column has one; one below the other where they do not fit.

    A stacked row is its first value, and each other value that is not empty on a line of its own, after its title.
    """
    width = max(NARROWEST, width)
    widths = _column_widths(rows, columns, width)
    if widths is None:
        return [line for row in rows for line in _stacked(row, columns, width)]
    titles = tuple(column.title for column in columns)
    shown = [titles, *rows] if any(titles) else rows
    return [line for row in shown for line in _row_lines(row, columns, widths)]


# ------------------------------------------------------------------ cells


def _has_one_cell_each(text: str) -> bool:
    return (text if text.isascii() else text.translate(_ONE_CELL)).isascii() and text.isprintable()


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """The characters as a user sees them (grapheme clusters), each with its cells."""
    from wcwidth import iter_graphemes, wcswidth  # loads 30 ms of tables, which ASCII does not need

    for cluster in iter_graphemes(text):
        yield cluster, max(0, wcswidth(cluster))


def _beginning(text: str, width: int) -> str:
    """The longest beginning of at most `width` cells."""
    if _has_one_cell_each(text):
        return text[:width]
    kept: list[str] = []
    for cluster, size in _clusters(text):
        if size > width:
            break
        kept.append(cluster)
        width -= size
    return "".join(kept)


# ------------------------------------------------------------------ words


def _words(paragraph: str) -> list[str]:
    """Words between blanks and tabs. A no-break space, which `str.split` would take for a blank, is part of a word."""
    return [word for word in paragraph.expandtabs(1).split(" ") if word]


def _short_prefix(prefix: str, width: int) -> str:
    return _beginning(prefix, max(0, width - _LEAST_TEXT))


def _wrapped(words: Sequence[str], width: int, first: str, rest: str) -> Iterator[str]:
    line, used, is_empty = first, cells(first), True
    for word in words:
        blank = "" if is_empty else " "
        size = cells(word)
        if used + len(blank) + size <= width:
            line, used, is_empty = f"{line}{blank}{word}", used + len(blank) + size, False
            continue
        if not is_empty:
            yield line
            line, used = rest, cells(rest)
        *whole, line = _split_word(word, width, line, rest)
        yield from whole
        used, is_empty = cells(line), False
    yield line


def _split_word(word: str, width: int, line: str, rest: str) -> list[str]:
    """Lines with the whole word, split only if it is wider than a line; the first one begins with `line`."""
    lines: list[str] = []
    used, begin = cells(line), cells(rest)
    pieces = [line]
    for cluster, size in _clusters_within(word, width - max(used, begin)):
        if used + size > width:
            lines.append("".join(pieces))
            pieces, used = [rest], begin
        pieces.append(cluster)
        used += size
    return [*lines, "".join(pieces)]


def _clusters_within(word: str, width: int) -> Iterator[tuple[str, int]]:
    """The clusters of a word; one that is wider than a line by itself is given up, character by character."""
    for cluster, size in _clusters(word):
        if size <= width:
            yield cluster, size
        else:
            yield from ((character, cells(character)) for character in cluster)


# ------------------------------------------------------------------ tables


def _column_widths(rows: Sequence[Sequence[str]], columns: Sequence[Column], width: int) -> list[int] | None:
    """The width of each column; None if the table does not fit even with its wrapped columns at their narrowest."""
    texts = [[column.title, *(row[place] for row in rows)] for place, column in enumerate(columns)]
    widths = [max(map(cells, each)) for each in texts]
    least = [
        max((cells(word) for text in each for word in _words(text)), default=0) if column.is_wrapped else natural
        for each, column, natural in zip(texts, columns, widths, strict=True)
    ]
    gaps = _GAP * (len(columns) - 1)
    if sum(least) + gaps > width:
        return None
    # The widest column that still can gives up one cell after the other.
    while (excess := sum(widths) + gaps - width) > 0:
        place = max(range(len(columns)), key=lambda at: widths[at] - least[at])
        widths[place] -= min(excess, max(1, (widths[place] - least[place]) // 2))
    return widths


def _row_lines(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> Iterator[str]:
    columned = [_cell_lines(text, width) for text, width in zip(row, widths, strict=True)]
    for at in range(max(map(len, columned))):
        pieces = (
            pad(lines[at] if at < len(lines) else "", width, column.align)
            for lines, column, width in zip(columned, columns, widths, strict=True)
        )
        yield (" " * _GAP).join(pieces).rstrip(" ")


def _cell_lines(text: str, width: int) -> list[str]:
    """The text as it is if it fits on one line."""
    return [text] if "\n" not in text and cells(text) <= width else wrap(text, width)


def _stacked(row: Sequence[str], columns: Sequence[Column], width: int) -> Iterator[str]:
    yield from wrap(row[0], width)
    for text, column in zip(row[1:], columns[1:], strict=True):
        if text:
            label = f"{column.title.lower()}: " if column.title else ""
            yield from wrap(label + text, width, "  ", "    ")
