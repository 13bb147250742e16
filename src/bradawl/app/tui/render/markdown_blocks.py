"""Draws the blocks of a Markdown text, the first from where it stopped if its beginning is on the screen already."""

import re
from typing import Final

import msgspec

from bradawl.app.tui.render.cells import Span, chop_spans, painted, shown, width, wrap_spans
from bradawl.app.tui.render.code import CodeState, Highlighter
from bradawl.app.tui.render.markdown_inline import PIECE, InlineRenderer
from bradawl.app.tui.render.markdown_table import Columns, TableRenderer
from bradawl.app.tui.render.markdown_tree import Node, are_apart
from bradawl.app.tui.render.theme import Theme

CONTINUED: Final = "\ufdd0"
"""Begins a paragraph whose first part is on the screen. Not a character, so that no text needs it."""
_NARROWEST: Final = 10
"""Cells that nested blocks have at least; deeper ones are not indented further."""
_TASK: Final = re.compile(r"\[([ xX])\] ")


class Step(msgspec.Struct, frozen=True):
    """One node between the top and the block that goes on."""

    is_printed: bool = False
    """Whether the marker of an item is on the screen."""
    number: int | None = None
    """The number of the first item that is left of an ordered list."""


class LeafState(msgspec.Struct, frozen=True):
    """What the drawn part of a paragraph, a fence or a table leaves open."""

    spans: tuple[Span, ...] = ()
    """The last line of the paragraph, which is not on the screen."""
    code: CodeState = CodeState()
    columns: Columns | None = None


class Resume(msgspec.Struct, frozen=True):
    """How the first block of a text goes on from what is on the screen."""

    steps: tuple[Step, ...] = ()
    """For the first list or quote, its first item or block, and so on down to the block that goes on."""
    gap: int | None = None
    """The number of steps above a blank line that comes first; None for no blank line."""
    leaf: LeafState = LeafState()


