"""The result of `grep`: what is shown of too many matches, and the definitions around few."""

from pathlib import Path

import pytest
from tool_calls import RG

from bradawl.tools.grep import Grep
from bradawl.workspace.folder_walk import own_ignore_file


@pytest.fixture(name="grep")
def _grep() -> Grep:
    return Grep(RG, ignore_file=own_ignore_file)


async def found(place, grep: Grep, pattern: str, **options) -> str:
    return await place.text(grep, pattern=pattern, **options)


def tree(place, **files: str) -> None:
    for name, text in files.items():
        path = Path(place.cwd, name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


# ------------------------------------------------------------------ what is shown of too many matches


async def test_of_too_many_matches_the_likely_files_are_shown_first_and_the_others_are_counted(place, grep):
    tree(
        place,
        src__use_py="Thing()\n" * 6,
        src__thing_py="Thing()\n" * 9 + "class Thing:\n",
        src__many_py="Thing()\n" * 40,
        tests__a__one_py="Thing()\n" * 3,
        tests__a__two_py="class Thing:\n" * 3,
        docs__guide_md="Thing\n" * 2,
        vendor__x_py="class Thing:\n" * 50,
    )
    text = await found(place, grep, "Thing", limit=15)
    assert text.splitlines() == [
        *("src/thing.py", "1: Thing()", "2: Thing()", "3: Thing()", "4: Thing()", "10: class Thing:", "[5 more here]"),
        *("src/many.py", *(f"{n}: Thing()" for n in range(1, 6)), "[35 more here]"),
        *("src/use.py", *(f"{n}: Thing()" for n in range(1, 6)), "[1 more here]"),
        "[114 matches in 7 files: 15 shown, likely files first; not shown: vendor/x.py 50, tests/a/ 6 in 2 files, "
        "docs/guide.md 2; narrow with path or include]",
    ]


async def test_lines_that_are_too_long_together_are_cut_from_every_file(place, tmp_path, grep):
    for name in "abcd":
        (tmp_path / f"{name}.py").write_text(("x" + "-" * 480 + "\n") * 40)
    lines = (await found(place, grep, "x")).splitlines()
    assert [line for line in lines if len(line) < 90 and not line.startswith("[")] == ["a.py", "b.py", "c.py", "d.py"]
    assert sum(map(len, lines)) < 30_500
    assert lines[-1] == "[160 matches in 4 files: 60 shown, likely files first; narrow with path or include]"


async def test_lines_around_a_match_end_at_a_match_that_is_not_shown(place, grep):
    tree(place, a="-\nx\n-\nx\n-\n-\nx\n-\n")
    text = await found(place, grep, "x", context=3, limit=1)
    assert text == "a\n1- -\n2: x\n3- -\n[3 matches: 1 shown; narrow with path or include]"


async def test_the_defining_file_is_found_among_more_matches_than_are_read(place, tmp_path, grep):
    for number in range(150):
        (tmp_path / f"{number:03}.py").write_text("print(thing + thing)  # and a long remark about the thing\n" * 60)
    (tmp_path / "zz.py").write_text("\n    async def thing_of(self):\n")
    for pattern in ("thing", r"\bthing_of\(|thing"):
        lines = (await found(place, grep, pattern)).splitlines()
        assert (lines[0] == "zz.py") == (pattern == "thing")
        assert "9001 matches in 151 files: 60 shown" in lines[-1]


# ------------------------------------------------------------------ the definition around a match

CODE = """\
LIMIT = 3


class Box:
    size = LIMIT

    def turn(self):
        a = LIMIT
        return a

    @property
    def side(self):
        return LIMIT


def free():
    return 1
"""


async def test_few_matches_are_shown_below_the_definition_around_them(place, grep):
    tree(place, box_py=CODE, notes_txt="LIMIT\n")
    assert (await found(place, grep, "LIMIT")).splitlines() == [
        *("box.py", "1: LIMIT = 3", "  in Box (4-13)", "5:     size = LIMIT"),
        *("  in Box.turn (7-9)", "8:         a = LIMIT"),
        *("  in Box.side (11-13)", "13:         return LIMIT", "notes.txt", "1: LIMIT"),
    ]
    assert await found(place, grep, "return a", path="box.py") == "  in Box.turn (7-9)\n9:         return a"
    assert await found(place, grep, "LIMIT", output_mode="count") == "box.py: 4\nnotes.txt: 1\n[5 matches in 2 files]"


async def test_lines_before_a_match_count_as_part_of_its_definition(place, grep):
    tree(place, box_py=CODE)
    assert (await found(place, grep, "return", context=1)).splitlines() == [
        *("box.py", "  in Box.turn (7-9)", "8-         a = LIMIT", "9:         return a", "10- ", "--"),
        *("  in Box.side (11-13)", "12-     def side(self):", "13:         return LIMIT", "14- ", "--"),
        *("  in free (16-17)", "16- def free():", "17:     return 1"),
    ]


async def test_the_name_of_a_definition_is_not_above_lines_of_the_one_before(place, grep):
    tree(place, a_py="def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    assert (await found(place, grep, "return 2", context=4)).splitlines() == [
        *("a.py", "2-     return 1", "3- ", "4- ", "  in two (5-6)", "5- def two():", "6:     return 2"),
    ]


@pytest.mark.parametrize(
    ("files", "is_named"),
    [
        ({"a_py": "def f():\n" + "    x\n" * 40}, True),
        ({"a_py": "def f():\n" + "    x\n" * 41}, False),
        ({f"a{n}_py": "def f():\n    x\n" for n in range(8)}, True),
        ({f"a{n}_py": "def f():\n    x\n" for n in range(9)}, False),
        ({"a_py": "def f():\n    x\n" + "#\n" * 200_000}, False),
        ({"a_weird": "def f():\n    x\n"}, False),
        ({"a_py": 'def f(:\n    x\n"""'}, True),
    ],
)
async def test_definitions_are_named_for_few_matches_in_small_files_of_a_known_language(place, grep, files, is_named):
    tree(place, **files)
    assert ("  in f (" in await found(place, grep, "^ +x$")) is is_named


async def test_definitions_are_named_in_languages_with_a_grammar_for_few_matches(place, grep):
    code = "type Box struct {}\n\nfunc (b Box) Open() {\n\tneedle()\n}\n"
    tree(place, **{f"{name}_go": f"package x\n\n{code}" for name in "abcd"})
    texts = (await found(place, grep, "needle")).splitlines()
    assert texts == [
        *(line for name in "abc" for line in (f"{name}.go", "  in Box.Open (5-7)", "6: \tneedle()")),
        *("d.go", "6: \tneedle()"),
    ]
    tree(place, e_go="package x\n" + "func f() {\n\tneedle()\n}\n" * 20)
    assert "  in " not in await found(place, grep, "needle")
