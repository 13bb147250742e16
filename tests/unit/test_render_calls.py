"""Lines of calls and the blocks below them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_specs import SPECS, spec_of

from bradawl.app.call_details import call_detail
from bradawl.app.symbols import ASCII
from bradawl.app.tui.render.calls import call_block, call_line
from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.theme import theme_named
from bradawl.core.messages import Image, Text
from bradawl.core.tools import ToolSpec

PLAIN = theme_named("plain", "none")
DARK = theme_named("dark", "256")
READ, RUN, EDIT = spec_of("read_file"), spec_of("bash"), spec_of("edit_file")
EDITED = "Edited a.py: +1 -1\n@@ -2,1 +2,1 @@\n-    return sum(xs) - 1\n+    return sum(xs)"
ANY_TEXT = st.text(max_size=200) | st.sampled_from(
    ["日本語" * 30, "\x1b[2J\x1b]0;x\x07", "a\nb\tc\r", "x" * 300, EDITED]
)


def line(spec: ToolSpec, arguments: dict, cells: int = 60, **options) -> str:
    return call_line(spec, json.dumps(arguments), PLAIN, cells, **{"state": "ok", **options})


def block(spec: ToolSpec, text: str, outcome="ok", limit: int | None = 5, cells: int = 60, arguments=None) -> list[str]:
    return call_block(spec, json.dumps(arguments or {}), (Text(text),), outcome, PLAIN, cells, limit=limit)


@given(
    st.sampled_from([*SPECS.values(), ToolSpec("mcp__server__tool")]),
    ANY_TEXT | st.dictionaries(st.sampled_from(["command", "file_path", "pattern", "path"]), ANY_TEXT).map(json.dumps),
    ANY_TEXT,
    st.sampled_from([1, 4, 12, 40, 80]),
    st.sampled_from(["running", "ok", "part failed", "error", "refused", "cancelled", "interrupted"]),
    st.sampled_from([None, 0, 1, 2, 5]),
)
def test_each_line_fits_and_passes_no_escape_sequence_but_colours(
    spec: ToolSpec, raw: str, text: str, cells: int, state, limit: int | None
):
    shown = (Text(text),)
    for theme in (PLAIN, DARK):
        lines = [call_line(spec, raw, theme, cells, state=state, detail=call_detail(spec, raw, shown), elapsed_s=3.2)]
        if state != "running":
            below = call_block(spec, raw, shown, state, theme, cells, limit=limit)
            assert limit is None or len(below) <= limit
            lines += below
        for each in lines:
            assert width(each) <= cells
            assert not re.search(r"[\x00-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[0-9;]*m", "", each))
            assert "\x1b" not in each or each.rpartition("\x1b[")[2].startswith("0m")


def test_a_call_is_one_line_with_what_it_did_at_the_right():
    drawn = line(READ, {"file_paths": ["app.py", "test_app.py"]}, detail="11 lines")
    assert drawn == "✓ Read   app.py, test_app.py                        11 lines"
    assert line(RUN, {"command": "ls"}, elapsed_s=0.12).endswith("  0.1s")
    assert line(RUN, {"command": "ls"}, cells=200, detail="exit code 2", elapsed_s=75).endswith("exit code 2 · 1m 15s")


def test_an_edit_has_its_counts_behind_the_name():
    assert line(EDIT, {"file_path": "a.py"}, detail="+1 -1") == "✓ Edit   a.py  +1 −1"


@pytest.mark.parametrize(
    ("state", "begin"),
    [("running", "› "), ("ok", "✓ "), ("error", "✗ "), ("refused", "⊘ "), ("cancelled", "■ "), ("interrupted", "■ ")],
)
def test_the_state_has_a_symbol(state: str, begin: str):
    assert line(READ, {"file_path": "a"}, state=state).startswith(begin)


def test_what_is_cut_says_how_to_see_the_rest_and_opens_whole():
    command = "echo one && " * 20 + "echo last"
    assert "… (Ctrl+O shows all)" in line(RUN, {"command": command})
    opened = block(RUN, "x\n[exit code 0]", limit=None, arguments={"command": command})
    assert "".join(part.strip() for part in opened[: opened.index("")]).replace(" ", "") == command.replace(" ", "")


def test_a_long_path_keeps_its_name():
    assert line(READ, {"file_path": f"src/{'folder/' * 20}cart.py"}).endswith("/folder/cart.py")
    assert "…/" in line(READ, {"file_path": f"src/{'folder/' * 20}cart.py"})


def test_a_tool_of_the_user_has_its_name():
    assert line(ToolSpec("mcp__github__issue"), {"title": "Bug"}) == "✓ mcp__github__issue Bug"


@pytest.mark.parametrize(
    ("name", "text", "detail"),
    [
        ("read_file", "a\nb\nc", "3 lines"),
        ("read_file", "[lines 10-12 of 400]\na", "lines 10-12 of 400"),
        ("edit_file", EDITED, "+1 -1"),
        ("multi_edit", f"{EDITED}\n\n{EDITED}", "+2 -2"),
        ("write_file", "Wrote 3 lines to a.py", "3 lines"),
        ("bash", "a\n[exit code 0]", ""),
        ("bash", "a\n[exit code 2; 3 s]", "exit code 2"),
        ("bash", "a\n[exit code 143] (ended by SIGTERM) (3.0 s)", "ended by SIGTERM"),
        ("bash_kill", "up\n\n[job-1 has ended by SIGTERM after 2.5 s]", "ended by SIGTERM"),
        ("bash_kill", "[job-1 has ended with exit code 1 after 2.5 s]", "ended with exit code 1"),
        ("bash", "[timed out after 120 s]", "timed out after 120 s"),
        ("grep", "a.py\n1: x\n30: y", "2 matches"),
        ("grep", "a.py\n1: x\n[400 matches: 6 shown; narrow with path or include]", "400 matches"),
        ("grep", "No matches for x: searched 4 files", "no matches"),
        ("glob", "a\nb", "2 files"),
        ("glob", "No files match x", "no files"),
        ("todo_write", "1 of 2 todos completed; in progress: b", "1 of 2 done"),
        ("web_fetch", "a\nb", "2 lines"),
    ],
)
def test_what_a_call_did(name: str, text: str, detail: str):
    assert call_detail(spec_of(name), "{}", (Text(text),)) == detail


@pytest.mark.parametrize(
    ("arguments", "text", "detail"),
    [
        ({"output_mode": "content"}, "a.py\n1: x\n  in f (2-9)\n3- y\n4: x\n\n", "2 matches"),
        ({"output_mode": "content"}, "a.py\n1: x\n--\n9: y\nb.py\n2: [3 files: x", "3 matches in 2 files"),
        ({}, "a.py\n1: x\nb.py\n2: y\n[40 matches in 3 files: 2 shown, likely files first]", "40 matches in 3 files"),
        ({}, "a.py\n1: x\n[more than 900 matches: 6 shown; narrow the pattern]", "more than 900 matches"),
        (
            {"output_mode": "files"},
            "a.py\nb.py\n[16 matches in 2 files]\n[limit is at most 2000]",
            "16 matches in 2 files",
        ),
        ({"output_mode": "count"}, "a.py: 1\n[1 match in 1 file]", "1 match in 1 file"),
    ],
)
def test_a_search_has_the_numbers_that_its_tool_counted(arguments: dict[str, str], text: str, detail: str):
    """Defect: with `output_mode` given each line of 16 matches in 2 files was counted as a file."""
    assert call_detail(spec_of("grep"), json.dumps(arguments), (Text(text),)) == detail


def test_an_image_is_counted():
    assert call_detail(READ, "{}", (Image("image/png", b""),)) == "1 image"


def test_a_diff_is_below_its_call_without_the_summary():
    assert block(EDIT, EDITED) == ["    2 −     return sum(xs) - 1", "    2 +     return sum(xs)"]


def test_the_last_lines_of_an_output_are_shown_and_the_number_of_those_before():
    text = "".join(f"{number}\n" for number in range(9)) + "[exit code 0]"
    assert block(RUN, text, limit=3) == ["    … 7 earlier lines (Ctrl+O shows all)", "    7", "    8"]
    assert block(RUN, text, limit=None)[-1] == "    [exit code 0]"


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("x" * 200 + "\ny\n", "… 2 earlier lines (Ctrl+O shows all)"),
        ("a\n[... lines 2-2,993 of 3,000 cut ...]\nb\n", "… 2,994 earlier lines (Ctrl+O shows all)"),
        ("a\n[... characters 9-90 of 99, lines 1-4 of 9 cut ...]\nb\n", "… 4 earlier lines (Ctrl+O shows all)"),
        ("a\n[... cut from line 2 on; the end follows ...]\nb\n", "… earlier lines (Ctrl+O shows all)"),
    ],
)
def test_lines_of_an_output_are_counted_and_not_the_rows_of_what_the_model_got(before: str, more: str):
    """Defect: of 3,000 lines 265 were said to be left out."""
    assert block(RUN, f"{before}7\n8\n[exit code 0]", limit=3) == [f"    {more}", "    7", "    8"]


def test_of_a_long_line_the_end_is_shown_and_no_line_is_missing():
    assert block(RUN, "x" * 200 + "\n[exit code 0]", limit=2)[0] == "    … (Ctrl+O shows all)"


def test_a_reason_is_whole_or_says_how_to_see_the_rest():
    reason = "x.py can't be changed: " + "because it is protected " * 8
    assert "".join(part.strip() for part in block(READ, reason, "error", 9)).replace(" ", "") == reason.replace(" ", "")
    assert block(READ, reason, "refused", 2)[-1] == "    … 4 more lines (Ctrl+O shows all)"


def test_a_result_that_was_only_read_is_shown_when_it_is_open():
    assert block(READ, "a\nb") == []
    assert block(READ, "a\nb", limit=None) == ["    a", "    b"]


def test_symbols_can_be_ascii():
    theme = theme_named("plain", "none", ASCII)
    drawn = call_line(EDIT, '{"file_path": "a.py"}', theme, 40, state="ok", detail="+1 -1")
    assert drawn == "+ Edit   a.py  +1 -1"
    assert all(part.isascii() for part in call_block(EDIT, "{}", (Text(EDITED),), "ok", theme, 40, limit=1))


def test_a_plan_is_one_line_with_its_heading_and_markdown_when_it_is_open():
    """Defect: the source of its first lines was one line, and all of its source was shown when it was open."""
    plan = {"plan": "\n## Move the **parser**\n\n- read\n  - line *by* line\n\n```python\nif x:\n    y()\n```\n"}
    spec = spec_of("exit_plan")
    assert line(spec, plan) == "\u2713 Plan   Move the parser"
    rows = [row.strip() for row in block(spec, "Approved.", limit=None, arguments=plan)]
    assert "Move the parser" in rows[0].replace("*", "") and "```" not in rows
    assert rows.index("y()") == rows.index("if x:") + 1 and rows[-1] == "Approved."
