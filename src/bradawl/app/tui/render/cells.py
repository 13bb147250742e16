"""Measures, cuts and wraps text in terminal cells. Colour codes take no cells, and each line ends with a reset.

A cluster counts as wide as the widest terminal draws it: the sum of its characters, and two for an emoji with a
variation selector. Terminals that join emoji draw such a line shorter; none draws it longer.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from bradawl.app.tui.render.theme import RESET
from bradawl.safety.control_characters import clean

Span = tuple[str, str]
"""Text without escape sequences, and the SGR parameters it is drawn with; empty for none."""
_TAB: Final = 4
_NARROWEST: Final = 8
"""Cells of a text behind a head that are left at least; else the text is not indented."""
_SGR: Final = re.compile(r"\x1b\[([0-9;]*)m")
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (9, 10)}
_JOINER: Final = "\u200d"
_EMOJI_SELECTOR: Final = "\ufe0f"
_NEVER_FIRST: Final = frozenset(
    "、。\uff0c\uff0e\uff1a\uff1b\uff1f\uff01」』\uff09】》〉\u3015\uff5d”\u2019ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ"
)


def shown(text: str) -> str:
    """`text` as a terminal can show it: tabs as blanks to columns of four, control characters spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return clean(text.translate(_CONTROLS).expandtabs(_TAB))


def width(text: str) -> int:
    """The cells of a text on one line."""
    if "\x1b" in text:
        text = _SGR.sub("", text)
    return len(text) if text.isascii() else sum(cells for _, cells in clusters(text))


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """The parts of a text without escape sequences that can't be separated, each with its cells."""
    if text.isascii():
        yield from ((character, 1) for character in text)
        return
    from wcwidth import wcwidth

    cluster, cells = "", 0
    for character in text:
        own = max(0, wcwidth(character))
        if own and cluster and not cluster.endswith(_JOINER):
            yield cluster, cells
            cluster, cells = "", 0
        if character == _EMOJI_SELECTOR and cells == 1:
            own = 1
        cluster, cells = cluster + character, cells + own
    if cluster:
        yield cluster, cells


def spans_of(text: str) -> list[Span]:
    """The parts of a line with colour codes; all other escape sequences are spelled out."""
    if "\x1b" not in text:
        return [(shown(text), "")] if text else []
    spans: list[Span] = []
    code, place = "", 0
    for found in _SGR.finditer(text):
        if found.start() > place:
            spans.append((shown(text[place : found.start()]), code))
        code = _continued(code, found[1])
        place = found.end()
    if place < len(text):
        spans.append((shown(text[place:]), code))
    return spans


def _continued(code: str, parameters: str) -> str:
    """The SGR parameters that hold after a further sequence."""
    if parameters in ("", "0"):
        return ""
    if parameters.startswith("0;"):
        return parameters[2:]
    return f"{code};{parameters}" if code else parameters


def painted(spans: Iterable[Span]) -> str:
    """The line of some spans, with a reset at the end of each look."""
    parts: list[str] = []
    last = ""
    for text, code in spans:
        if not text:
            continue
        if code != last:
            parts.append((RESET if last else "") + (f"\x1b[{code}m" if code else ""))
            last = code
        parts.append(text)
    return "".join(parts) + (RESET if last else "")


def cut(text: str, cells: int, end: str = "…") -> str:
    """`text`, or its beginning and `end`, in at most `cells` cells."""
    cells = max(0, cells)
    if width(text) <= cells:
        return text if "\x1b" not in text else painted(spans_of(text))
    room = cells - width(end)
    if room < 0:
        return cut(end, cells, "")
    kept: list[Span] = []
    for part, code in spans_of(text):
        head = _head(part, room)
        kept.append((head, code))
        room -= width(head)
        if head != part:
            break
    code = kept[-1][1] if kept else ""
    return painted([*kept, (end, code)])


def _head(text: str, cells: int) -> str:
    """The longest beginning of a text without escape sequences that fits."""
    if text.isascii():
        return text[:cells]
    taken: list[str] = []
    for cluster, needed in clusters(text):
        cells -= needed
        if cells < 0:
            break
        taken.append(cluster)
    return "".join(taken)


def pad(text: str, cells: int) -> str:
    """`text` with blanks behind it up to `cells` cells; a wider text is not cut."""
    return text + " " * (cells - width(text))