class BlockRenderer:
    """Renders nodes of `source` as lines of at most `width` cells."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self.inline = InlineRenderer(theme)
        self._tables = TableRenderer(self.inline)
        self.state = LeafState()
        """What the last block that was drawn leaves open."""
        self._lines: list[str] = []
        self._quotes = 0
        """Quotes around what is being drawn."""
        self._highlighters: dict[str, Highlighter] = {}

    def render(self, nodes: list[Node], source: list[str], cells: int, resume: Resume | None) -> list[str]:
        """The lines of top-level nodes, whose line numbers count in `source`. `state` is then that of the last."""
        self._lines = source
        self.state = LeafState()
        return self._siblings(nodes, cells, resume, 0, 0)

    def _siblings(self, nodes: list[Node], cells: int, resume: Resume | None, depth: int, nesting: int) -> list[str]:
        lines: list[str] = []
        is_begun = False
        for place, node in enumerate(nodes):
            own = resume if place == 0 else None
            drawn = self._node(node, cells, own, depth, nesting)
            has_gap = is_begun and self._has_gap(nodes[place - 1], node, depth) if place else _has_own_gap(own, depth)
            lines += [""] if drawn and has_gap else []
            lines += drawn
            is_begun = is_begun or bool(drawn) or own is not None
        return lines

    def _has_gap(self, before: Node, node: Node, depth: int) -> bool:
        if depth == 0 and not before.kind == node.kind == "definition":
            return True
        return are_apart(before, node, self._lines, in_quote=self._quotes > 0)

    def _node(self, node: Node, cells: int, resume: Resume | None, depth: int, nesting: int) -> list[str]:
        match node.kind:
            case "list":
                return self._list(node, cells, resume, depth, nesting)
            case "quote":
                return self._quote(node, cells, resume, depth, nesting)
            case "code":
                return self._code(node, cells, resume)
            case "table":
                columns = resume.leaf.columns if resume else None
                lines, columns = self._tables.lines(node, cells, columns)
                self.state = LeafState(columns=columns)
                return lines
            case "rule":
                return [self._theme.paint(self._theme.symbols.rule * min(cells, 40), "frame")]
            case "definition" | "raw":
                return self._plain(node.text, cells)
            case _:
                return self._text(node, cells, resume)

    def _text(self, node: Node, cells: int, resume: Resume | None) -> list[str]:
        carried = resume.leaf.spans if resume else ()
        text = node.text.removeprefix(CONTINUED)
        # The first lines of a long paragraph are on the screen before an underline can make it a heading.
        is_heading = node.kind == "heading" and not (node.is_underlined and (carried or len(text) > PIECE))
        if is_heading:
            sign = "" if self._theme.codes else "#" * int(node.info) + " "
            spans = [(sign, ""), *self.inline.spans(text, "title" if node.info == "1" else "heading")]
        else:
            spans = [*carried, *self.inline.spans(text)]
        lines = wrap_spans(spans, cells)
        self.state = LeafState(tuple(lines[-1]))
        return [painted(line) for line in lines]

    def _plain(self, text: str, cells: int) -> list[str]:
        dim = self._theme.code("dim")
        return [painted(part) for line in text.split("\n") for part in chop_spans([(shown(line), dim)], cells)]

    def _code(self, node: Node, cells: int, resume: Resume | None) -> list[str]:
        state = resume.leaf.code if resume else CodeState()
        highlighter = self._highlighter(node.info)
        indent = "  " if cells > _NARROWEST else ""
        lines: list[str] = []
        for line in node.text.removesuffix("\n").split("\n") if node.text else ():
            spans, state = highlighter.line(line, state)
            lines += [indent + painted(part) for part in chop_spans(spans, cells - len(indent))]
        self.state = LeafState(code=state)
        return [line if line.strip() else "" for line in lines]

    def _highlighter(self, language: str) -> Highlighter:
        name = re.split(r"[\s,:{}]+", language.strip("{ ."))[0] if language else ""
        return self._highlighters.setdefault(name, Highlighter(name, self._theme))

    def _quote(self, node: Node, cells: int, resume: Resume | None, depth: int, nesting: int) -> list[str]:
        bar = self._theme.paint(self._theme.symbols.bar, "frame")
        prefix = f"{bar} " if cells - 2 >= _NARROWEST else ""
        self._quotes += 1
        lines = self._siblings(node.children, cells - len(prefix and "  "), resume, depth + 1, nesting)
        self._quotes -= 1
        return [prefix + line if line else prefix.rstrip() for line in lines]

    def _list(self, node: Node, cells: int, resume: Resume | None, depth: int, nesting: int) -> list[str]:
        resumed = resume.steps[depth] if resume and len(resume.steps) > depth else None
        first = node.number if resumed is None else resumed.number
        lines: list[str] = []
        for place, item in enumerate(node.children):
            own = resume if place == 0 else None
            if _has_own_gap(own, depth + 1) or (place and self._has_gap(node.children[place - 1], item, depth + 1)):
                lines.append("")
            number = None if first is None else first + place
            lines += self._item(item, cells, own, depth + 1, nesting, number)
        return lines

    def _item(
        self, item: Node, cells: int, resume: Resume | None, depth: int, nesting: int, number: int | None
    ) -> list[str]:
        step = resume.steps[depth] if resume and len(resume.steps) > depth else Step()
        bullets = self._theme.symbols.bullets
        marker = bullets[nesting % len(bullets)] if number is None else f"{number}."
        children = item.children
        task = _TASK.match(children[0].text) if children and children[0].kind == "paragraph" else None
        if task and not step.is_printed:
            marker = self._theme.symbols.pending if task[1] == " " else self._theme.symbols.completed
            children = [msgspec.structs.replace(children[0], text=children[0].text[task.end() :]), *children[1:]]
        indent = width(marker) + 1 if cells - width(marker) - 1 >= _NARROWEST else 0
        lines = self._siblings(children, cells - indent, resume, depth + 1, nesting + 1)
        if step.is_printed:
            return [" " * indent + line if line else "" for line in lines]
        head = f"{self._theme.paint(marker, 'dim')} " if indent else ""
        first, *others = lines or [""]
        return [(head + first).rstrip(), *(" " * indent + line if line else "" for line in others)]


def _has_own_gap(resume: Resume | None, depth: int) -> bool:
    return resume is not None and resume.gap == depth
