"""The tool `write_file` creates files, and overwrites those that were read."""

import hashlib
from pathlib import Path

import pytest

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile

EDIT, READ, WRITE = EditFile(), ReadFile(), WriteFile()


def test_effects_name_resolved_paths(place, tmp_path):
    (tmp_path / "link").symlink_to("real")
    context = place.context()
    assert WRITE.effects(WRITE.params("link", ""), context) == Effects(writes=(f"{place.cwd}/real",))


async def test_a_new_file_is_written_with_its_folders(place, tmp_path):
    assert await place.text(WRITE, file_path="a/b/c.txt", content="1\n2") == "Wrote 2 lines to a/b/c.txt"
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"1\n2"
    assert "+1 -1" in await place.text(WRITE, file_path="a/b/c.txt", content="1\n3")


async def test_a_file_that_was_not_read_is_not_overwritten(place, tmp_path):
    (tmp_path / "f").write_text("precious\n")
    with pytest.raises(ToolError, match="read_file it first"):
        await place.call(WRITE, file_path="f", content="new\n")
    assert "exactly this content" in await place.text(WRITE, file_path="f", content="precious\n")
    (tmp_path / "f").write_text("changed\n")
    with pytest.raises(ToolError, match=r"changed since you last saw it; .*\n@@ -1,1 \+1,1 @@\n-precious\n\+changed"):
        await place.call(WRITE, file_path="f", content="new\n")
    assert (tmp_path / "f").read_text() == "changed\n"
    await place.call(READ, file_path="f")
    text = await place.text(WRITE, file_path="f", content="new\n")
    assert text == "Wrote 1 line to f: +1 -1\n@@ -1,1 +1,1 @@\n-changed\n+new"
    (tmp_path / "f").unlink()
    assert await place.text(WRITE, file_path="f", content="again\n") == "Wrote 1 line to f"


GLIMPSE = (
    "you have seen 2 of 2,630 lines of big.py; nothing was written. read_file the rest (from offset=3) before you "
    "overwrite it, or change parts of it with edit_file"
)


@pytest.mark.parametrize(
    "command", ["head -2 big.py", "cat big.py | head -2", "sed -n 1,2p big.py", "head -c 21 big.py"]
)
async def test_a_file_of_which_only_some_lines_were_seen_is_not_overwritten(place, tmp_path, command):
    (tmp_path / "big.py").write_text("".join(f"line {n:04}\n" for n in range(2_630)))
    await place.text(Bash(), command=command)
    with pytest.raises(ToolError) as caught:
        await place.call(WRITE, file_path="big.py", content="x")
    assert str(caught.value) == GLIMPSE
    await place.call(EDIT, file_path="big.py", old_string="line 0000\n", new_string="")
    with pytest.raises(ToolError, match=r"you have seen 1 of 2,629 lines of big.py; .*\(from offset=2\)"):
        await place.call(WRITE, file_path="big.py", content="x")
    for offset in (2, 1_100, 2_200):
        await place.call(READ, file_path="big.py", offset=offset, limit=1_100)
    text = await place.text(WRITE, file_path="big.py", content="x")
    assert "\n-line 0006\n[... 2,620 more lines removed]\n-line 2627\n" in text


async def test_a_file_with_long_lines_that_were_cut_is_not_overwritten(place, tmp_path):
    (tmp_path / "f.js").write_text("short\n" + "x" * 9_000)
    await place.call(READ, file_path="f.js")
    with pytest.raises(ToolError, match=r"^you have seen parts of 2 lines of f\.js; nothing was written"):
        await place.call(WRITE, file_path="f.js", content="x")


@pytest.mark.parametrize("command", ["echo 'x = 4' > gen.py", "cat > gen.py <<'E'\nx = 4\ny = 5\nE", ": > gen.py"])
@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_file_that_the_models_own_command_wrote_counts_as_seen(place, tmp_path, command, is_seen):
    if is_seen:
        await place.call(WRITE, file_path="gen.py", content="x = 1\n")
    await place.text(Bash(), command=command)
    assert (await place.text(WRITE, file_path="gen.py", content="x = 9\n")).startswith("Wrote 1 line to gen.py")
    await place.text(Bash(), command="echo 'appended = 1' >> gen.py")
    assert (await place.text(WRITE, file_path="gen.py", content="x\n")).startswith("Wrote 1 line to gen.py: +1 -2")


@pytest.mark.parametrize("command", ["seq 9 > gen.py", "echo $RANDOM > gen.py", "cp other gen.py # secret"])
async def test_a_file_with_text_that_is_not_in_the_command_does_not_count_as_seen(place, tmp_path, command):
    (tmp_path / "other").write_text("secret\nlines\n")
    await place.text(Bash(), command=command)
    with pytest.raises(ToolError, match="exists and you have not read it"):
        await place.call(WRITE, file_path="gen.py", content="x")


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
async def test_overwriting_keeps_line_endings_and_byte_order_marks(place, tmp_path, before, content, after):
    (tmp_path / "f").write_bytes(before)
    place.seen[f"{place.cwd}/f"] = hashlib.sha256(before).hexdigest()
    await place.call(WRITE, file_path="f", content=content)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize("path", ["", "d", "d/", "x/", "f/x", "a\0b"])
async def test_a_path_that_can_not_be_a_file_is_refused(place, tmp_path, path):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    with pytest.raises(ToolError):
        await place.call(WRITE, file_path=path, content="x")


async def test_a_file_that_was_not_utf8_is_converted_and_that_is_reported(place, tmp_path):
    (tmp_path / "f").write_bytes("gr\u00f6\u00dfe\n".encode("latin-1"))
    place.seen[f"{place.cwd}/f"] = hashlib.sha256((tmp_path / "f").read_bytes()).hexdigest()
    text = await place.text(WRITE, file_path="f", content="gr\u00f6\u00dfer\n")
    assert text.startswith("Wrote 1 line to f: +1 -1 (now UTF-8, which it was not)\n")
    assert (tmp_path / "f").read_bytes() == "gr\u00f6\u00dfer\n".encode()
    assert "UTF-8" not in await place.text(WRITE, file_path="f", content="small\n")


@pytest.mark.parametrize("path", ["f/x", "f/x/y", "d/../f/x"])
async def test_the_error_for_a_path_below_a_file_names_the_file(place, tmp_path, path):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    with pytest.raises(ToolError, match=rf"^{path} can't be created: f is a file, not a folder; check the path$"):
        await place.call(WRITE, file_path=path, content="x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "f"]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that takes no new files, also from root")
@pytest.mark.parametrize("path", ["/proc/nope", "/proc/nope/x", "../../../../../../../../proc/nope"])
async def test_a_file_that_can_not_be_created_is_an_error_with_the_reason(place, path):
    with pytest.raises(ToolError, match=f"^{path} can't be created: the system takes no new files there"):
        await place.call(WRITE, file_path=path, content="x")


async def test_a_change_too_large_for_a_diff_shows_only_counts(place, tmp_path):
    await place.call(WRITE, file_path="f", content="x\n" * 6_000)
    text = await place.text(WRITE, file_path="f", content="y\n")
    assert text == "Wrote 1 line to f: +1 -6000\n(too many changed lines to show)"


async def test_content_that_can_not_be_encoded_is_refused(place):
    with pytest.raises(ToolError, match="can't be written"):
        await place.call(WRITE, file_path="f", content="\ud800")