def wrap(text: str, cells: int) -> list[str]:
    """The lines of a text, broken between words; a word that is wider than a line is split.

    A look that spans several lines ends with each line and begins again on the next.
    """
    return [painted(line) for line in wrap_spans(spans_of(text), cells)]


def wrap_spans(spans: Iterable[Span], cells: int) -> list[list[Span]]:
    """Spans in lines of at most `cells` cells; a newline ends a line, blanks at a break are dropped."""
    wrapper = _Wrapper(max(1, cells))
    for text, code in spans:
        for found in re.finditer(r"\n| +|[^ \n]+", text):
            part = found[0]
            if part == "\n":
                wrapper.end_line()
            elif part[0] == " ":
                wrapper.add_blanks(part, code)
            else:
                wrapper.add(part, code)
    return wrapper.finish()


class _Wrapper:
    """Collects words, which may have several looks, and puts them on lines."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._lines: list[list[Span]] = []
        self._line: list[Span] = []
        self._used = 0
        self._blanks: list[Span] = []
        self._word: list[Span] = []
        self._word_cells = 0
        self._may_break = False

    def add(self, text: str, code: str) -> None:
        """Add a part of a word. Before and after a wide character a line may break."""
        if text.isascii():
            if self._may_break:
                self._end_word()
            self._word.append((text, code))
            self._word_cells += len(text)
            self._may_break = False
            return
        for cluster, cells in clusters(text):
            is_wide = cells > 1
            if (is_wide or self._may_break) and cluster not in _NEVER_FIRST:
                self._end_word()
            self._word.append((cluster, code))
            self._word_cells += cells
            self._may_break = is_wide

    def add_blanks(self, text: str, code: str) -> None:
        """Add the blanks between two words."""
        self._end_word()
        self._blanks.append((text, code))

    def end_line(self) -> None:
        """Begin the next line."""
        self._end_word()
        self._break()

    def finish(self) -> list[list[Span]]:
        """All lines, at least one."""
        self._end_word()
        if self._line or not self._lines:
            self._break()
        return self._lines

    def _end_word(self) -> None:
        self._may_break = False
        if not self._word:
            return
        word, needed = self._word, self._word_cells
        self._word, self._word_cells = [], 0
        gap = sum(len(text) for text, _ in self._blanks)
        if self._used + gap + needed <= self._cells:
            self._line += self._blanks
            self._used += gap
        elif self._line:
            self._break()
        self._blanks = []
        if needed <= self._cells:
            self._line += word
            self._used += needed
        else:
            self._split(word)

    def _split(self, word: list[Span]) -> None:
        for text, code in word:
            for cluster, cells in clusters(text):
                if self._used + cells > self._cells and self._line:
                    self._break()
                fits = cells <= self._cells
                self._line.append((cluster if fits else "?", code))
                self._used += cells if fits else 1

    def _break(self) -> None:
        self._lines.append(self._line)
        self._line, self._used, self._blanks = [], 0, []


def chop_spans(spans: Iterable[Span], cells: int) -> list[list[Span]]:
    """Spans in lines of at most `cells` cells, broken anywhere and with all blanks, for code."""
    cells = max(1, cells)
    lines: list[list[Span]] = [[]]
    room = cells
    for text, code in spans:
        if text.isascii():
            pieces = [text[:room], *(text[at : at + cells] for at in range(room, len(text), cells))]
            measured = ((piece, len(piece)) for piece in pieces if piece)
        else:
            measured = ((cluster if size <= cells else "?", min(size, cells)) for cluster, size in clusters(text))
        for piece, size in measured:
            if size > room:
                lines.append([])
                room = cells
            lines[-1].append((piece, code))
            room -= size
    return lines


def wrap_behind(head: str, text: str, cells: int) -> list[str]:
    """The lines of a text behind `head`, later ones indented as wide as it is; newlines of the text are kept."""
    indent = width(head)
    if cells - indent < _NARROWEST:
        return [line for part in f"{head}{text}".split("\n") for line in wrap(part, cells)]
    lines = [line for part in text.split("\n") for line in wrap(part, cells - indent)]
    return [head + lines[0], *(" " * indent + line if line else "" for line in lines[1:])]
