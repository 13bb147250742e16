"""Converts HTML pages to Markdown, without navigation and other surroundings. Pure.

Converts tag by tag in linear time, without recursion, which a hostile page could exhaust.
"""

import re
from typing import Final
from urllib.parse import quote, urljoin

import msgspec

from bradawl.tools.web.blocks import Blocks, Inline
from bradawl.tools.web.html import Tag, attributes_of
from bradawl.tools.web.page_filter import PageFilter

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_INLINE: Final = {
    **{"b": "strong", "strong": "strong", "i": "em", "em": "em", "cite": "em", "var": "em"},
    **{"code": "code", "kbd": "code", "samp": "code", "tt": "code"},
}
_BLOCKS: Final = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "aside", "address", "figure", "figcaption", "form"}
    | {"details", "summary", "fieldset", "legend", "dl", "dt", "center", "body", "search", "hgroup", "menu", "caption"}
)
_LANGUAGE: Final = re.compile(r"(?:language|lang|highlight-source|highlight|brush:)[-:\s]*([a-z0-9+#]+)", re.IGNORECASE)
_NO_LANGUAGES: Final = frozenset({"highlight", "default", "none", "text", "notranslate", "source"})
_NOT_IN_LINKS: Final = re.compile(r"[\s<>()\\\x00-\x20\x7f]")
_LONGEST_LINK: Final = 2_000
_ENOUGH_TEXT: Final = 200
_MOST_CHARACTERS: Final = 5_000_000


class MarkdownPage(msgspec.Struct, frozen=True):
    """A converted web page."""

    title: str
    text: str
    is_cut: bool = False
    """The page was longer than the limit and was cut."""


