"""A list in which the user searches: found options, columns and rows at any width, and no height that changes."""

import pytest

from bradawl.app.symbols import ASCII
from bradawl.app.terminal_user import Option
from bradawl.app.tui.live.picker import Picker
from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.theme import theme_named

MARK = "\u276f"
PLAIN = theme_named("plain", "none")
NAMES = (
    "fix the failing test in the parser of the configuration files and explain why it failed",
    "日本語のセッション名はとても長いです、そして切らなければなりません、絶対に",
    "short",
    "family \U0001f389\U0001f389 of emoji",
)
MANY = [Option(f"id{n}", f"{NAMES[n % 4]} {n}", f"{n} min ago, {n} prompts  01JB{n:022d}") for n in range(300)]


def typed(picker, text):
    for character in text:
        picker.press(character, character)
    return picker


async def answer(picker, *keys):
    for key in keys:
        picker.press(key, "")
    return await picker.answer


@pytest.mark.parametrize("columns", [20, 40, 80, 120])
@pytest.mark.parametrize("rows", [4, 8, 20])
@pytest.mark.parametrize("search", ["", "short", "日本", "no such session"])
async def test_lines_fit_at_any_size_and_a_search_does_not_change_their_number(columns, rows, search):
    picker = Picker("Which session is to be continued?", MANY)
    before = picker.lines(PLAIN, columns, rows)
    lines = typed(picker, search).lines(PLAIN, columns, rows)
    assert max(map(width, lines)) == columns
    assert len(lines) == len(before) <= rows
    assert search == "" or any(search[-3:] in line for line in lines), "what is typed is visible"


@pytest.mark.parametrize("columns", [40, 80])
async def test_where_details_have_no_room_beside_long_names_they_are_below_them(columns):
    lines = Picker("Which?", MANY).lines(PLAIN, columns, 20)
    assert lines[2].startswith(f"│ {MARK} fix the failing test in the par") and lines[2].endswith("…")
    assert [line[:15] for line in lines[3:7:2]] == ["│     0 min ago", "│     1 min ago"]
    assert lines[-2].startswith("╰ 1 of 300 ─")


async def test_details_are_beside_short_names_in_one_column():
    options = [Option("a", "auto", "the first"), Option("b", "plainer", "the second", is_current=True)]
    lines = Picker("Colours:", options).lines(PLAIN, 40, 20)
    assert lines[2:4] == ["│   auto     the first", f"│ {MARK} plainer  now  the second"]
    assert len(lines) == 6


async def test_a_search_finds_words_in_any_order_and_in_details():
    assert await answer(typed(Picker("Which?", MANY), "test FIX 296"), "enter") == "id296"
    assert await answer(typed(Picker("Which?", MANY), f"01JB{299:022d}"), "enter") == "id299"
    assert await answer(typed(Picker("Which?", MANY), "日本 1"), "enter") == "id1"


async def test_a_search_without_hits_chooses_nothing_and_can_be_taken_back():
    picker = typed(Picker("Which?", MANY), "shortz")
    for key in ("enter", "down", "up", "pagedown", "pageup", "end", "home"):
        picker.press(key, "")
    assert not picker.answer.done()
    lines = picker.lines(PLAIN, 80, 20)
    assert "nothing found" in lines[2] and "0 of 300" in lines[-2]
    assert await answer(picker, "backspace", "down", "enter") == "id6"


async def test_keys_stay_within_the_list():
    keys = {"end": "id299", "home": "id0", "pageup": "id2", "up": "id9", "down": "id11", "pagedown": "id18"}
    for key, value in keys.items():
        assert await answer(Picker("Which?", MANY, start="id10"), key, "enter") == value
    assert await answer(Picker("Which?", MANY), "up", "enter") == "id0"
    assert await answer(Picker("Which?", MANY), "escape") is None


async def test_control_characters_of_names_and_titles_are_spelled_out():
    picker = Picker("Which\x1b[2J?", [Option("a", "x\x1b[31m\ny", "\x07")])
    lines = picker.lines(theme_named("plain", "none", ASCII), 60, 9)
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    assert lines[0].startswith("+ Which\\x1b[2J? -") and lines[2].startswith("| > x\\x1b[31m y")
