import hashlib
import os
import re
from pathlib import Path

import pytest
from tool_calls import workspace

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.ports import FileEntry
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.glob import Glob
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile
from bradawl.workspace.files import LocalFiles

READ, WRITE, EDIT, GLOB = ReadFile(), WriteFile(), EditFile(), Glob()


@pytest.fixture
def place(tmp_path):
    with workspace(tmp_path) as made:
        yield made


def test_lines_are_numbered_and_the_file_counts_as_seen(place, tmp_path):
    (tmp_path / "f").write_bytes(b"a\r\nb\x0c\xe2\x80\xa8c\n\nlast")
    assert place.text(READ, file_path="f") == "1\ta\n2\tb\x0c\u2028c\n3\t\n4\tlast"
    assert list(place.seen) == [f"{place.cwd}/f"]


def test_a_part_names_the_call_that_shows_the_rest(place, tmp_path):
    (tmp_path / 'q"f').write_text("".join(f"{n}\n" for n in range(1, 11)))
    text = place.text(READ, file_path='q"f', offset=3, limit=2)
    assert text == '3\t3\n4\t4\n[lines 3-4 of 10; read_file(file_path="q\\"f", offset=5, limit=2) shows what follows]'
    assert place.text(READ, file_path='q"f', offset=10) == "10\t10"
    assert place.text(READ, file_path='q"f', offset=0, limit=1).startswith("1\t1\n[lines 1-1 of 10; read_file(")


def test_long_lines_and_long_files_are_cut_and_say_so(place, tmp_path):
    (tmp_path / "wide").write_text("x" * 2_000_000)
    text = place.text(READ, file_path="wide")
    assert text.startswith("1\t" + "x" * 2_000 + " [... line cut: 2000000 characters, the first 2000 are shown; bash: ")
    (tmp_path / "long").write_text(("y" * 99 + "\n") * 1_000)
    text = place.text(READ, file_path="long")
    assert len(text) < 51_000
    last = int(text.splitlines()[-2].split("\t")[0])
    assert text.endswith(f'[lines 1-{last} of 1000; read_file(file_path="long", offset={last + 1}) shows what follows]')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "exactly one"),
        ({"file_path": "f", "file_paths": ("f",)}, "exactly one"),
        ({"file_path": "f", "offset": -1}, "offset"),
        ({"file_path": "f", "limit": -1}, "limit"),
        ({"file_path": "f", "offset": 3}, "f has 2 lines"),
        ({"file_path": "none"}, "^none does not exist; in that folder: f, junk, png$"),
        ({"file_path": "../none"}, r"^\.\./none does not exist"),
        ({"file_path": "no/where/x"}, "^no/where/x does not exist, nor does its folder"),
        ({"file_path": "f/x"}, "^f/x: a part of this path is a file"),
        ({"file_path": "png"}, "a PNG image, 12 bytes"),
        ({"file_path": "junk"}, "binary data"),
    ],
)
def test_what_can_not_be_read_is_told(place, tmp_path, arguments, said):
    (tmp_path / "f").write_text("a\nb\n")
    (tmp_path / "png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    (tmp_path / "junk").write_bytes(bytes(range(1, 32)))
    with pytest.raises(ToolError, match=said):
        place.call(READ, **arguments)
    assert not place.seen


def test_the_rest_of_a_line_that_was_cut_is_shown_by_the_call_that_is_named(place, tmp_path):
    (tmp_path / "it's -x").write_text("short\n" + "a" * 2_000 + "b" * 500 + "\n")
    (tmp_path / "-x").write_text("a" * 2_000 + "b" * 500 + "\n")
    for path in ("it's -x", "-x"):
        (cut,) = (line for line in place.text(READ, file_path=path).splitlines() if "[..." in line)
        command = cut.partition("; bash: ")[2].removesuffix("]")
        assert place.text(Bash(), command=command) == "b" * 500 + "\n[exit code 0]"


def test_a_file_that_is_missing_is_looked_for_by_its_name(place, tmp_path):
    grow(place, "src/pkg/calc.py", "old/calc.py", "calcs.py", "lib/pkg/deep/x.py")
    for arguments, said in (
        ({"file_path": "calc.py"}, "calc.py does not exist; did you mean old/calc.py, src/pkg/calc.py?"),
        ({"file_path": "pkg/calc.py"}, "pkg/calc.py does not exist, nor does its folder; did you mean src/pkg/calc.py"),
        ({"file_path": "deep"}, "deep does not exist; did you mean lib/pkg/deep?"),
        ({"file_path": "calc.p"}, "calc.p does not exist; did you mean calcs.py?"),
    ):
        with pytest.raises(ToolError, match=f"^{re.escape(said)}"):
            place.call(READ, **arguments)
    with pytest.raises(ToolError, match=r"^\./x\.py does not exist; did you mean lib/pkg/deep/x\.py\?"):
        place.call(EDIT, file_path="./x.py", old_string="a", new_string="b")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", "(f is empty)"),
        (b"\xef\xbb\xbfa", "1\ta"),
        ("\ufeffa\u00e9\n".encode("utf-16-le"), "1\ta\u00e9\n(UTF-16-LE)"),
        ("\ufeffa\u00e9\n".encode("utf-16-be"), "1\ta\u00e9\n(UTF-16-BE)"),
        (b"caf\xe9", "1\tcaf\u00e9\n(not valid UTF-8, read as Latin-1)"),
        (b"\xef\xbb\xbf", "(f is empty but for a byte order mark)"),
    ],
)
def test_encodings_are_read_and_named(place, tmp_path, data, shown):
    (tmp_path / "f").write_bytes(data)
    assert place.text(READ, file_path="f") == shown