class _Table:
    """An open table. The cells of a table that is only layout are ordinary blocks."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.row: list[str] = []
        self.is_layout = False
        self.is_in_cell = False

    def end_row(self) -> None:
        if any(self.row):
            self.rows.append(self.row)
        self.row = []

    def text(self) -> str:
        if all(len(row) == 1 for row in self.rows) or len(self.rows) == 1:
            return "\n".join(" | ".join(filter(None, row)) for row in self.rows)
        lines = [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join([lines[0], "|" + " --- |" * len(self.rows[0]), *lines[1:]])


class MarkdownWriter:
    """Converts the tags and texts of one page, fed one by one, to Markdown.

    Links are made absolute with `url`. `keeps_all` also keeps navigation, headers, footers and hidden elements, which
    most pages have only around their text.
    """

    def __init__(self, url: str, *, keeps_all: bool = False) -> None:
        self._base = url
        self._sieve = PageFilter(keeps_all=keeps_all)
        self._inline = Inline()
        self._blocks = Blocks()
        self._tables: list[_Table] = []
        self._title: list[str] | None = None
        self._found_title = ""
        self._heading = 0
        self._code: list[str] | None = None
        self._language = ""
        self._main: list[int] = []
        """The lines between which the main part of the page is."""

    @property
    def is_full(self) -> bool:
        """True if more input would be dropped."""
        return self._blocks.size > _MOST_CHARACTERS

    @property
    def is_lacking(self) -> bool:
        """True at the end of a page of which no text was kept; `keeps_all` may find some."""
        return self._sieve.has_dropped and not self._blocks.size

    def take(self, token: Tag | str) -> None:
        """Convert the next tag or text."""
        if not self._sieve.keeps(token):
            return
        if isinstance(token, str):
            self._take_text(token)
        else:
            self._take_tag(token)

    def page(self) -> MarkdownPage:
        """The converted page; ends the conversion."""
        self._end_code()
        self._boundary()
        while self._tables:
            self._end_table()
        lines = self._blocks.lines
        first, last = (self._main[0], self._main[1] if len(self._main) > 1 else len(lines)) if self._main else (0, 0)
        if sum(map(len, lines[first:last])) >= _ENOUGH_TEXT:
            lines = lines[first:last]
        return MarkdownPage(self._found_title, "\n".join(lines).strip("\n"), self.is_full)

    # ------------------------------------------------------------------ text

    def _take_text(self, text: str) -> None:
        if self._title is not None:
            self._title.append(text)
        elif self._code is not None:
            self._code.append(text)
        elif not (self._tables and not self._tables[-1].is_in_cell and text.isspace()):
            self._inline.add(text)

    def _boundary(self) -> None:
        """End the current block, if one has begun."""
        if self._is_in_cell:
            self._inline.add(" ")
            return
        text = self._inline.take()
        if not text:
            return
        if self._heading:
            text = f"{'#' * self._heading} {' '.join(text.split())}"
        self._blocks.put(text)

    @property
    def _is_in_cell(self) -> bool:
        return bool(self._tables) and self._tables[-1].is_in_cell and not self._tables[-1].is_layout

    # ------------------------------------------------------------------ tags

    def _take_tag(self, tag: Tag) -> None:
        name = tag.name
        if self._code is not None and name != "pre":
            self._tag_in_code(tag)
        elif name in _INLINE:
            self._inline.close(_INLINE[name]) if tag.is_end else self._inline.open(_INLINE[name])
        elif name == "a":
            self._link(tag)
        elif name in _HEADINGS:
            self._begin_heading(tag)
        elif name in _BLOCKS:
            self._block(tag)
        elif handler := _HANDLERS.get(name):
            handler(self, tag)

    def _tag_in_code(self, tag: Tag) -> None:
        if self._code is None:
            return
        if tag.name == "br":
            self._code.append("\n")
        elif tag.name == "code" and not tag.is_end:
            self._language = self._language or _language_of(tag)
        elif tag.name in ("td", "table") and tag.is_end:
            self._end_code()
            self._take_tag(tag)

    def _link(self, tag: Tag) -> None:
        self._inline.close("link")
        if not tag.is_end:
            attributes = attributes_of(tag)
            target = self._absolute(attributes.get("href", ""))
            self._inline.open("link", target)

    def _absolute(self, reference: str) -> str:
        """The absolute target of a link; empty for one that leads to the page itself."""
        reference = reference.strip()
        scheme = reference[:12].lower()
        if not reference or reference[0] == "#" or scheme.startswith(("javascript:", "data:", "vbscript:", "blob:")):
            return ""
        try:
            target = urljoin(self._base, reference)
        except ValueError:
            target = reference
        if len(target) > _LONGEST_LINK:
            return ""
        return _NOT_IN_LINKS.sub(lambda found: quote(found[0], safe=""), target)

    def _begin_heading(self, tag: Tag) -> None:
        self._lay_out() if _HEADINGS[tag.name] <= 3 else None
        self._boundary()
        self._heading = 0 if tag.is_end else _HEADINGS[tag.name]

    def _block(self, tag: Tag) -> None:
        self._boundary()
        if tag.name == "main":
            if tag.is_end:
                self._main = [*self._main[:1], len(self._blocks.lines)] if self._main else []
            elif not self._main:
                self._main = [len(self._blocks.lines)]
        elif tag.name in ("dt", "dl"):
            self._blocks.end("dd")
        elif tag.name == "div" and not tag.is_end and "highlight" in tag.raw:
            self._language = _language_of(tag) or self._language

    def _pre(self, tag: Tag) -> None:
        if tag.is_end:
            self._end_code()
        elif self._code is None:
            self._lay_out()
            self._boundary()
            self._code = []
            self._language = _language_of(tag) or self._language

    def _end_code(self) -> None:
        if self._code is None:
            return
        text = "".join(self._code).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n").rstrip()
        if text:
            longest = max(map(len, re.findall("^ *(`{3,})", text, re.MULTILINE)), default=2)
            fence = "`" * (longest + 1)
            self._blocks.put(f"{fence}{self._language}\n{text}\n{fence}")
        self._code, self._language = None, ""

    def _break(self, _tag: Tag) -> None:
        self._inline.break_line()

    def _rule(self, _tag: Tag) -> None:
        self._boundary()
        if not self._is_in_cell:
            self._blocks.put("---")

    def _picture(self, tag: Tag) -> None:
        attributes = attributes_of(tag)
        if text := " ".join(attributes.get("alt", "").split()):
            source = self._absolute(attributes.get("src", ""))
            self._inline.add(f"![{text}]({source})" if source else f"![{text}]")

    def _input(self, tag: Tag) -> None:
        attributes = attributes_of(tag)
        if attributes.get("type", "").lower() == "checkbox" and self._blocks.is_in("li"):
            self._inline.add("[x] " if "checked" in attributes else "[ ] ")

    def _base_url(self, tag: Tag) -> None:
        self._base = self._absolute(attributes_of(tag).get("href", "")) or self._base

    def _page_title(self, tag: Tag) -> None:
        if not tag.is_end:
            self._title = []
        elif self._title is not None:
            self._found_title = self._found_title or " ".join("".join(self._title).split())
            self._title = None

    # ------------------------------------------------------------------ lists and quotes

    def _list(self, tag: Tag) -> None:
        self._boundary()
        if self._is_in_cell:
            return
        if tag.is_end:
            self._blocks.end(tag.name)
            return
        start = attributes_of(tag).get("start", "") if tag.name == "ol" else ""
        is_number = start.isascii() and start.isdecimal() and len(start) < 7
        self._blocks.begin_list(is_numbered=tag.name == "ol", first=int(start) if is_number else 1)

    def _item(self, tag: Tag) -> None:
        self._boundary()
        if self._is_in_cell:
            self._inline.add("" if tag.is_end else "- ")
        elif tag.is_end:
            self._blocks.end("li")
        else:
            self._blocks.begin_item()

    def _quote(self, tag: Tag) -> None:
        self._boundary()
        if self._is_in_cell:
            return
        if tag.is_end or tag.name == "dd":
            self._blocks.end(tag.name)
        if not tag.is_end:
            self._blocks.begin(tag.name)

    # ------------------------------------------------------------------ tables

    def _table(self, tag: Tag) -> None:
        if tag.is_end:
            if self._tables:
                self._end_table()
            return
        self._lay_out()
        self._boundary()
        self._tables.append(_Table())

    def _lay_out(self) -> None:
        """Treat the table as layout, because a block does not fit into a cell."""
        if not self._is_in_cell:
            return
        table = self._tables[-1]
        table.is_layout = True
        table.end_row()
        for row in table.rows:
            self._blocks.put(" | ".join(filter(None, row)))
        table.rows = []

    def _end_table(self) -> None:
        self._end_cell()
        table = self._tables.pop()
        table.end_row()
        if table.rows:
            self._blocks.put(table.text())

    def _row(self, _tag: Tag) -> None:
        if self._tables:
            self._end_cell()
            self._tables[-1].end_row()

    def _cell(self, tag: Tag) -> None:
        if not self._tables:
            self._boundary()
            return
        self._end_cell()
        if not tag.is_end:
            self._boundary()  # text of a table outside of its cells
            self._tables[-1].is_in_cell = True

    def _end_cell(self) -> None:
        table = self._tables[-1]
        if self._is_in_cell:
            table.row.append(" ".join(self._inline.take().split()).replace("|", "\\|"))
        else:
            self._boundary()
        table.is_in_cell = False


_HANDLERS: Final = {
    "pre": MarkdownWriter._pre,
    "br": MarkdownWriter._break,
    "hr": MarkdownWriter._rule,
    "img": MarkdownWriter._picture,
    "input": MarkdownWriter._input,
    "base": MarkdownWriter._base_url,
    "title": MarkdownWriter._page_title,
    "ul": MarkdownWriter._list,
    "ol": MarkdownWriter._list,
    "li": MarkdownWriter._item,
    "blockquote": MarkdownWriter._quote,
    "dd": MarkdownWriter._quote,
    "table": MarkdownWriter._table,
    "tr": MarkdownWriter._row,
    "td": MarkdownWriter._cell,
    "th": MarkdownWriter._cell,
}


def _language_of(tag: Tag) -> str:
    """The programming language that a class names; empty if none does."""
    classes = attributes_of(tag).get("class", "")
    found = (match[1].lower() for match in _LANGUAGE.finditer(classes))
    return next((name for name in found if name not in _NO_LANGUAGES), "")
