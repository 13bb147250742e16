"""docs/security.md names existing tests, commands and pages."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "security.md").read_text()
TABLE = PAGE.split("## Attacks and their tests")[1]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("| ")][
    1:
]


def functions_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_each_attack_has_an_answer_and_existing_tests(row: list[str]):
    attack, answer, files = row
    assert attack and answer
    named = re.findall(r"`([^`]*)`", files)
    assert named and files == ", ".join(f"`{name}`" for name in named)
    for name in named:
        functions = functions_in(REPOSITORY / name)
        assert any(function.startswith("test_") for function in functions) or "main" in functions, name


def test_no_attack_is_listed_twice():
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 30


def test_each_path_of_a_test_on_the_page_exists():
    for name in re.findall(r"tests/[\w/]+\.\w+", PAGE):
        assert (REPOSITORY / name).is_file(), name


def test_each_page_that_is_linked_exists_with_its_heading():
    links = re.findall(r"\]\(([^)\s]+)\)", PAGE)
    assert links
    for link in links:
        file, _, heading = link.partition("#")
        text = (REPOSITORY / "docs" / file).read_text()
        titles = {re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-") for line in text.splitlines()}
        assert not heading or heading in titles, link


def test_each_make_target_on_the_page_exists():
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = re.findall(r"`make ([\w-]+)`", PAGE)
    assert len(targets) >= 5
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_numbers_on_the_page_are_those_of_the_attack_list():
    cases = (REPOSITORY / "tests" / "attacks" / "attacks.jsonl").read_text().count("\n")
    assert {int(number) for number in re.findall(r"(\d+) (?:attacks|collected cases)", PAGE)} == {cases}
