"""The conformance list is complete: each of its 92 points has a test with a check, and docs/conformance.md names it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
FILES = sorted(HERE.glob("test_conformance_*.py"))
POINTS = range(1, 93)


@cache
def named_tests():
    """(point, name, function) of every test of a point."""
    nodes = [node for path in FILES for node in ast.parse(path.read_text("utf-8")).body]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = [(re.match(r"test_(\d\d)_", function.name), function) for function in functions]
    return [(int(match[1]), function.name, function) for match, function in found if match]


def checks(function):
    """The assertions, expected exceptions and sample comparisons in a test."""
    called = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    asserted = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    return [*asserted, *(name for name in called if name in ("check_sample", "pytest.raises"))]


def rows():
    """Point to the names of its tests on the page."""
    found = re.findall(r"^\| (\d+) \| .+ \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {int(point): set(re.findall(r"`(test_\w+)`", names)) for point, names in found}


def test_every_point_has_a_test():
    assert {point for point, *_ in named_tests()} == set(POINTS)


@pytest.mark.parametrize("point", POINTS)
def test_the_test_of_a_point_checks_something_and_is_not_skipped(point):
    for number, name, function in named_tests():
        if number == point:
            assert checks(function), name
            marks = [ast.unparse(mark) for mark in function.decorator_list]
            assert not [mark for mark in marks if "skip" in mark or "xfail" in mark], name


def test_the_page_names_every_point_and_its_tests():
    tested = {point: {name for number, name, _ in named_tests() if number == point} for point in POINTS}
    assert rows() == tested
