"""Cells: measuring, cutting and wrapping text with colours and wide characters; themes; syntax colours."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.symbols import ASCII, UNICODE
from bradawl.app.tui.render.cells import chop_spans, clusters, cut, pad, painted, shown, spans_of, width, wrap
from bradawl.app.tui.render.palettes import LOOKS, luminance, nearest_of_256
from bradawl.app.tui.render.theme import theme_for_background, theme_named

DARK = theme_named("dark", "true")
FAMILY = "👨‍👩‍👧"
TEXTS = st.text(st.sampled_from("ab c日本é\u0301👩\u200d🇩❤\ufe0fक्ष한ب، -")) | st.text(max_size=40)
COLOURED = st.lists(st.tuples(TEXTS, st.sampled_from(["accent", "error", "plain"]))).map(
    lambda parts: "".join(DARK.paint(shown(text).replace("\n", " "), role) for text, role in parts)
)


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("text", "cells"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("❤\ufe0f", 2), ("\x1b[1mab\x1b[0m", 2), ("", 0), ("한글", 4), ("ب", 1)],
)
def test_the_cells_of_a_text(text: str, cells: int):
    assert width(text) == cells


def test_joined_emoji_count_as_wide_as_a_terminal_draws_them_that_does_not_join():
    assert width(FAMILY) == 6
    assert [cluster for cluster, _ in clusters(f"a{FAMILY}b")] == ["a", FAMILY, "b"]


@given(COLOURED, st.integers(0, 20))
def test_a_cut_text_fits_and_is_a_beginning(text: str, cells: int):
    shortened = cut(text, cells)
    assert width(shortened) <= cells
    assert bare(text).startswith(bare(shortened).removesuffix("…"))
    assert (bare(shortened) == bare(text)) == (width(text) <= cells)
    assert shortened.count("\x1b[0m") == len(re.findall(r"\x1b\[[1-9][0-9;]*m", shortened))


@given(COLOURED, st.integers(1, 20))
def test_wrapped_lines_fit_close_their_colours_and_keep_all_but_blanks(text: str, cells: int):
    lines = wrap(text, cells)
    assert all(width(line) <= cells for line in lines)
    assert all("\x1b" not in line or line.rpartition("\x1b[")[2].startswith("0m") for line in lines)
    if cells > 7:
        assert "".join(map(bare, lines)).replace(" ", "") == bare(text).replace(" ", "")


@given(COLOURED, st.integers(8, 20))
def test_chopped_lines_keep_every_character(text: str, cells: int):
    lines = [painted(line) for line in chop_spans(spans_of(text), cells)]
    assert all(width(line) <= cells for line in lines)
    assert "".join(map(bare, lines)) == bare(text)


def test_a_line_breaks_between_words_and_its_look_goes_on():
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap(DARK.paint("one two", "strong"), 4) == ["\x1b[1mone\x1b[0m", "\x1b[1mtwo\x1b[0m"]
    assert wrap("x" * 10 + " y", 4) == ["xxxx", "xxxx", "xx y"]
    assert wrap("日本語、です", 6) == ["日本", "語、で", "す"]
    assert wrap("", 4) == [""]


def test_what_could_control_the_terminal_is_spelled_out():
    assert shown("a\x1b[2J\x9b\x07\t.\n\tb") == "a\\x1b[2J\\x9b\\x07    .\n    b"
    assert "\x1b" not in shown("\x1b]0;title\x07\x9b2J")
    assert wrap("a\x1b[2Jb\x1b[1mc", 40) == ["a\\x1b[2Jb\x1b[1mc\x1b[0m"]


def test_padding_counts_cells():
    assert pad("日", 4) == "日  "
    assert pad("abc", 2) == "abc"


def test_a_painted_part_keeps_its_look_and_the_rest_goes_on_with_its_own():
    theme = theme_named("dark", "16")
    assert theme.paint(f"a{theme.paint('b', 'error')}c", "verb") == "\x1b[1ma\x1b[31mb\x1b[0m\x1b[1mc\x1b[0m"


def test_without_colours_nothing_is_painted():
    for theme in (theme_named("plain", "true"), theme_named("dark", "none")):
        assert (theme.name, theme.paint("a", "error"), theme.code("error", "strong")) == ("plain", "a", "")


@pytest.mark.parametrize(("depth", "colour"), [("16", "31"), ("256", "38;5;210"), ("true", "38;2;255;121;121")])
def test_a_role_has_a_colour_of_each_depth(depth, colour: str):
    assert theme_named("dark", depth).code("error") == colour


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", ["dark", "light"])
def test_each_colour_is_readable_on_its_background_and_on_tinted_rows(background: str):
    page = (30, 30, 30) if background == "dark" else (255, 255, 255)
    tints = [getattr(LOOKS[role], background) for role in ("added", "removed")]
    for role, look in LOOKS.items():
        colour = getattr(look, background)
        if colour is None or look.is_background or role.startswith("frame"):
            continue
        assert contrast(colour, page) >= 4.5, role
        assert all(contrast(colour, tint) >= 4.0 for tint in tints), role


def test_the_nearest_of_256_colours():
    assert [nearest_of_256(colour) for colour in ((0, 0, 0), (255, 255, 255), (95, 135, 175), (128, 128, 128))] == [
        *(16, 231, 67, 244)
    ]


def test_the_theme_for_a_background():
    assert theme_for_background((30, 30, 30)) == "dark"
    assert theme_for_background((0, 43, 54)) == "dark"
    assert theme_for_background((253, 246, 227)) == "light"
    assert theme_for_background((255, 255, 255)) == "light"


def test_symbols_have_an_ascii_form_for_each():
    for name in UNICODE.__struct_fields__:
        values = getattr(ASCII, name)
        assert all(value.isascii() for value in ((values,) if isinstance(values, str) else values)), name
