"""The tool `multi_edit` edits several files at once or none of them."""

import asyncio
import re
from pathlib import Path

import pytest
from tool_calls import Workspace

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import text_of
from bradawl.tools.edit_file import EditFile, EditFileParams
from bradawl.tools.multi_edit import MultiEdit, MultiEditParams
from bradawl.tools.read_file import ReadFile
from bradawl.workspace.files import LocalFiles

MULTI, READ = MultiEdit(), ReadFile()


def params_of(*edits: tuple) -> MultiEditParams:
    return MULTI.params(tuple(EditFileParams(*edit) for edit in edits))


async def run(place: Workspace, *edits: tuple) -> str:
    params = params_of(*edits)
    MULTI.effects(params, place.context())
    return text_of((await MULTI.run(params, place.context())).parts)


async def refusal(place: Workspace, *edits: tuple) -> str:
    before = contents(Path(place.cwd))
    with pytest.raises(ToolError) as caught:
        await run(place, *edits)
    assert contents(Path(place.cwd)) == before
    return str(caught.value)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def grow(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / name).write_text(text)


async def test_files_are_edited_in_order_and_each_shows_one_diff(place, tmp_path):
    grow(tmp_path, a="one\ntwo\n", b="six\n")
    message = await run(place, ("a", "one", "1"), ("b", "six", "6"), ("./a", "1\ntwo", "1\n2"))
    assert contents(tmp_path) == {f"{tmp_path}/a": b"1\n2\n", f"{tmp_path}/b": b"6\n"}
    assert message == (
        "Edited a: +2 -2\n@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n\nEdited b: +1 -1\n@@ -1,1 +1,1 @@\n-six\n+6"
    )


def test_the_effects_are_the_writes_of_all_files_through_links(place, tmp_path):
    grow(tmp_path, a="one\n")
    (tmp_path / "link").symlink_to("a")
    params = params_of(*((path, "one", "two") for path in ("a", "link", "b")))
    assert MULTI.effects(params, place.context()) == Effects(writes=(f"{place.cwd}/a", f"{place.cwd}/b"))


async def test_every_impossible_edit_is_named_and_nothing_is_changed(place, tmp_path):
    grow(tmp_path, a="one\ntwo\n", b="six\nsix\n")
    message = await refusal(
        place, ("a", "one", "1"), ("a", "nowhere at all", "x"), ("b", "six", "6"), ("none", "x", "y")
    )
    assert message.startswith(
        "3 of 4 edits can't be made, so no file was changed.\nedit 2, a: old_string was not found in a"
    )
    assert "\nedit 3, b: old_string matches 2 times in b (lines 1, 2)" in message
    assert "\nedit 4, none: none does not exist" in message
    assert "nothing was" not in message, "the first line says it"
    assert message.endswith("\nThe other 1 would be possible; send all of them again, mended.")


async def test_invalid_edits_are_errors_before_anything_is_read(place, tmp_path):
    grow(tmp_path, a="one\n")
    assert "edit 1, a: old_string is empty" in await refusal(place, ("a", "", "x"), ("a", "one", "two"))
    assert "edit 2, a: old_string and new_string are the same" in await refusal(
        place, ("a", "one", "x"), ("a", "b", "b")
    )
    assert "give at least one edit" in await refusal(place)


async def test_a_file_that_was_seen_stays_seen_and_one_that_changed_is_refused(place, tmp_path):
    grow(tmp_path, a="one\n", b="two\n")
    await place.call(READ, file_path="a")
    await run(place, ("a", "one", "1"), ("b", "two", "2"))
    assert set(place.seen) == {f"{place.cwd}/a"}
    await run(place, ("a", "1", "one"))
    (tmp_path / "a").write_text("other\n")
    assert "edit 1, a: a has changed since you last saw it" in await refusal(place, ("a", "one", "1"), ("b", "2", "3"))


async def test_an_inexact_match_is_reported_with_its_edit_and_replace_all_is_applied(place, tmp_path):
    grow(tmp_path, a="  one()\n  two()\n", b="x x\n")
    message = await run(place, ("a", "one()\ntwo()\n", "one()\nsix()\n"), ("b", "x", "y", True))
    assert "Edited a: +1 -1 (edit 1: matched after ignoring indentation)" in message
    assert (tmp_path / "b").read_text() == "y y\n"


