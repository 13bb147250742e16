"""Streams Markdown to a terminal: finished lines once, and the unfinished end again in each frame.

What is drawn depends on the text alone, not on the pieces it came in: blocks are divided only where what follows can't
change what is before. So all lines together are those of the whole text.
"""

import re
from typing import Any, Final

import msgspec

from bradawl.app.tui.render.markdown_blocks import CONTINUED, BlockRenderer, LeafState, Resume
from bradawl.app.tui.render.markdown_cuts import Cut, OpenBlock, cut_before, cut_inside, open_block, printed_steps
from bradawl.app.tui.render.markdown_inline import PIECE, closed
from bradawl.app.tui.render.markdown_table import DECIDING_ROWS
from bradawl.app.tui.render.markdown_tree import Node, parse
from bradawl.app.tui.render.theme import Theme

_TAB: Final = 4
_UNDECIDED: Final = re.compile(r"[\s>]*(?:[-=*+_#]{1,6}|`{1,3}|~{1,3}|\d{1,9}[.)]?)?[ ]*")
"""A line that the next characters make something else: a heading, an item, a rule."""


class Frame(msgspec.Struct, frozen=True):
    """What a frame adds to the screen for ever, and what is below it until the next frame."""

    committed: list[str]
    tail: list[str]


class MarkdownStream:
    """Renders a Markdown text while it arrives. `finish` ends the text; the next `feed` begins another."""

    def __init__(self, theme: Theme, width: int) -> None:
        self._theme = theme
        self._width = max(1, width)
        self._blocks = BlockRenderer(theme)
        self._begin()

    def _begin(self) -> None:
        self._fed: list[str] = []
        self._held = ""
        """A carriage return at the end, which may be half of a line end."""
        self._lines: list[str] = []
        """Complete lines of the unfinished block."""
        self._partial = ""
        self._column = 0
        """The column of the partial line's beginning."""
        self._resume: Resume | None = None
        self._is_begun = False
        """Whether the first lines of the unfinished block are committed."""
        self._has_output = False
        self._committed: list[str] = []
        self._references: dict[str, Any] = {}
        self._blocks.inline.references = self._references
        self._tail: list[str] | None = None

    def feed(self, text: str) -> None:
        """Add text; nothing is rendered."""
        self._fed.append(text)

    def resize(self, width: int) -> None:
        """Use another width from now on; lines that were returned stay as they are."""
        self._width = max(1, width)
        self._tail = None

    def frame(self, limit: int) -> Frame:
        """The lines finished since the last frame, and at most `limit` lines of what is not finished.

        The beginning of an unfinished block that is taller is not shown until it is finished.
        """
        if self._take() or self._tail is None:
            self._advance()
            self._tail = self._unfinished()
        committed, self._committed = self._committed, []
        return Frame(committed, self._tail[max(0, len(self._tail) - limit) :] if limit > 0 else [])

    def finish(self) -> list[str]:
        """All lines that are left; the text is complete."""
        self._take()
        if self._partial or self._held:
            self._fed.append("\n")
            self._take()
        self._advance()
        self._commit_all(*parse(self._lines))
        committed = self._committed
        self._begin()
        return committed

    def _take(self) -> bool:
        """Move what was fed to the lines; whether there was any."""
        text = self._held + "".join(self._fed)
        self._fed.clear()
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").replace(CONTINUED, "\ufffd")
        if not text:
            return False
        first, *others = text.split("\n")
        self._partial += _expanded(first, self._column + len(self._partial))
        for line in others:
            self._lines.append(self._partial)
            self._partial, self._column = _expanded(line, 0), 0
        return True

    def _advance(self) -> None:
        """Commit what more text can't change."""
        while self._commit_blocks() or self._commit_paragraph():
            pass

    def _commit_blocks(self) -> bool:
        """Commit the blocks before the last one, and the finished parts of the last; whether there may be more."""
        nodes, references = parse(self._lines)
        if not nodes:
            self._lines.clear()  # blank lines
            return False
        if _is_over(nodes[-1], self._lines):
            self._commit_all(nodes, references)
            self._lines = self._lines[nodes[-1].end :]
            return False
        if len(nodes) > 1:
            self._commit_all(nodes[:-1], references)
            self._lines = self._lines[nodes[-1].start :]
            return True
        block = open_block(nodes[0])
        if not block.is_first:
            cut = cut_before(block, self._lines, self._resume)
            if cut is None:
                return False
            self._committed += self._drawn(cut.finished, self._lines)
            self._go_on(cut, LeafState())
            return True
        if block.leaf.kind == "code":
            self._commit_code(block, nodes)
        elif block.leaf.kind == "table" and len(block.leaf.children) > DECIDING_ROWS + 1:
            self._commit_part(block, nodes, 2, len(block.leaf.children) - 1)
        return False

    def _commit_all(self, nodes: list[Node], references: dict[str, Any]) -> None:
        """Commit finished blocks one by one: a link reference counts for what is behind it."""
        for node in nodes:
            self._committed += self._drawn([node], self._lines)
            self._resume, self._is_begun = None, False
            if node.kind == "definition":
                for name, target in references.items():
                    if target["map"][0] == node.start:
                        self._references.setdefault(name, target)
                self._blocks.inline.forget()

    def _drawn(self, nodes: list[Node], source: list[str]) -> list[str]:
        """The lines of blocks that are committed now, with the blank line before them."""
        lines = self._with_gap(nodes, self._blocks.render(nodes, source, self._width, self._resume))
        self._is_begun = self._is_begun or bool(lines)
        self._has_output = self._has_output or bool(lines)
        return lines

    def _with_gap(self, nodes: list[Node], lines: list[str]) -> list[str]:
        has_gap = lines and self._has_output and not self._is_begun
        return ["", *lines] if has_gap else lines

    def _go_on(self, cut: Cut, leaf: LeafState) -> None:
        self._lines = [cut.first, *self._lines[cut.taken :]]
        self._resume = Resume(cut.steps, cut.gap, leaf)
        self._blocks.inline.forget()

    def _commit_code(self, block: OpenBlock, nodes: list[Node]) -> None:
        """Commit the complete lines of a fence, or all but the last of other code."""
        if not block.leaf.text:
            return
        count = block.leaf.text.removesuffix("\n").count("\n") + 1
        if block.leaf.is_fence:
            self._commit_part(block, nodes, 1, count)
        elif count > 1 and not block.path:
            last = block.leaf.text.removesuffix("\n").rpartition("\n")[2]
            block.leaf.text = block.leaf.text.removesuffix("\n").removesuffix(last)
            self._commit_part(block, nodes, 0, count - 1)

    def _commit_part(self, block: OpenBlock, nodes: list[Node], first: int, count: int) -> None:
        """Commit an open block as far as it is complete, and take its lines from `first` on out of the source."""
        self._committed += self._drawn(nodes, self._lines)
        self._resume = Resume(printed_steps(block, self._resume), None, self._blocks.state)
        begin = block.leaf.start + first
        self._lines[begin : begin + count] = []

    def _commit_paragraph(self) -> bool:
        """Commit the settled lines of a long paragraph, which may end in the partial line."""
        lines = [*self._lines, self._partial] if self._partial else self._lines
        if sum(map(len, lines)) <= PIECE:
            return False
        nodes, _ = parse(lines)
        block = open_block(nodes[0]) if len(nodes) == 1 else None
        if block is None or block.leaf.kind != "paragraph" or not block.is_first or block.leaf.start:
            return False
        length = self._settled(block.leaf.text)
        cut = cut_inside(block, lines, length, self._resume) if length else None
        if cut is None:
            return False
        self._commit_lines_of_paragraph(cut, lines)
        return True

    def _settled(self, text: str) -> int:
        """The length of the beginning of a paragraph that what follows can't change; 0 for none.

        The last line may still become the heading of a table or a rule.
        """
        cuts = [len(CONTINUED) if text.startswith(CONTINUED) else 0]
        for piece in self._blocks.inline.pieces(text[cuts[0] :]):
            cuts.append(cuts[-1] + len(piece))
        cuts.pop()
        last = text.rfind("\n") + 1
        if "|" in text[last:]:
            cuts = [cut for cut in cuts if cut < last]
        elif not re.search(r"[^\W_]", text[last : cuts[-1]]):
            cuts = [cut for cut in cuts if cut <= last]
        return cuts[-1] if len(cuts) > 1 else 0

    def _commit_lines_of_paragraph(self, cut: Cut, lines: list[str]) -> None:
        """Commit all lines of the finished part but the last, which the rest continues."""
        old = self._resume or Resume()
        drawn = self._blocks.render(cut.finished, lines, self._width, self._resume)[:-1]
        leaf = self._blocks.state
        self._committed += self._with_gap(cut.finished, drawn)
        self._is_begun = self._is_begun or bool(drawn)
        self._has_output = self._has_output or bool(drawn)
        if cut.taken > len(self._lines):
            end = self._column + len(self._partial)
            self._partial, self._lines = cut.first, []
            self._column = end - len(cut.first)
            self._resume = Resume(cut.steps, None, leaf)
        else:
            self._go_on(cut, leaf)
        if not drawn:
            self._resume = Resume(old.steps, old.gap, leaf)

    def _unfinished(self) -> list[str]:
        """The lines of the unfinished block."""
        is_shown = self._partial and not _UNDECIDED.fullmatch(self._partial)
        lines = [*self._lines, self._partial] if is_shown else self._lines
        nodes, _ = parse(lines)
        if nodes and nodes[-1].innermost.kind in ("paragraph", "heading"):
            nodes[-1].innermost.text = closed(nodes[-1].innermost.text)
        return self._with_gap(nodes, self._blocks.render(nodes, lines, self._width, self._resume))


def _is_over(node: Node, lines: list[str]) -> bool:
    """Whether no further line can belong to the last block."""
    if node.kind == "rule" or (node.kind == "heading" and not node.is_underlined):
        return True
    can_go_on = node.kind in ("list", "raw") or (node.kind == "code" and not node.is_fence)
    return not can_go_on and node.end < len(lines)


def _expanded(text: str, column: int) -> str:
    """A part of a line that begins at a column, with blanks for tabs."""
    before = column % _TAB
    return (" " * before + text).expandtabs(_TAB)[before:] if "\t" in text else text


def markdown_lines(text: str, theme: Theme, width: int) -> list[str]:
    """The lines of a whole text."""
    stream = MarkdownStream(theme, width)
    stream.feed(text)
    return stream.finish()
