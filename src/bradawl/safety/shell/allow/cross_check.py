"""A second reader of a shell line, the grammar of tree-sitter, that may only say no."""

from functools import cache
from typing import TYPE_CHECKING

from bradawl.safety.shell.allow.parser import Line, Token
from bradawl.safety.shell.errors import NotUnderstood

if TYPE_CHECKING:
    from tree_sitter import Language, Node, TreeCursor

_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_WHOLE = frozenset({"string", "raw_string", "comment"})
"""Nodes whose inside is not looked at: the first reader has seen that nothing in it is special."""
_GROUPS = frozenset(
    {"program", "list", "pipeline", "command_name", "concatenation", "redirected_statement", "file_redirect"}
    | {"variable_assignment", "variable_assignments", "unary_expression", "binary_expression"}
)
_LEAVES = frozenset(
    {"word", "number", "variable_name", "file_descriptor", "test_operator", "extglob_pattern", "regex"}
    | {";", "&&", "||", "|", "\n", "<", ">", ">>", "&>", "&>>", ">&", "=", "==", "!=", "!", "[", "]"}
    | {"export", "unset", "declare", "typeset", "local", "readonly", "unsetenv"}
)
_KNOWN = _COMMANDS | _WHOLE | _GROUPS | _LEAVES


def confirm(line: Line) -> None:
    """Returns if the grammar reads the same words and commands, byte for byte. Raises `NotUnderstood`.

    The first call of a process loads the grammar, about 10 ms. May be called from several threads.
    """
    try:
        from tree_sitter import Parser

        # A parser holds state while it works; making one costs a third of a microsecond, so nobody shares one.
        root = Parser(_language()).parse(line.text.encode()).root_node
    except (ImportError, ValueError):
        raise NotUnderstood from None  # a system without the grammar, or one of another version
    if root.has_error:
        raise NotUnderstood
    pieces, starts = _pieces(root.walk())
    _check_cover(pieces, line.tokens)
    if starts != {command.start for pipeline in line.pipelines for command in pipeline.commands if command.words}:
        raise NotUnderstood


@cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _pieces(cursor: "TreeCursor") -> tuple[list[tuple[int, int]], set[int]]:
    """Byte ranges of the smallest parts, in order, and where commands begin."""
    pieces: list[tuple[int, int]] = []
    starts: set[int] = set()
    while True:
        node = cursor.node
        if node is None or node.type not in _KNOWN or node.is_missing:
            raise NotUnderstood
        if node.type in _COMMANDS:
            starts.add(node.start_byte)
        if _goes_down(node) and cursor.goto_first_child():
            continue
        if node.type != "comment" and node.end_byte > node.start_byte:
            pieces.append((node.start_byte, node.end_byte))
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return pieces, starts


def _goes_down(node: "Node") -> bool:
    return node.type not in _WHOLE


def _check_cover(pieces: list[tuple[int, int]], tokens: tuple[Token, ...]) -> None:
    """Every token must be made of whole pieces without a gap, and every piece must belong to one."""
    place = 0
    for token in tokens:
        if token.kind == "newline":
            # The grammar shows only some line ends; those it shows cover exactly their byte.
            place += place < len(pieces) and pieces[place] == (token.start, token.end)
            continue
        reached = token.start
        while reached < token.end:
            if place == len(pieces) or pieces[place][0] != reached or pieces[place][1] > token.end:
                raise NotUnderstood
            reached = pieces[place][1]
            place += 1
    if place != len(pieces):
        raise NotUnderstood
