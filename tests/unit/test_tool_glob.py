"""The tool `glob`: patterns, limits and ignored files, with ripgrep and without."""

import os
import random
from pathlib import Path

import pytest
from tool_calls import RG

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.workspace import FileEntry
from bradawl.tools.glob import Glob
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.folder_walk import own_ignore_file

GLOB = Glob()
WITH_AND_WITHOUT_RIPGREP = pytest.mark.parametrize(
    "glob", [Glob(RG, own_ignore_file), Glob(None, own_ignore_file)], ids=["ripgrep", "own"]
)


def fill(place, count: int = 320) -> None:
    """Creates more files than the search without ripgrep reads."""
    folder = Path(place.cwd, "aaa")
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number}.fill").touch()
        os.utime(folder / f"{number}.fill", (1, 1))


def grow(place, *names: str) -> None:
    for number, name in enumerate(names):
        path = Path(place.cwd, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (number, number))


TREE = ("a.py", "b.ts", "src/c.py", "src/deep/d.tsx", "node_modules/e/f.js", "[x].py", "src/.env")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["[x].py", "a.py"]),
        ("**/*.py", ["[x].py", "src/c.py", "a.py"]),
        ("src/**", ["src/.env", "src/deep/d.tsx", "src/c.py"]),
        ("**/*.{ts,tsx}", ["src/deep/d.tsx", "b.ts"]),
        ("{a,b}.*", ["b.ts", "a.py"]),
        ("src/*/?.[s-t]sx", ["src/deep/d.tsx"]),
        ("./src/c.py", ["src/c.py"]),
        ("src", ["src/.env", "src/deep/d.tsx", "src/c.py"]),
        ("node_modules/**/*.js", ["node_modules/e/f.js"]),
        ("node_modules/e/f.js", ["node_modules/e/f.js"]),
        ("**/deep/**", ["src/deep/d.tsx"]),
        ("[[]x].py", ["[x].py"]),
        ("\\[x].py", ["[x].py"]),
    ],
)
@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@WITH_AND_WITHOUT_RIPGREP
async def test_patterns_find_files_newest_first(place, tmp_path, glob, is_large, pattern, found):
    grow(place, *TREE)
    (tmp_path / ".gitignore").write_text("node_modules/\n")
    if is_large:
        fill(place)
    assert (await place.text(glob, pattern=pattern)).splitlines() == found
    if pattern != "./src/c.py":
        assert (await place.text(glob, pattern=f"{place.cwd}/{pattern}")).splitlines() == found


async def test_a_pattern_may_start_in_another_folder(place):
    grow(place, *TREE)
    assert await place.text(GLOB, pattern="*.py", path="src") == "src/c.py"
    assert await place.text(GLOB, pattern="../a.*", path="src") == "a.py"


async def test_no_matches_are_reported_with_the_folder_searched(place):
    grow(place, "a/b", "a/c")
    here = f"the working directory {place.cwd}"
    assert await place.text(GLOB, pattern="a/**/*.py") == f"No files match a/**/*.py: searched 2 files in {here}."
    assert await place.text(GLOB, pattern="none/*.py") == f"No files match none/*.py: searched 2 files in {here}."
    assert await place.text(GLOB, pattern="*.py", path="a") == "No files match *.py: searched 2 files in a."
    assert (
        await place.text(GLOB, pattern=f"{place.cwd}/a/x")
        == f"No files match {place.cwd}/a/x: searched 0 files in a/x."
    )
    assert "one character of those; \\[ is" in await place.text(GLOB, pattern="a/[id]/x")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "calc.py"}, "calc.py: none here; with **/: src/pkg/calc.py"),
        ({"pattern": "./calc.*"}, "./calc.*: none here; with **/: src/pkg/calc.py"),
        ({"pattern": "pkg/*.py"}, "pkg/*.py: none here; with **/:\nsrc/pkg/more.py\nsrc/pkg/calc.py"),
        ({"pattern": "pkg"}, "pkg: none here; with **/:\nsrc/pkg/more.py\nsrc/pkg/calc.py"),
        ({"pattern": "calc.py", "path": "src"}, "calc.py: none in src; with **/: src/pkg/calc.py"),
    ],
)
async def test_a_pattern_without_matches_is_searched_in_subfolders(place, arguments, found):
    grow(place, "src/pkg/calc.py", "src/pkg/more.py", "readme")
    assert await place.text(GLOB, **arguments) == found