class FailingFiles(LocalFiles):
    """Calls `before` and fails instead of replacing the file of this name."""

    def __init__(self, name: str, before=lambda: None) -> None:
        super().__init__()
        self.name, self.before = name, before

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        if self.name and path.endswith(f"/{self.name}"):
            self.name = ""
            self.before()
            raise ToolError(f"{path}: can't write it: the disk is full")
        return await super().replace(path, data, expected_sha256)


async def test_written_files_are_restored_when_a_later_file_fails(place, tmp_path):
    grow(tmp_path, a="one\n", b="two\n", c="six\n")
    (tmp_path / "a").chmod(0o751)
    place.files = FailingFiles("c")
    message = await refusal(place, ("a", "one", "1"), ("b", "two", "2"), ("c", "six", "6"))
    assert message == "c: can't write it: the disk is full\nNo file is changed: those already written were put back."
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o751
    place.files = FailingFiles("a")
    assert (await refusal(place, ("a", "one", "1"), ("b", "two", "2"))).endswith("\nNo file was changed.")


async def test_a_file_changed_by_another_program_is_not_restored_and_reported(place, tmp_path):
    grow(tmp_path, a="one\n", b="two\n", c="six\n")
    place.files = FailingFiles("c", lambda: (tmp_path / "a").write_text("theirs\n"))
    with pytest.raises(ToolError) as caught:
        await run(place, ("a", "one", "1"), ("b", "two", "2"), ("c", "six", "6"))
    assert "a is changed and could not be put back" in str(caught.value)
    assert "b is changed" not in str(caught.value)
    assert [(tmp_path / name).read_text() for name in "abc"] == ["theirs\n", "two\n", "six\n"]


class CancellingFiles(LocalFiles):
    """Raises a cancellation right after the file of this name was replaced."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        sha256 = await super().replace(path, data, expected_sha256)
        if path.endswith(self.name):
            self.name = "\0"
            raise asyncio.CancelledError
        return sha256


@pytest.mark.parametrize("name", ["/a", "/b"])
async def test_a_cancelled_call_leaves_every_file_as_it_was(place, tmp_path, name):
    grow(tmp_path, a="one\n", b="two\n")
    before = contents(tmp_path)
    place.files = CancellingFiles(name)
    with pytest.raises(asyncio.CancelledError):
        await run(place, ("a", "one", "1"), ("b", "two", "2"))
    assert contents(tmp_path) == before


async def test_the_file_is_parsed_after_all_edits(place, tmp_path):
    code = "def f():\n    one()\n    two()\n    three()\n"
    (tmp_path / "a.py").write_text(code)
    first = ("a.py", "one()\ntwo()", "try:\n    one()\n    two()")
    await run(place, first, ("a.py", "    three()", "    finally:\n        three()"))
    assert (tmp_path / "a.py").read_text() == (
        "def f():\n    try:\n        one()\n        two()\n    finally:\n        three()\n"
    )
    (tmp_path / "a.py").write_text(code)
    assert "a.py: old_string is in a.py only after ignoring indentation" in await refusal(place, first)


GO = "package x\n\nfunc run() int {\n\tif a {\n\t\treturn 1\n\t}\n\treturn 2\n}\n"
LOOSE = ("if a {\n    return 1\n}\n", "if a {\n    return 3\n", "if a {\n    return 3\n}\n")
"""An old text indented otherwise than the file, a new text without its closing brace, and one with it."""


@pytest.mark.parametrize("several", [True, False])
async def test_a_loose_edit_that_breaks_a_file_with_a_grammar_is_refused(place, tmp_path, several):
    pytest.importorskip("tree_sitter_go")
    old, broken, good = LOOSE
    grow(tmp_path, **{"a.go": GO})

    async def edit(new: str) -> str:
        if several:
            return await run(place, ("a.go", old, new))
        return await place.text(EditFile(), file_path="a.go", old_string=old, new_string=new)

    with pytest.raises(ToolError) as caught:
        await edit(broken)
    assert re.search(
        r"old_string is in a\.go only after ignoring indentation, and with new_string in its place the file would not "
        r"parse any more \(error in line \d\)",
        str(caught.value),
    )
    assert (tmp_path / "a.go").read_text() == GO
    assert "+1 -1" in await edit(good)
    (tmp_path / "a.go").write_text(f"func {{\n{GO}")
    assert "+1 -2" in await edit(broken), "a file that did not parse before may stay so"


async def test_an_exact_edit_may_break_a_file_with_a_grammar(place, tmp_path):
    grow(tmp_path, **{"a.go": GO})
    assert "-1" in await run(place, ("a.go", "\t}\n", ""))
