"""The blocks of a Markdown text as a tree. markdown-it-py parses; the tree is what drawing and streaming need of it."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal[
    "paragraph",
    "heading",
    "code",
    "rule",
    "list",
    "item",
    "quote",
    "table",
    "row",
    "cell",
    "definition",
    "raw",
]
_KINDS: Final[dict[str, Kind]] = {
    "paragraph": "paragraph",
    "heading": "heading",
    "fence": "code",
    "code_block": "code",
    "hr": "rule",
    "bullet_list": "list",
    "ordered_list": "list",
    "list_item": "item",
    "blockquote": "quote",
    "table": "table",
    "tr": "row",
    "th": "cell",
    "td": "cell",
    "definition": "definition",
}
_DEEPEST: Final = 100
"""Levels of nesting; markdown-it leaves out what is deeper, so such a block is drawn as it is."""


class Node(msgspec.Struct):
    """A block. Lists have items, tables rows, rows cells; items and quotes have blocks."""

    kind: Kind
    start: int
    """Its first line in the source."""
    end: int
    """The line behind it."""
    text: str = ""
    """The inline source of paragraphs, headings and cells; the content of code; the line of a definition."""
    info: str = ""
    """The language of a fence, the level of a heading, the alignment of a cell, `-` or `=` of an underlined heading."""
    is_underlined: bool = False
    is_fence: bool = False
    number: int | None = None
    """The first number of an ordered list."""
    children: list["Node"] = msgspec.field(default_factory=list)

    @property
    def innermost(self) -> "Node":
        """The last block in the last list or quote of this one; the block itself if it is neither."""
        return self.children[-1].innermost if self.kind in ("list", "item", "quote") and self.children else self


@cache
def parser() -> "MarkdownIt":
    """The parser; it keeps nothing of a text. HTML is text: a terminal can't draw it, and nothing is hidden."""
    from markdown_it import MarkdownIt

    options = {"html": False, "inline_definitions": True, "maxNesting": _DEEPEST}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def parse(lines: list[str]) -> tuple[list[Node], dict[str, Any]]:
    """The top-level blocks of complete lines without tabs, and the link references they define."""
    environment: dict[str, Any] = {}
    tokens: list[Token] = []
    markdown = parser()
    markdown.block.parse("\n".join([*lines, ""]), markdown, environment, tokens)
    nodes = [_without_depth(node, depth, lines) for node, depth in _trees(tokens)]
    return nodes, environment.get("references", {})


def inline_tokens(text: str, references: Mapping[str, Any]) -> "list[Token]":
    """The inline tokens of a text. Escaped characters are tokens of their own: `text_special`."""
    tokens: list[Token] = []
    markdown = parser()
    markdown.inline.parse(text, markdown, {"references": dict(references)}, tokens)
    return tokens


def are_apart(before: Node, node: Node, lines: list[str], *, in_quote: bool) -> bool:
    """Whether a blank line is between two blocks of a list or quote."""
    inner = before.innermost
    if node.start == 0 or (inner.kind == "code" and inner.end == node.start):
        return False  # a line of an open fence is no blank line
    return not lines[node.start - 1].strip(" >" if in_quote else None)


def _trees(tokens: "list[Token]") -> Iterator[tuple[Node, int]]:
    """The top-level nodes, each with the level of its deepest token."""
    open_nodes: list[Node] = []
    deepest = 0
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        deepest = max(deepest, token.level)
        if token.type == "inline":
            if open_nodes:
                open_nodes[-1].text = token.content
            continue
        if name not in _KINDS:  # thead, tbody
            continue
        if token.nesting >= 0:
            node = _node(token, _KINDS[name], open_nodes[-1] if open_nodes else None)
            if open_nodes:
                open_nodes[-1].children.append(node)
            if token.nesting > 0:
                open_nodes.append(node)
                continue
        else:
            node = open_nodes.pop()
        if not open_nodes:
            yield node, deepest
            deepest = 0


def _node(token: "Token", kind: Kind, parent: Node | None) -> Node:
    start, end = token.map or ((parent.start, parent.end) if parent else (0, 0))
    node = Node(kind, start, end)
    if kind == "heading":
        node.info, node.is_underlined = token.tag[1:], token.markup in ("-", "=")
    elif kind == "code":
        node.text, node.is_fence = token.content, token.type == "fence"
        node.info = token.info.strip()
    elif kind == "cell":
        node.info = str(token.attrs.get("style", "")).removeprefix("text-align:")
    elif kind == "list" and token.type == "ordered_list_open":
        node.number = int(token.attrs.get("start", 1))
    elif kind == "definition":
        title = f' "{token.meta["title"]}"' if token.meta["title"] else ""
        node.text = f"[{token.meta['label']}]: {token.meta['url']}{title}"
    return node


def _without_depth(node: Node, depth: int, lines: list[str]) -> Node:
    if depth < _DEEPEST - 1:
        return node
    return Node("raw", node.start, node.end, "\n".join(lines[node.start : node.end]))
