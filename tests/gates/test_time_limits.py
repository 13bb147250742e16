"""No test fails because a machine is slow: durations are compared with a limit in `tests/patience.py` alone."""

import ast

import pytest
from source_tree import REPOSITORY

_CLOCKS = frozenset({"monotonic", "perf_counter", "process_time", "thread_time", "time"})


def limits(tree: ast.AST) -> list[int]:
    """The lines that assert that a duration is below a limit."""
    return [
        compared.lineno
        for asserted in ast.walk(tree)
        if isinstance(asserted, ast.Assert)
        for compared in ast.walk(asserted)
        if isinstance(compared, ast.Compare)
        and isinstance(compared.ops[-1], ast.Lt | ast.LtE)
        and any(_is_duration(operand) for operand in (compared.left, *compared.comparators[:-1]))
    ]


def _is_duration(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in {"took", "duration"}
    if isinstance(node, ast.Attribute):
        return node.attr == "seconds"
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_clock(node.left)


def _is_clock(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CLOCKS


def test_no_test_asserts_a_limit_of_time():
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for path in sorted((REPOSITORY / "tests").rglob("*.py"))
        if path.name != "patience.py"
        for line in limits(ast.parse(path.read_text()))
    ]
    assert not found, "use patience.no_wait, cpu_limit or call_limit, or a benchmark"


@pytest.mark.parametrize(
    ("line", "is_limit"),
    [
        ("assert time.monotonic() - began < 5", True),
        ("assert done and (time.process_time() - began) <= 0.2", True),
        ("assert 1 <= time.perf_counter() - began < 2", True),
        ("assert result.seconds < 3", True),
        ("assert took < 3", True),
        ("assert time.monotonic() < until", False),
        ("assert time.monotonic() - began >= 0.06", False),
        ("assert min(spent) < 8 * min(looped)", False),
    ],
)
def test_the_gate_finds_limits_of_time(line: str, is_limit: bool):
    assert bool(limits(ast.parse(line))) is is_limit
