"""Confirms a parsed line with a second, independent parser: the tree-sitter grammar for bash."""

from functools import cache
from typing import TYPE_CHECKING

from bradawl.safety.shell.allow.parser import ParsedLine, Token
from bradawl.safety.shell.errors import UnsupportedSyntax

if TYPE_CHECKING:
    from tree_sitter import Language, Node, TreeCursor

_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_WHOLE = frozenset({"string", "raw_string", "comment"})
"""Nodes whose contents are skipped: the first parser has checked that they hold nothing special."""
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


def confirm(line: ParsedLine) -> None:
    """Return if the grammar finds the same words and commands, byte for byte. Raises `UnsupportedSyntax`.

    Thread-safe. The first call in a process loads the grammar, which takes about 10 ms.
    """
    try:
        from tree_sitter import Parser

        # A parser has state. Creating one takes a third of a microsecond, so none is shared between threads.
        root = Parser(_language()).parse(line.text.encode()).root_node
    except (ImportError, ValueError):
        raise UnsupportedSyntax from None  # the grammar is missing, or has an incompatible version
    if root.has_error:
        raise UnsupportedSyntax
    pieces, starts = _pieces(root.walk())
    _check_cover(pieces, line.tokens)
    if starts != {command.start for pipeline in line.pipelines for command in pipeline.commands if command.words}:
        raise UnsupportedSyntax


@cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _pieces(cursor: "TreeCursor") -> tuple[list[tuple[int, int]], set[int]]:
    """Byte ranges of the leaf nodes in order, and the start of each command."""
    pieces: list[tuple[int, int]] = []
    starts: set[int] = set()
    while True:
        node = cursor.node
        if node is None or node.type not in _KNOWN or node.is_missing:
            raise UnsupportedSyntax
        if node.type in _COMMANDS:
            starts.add(node.start_byte)
        if _goes_down(node) and cursor.goto_first_child():
            continue
        if node.type != "comment":
            pieces.append((node.start_byte, node.end_byte))
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return pieces, starts


def _goes_down(node: "Node") -> bool:
    return node.type not in _WHOLE


def _check_cover(pieces: list[tuple[int, int]], tokens: tuple[Token, ...]) -> None:
    """Every token must consist of whole pieces without a gap, and every piece must belong to a token."""
    place = 0
    for token in tokens:
        if token.kind == "newline":
            # The grammar has nodes for some newlines only; each of them covers exactly its byte.
            place += place < len(pieces) and pieces[place] == (token.start, token.end)
            continue
        reached = token.start
        while reached < token.end:
            if place == len(pieces) or pieces[place][0] != reached or pieces[place][1] > token.end:
                raise UnsupportedSyntax
            reached = pieces[place][1]
            place += 1
    if place != len(pieces):
        raise UnsupportedSyntax