@pytest.mark.parametrize(
    ("pattern", "path", "message"),
    [
        ("*", "none", "^none does not exist"),
        ("", ".", "empty"),
        ("x/*", "none", "^none does not exist"),
        ("*", "pkg", r"^pkg does not exist; did you mean src/pkg\?"),
        ("[a", ".", r"pattern \[a can't be understood: the \[ at character 1 is not closed"),
        ("x/*[!", ".", "is not closed"),
    ],
)
async def test_an_invalid_pattern_or_folder_is_an_error(place, pattern, path, message):
    grow(place, "src/pkg/x")
    with pytest.raises(ToolError, match=message):
        await place.call(GLOB, pattern=pattern, path=path)


async def test_an_incomplete_search_says_so(place):
    grow(place, "a", "b")
    entry = FileEntry(f"{place.cwd}/a", 1, 1)
    place.files = IncompleteFiles((entry,) * 3)
    text = "[the search stopped after 3 files; give a deeper path]"
    assert (await place.text(GLOB, pattern="a")).endswith(f"a\n{text}")
    assert (await place.text(GLOB, pattern="**/x")).endswith(text)


class IncompleteFiles(LocalFiles):
    """Files whose listing is always incomplete."""

    def __init__(self, entries: tuple[FileEntry, ...]) -> None:
        super().__init__()
        self.entries = entries

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        return self.entries, True


async def test_a_hundred_matches_are_shown(place):
    grow(place, *(f"f{number}" for number in range(120)))
    lines = (await place.text(GLOB, pattern="f*")).splitlines()
    assert lines[0] == "f119"
    assert lines[100:] == ["[120 matches, showing first 100]"]


def test_effects_name_resolved_paths(place, tmp_path):
    (tmp_path / "link").symlink_to("real")
    context = place.context()
    assert GLOB.effects(GLOB.params("link/**/*.py"), context) == Effects(reads=(f"{place.cwd}/real", place.cwd))
    assert GLOB.effects(GLOB.params("*.py", "link"), context) == Effects(reads=(f"{place.cwd}/real",))


@WITH_AND_WITHOUT_RIPGREP
async def test_in_a_large_tree_the_newest_hundred_and_the_total_are_shown(place, glob):
    fill(place, 500)
    grow(place, "src/new.fill", "src/other.txt")
    for number in range(150):
        os.utime(Path(place.cwd, f"aaa/{number}.fill"), (number + 100, number + 100))
    lines = (await place.text(glob, pattern="**/*.fill")).splitlines()
    assert lines[:2] == ["aaa/149.fill", "aaa/148.fill"]
    assert lines[99:] == ["aaa/50.fill", "[501 matches, showing first 100]"]
    here = f"the working directory {place.cwd}"
    assert await place.text(glob, pattern="**/*.none") == f"No files match **/*.none: searched 502 files in {here}."
    assert await place.text(glob, pattern="new.fill") == "new.fill: none here; with **/: src/new.fill"
    assert await place.text(glob, pattern="*.fill", path="src") == "src/new.fill"


@WITH_AND_WITHOUT_RIPGREP
@pytest.mark.parametrize("count", [0, 320])
async def test_ignored_files_are_left_out(place, tmp_path, glob, count):
    fill(place, count)
    grow(place, "keep.txt", "sub/keep.txt", "sub/gone.txt", "gone/x.txt", "top.txt", "sub/top.txt", "excluded.txt")
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("excluded.txt\n")
    (tmp_path / ".git" / "HEAD.txt").write_text("")
    (tmp_path / ".bradawlignore").write_text("# ours\n/top.txt\ngone*\n!gone-not\n")
    (tmp_path / "sub" / ".gitignore").write_text("*.log\n")
    grow(place, "sub/a.log")
    assert sorted((await place.text(glob, pattern="**/*.{txt,log}")).splitlines()) == [
        "keep.txt",
        "sub/keep.txt",
        "sub/top.txt",
    ]
    assert sorted((await place.text(glob, pattern="*.txt", path="sub")).splitlines()) == ["sub/keep.txt", "sub/top.txt"]
    assert await place.text(glob, pattern="gone/*.txt") == "gone/x.txt"


