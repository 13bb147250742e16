"""Mutates what mutmut leaves alone: the constants, defaults and properties of a module.

`python scripts/constant_mutants.py FILE TEST...`, in a copy of the tree; prints `change: killed|survived|timeout`. Each
number becomes one more, each bool the opposite, and each element of a tuple or set is left out. A string loses a range
or gets a higher limit if it is a pattern, else it becomes another string. Docstrings and annotations stay.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LONGEST_RUN_S = 120
_CHARACTER = r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|[0-9A-Za-z@~?/ ]"
_RANGE = re.compile(rf"(?:{_CHARACTER})-(?:{_CHARACTER})")
_SINGLE = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")
_BOUND = re.compile(r"\{\{?\d*,(\d+)\}")


class Change(NamedTuple):
    """A replacement for a part of a source file; offsets in bytes."""

    begin: int
    end: int
    put: str


def changes(source: str) -> Iterator[Change]:
    """All changes to code that is not the body of a plain function."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for node in _constants(ast.parse(source)):
        begin = lines[node.lineno - 1] + node.col_offset
        end = lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        for put in _instead(node, source.encode()[begin:end].decode()):
            yield Change(begin, end, put)


def _constants(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
                pass
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
                pass  # a docstring
            case ast.AnnAssign(value=value):
                if value is not None:
                    yield from _values(value)
            case ast.Assign(value=value):
                yield from _values(value)
            case ast.Return(value=value) if value is not None:
                yield from _values(value)
            case _:
                yield from _constants(child)


def _values(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Subscript):
        return  # a type
    if isinstance(node, ast.expr):
        yield node
    if not isinstance(node, ast.JoinedStr) and not _is_word_list(node):
        for child in ast.iter_child_nodes(node):
            yield from _values(child)


def _is_word_list(node: ast.AST) -> bool:
    """Whether it is a list of strings, from which each is left out in turn; changing them would test the same."""
    match node:
        case ast.Set(elts=parts) | ast.Tuple(elts=[_, _, _, *_] as parts):
            return all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
        case _:
            return False


def _instead(node: ast.expr, text: str) -> Iterator[str]:
    match node:
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() as value):
            yield str(value + 1)
        case ast.Constant(value=str()) | ast.JoinedStr() if text[:1] in "\"'rf":
            yield from _strings(text)
        case ast.Tuple(elts=parts) | ast.Set(elts=parts) if len(parts) > 1:
            for left_out in parts:
                kept = [ast.unparse(part) for part in parts if part is not left_out]
                yield f"({', '.join(kept)},)" if isinstance(node, ast.Tuple) else f"{{{', '.join(kept)}}}"
        case ast.BoolOp(op=ast.And(), values=parts):
            yield " or ".join(ast.unparse(part) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            yield " and ".join(ast.unparse(part) for part in parts)
        case _:
            pass


def _strings(text: str) -> Iterator[str]:
    """Replacements for a string: patterns that match less or more, or another word."""
    cuts = [match.span() for match in _RANGE.finditer(text)] if "[" in text or "\\" in text else []
    cuts += [match.span() for match in _SINGLE.finditer(text) if not any(a <= match.start() < b for a, b in cuts)]
    for begin, end in cuts:
        yield text[:begin] + text[end:]
    bounds = [*_BOUND.finditer(text)]
    for bound in bounds:
        yield text[: bound.start(1)] + str(int(bound[1]) + 1) + text[bound.end(1) :]
    if not cuts and not bounds:
        yield f"{text[:-1]}XX{text[-1]}"


def fate(tests: list[str]) -> str:
    """`killed` if the tests fail in the current tree, else `survived`; `timeout` after two minutes."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(  # noqa: S603 - pytest on a copy
            command, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True, timeout=_LONGEST_RUN_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return "killed" if done.returncode else "survived"


def main() -> None:
    """Try all changes of one file, then restore it."""
    path, tests = Path(sys.argv[1]), sys.argv[2:]
    source = path.read_bytes()
    if fate(tests) != "survived":
        sys.exit("the tests fail without any change")
    try:
        for change in changes(source.decode()):
            path.write_bytes(source[: change.begin] + change.put.encode() + source[change.end :])
            line = source[: change.begin].count(b"\n") + 1
            was = source[change.begin : change.end].decode()
            print(f"{line} | {' '.join(was.split())} | {' '.join(change.put.split())}: {fate(tests)}", flush=True)
    finally:
        path.write_bytes(source)


if __name__ == "__main__":
    main()
