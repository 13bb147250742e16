"""docs/conformance-tools.md is complete: each row names tests that exist, run and check something."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHECKS = frozenset({"pytest.raises", "cpu_limit", "no_wait", "call_limit", "cancel_when"})
PAGE = TESTS.parent / "docs" / "conformance-tools.md"


@cache
def functions():
    """Test functions by name; several files may define the same name."""
    found = {}
    for path in sorted(TESTS.glob("*/test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.setdefault(node.name, []).append(node)
    return found


def rows():
    """The number of each row, and the tests it names."""
    cells = re.findall(r"^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [(int(number), re.findall(r"`(\w+)`", names)) for number, names in cells]


def checks(function):
    """Assertions of a test, and its calls of what fails by itself."""
    called = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    asserted = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    return [*asserted, *(name for name in called if name in CHECKS or name.endswith(".wait_for"))]


def is_skipped(function):
    """True for a test that never runs; a test with a condition (`skipif`) is not skipped."""
    return any(re.match(r"pytest\.mark\.(skip|xfail)\b", ast.unparse(mark)) for mark in function.decorator_list)


def test_each_row_occurs_once_and_names_tests():
    assert [number for number, _ in rows()] == list(range(1, 16))
    assert all(names and len(names) == len(set(names)) for _, names in rows())


@pytest.mark.parametrize("name", sorted({name for _, names in rows() for name in names}))
def test_each_test_that_is_named_exists_runs_and_checks_something(name):
    there = functions().get(name, [])
    assert there, f"docs/conformance-tools.md names {name}, which does not exist"
    assert all(checks(function) and not is_skipped(function) for function in there)


def test_each_reason_for_a_missing_test_names_its_row():
    _, _, text = PAGE.read_text("utf-8").partition("## Not tested\n")
    reasons = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    assert reasons
    assert all(re.search(r"\(\d+\)\.?$", reason.strip()) for reason in reasons)
