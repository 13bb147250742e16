import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_calls import Workspace, workspace

from bradawl.core.errors import ToolError
from bradawl.tools.edit_file import EditFile

EDIT = EditFile()


@pytest.fixture
def place(tmp_path):
    with workspace(tmp_path) as made:
        yield made


def edit(place: Workspace, data: bytes, old: str, new: str, **options) -> tuple[bytes, str]:
    path = f"{place.cwd}/f.txt"
    place.seen.clear()
    try:
        asyncio.run(place.files.replace(path, data, None))
    except ToolError:
        current = asyncio.run(place.files.read(path, 10**9))
        asyncio.run(place.files.replace(path, data, current.sha256))
    text = place.text(EDIT, file_path="f.txt", old_string=old, new_string=new, **options)
    content = asyncio.run(place.files.read(path, 10**9))
    assert place.seen == {}, "an edit alone does not show the whole file"
    return content.data, text


def refusal(place: Workspace, data: bytes, old: str, new: str, **options) -> str:
    with pytest.raises(ToolError) as caught:
        edit(place, data, old, new, **options)
    assert asyncio.run(place.files.read(f"{place.cwd}/f.txt", 10**9)).data == data
    return str(caught.value)


def test_the_result_is_a_short_diff_with_a_relative_path(place):
    data, text = edit(place, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "5\n", "five\nV\n")
    assert data == b"1\n2\n3\n4\nfive\nV\n6\n7\n8\n9\n"
    assert text == "Edited f.txt: +2 -1\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+V\n 6\n 7\n 8"


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
def test_endings_and_encodings_stay_as_they_are(place, before, old, new, after):
    assert edit(place, before, old, new)[0] == after


@pytest.mark.parametrize(
    ("data", "old", "new", "said"),
    [
        (b"aaa", "aa", "b", "matches 2 times"),
        (b"x\na\nb\na\n", "a", "b", r"lines 2, 4"),
        (b"a", "", "b", "write_file creates"),
        (b"a", "a", "a", "same"),
        (b"a\r\nb", "a\r\nb", "a\nb", "line endings only"),
        (b"def f():\n\treturn 1\n", "def f():\n    return 1", "x", "white space"),
        (b"x = 'Hello World'\n", "x = 'hello world'", "x", "upper and lower case"),
        (b"one\ntwo\nthree\n", "2\ttwo\n3\tthree", "x", "without the line numbers"),
        (b"one\ntwo\n", "one\\ntwo", "x", "real line breaks"),
        (b"one\ntwo\n", "two\nmore\n", "x", "closest place is line 2"),
        (
            b"def compute_total(items, rate):\n    pass\n",
            "def compute_total(items, tax):",
            "x",
            "closest place is line 1",
        ),
        (b"one\n", "entirely different words", "x", "Nothing in the file is like it"),
        (b"", "a", "b", "not found"),
        (b"caf\xe9", "caf\u00e9 \u4e2d", "x", "not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\0\0", "P", "x", "PNG image"),
    ],
)
def test_what_can_not_be_done_says_what_to_try_and_changes_nothing(place, data, old, new, said):
    assert said in refusal(place, data, old, new)


def test_every_match_can_be_replaced_and_is_counted(place):
    data, text = edit(place, b"aaaa b a\r\n", "aa", "x\ny", replace_all=True)
    assert data == b"x\r\nyx\r\ny b a\r\n"
    assert "(2 replacements)" in text


def test_a_missing_file_is_an_error(place):
    with pytest.raises(ToolError, match="does not exist"):
        place.call(EDIT, file_path="no.txt", old_string="a", new_string="b")


def test_a_large_file_is_edited_and_searched_quickly(place):
    data = b"".join(b"line number %d of the file\n" % number for number in range(100_000))
    started = time.process_time()
    _, text = edit(place, data, "line number 70000 of", "changed")
    said = refusal(place, data, "line number 70001 in the file\nand more", "x")
    assert time.process_time() - started < 4.0
    assert "@@ -69998,7 +69998,7 @@" in text
    assert "closest place is line" in said


def test_a_long_diff_is_cut(place):
    _, text = edit(place, b"a\n" * 5_000, "a", "b", replace_all=True)
    assert len(text) < 3_300
    assert text.startswith("Edited f.txt: +5000 -5000 (5000 replacements)")


def test_a_change_of_the_last_line_break_shows(place):
    _, text = edit(place, b"a\nb\n", "b\n", "b")
    assert text.endswith("@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file")


def test_edits_of_one_file_at_the_same_time_lose_nothing(place, tmp_path):
    (tmp_path / "f").write_text("".join(f"<{number}>\n" for number in range(8)))

    async def one(number: int) -> None:
        while True:
            try:
                await place.acall(EDIT, file_path="f", old_string=f"<{number}>", new_string=f"[{number}]")
            except ToolError:
                continue
            return

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(one(number))

    asyncio.run(main())
    assert (tmp_path / "f").read_text() == "".join(f"[{number}]\n" for number in range(8))


CHUNKS = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xc3\xa9", b"\xff", b" "]), max_size=12)


@given(CHUNKS, CHUNKS, st.text("xy\n\u00e9", max_size=5))
def test_bytes_outside_the_match_never_change(tmp_path_factory, before, after, new):
    head, tail = b"".join(before), b"".join(after)
    with workspace(tmp_path_factory.mktemp("edit")) as place:
        try:
            data, _ = edit(place, head + b"<old\ntext>" + tail, "<old\ntext>", new)
        except ToolError as error:
            assert "UTF-8" in str(error)
            return
    assert data.startswith(head)
    assert data.endswith(tail)
    middle = data[len(head) : len(data) - len(tail)]
    assert middle in {new.encode(), new.encode("latin-1", "replace")}


def test_who_had_seen_the_whole_file_may_overwrite_it_after_an_edit(place: Workspace) -> None:
    path = f"{place.cwd}/f.txt"
    place.seen[path] = asyncio.run(place.files.replace(path, b"one\n", None))
    place.text(EDIT, file_path="f.txt", old_string="one", new_string="two")
    assert place.seen[path] == asyncio.run(place.files.read(path, 100)).sha256
