"""What a question of the live terminal shows: its answers, and with `v` all that it is about."""

import json

from bradawl.app.symbols import UNICODE
from bradawl.app.tui.live.dialogs import Key, KeyDialog
from bradawl.app.tui.live.preview import preview_of
from bradawl.app.tui.render.theme import theme_named
from bradawl.core.effects import Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Grant, Question, Request

MINUS = "\u2212"
THEME = theme_named("dark", "none", UNICODE)


async def test_an_answer_of_several_rows_shares_none_of_them():
    """Defect: the next answer began at the end of its last row."""
    long = "Keep the old format and convert each file when it is read for the first time"
    keys = [Key("1", "Red", "1"), Key("2", "Blue", "2"), Key("3", long, "3"), Key("4", "Green", "4"), Key("o", "b", "")]
    rows = KeyDialog("Which?", lambda *_: ["x"], "", keys).lines(THEME, 60, 24)[3:]
    assert [" ".join(row.split()) for row in rows] == [
        "\u276f 1 Red 2 Blue",
        "3 Keep the old format and convert each file when it is",
        "read for the first time",
        "4 Green o b",
    ]


def question(name, arguments, *writes):
    call = ToolCall("c", name, json.dumps(arguments))
    return Question(call, Request(name, "0" * 64, Effects(writes=writes)), "because", Grant())


def test_all_of_an_edit_is_its_diff_and_the_rest_of_the_call_below_it(tmp_path):
    """Defect: `v` showed both texts one after the other and no diff."""
    file = tmp_path / "app.py"
    file.write_text("".join(f"line {number}\n" for number in range(1, 31)))
    old = "line 8\n" + "".join(f"line {number}\n" for number in range(9, 20))
    arguments = {"file_path": "app.py", "old_string": old, "new_string": "all\n", "replace_all": True}
    rows = preview_of(question("edit_file", arguments, str(file))).whole(THEME, 60)
    assert rows[:4] == [" 6   line 6", " 7   line 7", f" 8 {MINUS} line 8", f" 9 {MINUS} line 9"]
    end = rows.index("")
    assert " 8 + all" in rows[:end] and rows[end + 1].startswith("edit_file wants to run")
    assert rows[end + 2 : end + 4] == ["    file_path: app.py", "    replace_all: True"]
    assert any(row.startswith("  writes") for row in rows) and not any("_string" in row for row in rows)


def test_all_of_several_edits_and_of_a_written_file_are_diffs():
    edits = [{"file_path": "a.py", "old_string": "old", "new_string": "new", "replace_all": True}]
    rows = preview_of(question("multi_edit", {"edits": edits})).whole(THEME, 60)
    assert rows[:4] == ["a.py", f"1 {MINUS} old", "1 + new", ""] and "    edits: [{'replace_all': True}]" in rows
    rows = preview_of(question("write_file", {"file_path": "a.py", "content": "x\ny\n"})).whole(THEME, 60)
    assert rows[:3] == ["1 + x", "2 + y", ""] and not any("content" in row for row in rows)
    coloured = theme_named("dark", "true", UNICODE)
    assert "\x1b[" in preview_of(question("multi_edit", {"edits": edits})).whole(coloured, 60)[1]


def test_what_the_diff_does_not_show_is_in_the_text_of_the_call(tmp_path):
    same = tmp_path / "a.py"
    same.write_text("x = 1\n")
    rows = preview_of(question("write_file", {"file_path": "a.py", "content": "x = 1\n"}, str(same))).whole(THEME, 60)
    assert "    content: x = 1" in rows
    long = {"file_path": "a.py", "content": "xy\n" * 30_000 + "end"}
    rows = preview_of(question("write_file", long)).whole(THEME, 60)
    assert "      end" in rows


def test_a_small_edit_of_a_large_file_is_shown_as_a_diff(tmp_path):
    """Defect: the beginning of the file was shown in place of the change."""
    file = tmp_path / "a.py"
    file.write_text("line\n" * 20_000 + "last = 1\n")
    arguments = {"file_path": "a.py", "old_string": "last = 1", "new_string": "last = 2"}
    preview = preview_of(question("edit_file", arguments, str(file)))
    assert preview.body(THEME, 60) == [f"1 {MINUS} last = 1", "1 + last = 2"] == preview.whole(THEME, 60)[:2]
