"""The numbers of docs/attacks.md are those of the lists."""

import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import config_cases
import path_cases
import scoring
import shell_cases

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "attacks.md").read_text()
KINDS = ("shell", "path", "config", "text", "wire")
WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def test_the_table_counts_the_cases_of_each_kind():
    cases = [case for kind in KINDS for case in scoring.cases(kind)]
    waiting = [case for case in cases if scoring.is_waiting(case)]
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (\d+) \| 0 \| 0 \|$", PAGE, re.MULTILINE))
    assert rows == {k: str(n) for k, n in Counter(case["kind"] for case in cases if case not in waiting).items()}
    assert f"lists {len(cases)} cases" in PAGE and f"{WORDS[len(waiting)]} further `wire` cases" in PAGE
    assert {case["kind"] for case in waiting} == {"wire"}
    assert f"{len(cases)} attacks with expected verdicts" in (DOCS / "security.md").read_text()


def test_the_page_counts_the_projects_own_cases():
    paths, shells, configs = (_count(module) for module in (path_cases, shell_cases, config_cases))
    assert f"contain {paths} paths, {shells} lines of bash and {configs} files of the project's own" in PAGE


def _count(module: ModuleType) -> int:
    return sum(len(cases) for cases in module.CASES.values())
