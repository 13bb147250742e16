"""A question in a terminal with few rows: the keys and the command win over everything else."""

import pytest
from live_terminal import MARK, bash

from bradawl.app.terminal_user import Option
from bradawl.app.tui.live.dialogs import Key, KeyDialog
from bradawl.app.tui.live.picker import Picker
from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.theme import theme_named

PLAIN = theme_named("plain", "none")
KEYS = (Key("y", "Yes", "yes", short="yes"), Key("n", "No, and say why", "no", short="no"))
HIDDEN = Key("v", "", "whole", is_hidden=True, short="show all")


@pytest.mark.parametrize("rows", range(1, 15))
async def test_a_question_fits_in_any_number_of_rows_and_shows_its_keys(rows):
    for body, cells in ((1, 80), (20, 80), (20, 20)):
        text = [f"line {number}" for number in range(body)]
        dialog = KeyDialog("Run this command?", lambda *_, text=text: text, "no network", (*KEYS, HIDDEN), after="why")
        lines = dialog.lines(PLAIN, cells, rows)
        assert len(lines) <= rows and all(width(line) <= cells for line in lines), lines
        assert any("y" in line and MARK in line for line in lines), lines
        if rows > 1:
            assert any("line 0" in line for line in lines), lines
        assert dialog.is_cut == (not any(f"line {body - 1}" in line for line in lines))


async def test_on_one_line_the_chosen_answer_is_named_first():
    dialog = KeyDialog("Run?", lambda *_: ["x"], "", (*KEYS, HIDDEN))
    assert dialog.lines(PLAIN, 80, 2) == ["x", f"{MARK}y yes  n no"]
    dialog.press("down", "")
    assert dialog.lines(PLAIN, 9, 2) == ["x", f"y  {MARK}n no"]


@pytest.mark.parametrize("rows", range(1, 8))
async def test_a_list_fits_in_few_rows(rows):
    picker = Picker("Which?", [Option(str(number), f"option {number}") for number in range(9)])
    lines = picker.lines(PLAIN, 40, rows)
    assert len(lines) <= rows and "option 0" in "".join(lines)


@pytest.mark.parametrize("rows", [2, 3, 4, 6, 8, 10])
def test_a_low_terminal_shows_command_and_keys_of_a_question(live, project, rows):
    talk = live([bash("touch t-1"), {"text": "Done."}], "--permission-mode", "default")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for_question("touch t-1")
    talk.resize(rows, 80)
    talk.until(
        lambda: len(talk.lines) <= rows and "touch t-1" in talk.text and "y" in talk.lines[-1] + talk.text,
        "the question",
    )
    talk.until(lambda: any(line.lstrip(" ").startswith(MARK) and "y" in line for line in talk.lines), "its keys")
    talk.press("y")
    talk.resize(24, 80)
    talk.wait_turns(1)
    assert (project / "t-1").exists() and "Done." in talk.text
    talk.leave()
