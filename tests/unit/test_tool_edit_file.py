"""The tool `edit_file`: replaced text, refused edits with hints, and files that changed since they were read."""

import asyncio
import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_calls import Workspace, workspace

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import FileContent
from bradawl.tools.edit_file import EditFile
from bradawl.tools.editing.plan import Change, plan
from bradawl.tools.write_file import WriteFile
from patience import cpu_limit

EDIT, WRITE = EditFile(), WriteFile()


async def edit(place: Workspace, data: bytes, old: str, new: str, **options) -> tuple[bytes, str]:
    path = f"{place.cwd}/f.txt"
    place.seen.clear()
    try:
        await place.files.replace(path, data, None)
    except ToolError:
        current = await place.files.read(path, 10**9)
        await place.files.replace(path, data, current.sha256)
    text = await place.text(EDIT, file_path="f.txt", old_string=old, new_string=new, **options)
    content = await place.files.read(path, 10**9)
    assert place.seen == {}, "an edit alone does not show the whole file"
    return content.data, text


async def refusal(place: Workspace, data: bytes, old: str, new: str, **options) -> str:
    with pytest.raises(ToolError) as caught:
        await edit(place, data, old, new, **options)
    assert (await place.files.read(f"{place.cwd}/f.txt", 10**9)).data == data
    return str(caught.value)


async def test_the_result_is_a_short_diff_with_a_relative_path(place):
    data, text = await edit(place, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "5\n", "five\nV\n")
    assert data == b"1\n2\n3\n4\nfive\nV\n6\n7\n8\n9\n"
    assert text == "Edited f.txt: +2 -1\n@@ -4,3 +4,4 @@\n 4\n-5\n+five\n+V\n 6"


async def test_of_many_lines_in_a_row_the_diff_shows_the_first_and_the_last(place):
    new = "".join(f"line {number}\n" for number in range(1, 21))
    _, text = await edit(place, b"a\nold\nb\n", "old\n", new)
    first, last = ("\n".join(f"+line {number}" for number in numbers) for numbers in (range(1, 7), range(18, 21)))
    assert text == f"Edited f.txt: +20 -1\n@@ -1,3 +1,22 @@\n a\n-old\n{first}\n[... 11 lines as given]\n{last}\n b"
    _, text = await edit(place, b"a\nold text \nb\n", "old text\n", new)
    assert "[..." not in text, "what was not given as it is in the file is shown whole"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "x\ny", b"x\r\ny\r\n"),
        (b"a\nb\r\nc\n", "a\nb", "x\ny", b"x\ny\r\nc\n"),
        (b"a\nb\n", "a\r\nb", "x\ny", b"x\ny\n"),
        (b"\xef\xbb\xbfa\nb", "a", "x", b"\xef\xbb\xbfx\nb"),
        ("\ufeffaé\r\nb\r\n".encode("utf-16-le"), "é\nb", "ü\nc", "\ufeffaü\r\nc\r\n".encode("utf-16-le")),
        ("\ufeff\u6161a".encode("utf-16-be"), "a", "b", "\ufeff\u6161b".encode("utf-16-be")),
        ("caf\u00e9 a".encode("latin-1"), "caf\u00e9", "th\u00e9", "th\u00e9 a".encode("latin-1")),
        (b"\xff caf\xc3\xa9", "caf\u00e9", "th\u00e9", b"\xff th\xc3\xa9"),
        (b"\xff\x80 a \xfe", "a", "b", b"\xff\x80 b \xfe"),
        (b"no newline", "line", "LINE", b"no newLINE"),
        (b"a\x0cb\xe2\x80\xa8c\n", "b", "", b"a\x0c\xe2\x80\xa8c\n"),
        (b"a $1 \\1 (.*)\n", "(.*)", "\\1$1", b"a $1 \\1 \\1$1\n"),
    ],
)
async def test_endings_and_encodings_stay_as_they_are(place, before, old, new, after):
    assert (await edit(place, before, old, new))[0] == after


