"""Divides the source of an unfinished block: what is finished of it is drawn, the rest becomes a source of its own.

A rest that is inside of lists and quotes keeps their markers at the beginning of its first line, so that it parses as
the same blocks. Each rest is parsed before it is used; one that differs is not used, and the block stays whole.
"""

import re
from typing import Final

import msgspec

from bradawl.app.tui.render.markdown_blocks import CONTINUED, Resume, Step
from bradawl.app.tui.render.markdown_tree import Node, are_apart, parse

_ITEM: Final = re.compile(r" *(?:[-+*]|\d{1,9}[.)])( *)")
_QUOTE: Final = re.compile(r" *> ?")
_WIDEST_GAP: Final = 4


class OpenBlock(msgspec.Struct):
    """The last block of a source that contains no other, and the lists, items and quotes around it."""

    path: list[Node]
    leaf: Node

    @property
    def is_first(self) -> bool:
        """Whether nothing comes before it."""
        return all(len(node.children) == 1 for node in self.path)


class Cut(msgspec.Struct, frozen=True):
    """A source divided inside of its last block."""

    finished: list[Node]
    """What comes before the rest."""
    first: str
    """The first line of the rest; the others are as before."""
    taken: int
    """The number of lines of the source that `finished` and `first` stand for."""
    steps: tuple[Step, ...]
    """The containers of the rest."""
    gap: int | None = None


def open_block(node: Node) -> OpenBlock:
    """The block that more text would continue."""
    path: list[Node] = []
    while node.kind in ("list", "item", "quote") and node.children:
        path.append(node)
        node = node.children[-1]
    return OpenBlock(path, node)


def cut_before(block: OpenBlock, lines: list[str], resume: Resume | None) -> Cut | None:
    """The cut before an open block; None if the rest would be other blocks."""
    finished = _before(block.path[0], block.leaf)
    first = _first_line(block, lines)
    if finished is None or first is None:
        return None
    if not _is_same(block, [first, *lines[block.leaf.start + 1 : block.leaf.end]]):
        return None
    return Cut([finished], first, block.leaf.start + 1, _steps(block, finished, resume), _gap(block, lines))


def cut_inside(block: OpenBlock, lines: list[str], length: int, resume: Resume | None) -> Cut | None:
    """The cut inside of an open paragraph that begins on the first line, behind `length` characters of its text.

    None if the rest would be other blocks.
    """
    done, offset = block.leaf.text[:length], _offsets(block.path, lines[0])[-1]
    place = done.count("\n")
    if offset is None:
        return None
    rest = block.leaf.text.split("\n")[place][length - (done.rfind("\n") + 1) :]
    # The parser drops blanks at the end of a paragraph, which count once more text follows.
    blanks = lines[place][len(lines[place].rstrip(" ")) :]
    first = lines[0][:offset].ljust(offset) + CONTINUED + rest.rstrip(" ") + blanks
    nodes, _ = parse([first, *lines[place + 1 :]])
    if not nodes or _shape(open_block(nodes[0])) != _shape(block):
        return None
    block.leaf.text = done
    return Cut([block.path[0] if block.path else block.leaf], first, place + 1, printed_steps(block, resume))


def printed_steps(block: OpenBlock, resume: Resume | None) -> tuple[Step, ...]:
    """The containers of an open block of which a line is on the screen."""
    steps = resume.steps if resume else ()
    known = (*steps, *(Step() for _ in block.path[len(steps) :]))
    return tuple(
        Step(node.kind == "item", node.number if step.number is None else step.number)
        for node, step in zip(block.path, known, strict=False)
    )


def _before(node: Node, leaf: Node) -> Node | None:
    """The part of a container that comes before an open block; None if there is none."""
    if node is leaf:
        return None
    last = _before(node.children[-1], leaf)
    children = [*node.children[:-1], *([last] if last else [])]
    if not children:
        return None
    return msgspec.structs.replace(node, children=children)


def _steps(block: OpenBlock, finished: Node, resume: Resume | None) -> tuple[Step, ...]:
    """How the containers of an open block go on once what is before it is on the screen."""
    steps: list[Step] = []
    part: Node | None = finished
    for depth, node in enumerate(block.path):
        before = resume.steps[depth] if resume and len(resume.steps) > depth else Step()
        number = node.number if before.number is None else before.number
        # A part of the last child is finished if the part of this node reaches it.
        steps.append(
            Step(
                is_printed=node.kind == "item" and (part is not None or before.is_printed),
                number=None if number is None else number + len(node.children) - 1,
            )
        )
        reaches = part is not None and len(part.children) == len(node.children)
        part = part.children[-1] if part is not None and reaches else None
        resume = resume if len(node.children) == 1 else None
    return tuple(steps)


def _gap(block: OpenBlock, lines: list[str]) -> int | None:
    """The depth of the innermost node with a finished one before it, if a blank line separates them."""
    inner = [*block.path[1:], block.leaf]
    for depth in range(len(block.path) - 1, -1, -1):
        if len(block.path[depth].children) > 1:
            before, in_quote = (
                block.path[depth].children[-2],
                any(node.kind == "quote" for node in block.path[: depth + 1]),
            )
            return depth + 1 if are_apart(before, inner[depth], lines, in_quote=in_quote) else None
    return None


def _first_line(block: OpenBlock, lines: list[str]) -> str | None:
    """The first line of an open block, with the markers of the items around it in the place of their indentation.

    None if a marker does not fit there, or would not have the same content.
    """
    line = lines[block.leaf.start]
    offsets: list[int | None] = [0]
    for node in block.path:
        begin = offsets[-1]
        end = None if begin is None else _content_offset(node, lines[node.start], begin)
        if begin is not None and end is not None and node.kind == "item" and node.start < block.leaf.start:
            line = line[:begin].ljust(begin) + lines[node.start][begin:end].ljust(end - begin) + line[end:]
        offsets.append(end)
    return line if None not in offsets and _offsets(block.path, line) == offsets else None


def _offsets(path: list[Node], line: str) -> list[int | None]:
    """The columns where the contents of the containers begin on their first line."""
    offsets: list[int | None] = [0]
    for node in path:
        offsets.append(None if offsets[-1] is None else _content_offset(node, line, offsets[-1]))
    return offsets


def _content_offset(node: Node, line: str, begin: int) -> int | None:
    if node.kind == "list":
        return begin
    found = (_ITEM if node.kind == "item" else _QUOTE).match(line, begin)
    if found is None:
        return None
    if node.kind == "quote":
        return found.end()
    is_alone = found.end() == len(line) or len(found[1]) > _WIDEST_GAP
    return found.end() - len(found[1]) + 1 if is_alone else found.end()


def _is_same(block: OpenBlock, source: list[str]) -> bool:
    nodes, _ = parse(source)
    return len(nodes) == 1 and _shape(open_block(nodes[0])) == _shape(block) and _content(nodes[0]) == block.leaf.text


def _shape(block: OpenBlock) -> list[str]:
    return [*(node.kind for node in block.path), block.leaf.kind]


def _content(node: Node) -> str:
    return open_block(node).leaf.text
