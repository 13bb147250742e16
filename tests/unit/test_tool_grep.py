import random
import time

import pytest
from tool_calls import RG, workspace

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.tools.grep import Grep

BOTH = pytest.mark.parametrize("grep", [Grep(RG), Grep(None)], ids=["ripgrep", "own"])
NOTE = "\n[ripgrep is not installed: this search was slower]"


@pytest.fixture
def place(tmp_path):
    with workspace(tmp_path) as made:
        yield made


def found(place, grep: Grep, pattern: str, **options) -> str:
    return place.text(grep, pattern=pattern, **options).removesuffix(NOTE)


@BOTH
def test_lines_are_shown_with_relative_paths_sorted(place, tmp_path, grep):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").write_text("a needle\r\nnone\nneedle")
    (tmp_path / "sub.txt").write_text("needle\n")
    (tmp_path / ".hidden").write_text("needle\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("needle\n")
    (tmp_path / "skip.log").write_text("needle\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    expected = ".hidden:1: needle\nsub/x.py:1: a needle\nsub/x.py:3: needle\nsub.txt:1: needle"
    assert found(place, grep, "needle$") == expected
    assert found(place, grep, "needle", path="sub/x.py", include="*.md") == "\n".join(expected.splitlines()[1:3])
    assert found(place, grep, "needle", path="skip.log") == "skip.log:1: needle"
    assert found(place, grep, "needle", path=str(tmp_path / "sub")) == "\n".join(expected.splitlines()[1:3])


@BOTH
@pytest.mark.parametrize(
    ("include", "names"),
    [
        ("*.py", ["a.py", "d/b.py"]),
        ("*.{ts,tsx}", ["c.ts", "d/e.tsx"]),
        ("*.ts,*.tsx", ["c.ts", "d/e.tsx"]),
        ("d/*.py", ["d/b.py"]),
        ("**/*.tsx", ["d/e.tsx"]),
        ("a.py", ["a.py"]),
        ("[ab].py", ["a.py", "d/b.py"]),
        ("!*.py", []),
    ],
)
def test_include_chooses_by_name(place, tmp_path, grep, include, names):
    (tmp_path / "d").mkdir()
    for name in ("a.py", "c.ts", "d/b.py", "d/e.tsx", "ignored.py"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".gitignore").write_text("ignored*\n")
    text = found(place, grep, "x", include=include)
    assert [line.partition(":")[0] for line in text.splitlines()] == (names or ["No matches for 'x'"])


@BOTH
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfneedle\n", "f:1: needle"),
        ("\ufeffa\nneedle\n".encode("utf-16-le"), "f:2: needle"),
        (b"caf\xe9 needle\n", "f:1: caf\ufffd needle"),
        (b"needle\n\0\n", "No matches"),
        (b"needle\n" + b"x" * 300_000 + b"\n\0", "No matches"),
        (b"x" * 10_000 + b"needle", "f:1: " + "x" * 500 + " [... line cut]"),
        (b"\n\nneedle\n\n", "f:3: needle"),
    ],
)
def test_any_file_is_read_as_text_or_left_out(place, tmp_path, grep, data, shown):
    (tmp_path / "f").write_bytes(data)
    assert found(place, grep, "needle$").startswith(shown)


@BOTH
def test_two_hundred_lines_are_shown_and_the_total_told(place, tmp_path, grep):
    for name in ("b", "a"):
        (tmp_path / name).write_text("x\n" * 150)
    lines = found(place, grep, "x").splitlines()
    assert lines[0] == "a:1: x"
    assert lines[199:] == ["b:50: x", "[300 matches, showing the first 200]"]


@BOTH
@pytest.mark.parametrize("pattern", ["interface{", "(?<=a )b", "(?i)A B", r"\ba b\b", "-b|a", "[[]|a"])
def test_patterns_of_either_dialect_are_understood(place, tmp_path, grep, pattern):
    (tmp_path / "f").write_text("a b interface{\n")
    assert found(place, grep, pattern) == "f:1: a b interface{"


@BOTH
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "foo("}, "not a regular expression"),
        ({"pattern": "*"}, "not a regular expression"),
        ({"pattern": ""}, "empty"),
        ({"pattern": "a\nb"}, "one line at a time"),
        ({"pattern": "a", "path": "none"}, "does not exist"),
        ({"pattern": "a", "path": ""}, "empty"),
    ],
)
def test_what_can_not_be_searched_is_told(place, grep, arguments, said):
    with pytest.raises(ToolError, match=said):
        place.call(grep, **arguments)


@BOTH
def test_nothing_found_says_in_what_it_looked(place, tmp_path, grep):
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        (tmp_path / "d" / name).write_text("x\n")
    assert found(place, grep, "none", path="d") == "No matches for 'none': searched 2 files in d"
    assert "one line at a time" in found(place, grep, r"x\nx", path="d")


def test_the_fallback_says_that_it_is_one(place, tmp_path):
    (tmp_path / "a").write_text("x\n")
    assert place.text(Grep(None), pattern="x").endswith(NOTE)
    assert place.text(Grep(RG), pattern="x") == "a:1: x"


def test_a_pattern_that_runs_for_ever_is_ended(place, tmp_path):
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    started = time.monotonic()
    with pytest.raises(ToolError, match="nested repetition"):
        place.call(Grep(None, timeout_s=0.3), pattern="^(a+)+$")
    assert time.monotonic() - started < 5


def test_effects_read_the_root(place):
    assert Grep(None).effects(Grep(None).params("x", "d"), place.context()) == Effects(reads=(f"{place.cwd}/d",))


WORDS = ("foo", "bar", "Foo", "x1", "", "foo bar", "  foo", "f\u00f6o", "a.b", "foo\r")
PATTERNS = ("foo", "^foo", "o$", "(?i)foo", r"\w\d", "f.o", r"^\s*$", "a\\.b", "foo|bar", "[^o]o")


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_give_the_same_on_any_tree(place, tmp_path, seed):
    draw = random.Random(seed)  # noqa: S311 - trees, not secrets
    for _ in range(25):
        path = tmp_path.joinpath(*draw.choices(("a", "b", "c.py", "d.ts", ".e"), k=draw.randint(1, 3)))
        if any(parent.is_file() for parent in path.parents) or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = draw.choices(WORDS, k=draw.randint(0, 12))
        path.write_text("\n".join(lines) + draw.choice(("", "\n", "\r\n", "\0")), newline="")
    (tmp_path / ".gitignore").write_text(draw.choice(("", "c.py\n", "a/b\n", "*\n!*/\n!*.py\n")))
    for pattern in draw.sample(PATTERNS, 4):
        include = draw.choice(("", "*.py", "{a,b}", "a/*", "*.{py,ts}"))
        texts = [found(place, grep, pattern, include=include) for grep in (Grep(RG), Grep(None))]
        if texts[0].startswith("No matches"):
            texts = [text.partition(":")[0] for text in texts]
        assert texts[0] == texts[1]