@pytest.mark.parametrize(
    ("data", "old", "new", "message"),
    [
        (b"aaa", "aa", "b", "matches 2 times"),
        (b"x\na\nb\na\n", "a", "b", r"lines 2, 4"),
        (b"a", "", "b", "write_file creates"),
        (b"a", "a", "a", "same"),
        (b"a\r\nb", "a\r\nb", "a\nb", "line endings only"),
        (b"if a:\n    b1 = 1\nc1 = 2\n", "if a:\n  b1 = 1\n  c1 = 2", "x", "4 spaces before the text"),
        (b"a = '\t' + b\n", "a = ' ' + b", "x", "the file has a tab, old_string has a space"),
        (b"x = 'Hello World'\n", "x = 'hello world'", "x", "upper and lower case"),
        (b"one\ntwo\nthree\n", "3\ttwo\n4\tthree", "x", "without the line numbers"),
        (b"print('one')\ntwo\n", "print('one')\\ntwo", "print('\\n')\\ntwo", "real line breaks"),
        (b"a = '\\d'\nb", "a = '\\\\d'", "x", "one layer of backslashes less"),
        (b"if a < b && c:\n", "if a &lt; b &amp;&amp; c:", "x", "plain characters where it has"),
        (b"one\ntwo\n", "two\nmore\n", "x", "closest place is line 2"),
        (
            b"def compute_total(items, rate):\n    pass\n",
            "def compute_total(items, tax):",
            "x",
            "closest place is line 1",
        ),
        (b"one\n", "entirely different words", "x", "Nothing in the file is like it"),
        (b"", "a", "b", "not found"),
        (b"caf\xe9 au lait", "caf\u00e9", "\u4e2d", "not UTF-8"),
        (b"cafe", "cafe", "\ud83d", "half a character"),
        (b"\x89PNG\r\n\x1a\n\0\0", "P", "x", "PNG image"),
    ],
)
async def test_an_impossible_edit_changes_nothing_and_suggests_another(place, data, old, new, message):
    assert message in await refusal(place, data, old, new)


async def test_every_match_can_be_replaced_and_is_counted(place):
    data, text = await edit(place, b"aaaa b a\r\n", "aa", "x\ny", replace_all=True)
    assert data == b"x\r\nyx\r\ny b a\r\n"
    assert "(2 replacements)" in text


async def test_a_missing_file_is_an_error(place):
    with pytest.raises(ToolError, match="does not exist"):
        await place.call(EDIT, file_path="no.txt", old_string="a", new_string="b")


async def test_a_large_file_is_edited_and_searched_quickly(place):
    data = b"".join(b"line number %d of the file\n" % number for number in range(100_000))
    with cpu_limit(4.0):
        _, text = await edit(place, data, "line number 70000 of", "changed")
        message = await refusal(place, data, "line number 70001 in the file\nand more", "x")
    assert "@@ -70000,3 +70000,3 @@" in text
    assert "closest place is line 70002:" in message


def test_the_closest_match_is_found_in_bounded_time(place):
    lines = [f"{'    ' * (number % 3)}value_{number} = compute({number * 7})" for number in range(100_000)]
    wanted = lines[50_000:50_200]
    wanted[100] += " # not there"
    wide = " ".join(f"word{number}" for number in range(900_000))
    for data, old, message in (
        ("\n".join(lines), "\n".join(wanted), "closest place is line 50001:"),
        ("\r\n".join(lines), "\n".join(wanted), "closest place is line 50001:"),
        ("\n".join(lines), "\n".join(f"nowhere {number}" for number in range(200)), "Nothing in the file is like it"),
        ("same\n" * 100_000, "same\n" * 200 + "other", "closest place is line"),
        (wide, wide[5_000_000:5_000_300] + "!", "in line 1, which is very long, near character 5000"),
        ("a" * 10_000_000, "a" * 5_000 + "b", "which is very long"),
    ):
        with cpu_limit(1.5), pytest.raises(ToolError, match=message):  # a tenth of that on an idle machine
            plan(data.encode(), Change(old, "x"), "f")