def test_a_folder_is_listed(place, tmp_path):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    assert place.text(READ, file_path="d").endswith("(no files, apart from what git ignores)")
    (tmp_path / "d" / "sub" / "x").write_text("")
    (tmp_path / "d" / "a").write_text("")
    assert place.text(READ, file_path="d") == "d is a folder:\na\nsub/"


def test_one_of_several_files_may_fail(place, tmp_path):
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    output = place.call(READ, file_paths=("a", "none", "b"))
    text = output.parts[0].text
    assert text.startswith("==> a <==\n1\t1\n\n==> none <==\nError: ")
    assert text.endswith("\n\n==> b <==\n1\t2")
    assert not output.is_error
    assert place.call(READ, file_paths=("x", "y")).is_error


def test_effects_name_resolved_paths(place, tmp_path):
    (tmp_path / "link").symlink_to("real")
    context = place.context()
    assert READ.effects(READ.params(file_path="link"), context) == Effects(reads=(f"{place.cwd}/real",))
    assert WRITE.effects(WRITE.params("link", ""), context) == Effects(writes=(f"{place.cwd}/real",))
    assert GLOB.effects(GLOB.params("link/**/*.py"), context) == Effects(reads=(f"{place.cwd}/real", place.cwd))
    assert GLOB.effects(GLOB.params("*.py", "link"), context) == Effects(reads=(f"{place.cwd}/real",))


def test_a_new_file_is_written_with_its_folders(place, tmp_path):
    assert place.text(WRITE, file_path="a/b/c.txt", content="1\n2") == "Wrote 2 lines to a/b/c.txt"
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"1\n2"
    assert "+1 -1" in place.text(WRITE, file_path="a/b/c.txt", content="1\n3")


def test_a_file_that_was_not_read_is_not_overwritten(place, tmp_path):
    (tmp_path / "f").write_text("precious\n")
    with pytest.raises(ToolError, match="read_file it first"):
        place.call(WRITE, file_path="f", content="new\n")
    assert "exactly this content" in place.text(WRITE, file_path="f", content="precious\n")
    (tmp_path / "f").write_text("changed\n")
    with pytest.raises(ToolError, match="changed since you last saw it"):
        place.call(WRITE, file_path="f", content="new\n")
    assert (tmp_path / "f").read_text() == "changed\n"
    place.call(READ, file_path="f")
    text = place.text(WRITE, file_path="f", content="new\n")
    assert text == "Wrote 1 line to f: +1 -1\n@@ -1,1 +1,1 @@\n-changed\n+new"
    (tmp_path / "f").unlink()
    assert place.text(WRITE, file_path="f", content="again\n") == "Wrote 1 line to f"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("\ufeffa\n".encode("utf-16-le"), "\u4e2d\n", "\ufeff\u4e2d\n".encode("utf-16-le")),
        (b"\x89PNG\0", "text", b"text"),
    ],
)
def test_overwriting_keeps_line_endings_and_marks(place, tmp_path, before, content, after):
    (tmp_path / "f").write_bytes(before)
    place.seen[f"{place.cwd}/f"] = hashlib.sha256(before).hexdigest()
    place.call(WRITE, file_path="f", content=content)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize("path", ["", "d", "d/", "x/", "f/x", "a\0b"])
