"""Diffs: every change is shown, both sides of a long one too, in lines that fit."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.diff import change_lines, unified_lines
from bradawl.app.tui.render.diff_rows import rows_of_texts, rows_of_unified
from bradawl.app.tui.render.theme import theme_named
from bradawl.tools.editing.diffs import describe_change

PLAIN = theme_named("plain", "none")
DARK = theme_named("dark", "true")
LINES = st.lists(
    st.sampled_from(["", "a", "b", "    x = 1", "\tx = 2", "日本語 " * 9, "y" * 70, "z\x1b[31m", "end\r"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def bare(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def ends_plain(line: str) -> bool:
    return "\x1b" not in line or line.rpartition("\x1b[")[2].startswith("0m")


@given(TEXTS, TEXTS)
def test_the_rows_are_the_change_from_one_text_to_the_other(old: str, new: str):
    rows = rows_of_texts(old, new, "", 99)
    if old == new:
        assert rows == []
        return
    for sign, text in (("-", old), ("+", new)):
        lines = [row.text for row in rows if row.sign in (" ", sign)]
        kept = [line.removesuffix("\n").removesuffix("\r") for line in lines]
        assert kept == [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n") if text]


@given(TEXTS, TEXTS, st.sampled_from([1, 6, 20, 60]), st.sampled_from([None, 0, 1, 2, 3, 5, 9]))
@example("\n    x = 1\na", "    x = 1\n    x = 1\n\n\n", 1, 9)
def test_each_line_fits_and_there_are_at_most_as_many_as_allowed(old: str, new: str, cells: int, limit: int | None):
    for theme in (PLAIN, DARK):
        lines = change_lines(old, new, theme, cells, path="a.py", limit=limit)
        assert all(width(line) <= cells and ends_plain(line) and "\n" not in line for line in lines)
        assert not any("\x1b" in bare(line) for line in lines)
        assert limit is None or len(lines) <= limit


@given(TEXTS, TEXTS, st.integers(4, 12))
def test_a_short_form_shows_both_sides_and_how_to_see_the_rest(old: str, new: str, limit: int):
    rows = rows_of_texts(old, new, "", 2)
    lines = [bare(line) for line in change_lines(old, new, PLAIN, 60, limit=limit)]
    whole = change_lines(old, new, PLAIN, 60)
    assert (lines == whole) == (len(whole) <= limit)
    if len(whole) > limit:
        assert sum("(Ctrl+O shows all)" in line for line in lines) == 1
        pair = next(((a.sign, b.sign) for a, b in pairwise(rows) if a.sign == "-" and b.sign != "-"), None)
        shown = {line.split()[1] for line in lines if re.match(r" *\d+ [−+]", line)}
        assert pair != ("-", "+") or not shown or "+" in shown


def test_eighty_removed_and_eighty_added_lines_are_both_shown():
    old, new = ("".join(f"{word} {number}\n" for number in range(80)) for word in ("old", "new"))
    lines = change_lines(old, new, PLAIN, 60, limit=10)
    assert lines[:4] == [" 1 − old 0", " 2 − old 1", " 3 − old 2", "   … 77 more lines"]
    assert lines[4:] == [" 1 + new 0", " 2 + new 1", " 3 + new 2", "   … 77 more lines (Ctrl+O shows all)"]


def test_a_change_keeps_its_indentation_and_shows_lines_around_it():
    old = "def f(xs):\n\treturn sum(xs) - 1\n\nx = 1\ny = 2\nz = 3\n"
    lines = change_lines(old, old.replace(" - 1", ""), PLAIN, 40)
    assert lines == [
        *("1   def f(xs):", "2 −     return sum(xs) - 1", "2 +     return sum(xs)", "3", "4   x = 1"),
    ]


def test_distant_changes_are_separated():
    old = "".join(f"line {number}\n" for number in range(1, 30))
    lines = change_lines(old, old.replace("line 2\n", "two\n").replace("line 20\n", ""), PLAIN, 40, context=1)
    assert lines == [
        *(
            " 1   line 1",
            " 2 − line 2",
            " 2 + two",
            " 3   line 3",
            "   …",
            "19   line 19",
            "20 − line 20",
            "20   line 21",
        ),
    ]


def test_changed_words_have_a_tint_of_their_own():
    removed, added = change_lines("a = old + 1\n", "a = new + 1\n", DARK, 40)
    assert f"\x1b[{DARK.code('removed_word')}mold\x1b[0m" in removed
    assert f"\x1b[{DARK.code('added_word')}mnew\x1b[0m" in added
    assert width(removed) == width(added) == 40


def test_code_has_syntax_colours_on_its_tint():
    (line,) = change_lines("", "if x: pass\n", DARK, 40, path="a.py")
    assert f"\x1b[{DARK.code('keyword', 'added')}mif\x1b[0m" in line


def test_what_is_invisible_is_spelled_out():
    (line,) = change_lines("", "a\u202eb\x1b[0m\u200b\n", PLAIN, 60)
    assert line == "1 + a\\u202eb\\x1b[0m\\u200b"


def test_a_missing_line_end_is_shown_if_that_is_what_differs():
    assert change_lines("a\n", "a", PLAIN, 40) == ["1 − a", "1 + a (no line end)"]
    assert change_lines("a\nb", "a\nc", PLAIN, 40) == ["1   a", "2 − b", "2 + c"]


def test_line_ends_of_another_system_are_shown_if_they_differ():
    assert change_lines("a\r\nb\r\n", "a\r\nc\r\n", PLAIN, 40) == ["1   a", "2 − b", "2 + c"]
    assert change_lines("a\r\n", "a\n", PLAIN, 40) == ["1 − a\\x0d", "1 + a"]


@given(TEXTS, TEXTS)
def test_the_diff_of_an_edit_result_has_the_same_rows(old: str, new: str):
    old, new = (text.replace("\r", "").removesuffix("\n") + "\n" for text in (old, new))
    added, removed, text = describe_change(old, new)
    rows = rows_of_unified(f"Edited a.py: +{added} -{removed}\n{text}", "")
    assert sum(row.sign == "+" for row in rows) == added
    assert sum(row.sign == "-" for row in rows) == removed
    lines = {"-": old.split("\n"), "+": new.split("\n"), " ": new.split("\n")}
    assert all(lines[row.sign][row.number - 1] == row.text for row in rows if row.sign in lines and row.number)


def test_lines_left_out_of_an_edit_result_count():
    diff = "@@ -1,20 +1,1 @@\n-a\n[... 18 more lines removed]\n-b\n+c\nother"
    assert unified_lines(diff, PLAIN, 40) == [
        *(" 1 − a", "[... 18 more lines removed]", "20 − b", " 1 + c", "other"),
    ]


def test_a_diff_of_several_files_names_them():
    diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n--- old\n+++ new\ndiff --git a/y b/y"
    assert unified_lines(diff, PLAIN, 40) == [
        "diff --git a/x.py b/x.py",
        "1 − -- old",
        "1 + ++ new",
        "diff --git a/y b/y",
    ]


@pytest.mark.parametrize("change", ["two words", "all", "every second", "nothing unique"])
def test_files_of_ten_thousand_lines_take_little_time(change: str):
    old = "".join(f"    call({number})\n\n" for number in range(5_000))
    new = {
        "two words": old.replace("call(7)", "call(seven)").replace("call(4990)", "call()"),
        "all": old.replace("call", "run"),
        "every second": "".join(f"    call({number})\n\n" for number in range(0, 5_000, 2)),
        "nothing unique": old,
    }[change]
    if change == "nothing unique":
        old, new = "x = 1\ny = 2\n" * 5_000, "y = 2\nx = 1\nz = 3\n" * 3_333
    best = min(_seconds(old, new) for _ in range(3))
    assert best < 0.3  # 0.03 on an idle machine


def _seconds(old: str, new: str) -> float:
    begin = time.process_time()
    assert len(change_lines(old, new, DARK, 80, path="a.py", limit=30)) <= 30
    return time.process_time() - begin
