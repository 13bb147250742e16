"""Text laid out for a terminal: no line is wider than the width, and no word is split without need."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from bradawl.app.terminal_size import terminal_width
from bradawl.app.text_layout import Column, cells, cut, pad, table, wrap
from bradawl.safety.control_characters import clean

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
LONG = "https://example.org/a/very/long/path/that/does/not/fit/into/a/line/of/forty/cells"
COMBINED = ("e\u0301", FAMILY, "☁\ufe0f", "🇩🇪", "क्ष", "한", "漢字")
PIECES = st.sampled_from(
    ["word", "a", " ", "  ", "\n", "\t", "\xa0", "\u200b", "-", "\x1b[31m", "bradawl", LONG, *COMBINED]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join))
WIDTHS = st.integers(2, 200)


def shown(line: str) -> int:
    """Cells as the library counts them for the whole line."""
    return max(0, wcswidth(line)) if wcswidth(line) >= 0 else cells(line)


@given(TEXTS, WIDTHS, st.sampled_from(["", "  ", "ok       ", "漢字 ", " " * 50]))
def test_no_wrapped_line_is_wider_than_the_width(text, width, first):
    lines = wrap(text, width, first)
    assert all(cells(line) <= width and shown(line) <= width for line in lines)


@given(TEXTS, WIDTHS)
def test_wrapping_keeps_every_word_and_splits_only_words_wider_than_a_line(text, width):
    lines = wrap(text, width)
    words = text.replace("\t", " ").replace("\n", " ").split(" ")
    assert "".join(lines).replace(" ", "") == "".join(words)
    kept = [word for line in lines for word in line.split(" ")]
    assert not [word for word in words if word and cells(word) <= width and word not in kept]


@given(TEXTS, WIDTHS)
def test_cutting_never_exceeds_the_width_and_keeps_the_beginning(text, width):
    text = text.replace("\n", " ")
    short = cut(text, width)
    assert cells(short) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4), WIDTHS)
def test_no_line_of_a_table_is_wider_than_the_width(rows, width):
    rows = [tuple(text.replace("\n", " ") for text in row) for row in rows]
    columns = (Column("NAME"), Column("SIZE", "right"), Column("TEXT", is_wrapped=True))
    assert all(cells(line) <= width for line in table(rows, columns, width))


@given(st.text(max_size=100))
def test_cleaned_text_has_as_many_cells_as_its_lines_together(text):
    text = clean(text).replace("\n", "").replace("\t", " ")
    assert cells(text) == sum(cells(piece) for piece in wrap(text, 10_000)) or " " in text


@pytest.mark.parametrize(
    ("text", "count"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), (FAMILY, 2), ("☁\ufe0f", 2), ("", 0), ("\x07", 0)]
)
def test_characters_have_the_cells_that_a_terminal_gives_them(text, count):
    assert cells(text) == count


def test_symbols_that_need_no_tables_have_the_width_of_the_tables():
    symbols = "…·✓✗⊘■›"
    assert [cells(symbol) for symbol in symbols] == [wcswidth(symbol) for symbol in symbols]
    assert cut(f"{symbols} text", 5) == "…·✓✗…" and cells(f"{symbols}日") == wcswidth(f"{symbols}日") == 9


def test_text_is_wrapped_between_words_with_a_hanging_indentation():
    assert wrap("one two three four", 13, "- ") == ["- one two", "  three four"]
    assert wrap("one\n\ntwo", 40) == ["one", "", "two"]
    assert wrap("", 40) == [""]


def test_a_word_without_blanks_wider_than_the_line_begins_a_new_line_and_is_split():
    assert wrap("see abcdefghij now", 6) == ["see", "abcdef", "ghij", "now"]
    assert wrap("漢字漢字漢字", 5) == ["漢字", "漢字", "漢字"]


def test_a_joined_emoji_is_never_split():
    assert wrap(FAMILY * 4, 5) == [FAMILY * 2, FAMILY * 2]
    assert cut(FAMILY * 4, 5) == FAMILY * 2 + "…"


def test_a_table_aligns_by_cells():
    columns = (Column("MODEL"), Column("WINDOW", "right"))
    assert table([("漢字", "128k"), ("gpt", "1M")], columns, 40) == ["MODEL  WINDOW", "漢字     128k", "gpt        1M"]


def test_a_table_wraps_its_last_column_before_it_is_stacked():
    columns = (Column("A"), Column("B", is_wrapped=True))
    assert table([("key", "one two three")], columns, 12) == ["A    B", "key  one two", "     three"]
    assert table([("key", "incomprehensible")], columns, 12) == ["key", "  b:", "    incompre", "    hensible"]


@pytest.mark.parametrize(("align", "padded"), [("left", "漢  "), ("right", "  漢")])
def test_padding_counts_cells(align, padded):
    assert pad("漢", 4, align) == padded


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("0", 100), ("x", 100), ("999999999", 100), ("", 100)])
def test_the_width_is_that_of_the_variable_or_the_usual_one(columns, width):
    assert terminal_width(io.StringIO(), {"COLUMNS": columns}) == width