def test_a_path_that_is_no_file_is_refused(place, tmp_path, path):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    with pytest.raises(ToolError):
        place.call(WRITE, file_path=path, content="x")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that takes no new files, also from root")
@pytest.mark.parametrize("path", ["/proc/nope", "/proc/nope/x", "../../../../../../../../proc/nope"])
def test_a_file_that_can_not_be_created_is_no_listing(place, path):
    with pytest.raises(ToolError, match=f"^{path} can't be created: the system takes no new files there"):
        place.call(WRITE, file_path=path, content="x")


def test_of_a_change_too_large_for_a_diff_only_the_counts_are_told(place, tmp_path):
    place.call(WRITE, file_path="f", content="x\n" * 6_000)
    text = place.text(WRITE, file_path="f", content="y\n")
    assert text == "Wrote 1 line to f: +1 -6000\n(too many changed lines to show)"


def test_content_that_is_no_text_is_refused(place):
    with pytest.raises(ToolError, match="can't be written"):
        place.call(WRITE, file_path="f", content="\ud800")


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
def test_patterns_find_files_newest_first(place, tmp_path, pattern, found):
    grow(place, *TREE)
    (tmp_path / ".gitignore").write_text("node_modules/\n")
    assert place.text(GLOB, pattern=pattern).splitlines() == found
    if pattern != "./src/c.py":
        assert place.text(GLOB, pattern=f"{place.cwd}/{pattern}").splitlines() == found


def test_a_pattern_may_start_in_another_folder(place):
    grow(place, *TREE)
    assert place.text(GLOB, pattern="*.py", path="src") == "src/c.py"
    assert place.text(GLOB, pattern="../a.*", path="src") == "a.py"


def test_nothing_found_says_where_it_looked(place):
    grow(place, "a/b", "a/c")
    here = f"the working directory {place.cwd}"
    assert place.text(GLOB, pattern="a/**/*.py") == f"No files match a/**/*.py: looked at 2 files in {here}."
    assert place.text(GLOB, pattern="none/*.py") == f"No files match none/*.py: looked at 2 files in {here}."
    assert place.text(GLOB, pattern="*.py", path="a") == "No files match *.py: looked at 2 files in a."
    assert place.text(GLOB, pattern=f"{place.cwd}/a/x") == f"No files match {place.cwd}/a/x: looked at 0 files in a/x."
    assert "one character of those; \\[ is" in place.text(GLOB, pattern="a/[id]/x")


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
def test_a_pattern_without_matches_is_looked_for_deeper_down(place, arguments, found):
    grow(place, "src/pkg/calc.py", "src/pkg/more.py", "readme")
    assert place.text(GLOB, **arguments) == found


@pytest.mark.parametrize(
    ("pattern", "path", "said"),
    [
        ("*", "none", "^none does not exist"),
        ("", ".", "empty"),
        ("x/*", "none", "^none does not exist"),
        ("*", "pkg", r"^pkg does not exist; did you mean src/pkg\?"),
        ("[a", ".", r"pattern \[a can't be understood: the \[ at character 1 is not closed"),
        ("x/*[!", ".", "is not closed"),
    ],
)
def test_a_search_that_can_not_begin_is_an_error(place, pattern, path, said):
    grow(place, "src/pkg/x")
    with pytest.raises(ToolError, match=said):
        place.call(GLOB, pattern=pattern, path=path)


def test_a_search_of_too_many_files_says_so(place):
    grow(place, "a", "b")
    entry = FileEntry(f"{place.cwd}/a", 1, 1)
    place.files = Many((entry,) * 3)
    text = "[the search stopped after 3 files; give a deeper path]"
    assert place.text(GLOB, pattern="a").endswith(f"a\n{text}")
    assert place.text(GLOB, pattern="**/x").endswith(text)


class Many(LocalFiles):
    """More files than anyone lists."""

    def __init__(self, entries: tuple[FileEntry, ...]) -> None:
        super().__init__()
        self.entries = entries

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        return self.entries, True


def test_a_hundred_matches_are_shown(place):
    grow(place, *(f"f{number}" for number in range(120)))
    lines = place.text(GLOB, pattern="f*").splitlines()
    assert lines[0] == "f119"
    assert lines[100:] == ["[120 matches, showing first 100]"]
