"""Drops parts of a page that are not its text: navigation, hidden elements, surroundings. Pure."""

import re
from typing import Final

from bradawl.tools.web.html import Tag, attributes_of

_AROUND: Final = frozenset({"nav", "header", "footer", "aside"})
_ALWAYS_LEFT_OUT: Final = frozenset({"noscript", "template", "svg", "math", "button", "select", "datalist", "object"})
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_ENDED_BY_THEIR_LIKE: Final = frozenset({"p", "li", "td", "th", "tr", "dt", "dd", "option"})
_MAY_BE_HIDDEN: Final = re.compile(r"hidden|display\s*:|line-?no|line-?numbers|gutter", re.IGNORECASE)
_HIDES: Final = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)


class PageFilter:
    """Filters the tags and texts of one page. With `keeps_all` only parts that are not text are dropped."""

    def __init__(self, *, keeps_all: bool) -> None:
        self.has_dropped = False
        """True once something was dropped."""
        self._keeps_all = keeps_all
        self._dropped, self._depth = "", 0
        """The element that is being dropped, and the number of open elements of its name within it."""
        self._mains = 0

    def keeps(self, token: Tag | str) -> bool:
        """Whether to keep a tag or text."""
        if isinstance(token, str):
            return not self._dropped
        if self._dropped and not self._is_over(token):
            return False
        if not token.is_end and self._is_left_out(token):
            self.has_dropped = True
            if token.name not in _VOID:
                self._dropped, self._depth = token.name, 1
            return False
        if token.name in ("main", "article"):
            self._mains = max(self._mains + (-1 if token.is_end else 1), 0)
        return True

    def _is_left_out(self, tag: Tag) -> bool:
        if tag.name in _ALWAYS_LEFT_OUT:
            return True
        if self._keeps_all:
            return False
        is_around = tag.name == "nav" or (tag.name in _AROUND and not self._mains)
        return is_around or (bool(_MAY_BE_HIDDEN.search(tag.raw)) and _is_hidden(tag))

    def _is_over(self, tag: Tag) -> bool:
        """True if a tag implies that the dropped element ended without an end tag."""
        is_forgotten = tag.name in ("main", "article") and self._dropped in _AROUND
        if not tag.is_end and (is_forgotten or (tag.name == self._dropped and tag.name in _ENDED_BY_THEIR_LIKE)):
            self._dropped = ""
            return True
        if tag.name == self._dropped:
            self._depth += -1 if tag.is_end else 1
            self._dropped = self._dropped if self._depth else ""
        return False


def _is_hidden(tag: Tag) -> bool:
    """True for hidden elements and line numbers beside code."""
    attributes = attributes_of(tag)
    if attributes.get("hidden", "until-found").lower() != "until-found" or attributes.get("aria-hidden") == "true":
        return True
    if _HIDES.search(attributes.get("style", "")):
        return True
    is_beside = tag.name in ("td", "th", "span")
    names = attributes.get("class", "").lower().split()
    return is_beside and any(_MAY_BE_HIDDEN.match(name) and "hidden" not in name for name in names)
