"""Formats a part of a file, with the call that shows the next part."""

import re

import msgspec

from bradawl.core.messages import Image, Text
from bradawl.tools.outlines.thresholds import WHOLE_BYTES

DEFAULT_LIMIT = 2_000
MOST_CHARACTERS = 50_000
"""Most characters of one result."""
PART_CHARACTERS = 16_000
"""Most characters of a large file, as of a command's output, unless the call says how many lines it wants."""
LONGEST_LINE = 2_000
_SHORT = 200
_MOST_LINES_REPEATED = 50


class Span(msgspec.Struct, frozen=True):
    """The part of a file that is requested."""

    path: str
    """The path as the model gave it."""
    first: int
    """First line, page or cell, from 1."""
    limit: int
    """Most lines, pages or cells."""
    most: int
    """Most characters."""

    def of_size(self, size: int) -> "Span":
        """The span for a file with so many bytes: of a large one a part of 16 KB, unless the call says how much."""
        if size <= WHOLE_BYTES or self.limit != DEFAULT_LIMIT:
            return self
        return msgspec.structs.replace(self, most=min(self.most, PART_CHARACTERS))

    def rest(self, last: int) -> str:
        """The call that shows what follows the line, page or cell `last`."""
        import json

        size = "" if self.limit == DEFAULT_LIMIT else f", limit={self.limit}"
        return f"read_file(file_path={json.dumps(self.path, ensure_ascii=False)}, offset={last + 1}{size})"


class Page(msgspec.Struct, frozen=True):
    """A part of a file as the model gets it."""

    parts: tuple[Text | Image, ...]
    what: str
    """The name of the part, such as `lines 1-40`, which identifies it for a given content. Empty for a page without
    content.
    """

    @property
    def is_short(self) -> bool:
        """Whether it has a few lines, hardly longer than the remark that they were shown before."""
        return len(self.text) <= _SHORT and self.what.startswith("lines ")

    @property
    def text(self) -> str:
        """The text of all parts that are text."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


def text_page(text: str, what: str) -> Page:
    """A page of text alone."""
    return Page((Text(text),), what)


def without_held(span: Span, total: int, held: frozenset[str]) -> tuple[Span, list[str]]:
    """The span without many lines at its beginning that an earlier result shows, and a remark about them.

    A span with nothing else stays as it is.
    """
    shown = [(int(match[1]), int(match[2])) for part in held if (match := re.fullmatch(r"lines (\d+)-(\d+)", part))]
    first, end = span.first, min(span.first + span.limit - 1, total)
    for begin, last in sorted(shown):
        if begin <= first <= last:
            first = last + 1
    if first - span.first < _MOST_LINES_REPEATED or first > end:
        return span, []
    remark = f"(lines {span.first}-{first - 1} have not changed since an earlier answer showed them)"
    left = span.limit if span.limit == DEFAULT_LIMIT else span.limit - (first - span.first)
    return msgspec.structs.replace(span, first=first, limit=left), [remark]


def sections_that_fit(sections: list[str], most: int) -> list[str]:
    """The sections that fit into `most` characters; at least one, which is cut if necessary."""
    shown: list[str] = []
    for section in sections:
        if shown and len(section) > most:
            break
        cut = f"{section[:most]}\n[... cut: {len(section):,} characters]" if len(section) > most else section
        shown.append(cut)
        most -= len(section) + 1
    return shown


def fitting(lines: list[str], span: Span) -> list[str]:
    """The lines that fit, at least one, each as it is in the file unless it is very long.

    They have no numbers: these would be a tenth of what a model reads, and edits name text. A head tells the range.
    """
    shown: list[str] = []
    room = span.most
    for number, line in enumerate(lines, span.first):
        text = _shortened(line.removesuffix(chr(13)), number, span.path)
        room -= len(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    return shown


def range_head(first: int, last: int, total: int | str, what: str = "") -> str:
    """The line above a part of a file; `total` is the number of all lines, or says what is known of it."""
    of = f" of {total}" if total else ""
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return f"[{lines}{of}{what and ': ' + what}]"


def _shortened(line: str, number: int, path: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    what = f"line cut: {len(line)} characters, the first {LONGEST_LINE} are shown"
    return f"{line[:LONGEST_LINE]} [... {what}; bash: {rest_of_line(number, path)}]"


def rest_of_line(number: int, path: str) -> str:
    """The command that shows more of a line that was cut."""
    import shlex

    file = shlex.quote(path if not path.startswith("-") else f"./{path}")
    return f"sed -n '{number}p' {file} | cut -c{LONGEST_LINE + 1}-{2 * LONGEST_LINE}"