@WITH_AND_WITHOUT_RIPGREP
@pytest.mark.parametrize("count", [0, 320])
async def test_hidden_files_are_found_links_and_temporary_files_are_not(place, tmp_path, glob, count):
    fill(place, count)
    grow(place, "d/.env.txt", "d/.bradawl-0123456789abcdef.tmp")
    (tmp_path / "d" / "link.txt").symlink_to(".env.txt")
    (tmp_path / "d" / "loop").symlink_to(".")
    assert (await place.text(glob, pattern="**/*.{txt,tmp}")).splitlines() == ["d/.env.txt"]
    assert (await place.text(glob, pattern="d/**")).splitlines() == ["d/.env.txt"]


@WITH_AND_WITHOUT_RIPGREP
@pytest.mark.parametrize("count", [0, 320])
async def test_unusual_names_are_shown_on_one_line(place, tmp_path, glob, count):
    fill(place, count)
    grow(place, "d/two\nlines.txt", "d/tab\t.txt", "d/caf\u00e9.txt", "d/a,b.txt", "d/-x.txt")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/d/\xff.txt")).write_text("")
    found = (await place.text(glob, pattern="**/*.txt")).splitlines()
    assert sorted(found) == [
        "d/-x.txt",
        "d/\\udcff.txt",
        "d/a,b.txt",
        "d/caf\u00e9.txt",
        "d/tab\\t.txt",
        "d/two\\nlines.txt",
    ]
    assert await place.text(glob, pattern="**/a,b.txt") == "d/a,b.txt"


@pytest.mark.parametrize("seed", range(8))
async def test_both_searches_find_the_same_in_any_tree(place, tmp_path, seed):
    draw = random.Random(seed)  # noqa: S311 - trees, not secrets
    names = ("a", "b", "c.py", "d.ts", ".e", "f.log", "keep")
    for _ in range(60):
        path = tmp_path.joinpath(*draw.choices(names, k=draw.randint(1, 4)))
        if any(parent.is_file() for parent in path.parents) or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        time = draw.randint(1, 20)
        os.utime(path, (time, time))
    rules = (
        "",
        "*.log",
        "/a",
        "b/",
        "a/b",
        "**/keep",
        "a/**/c.py",
        "!keep",
        "f.*",
        "*\n!*/\n!*.py",
        "[bd]*",
        "a/*",
        "\\!x",
        "#",
    )
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    if draw.random() < 0.5:
        (tmp_path / ".git").mkdir()
    for _ in range(3):
        (draw.choice(folders) / ".gitignore").write_text("\n".join(draw.choices(rules, k=2)) + "\n")
    (draw.choice(folders[:3]) / ".bradawlignore").write_text("\n".join(draw.choices(rules, k=2)) + "\n")
    fill(place)
    for folder in draw.sample(folders, min(3, len(folders))):
        for pattern in ("**", "*", "**/*.py", "*.{py,ts}", "a/**/*", "{a,b}/*", "**/[a-c]*", "**/keep", "?.py"):
            texts = [await place.text(glob, pattern=pattern, path=str(folder)) for glob in FINDERS]
            assert texts[0] == texts[1]


FINDERS = (Glob(RG, own_ignore_file), Glob(None, own_ignore_file))


async def test_a_failing_search_program_is_an_error(place, tmp_path):
    fill(place)
    with pytest.raises(ToolError, match=r"the search failed: .*use bash"):
        await place.call(Glob(str(tmp_path / "no-such-rg")), pattern="**/*.x")
