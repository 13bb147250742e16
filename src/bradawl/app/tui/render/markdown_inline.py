"""Inline Markdown as spans: emphasis, code, links. Long texts are parsed in pieces, so that the cost stays linear."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from bradawl.app.tui.render.cells import Span, shown
from bradawl.app.tui.render.markdown_tree import inline_tokens, parser
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme

if TYPE_CHECKING:
    from markdown_it.token import Token

PIECE: Final = 400
"""Characters after which a text is divided at the next place where nothing is open; at twice as many, anywhere."""
_STEP: Final = 80
_STYLES: Final[dict[str, Role]] = {"strong": "strong", "em": "emphasis", "s": "struck", "link": "link"}
_OPENERS: Final = re.compile(r"`|(?<!\s)[*~]|[*~](?!\s|$)|(?<!\w)_(?!\s|$)|(?<!\s)_(?!\w)")
_OPEN_LINK: Final = re.compile(r"\[([^\[\]\n]+)\]\([^()\s]*\Z")
_BETWEEN_WORDS: Final = re.compile(r"(?<=[^\s\\])[ \n](?=\S)")


class InlineRenderer:
    """Renders inline texts, and remembers the latest: most of an unfinished block is the same in the next frame."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.references: Mapping[str, Any] = {}
        """The link references defined so far."""
        self._known: dict[tuple[str, str], list[Span]] = {}
        self._lengths: dict[str, int] = {}

    def spans(self, text: str, *base: Role) -> list[Span]:
        """The spans of a text of any length, over the look of `base`."""
        spans: list[Span] = []
        for piece in self.pieces(text):
            spans += self._of_piece(piece, self.theme.code(*base))
        return spans

    def pieces(self, text: str) -> Iterator[str]:
        """The pieces that a text is parsed in; only the last one can change when the text grows."""
        begin = 0
        while True:
            known = text[begin : begin + 2 * PIECE + 1]
            if known not in self._lengths:
                self._lengths[known] = _piece_length(known, self.references)
            if not (length := self._lengths[known]):
                break
            yield text[begin : begin + length]
            begin += length
        yield text[begin:]

    def forget(self) -> None:
        """Drop what was remembered; the block it belonged to is finished."""
        self._known.clear()
        self._lengths.clear()

    def _of_piece(self, text: str, base: str) -> list[Span]:
        key = text, base
        if key not in self._known:
            self._known[key] = self._render(text, base) if text else []
        return self._known[key]

    def _render(self, text: str, base: str) -> list[Span]:
        # The parser drops blanks at the edges; they separate pieces.
        head = " " if text[0] in " \n" else ""
        tail = " " if text[-1] in " \n" and text.strip(" \n") else ""
        inner = _Inline(self.theme, base)
        for token in inline_tokens(text.strip(" \n"), self.references):
            inner.add(token)
        return [(head, base), *inner.spans, (tail, base)]


class _Inline:
    """Collects the spans of inline tokens."""

    def __init__(self, theme: Theme, base: str) -> None:
        self.spans: list[Span] = []
        self._theme = theme
        self._looks = [base]
        self._links: list[tuple[int, str]] = []
        """Where the text of each open link begins, and its address."""

    def add(self, token: "Token") -> None:
        """Add what a token shows."""
        if token.nesting > 0:
            name = token.type.removesuffix("_open")
            self._looks.append(self._over(_STYLES.get(name, "plain")))
            if name == "link":
                self._links.append((len(self.spans), str(token.attrs.get("href", ""))))
        elif token.nesting < 0:
            self._looks.pop()
            if token.type == "link_close":
                self._end_link(*self._links.pop())
        else:
            self.spans += self._leaf(token)

    def _leaf(self, token: "Token") -> list[Span]:
        look = self._looks[-1]
        match token.type:
            case "softbreak":
                return [(" ", look)]
            case "hardbreak":
                return [("\n", look)]
            case "code_inline":
                text = token.content if self._theme.codes else f"`{token.content}`"
                return [(shown(text), self._over("code"))]
            case "image":
                return [(shown(token.content or "image"), look), *self._address(str(token.attrs.get("src", "")))]
            case _:
                return [(shown(token.content), look)]

    def _end_link(self, begin: int, address: str) -> None:
        text = "".join(text for text, _ in self.spans[begin:])
        if text not in (address.removeprefix("mailto:"), parser().normalizeLinkText(address)):
            self.spans += self._address(address)

    def _address(self, address: str) -> list[Span]:
        return [(f" ({shown(address)})", self._theme.code("dim"))] if address else []

    def _over(self, role: Role) -> str:
        return ";".join(filter(None, (self._looks[-1], self._theme.code(role))))


def closed(text: str) -> str:
    """An unfinished text as it will probably look: code and bold end, and an unfinished link is its text."""
    text = _OPEN_LINK.sub(r"\1", text)
    for mark in ("`", "**"):
        if text.count(mark) % 2:
            return text.removesuffix(mark) if text.endswith(mark) else text + mark
    return text


def _piece_length(text: str, references: Mapping[str, Any]) -> int:
    """The length of the first piece of a long text; 0 if all of it is one piece, or its end is not known yet.

    It depends on at most `2 * PIECE + 1` characters, and on none behind the piece and the next one.
    """
    if len(text) <= PIECE:
        return 0
    last = 0
    for found in _BETWEEN_WORDS.finditer(text, PIECE, 2 * PIECE):
        if last and found.start() < last + _STEP:
            continue
        last = found.start()
        if _is_settled(text[:last], references):
            return last
    if len(text) <= 2 * PIECE:
        return 0
    blank = max(text.rfind(" ", 1, 2 * PIECE), text.rfind("\n", 1, 2 * PIECE))
    return blank if blank > 0 else 2 * PIECE


def _is_settled(text: str, references: Mapping[str, Any]) -> bool:
    """Whether nothing in a text can begin emphasis, code or a link that ends behind it."""
    if text.count("[") != text.count("]"):
        return False  # cheaper than the parser, to which many open brackets are expensive
    depth = 0
    for token in inline_tokens(text, references):
        if token.type != "text":
            continue
        if _OPENERS.search(token.content):
            return False
        for bracket in re.findall(r"[\[\]]", token.content):
            depth = max(0, depth + (1 if bracket == "[" else -1))
    return depth == 0
