"""Formats a part of a file, with the call that shows the next part."""

import msgspec

from bradawl.core.messages import Image, Text

DEFAULT_LIMIT = 2_000
MOST_CHARACTERS = 50_000
"""Of one answer."""
LONGEST_LINE = 2_000


class Span(msgspec.Struct, frozen=True):
    """What of a file is asked for."""

    path: str
    """As it was given."""
    first: int
    """Line, page or cell, from 1."""
    limit: int
    """Most of them."""
    most: int
    """Most characters."""

    def rest(self, last: int) -> str:
        """The call that shows what follows the line, page or cell `last`."""
        import json

        size = "" if self.limit == DEFAULT_LIMIT else f", limit={self.limit}"
        return f"read_file(file_path={json.dumps(self.path, ensure_ascii=False)}, offset={last + 1}{size})"


class Page(msgspec.Struct, frozen=True):
    """What is shown."""

    parts: tuple[Text | Image, ...]
    what: str
    """Names it: `lines 1-40`; the same name of the same content means the same page. Empty for one without content."""

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


def text_page(text: str, what: str) -> Page:
    """A page of nothing but text."""
    return Page((Text(text),), what)


def sections_that_fit(sections: list[str], most: int) -> list[str]:
    """As many as there is room for, at least one, which is cut if it has to be."""
    shown: list[str] = []
    for section in sections:
        if shown and len(section) > most:
            break
        cut = f"{section[:most]}\n[... cut: {len(section):,} characters]" if len(section) > most else section
        shown.append(cut)
        most -= len(section) + 1
    return shown


def numbered(lines: list[str], span: Span) -> list[str]:
    """As many numbered lines as there is room for, at least one."""
    shown: list[str] = []
    room = span.most
    for number, line in enumerate(lines, span.first):
        text = f"{number}\t{_shortened(line.removesuffix(chr(13)), number, span.path)}"
        room -= len(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    return shown


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
