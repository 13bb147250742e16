"""`read_file` on a file that was read before."""

import asyncio

import pytest

from bradawl.core.events import Compacted, PrefixOpened, ResultAmended
from bradawl.tools.edit_file import EditFile
from bradawl.tools.read_file import ReadFile

A, B, C = (letter * 100 for letter in "abc")
LONG = f"{A}\n{B}\n{C}\n"
READ, EDIT = ReadFile(), EditFile()


async def test_an_unchanged_file_is_not_shown_again(place, tmp_path):
    (tmp_path / "f").write_text(LONG)
    assert await place.text(READ, file_path="f") == LONG.rstrip()
    stub = "(f has not changed: the earlier answer with lines 1-3 still holds)"
    assert await place.text(READ, file_path="f") == stub
    assert await place.text(READ, file_path=f"{place.cwd}/f") == stub.replace("(f", f"({place.cwd}/f")
    assert await place.text(READ, file_path="f", offset=2) == f"[lines 2-3 of 3]\n{B}\n{C}"
    assert await place.text(READ, file_path="f", offset=1, limit=2) == f"[lines 1-2 of 3]\n{A}\n{B}"
    assert "still holds" in await place.text(READ, file_paths=("f", "f"))
    place.record(PrefixOpened("", "", "", ""))
    assert await place.text(READ, file_path="f") == stub, "a new prefix has the same messages"
    place.record(Compacted("", 0, ""))
    assert await place.text(READ, file_path="f") == LONG.rstrip()


async def test_a_file_of_a_few_lines_is_shown_again(place, tmp_path):
    (tmp_path / "f").write_text("a\nb\nc\n")
    assert [await place.text(READ, file_path="f") for _ in range(2)] == ["a\nb\nc"] * 2


async def test_of_lines_that_were_shown_in_part_the_others_are_shown(place, tmp_path):
    (tmp_path / "f").write_text("".join(f"line {number}\n" for number in range(1, 1_001)))
    await place.call(READ, file_path="f", limit=700)
    text = await place.text(READ, file_path="f", offset=1, limit=800)
    rest = "\n".join(f"line {number}" for number in range(701, 801))
    remark = "(lines 1-700 have not changed since an earlier answer showed them)"
    assert text == f"{remark}\n[lines 701-800 of 1000]\n{rest}"
    assert (await place.text(READ, file_path="f")).startswith(
        f"{remark.replace('700', '800')}\n[lines 801-1000 of 1000]\n"
    )
    assert (await place.text(READ, file_path="f", offset=790, limit=20)).startswith("[lines 790-809 of 1000]\n")
    (tmp_path / "f").write_text("changed\n" * 1_000)
    assert (await place.text(READ, file_path="f", limit=800)).startswith("[lines 1-800 of 1000]\nchanged")


async def test_a_changed_file_is_shown_again(place, tmp_path):
    (tmp_path / "f").write_text("a\n")
    await place.call(READ, file_path="f")
    (tmp_path / "f").write_text("b\n")
    assert await place.text(READ, file_path="f") == "b"
    (tmp_path / "f").write_text("a\n")
    assert await place.text(READ, file_path="f") == "a", "the last result about it showed another content"
    await place.call(EDIT, file_path="f", old_string="a", new_string="c")


async def test_a_result_that_a_hook_changed_is_not_referred_to(place, tmp_path):
    (tmp_path / "f").write_text("a\n")
    await place.call(READ, file_path="f")
    place.record(ResultAmended("call", (), "hook"))
    assert await place.text(READ, file_path="f") == "a"


async def test_a_call_that_is_cancelled_has_shown_nothing(place, tmp_path):
    (tmp_path / "f").write_text("a\n")
    read = place.files.read

    async def cancelled_at_the_second(path, limit_bytes):
        if path.endswith("g"):
            raise asyncio.CancelledError
        return await read(path, limit_bytes)

    place.files.read = cancelled_at_the_second
    with pytest.raises(asyncio.CancelledError):
        await place.call(READ, file_paths=("f", "g"))
    assert await place.text(READ, file_path="f") == "a"


async def test_a_file_that_became_empty_says_so_each_time(place, tmp_path):
    (tmp_path / "f").write_text("")
    assert [await place.text(READ, file_path="f") for _ in range(2)] == ["(f is empty)"] * 2