async def test_a_long_diff_is_cut(place):
    _, text = await edit(place, b"a\n" * 5_000, "a", "b", replace_all=True)
    assert len(text) < 3_300
    assert text.startswith("Edited f.txt: +5000 -5000 (5000 replacements)")


async def test_of_a_very_long_line_the_diff_shows_the_part_that_changed(place):
    data = b"x=1;" * 1_000 + b"needle();" + b"y=2;" * 1_000
    _, text = await edit(place, data, "needle();", "thread(7);")
    left = "x=1;" * 25
    removed, added = text.splitlines()[2:4]
    assert removed.startswith(f"-[3,900 characters] {left}needle();y=2;") and removed.endswith(" characters]")
    assert added.startswith(f"+[3,900 characters] {left}thread(7);y=2;") and len(added) < 300


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a" * 12_000, "old_string matches 10,000 times or more in f.txt, all in line 1; nothing was changed."),
        (b"a\naa a\na\n", "old_string matches 5 times in f.txt (lines 1, 2, 3); nothing was changed."),
        (b"\naaa\n", "old_string matches 3 times in f.txt, all in line 2; nothing was changed."),
        (b"a\n" * 99, "old_string matches 99 times in f.txt (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...); nothing"),
    ],
)
async def test_the_lines_of_many_matches_are_named_once(place, data, said):
    assert (await refusal(place, data, "a", "b")).startswith(said)


async def test_a_change_of_the_last_line_break_is_shown(place):
    _, text = await edit(place, b"a\nb\n", "b\n", "b")
    assert text.endswith("@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file")


async def test_edits_of_one_file_at_the_same_time_lose_nothing(place, tmp_path):
    (tmp_path / "f").write_text("".join(f"<{number}>\n" for number in range(8)))

    async def one(number: int) -> None:
        while True:
            try:
                await place.call(EDIT, file_path="f", old_string=f"<{number}>", new_string=f"[{number}]")
            except ToolError:
                continue
            return

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(one(number))
    assert (tmp_path / "f").read_text() == "".join(f"[{number}]\n" for number in range(8))


CHUNKS = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xc3\xa9", b"\xff", b" "]), max_size=12)


@given(CHUNKS, CHUNKS, st.text("xy\n\u00e9", max_size=5))
async def test_bytes_outside_the_match_never_change(tmp_path_factory, before, after, new):
    head, tail = b"".join(before), b"".join(after)
    with workspace(tmp_path_factory.mktemp("edit")) as place:
        try:
            data, _ = await edit(place, head + b"<old\ntext>" + tail, "<old\ntext>", new)
        except ToolError as error:
            assert "UTF-8" in str(error)
            return
    assert data.startswith(head)
    assert data.endswith(tail)
    middle = data[len(head) : len(data) - len(tail)]
    assert middle in {new.encode(), new.encode("latin-1", "replace")}


async def test_a_file_seen_whole_may_be_overwritten_after_an_edit(place: Workspace) -> None:
    path = f"{place.cwd}/f.txt"
    place.seen[path] = await place.files.replace(path, b"one\n", None)
    await place.text(EDIT, file_path="f.txt", old_string="one", new_string="two")
    assert place.seen[path] == (await place.files.read(path, 100)).sha256


async def write_as_seen(place: Workspace, data: bytes) -> None:
    """Writes the file and records that the model has read it."""
    path = f"{place.cwd}/f.txt"
    place.memory.saw(FileContent(path, data, await place.files.replace(path, data, None)))


def change_outside(tmp_path, data: bytes) -> None:
    (tmp_path / "f.txt").write_bytes(data)


async def test_an_exact_edit_is_made_if_other_lines_changed_since_the_file_was_seen(place, tmp_path):
    await write_as_seen(place, b"one\ntwo\nthree\n")
    change_outside(tmp_path, b"one\nTWO\nthree\n")
    text = await place.text(EDIT, file_path="f.txt", old_string="three", new_string="3")
    assert text == (
        "Edited f.txt: +1 -1\n@@ -2,2 +2,2 @@\n TWO\n-three\n+3\n"
        "f.txt has also changed elsewhere since you last saw it, and keeps that:\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three"
    )
    assert (tmp_path / "f.txt").read_bytes() == b"one\nTWO\n3\n"
    assert "elsewhere" not in await place.text(EDIT, file_path="f.txt", old_string="3", new_string="4")
    await place.call(WRITE, file_path="f.txt", content="")


