"""Splits HTML into tags and texts, in linear time for any input. Pure.

No tree is built, so a page with a hundred thousand nested or unclosed elements costs as much as any other page of its
size. Broken markup is treated as in a browser where that matters for the text.
"""

import re
from collections.abc import Generator, Iterator
from html import unescape
from typing import Final

import msgspec

_NAME: Final = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_UP_TO_A_MARK: Final = re.compile(r"[^\"'>]*")
_ATTRIBUTE: Final = re.compile(r"[\s/]*([^\s/>=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*)))?")
_BLANKS_BEFORE_A_QUOTE: Final = 20
_MOST_ATTRIBUTES: Final = 100

_THROWN_AWAY: Final = frozenset({"script", "style", "iframe", "noembed", "noframes", "textarea"})
_VERBATIM: Final = frozenset({"title", "xmp"}) | _THROWN_AWAY
"""Elements whose content is not parsed as markup."""


class Tag(msgspec.Struct, frozen=True):
    """A start or end tag."""

    name: str
    """In lower case."""
    is_end: bool
    raw: str
    """Attributes as they were written; `attributes_of` reads them."""


def tokens(html: str) -> Iterator[Tag | str]:
    """Tags and the texts between them, character references resolved. Comments, scripts and styles are left out."""
    place = 0
    while 0 <= place < len(html):
        start = html.find("<", place)
        if start != place:
            yield _resolved(html[place:start] if start >= 0 else html[place:])
            place = start
            continue
        if html.startswith(("<!", "<?"), start):
            place = _after_declaration(html, start)
        elif name := _NAME.match(html, start):
            end = _after_tag(html, name.end())
            tag = Tag(name[1].lower(), html[start + 1] == "/", html[name.end() : end - 1])
            if end < 0:
                return  # an unclosed tag: browsers drop it, too
            yield tag
            place = end if tag.is_end or tag.name not in _VERBATIM else (yield from _verbatim(html, end, tag.name))
        else:
            yield "<"
            place = start + 1


def _resolved(text: str) -> str:
    try:
        return unescape(text) if "&" in text else text
    except ValueError:  # a number with more digits than Python converts
        return text


def _after_declaration(html: str, start: int) -> int:
    """The offset at which a comment, a doctype or CDATA ends; -1 if it is not closed."""
    end = "-->" if html.startswith("<!--", start) else "]]>" if html.startswith("<![CDATA[", start) else ">"
    if html.startswith(("<!-->", "<!--->"), start):
        return html.index(">", start) + 1
    found = html.find(end, start + 2)
    return found + len(end) if found >= 0 else -1


def _after_tag(html: str, place: int) -> int:
    """The offset at which a tag ends whose name ends at `place`; -1 if it is not closed. Quoted text does not end
    it.
    """
    first = place
    while (mark := _UP_TO_A_MARK.match(html, place)) and mark.end() < len(html):
        place = mark.end()
        if html[place] == ">":
            return place + 1
        is_value = html[max(first, place - _BLANKS_BEFORE_A_QUOTE) : place].rstrip().endswith("=")
        closing = html.find(html[place], place + 1) if is_value else place
        if closing < 0:
            return -1
        place = closing + 1
    return -1


def _verbatim(html: str, place: int, name: str) -> Generator[str, None, int]:
    """Emit the text of an element without markup, if it is wanted; returns the offset of its end tag."""
    end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(html, place)
    stop = end.start() if end else len(html)
    if name not in _THROWN_AWAY:
        yield _resolved(html[place:stop])
    return stop


def attributes_of(tag: Tag) -> dict[str, str]:
    """The attributes by name in lower case; of two with one name the first counts."""
    found: dict[str, str] = {}
    for count, match in enumerate(_ATTRIBUTE.finditer(tag.raw)):
        if count == _MOST_ATTRIBUTES:
            break
        name, *values = match.groups()
        found.setdefault(name.lower(), _resolved(next((value for value in values if value is not None), "")))
    return found
