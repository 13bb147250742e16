"""Tells whether a file can still be parsed, for languages with a fast parser."""

import ast
import warnings

import msgspec

_LARGEST = 1_000_000
"""Characters of a file that is parsed; that takes up to a second."""


class SyntaxFault(msgspec.Struct, frozen=True):
    """Where a text can't be parsed, and why."""

    language: str
    line: int
    reason: str


def fault_in(text: str, path: str) -> SyntaxFault | None:
    """The first syntax error of a file's text; None if there is none, or if nobody can tell."""
    if not _has_parser(text, path):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the text
            compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return SyntaxFault("Python", error.lineno or 0, error.msg)
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def is_parsed(text: str, path: str) -> bool:
    """Whether a parser for the file exists here and accepts its text."""
    return _has_parser(text, path) and fault_in(text, path) is None


def _has_parser(text: str, path: str) -> bool:
    return path.endswith((".py", ".pyi", ".pyw")) and len(text) <= _LARGEST