@pytest.mark.parametrize(
    ("before", "after", "old", "options"),
    [
        (b"one\ntwo\nthree\n", b"one\nTWO\nthree\n", "one\nTWO", {}),
        (b"one\ntwo\nthree\n", b"one\nthree\n", "one\nthree", {}),
        (b"return\na\nreturn\n", b"none\na\nreturn\n", "return", {}),
        (b"return\na\nreturn\n", b"none\na\nreturn\n", "return", {"replace_all": True}),
        (b"one  \ntwo\n", b"one  \nTWO\n", "one \n", {}),
        (b"one\ntwo\n", b"\xef\xbb\xbfone\ntwo\n", "two", {}),
    ],
)
async def test_an_edit_of_lines_that_changed_or_that_were_ambiguous_is_refused(
    place, tmp_path, before, after, old, options
):
    await write_as_seen(place, before)
    change_outside(tmp_path, after)
    with pytest.raises(ToolError, match="has changed since you last saw it"):
        await place.call(EDIT, file_path="f.txt", old_string=old, new_string="x", **options)
    assert (tmp_path / "f.txt").read_bytes() == after


async def test_every_match_is_replaced_if_all_are_in_unchanged_lines(place, tmp_path):
    await write_as_seen(place, b"x\ny\nx\n")
    change_outside(tmp_path, b"x\nz\nx\n")
    await place.call(EDIT, file_path="f.txt", old_string="x", new_string="X", replace_all=True)
    assert (tmp_path / "f.txt").read_bytes() == b"X\nz\nX\n"


async def test_beside_a_change_too_long_to_show_edits_are_made_and_overwriting_is_refused(place, tmp_path):
    await write_as_seen(place, b"first\n" + b"a\n" * 9_000 + b"last\n")
    change_outside(tmp_path, b"first\n" + b"b\n" * 9_000 + b"last\n")
    text = await place.text(EDIT, file_path="f.txt", old_string="last", new_string="end")
    assert text.endswith("(too many changed lines to show)\n(read_file shows the rest)")
    await place.call(EDIT, file_path="f.txt", old_string="first", new_string="begin")
    with pytest.raises(ToolError) as caught:
        await place.call(WRITE, file_path="f.txt", content="")
    assert str(caught.value) == (
        "you have seen 2 of 9,002 lines of f.txt; nothing was written. read_file the rest (from offset=2) before you "
        "overwrite it, or change parts of it with edit_file"
    )


async def test_a_failed_edit_does_not_make_the_change_elsewhere_seen(place, tmp_path):
    await write_as_seen(place, b"one\ntrees\nlast line\n")
    change_outside(tmp_path, b"ONE\ntrees\nlast line\n")
    with pytest.raises(ToolError, match="End both alike"):
        await place.call(EDIT, file_path="f.txt", old_string="trees\n", new_string="more")
    with pytest.raises(ToolError, match="has changed since you last saw it"):
        await place.call(WRITE, file_path="f.txt", content="")


async def test_a_changed_line_is_refused_once_with_what_changed(place, tmp_path):
    await write_as_seen(place, b"one\ntwo\nthree\n")
    change_outside(tmp_path, b"one\nTWO\nthree\n")
    with pytest.raises(ToolError) as caught:
        await place.call(EDIT, file_path="f.txt", old_string="two", new_string="2")
    assert str(caught.value) == (
        "f.txt has changed since you last saw it; nothing was written. What changed:\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\nRepeat the change if it still fits, or adapt it to this"
    )
    assert (tmp_path / "f.txt").read_bytes() == b"one\nTWO\nthree\n"
    await place.call(EDIT, file_path="f.txt", old_string="three", new_string="3")
    assert (tmp_path / "f.txt").read_bytes() == b"one\nTWO\n3\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\n" * 2_000, b"b\n" * 2_000),
        (b"a\n" * 9_000, b"b\n" * 9_000),
        (b"x", b"y" * 900),
        (b"text\n", b"\0\0\0"),
    ],
)
async def test_after_an_outside_change_too_large_to_show_the_file_must_be_read_again(place, tmp_path, before, after):
    await write_as_seen(place, before)
    change_outside(tmp_path, after)
    for _ in range(2):
        with pytest.raises(ToolError, match="has changed since you last saw it"):
            await place.call(EDIT, file_path="f.txt", old_string="a", new_string="c")


