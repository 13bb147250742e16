"""Which files and lines of a search come first."""

import pytest

from bradawl.tools.searching.relevance import definition_pattern, is_definition, kind_rank, ranked, shares
from bradawl.tools.searching.result_text import folder_counts
from patience import cpu_limit


@pytest.mark.parametrize(
    ("line", "matched", "expected"),
    [
        ("def remove(self):", "remove", True),
        ("    async def remove(self):", "rem", True),
        ("    async def remove(self):", "def remove", True),
        ("class Box(Base):", "Box", True),
        ("class Box(Base):", "Base", False),
        ("export default class Box {", "Box", True),
        ("export const box = 3", "box", True),
        ("pub(crate) fn turn(x: u8) {", "turn", True),
        ("impl Box {", "Box", True),
        ("func (b *Box) Turn() {", "Turn", True),
        ("type Box struct {", "Box", True),
        ("#define LIMIT 3", "LIMIT", True),
        ("    public static int turn(int x) {", "turn", True),
        ("  private async turn(x) {", "turn", True),
        ("LIMIT = 3", "LIMIT", True),
        ("LIMIT: Final[int] = 3", "LIMIT", True),
        ("    limit = 3", "limit", False),
        ("LIMIT == 3", "LIMIT", False),
        ("return remove(x)", "remove", False),
        ("from x import Box", "Box", False),
        ("x = remove()", "remove", False),
    ],
)
def test_a_line_that_defines_the_matched_name_is_recognised(line, matched, expected):
    start = line.index(matched)
    assert is_definition(line.encode(), start, start + len(matched)) is expected


@pytest.mark.parametrize("part", [b"public ", b"pub(a a", b"def ", b"x:", b"(", b"\t", b"static a<", b"a "])
def test_a_long_line_is_judged_quickly(part):
    line = part * 200_000
    with cpu_limit(0.3):
        is_definition(line, 0, 5)


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("src/box.py", 0),
        ("contest.py", 0),
        ("Makefile", 0),
        ("tests/box.py", 1),
        ("src/box_test.go", 1),
        ("src/box.spec.ts", 1),
        ("conftest.py", 1),
        ("examples/box.py", 1),
        ("docs/conf.py", 2),
        ("README.md", 2),
        ("data/box.json", 2),
        ("vendor/github.com/box.go", 3),
        ("web/box.min.js", 3),
        ("poetry.lock", 3),
        ("package-lock.json", 3),
        (".github/box.yml", 3),
        ("api/box_pb2.py", 3),
    ],
)
def test_source_comes_before_tests_texts_and_generated_files(path, rank):
    assert kind_rank(path) == rank


def test_files_are_ranked_by_kind_then_definition_then_matches_then_path():
    counts = {"/w/a.py": 1, "/w/b.py": 2, "/w/c.py": 1, "/w/tests/d.py": 9, "/w/e.md": 9, "/w/z.py": 1}
    order = ["/w/z.py", "/w/b.py", "/w/a.py", "/w/c.py", "/w/tests/d.py", "/w/e.md"]
    assert ranked(counts, {"/w/z.py"}, "/w") == order
    assert ranked(dict(reversed(counts.items())), {"/w/z.py"}, "/w") == order


def test_a_folder_of_tests_that_is_searched_itself_is_ranked_by_what_is_below_it():
    assert ranked({"/w/tests/docs/a.py": 5, "/w/tests/b.py": 1}, (), "/w/tests") == [
        "/w/tests/b.py",
        "/w/tests/docs/a.py",
    ]


@pytest.mark.parametrize(
    ("counts", "limit", "given"),
    [
        ((100, 1, 1), 20, (18, 1, 1)),
        ((100, 100), 20, (10, 10)),
        ((9, 9, 9), 12, (5, 5, 2)),
        ((3, 3, 3), 4, (3, 1)),
        ((3,), 1, (1,)),
    ],
)
def test_each_file_gets_a_share_of_the_limit(counts, limit, given):
    named = dict(zip("abc", counts, strict=False))
    assert tuple(shares(list(named), named, limit).values()) == given


@pytest.mark.parametrize(
    ("pattern", "is_name"),
    [("Thing", True), (r"\bThing\b", True), ("Thing\\(", True), ("class Thing", True), ("a|b", False), ("a.b", False)],
)
def test_only_a_plain_name_is_searched_as_a_definition(pattern, is_name):
    assert (definition_pattern(pattern) is not None) is is_name


def test_files_that_are_not_shown_are_counted_by_folder_in_few_entries():
    assert folder_counts({}) == []
    assert folder_counts({"a.py": 2, "t/b.py": 1, "t/c.py": 3}) == ["t/ 4 in 2 files", "a.py 2"]
    counts = {f"d{number % 9}/e/f{number}.py": 1 for number in range(90)}
    assert folder_counts(counts) == [
        *(f"d{number}/ 10 in 10 files" for number in range(5)),
        "elsewhere 40 in 40 files",
    ]
    deep = {f"a/b{number % 9}/c/f{number}.py": 1 for number in range(90)}
    assert folder_counts(deep) == ["a/ 90 in 90 files"]
    assert folder_counts({"two\nlines/a": 1, "two\nlines/b": 1}) == ["two\\nlines/ 2 in 2 files"]