async def test_without_the_earlier_content_a_changed_file_must_be_read_again(place, tmp_path):
    place.seen[f"{place.cwd}/f.txt"] = "0" * 64
    change_outside(tmp_path, b"one\n")
    with pytest.raises(ToolError, match="read_file it again"):
        await place.call(EDIT, file_path="f.txt", old_string="one", new_string="two")


async def test_a_change_of_only_line_endings_refuses_the_edit(place, tmp_path):
    await write_as_seen(place, b"one\r\n")
    change_outside(tmp_path, b"one\n")
    with pytest.raises(ToolError, match="has changed since"):
        await place.call(EDIT, file_path="f.txt", old_string="one", new_string="two")


async def test_a_path_with_another_target_than_when_it_was_allowed_is_refused(place, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text("one\n")
    context = msgspec.structs.replace(place.context(), grant=Grant(writable=(f"{place.cwd}/a/f",)))
    (tmp_path / "a" / "f").unlink()
    (tmp_path / "a").rmdir()
    (tmp_path / "a").symlink_to("b")
    with pytest.raises(ToolError, match="not where it led when the call was allowed"):
        await EDIT.run(EDIT.params("a/f", "one", "two"), context)
    assert (tmp_path / "b" / "f").read_text() == "one\n"


async def test_an_inexact_match_is_reported(place):
    data, text = await edit(place, b"  one()  \n  two()\n", "one()\ntwo()\n", "one()\nsix()\n")
    assert data == b"  one()  \n  six()\n"
    assert text.startswith("Edited f.txt: +1 -1 (matched after ignoring trailing blanks and indentation)\n@@")


@pytest.mark.parametrize(
    ("line", "quoted", "message"),
    [
        ("total(items, rate):", "total(items, tax):", "at column 14 the file has 'rate', old_string has 'tax'"),
        (
            "\ttotal = rate",
            "    total = tax",
            "the file has a tab before the text, old_string has 4 spaces; at column 10 the",
        ),
        ("total = a\u200bb", "total = ab", r"column 10 the file has '\u200b' (\u200b), old_string has nothing"),
        ("total = 1  #", "total = 1 #", "at column 11 the file has a space, old_string has nothing"),
        ("total = one", "total = one two", "at column 12 the file has nothing, old_string has ' two'"),
        ("x" * 900 + "a_b", "x" * 900 + "a_c", "x [... 703 more]', old_string has 'xxx"),
        ("total = 12345", "total = 12 45", "the file has '12345', old_string has '12 45'"),
    ],
)
async def test_the_difference_to_the_closest_match_is_reported_by_character(place, line, quoted, message):
    data = f"first line\n{line}\nlast line\n".encode()
    text = await refusal(place, data, f"first line\n{quoted}\nlast line", "x")
    assert "closest place is line 1" in text
    assert message in text


async def test_a_change_that_keeps_size_and_time_of_the_file_is_noticed(place, tmp_path):
    await write_as_seen(place, b"one\ntwo\n")
    before = (tmp_path / "f.txt").stat()
    with (tmp_path / "f.txt").open("r+b") as file:
        file.write(b"ONE")
    os.utime(tmp_path / "f.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ToolError, match="has changed since you last saw it"):
        await place.call(EDIT, file_path="f.txt", old_string="one", new_string="2")
    assert (tmp_path / "f.txt").read_bytes() == b"ONE\ntwo\n"
