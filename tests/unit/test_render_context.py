"""The picture of `/context` in a terminal with colours: the figures of the JSON, in a grid of any width."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_context_text import NOT_BEGUN, REPORT, part, report

from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.context import cells_of_groups, context_lines, context_summary, groups_of
from bradawl.app.tui.render.theme import theme_named

PLAIN = theme_named("plain", "none")
DARK = theme_named("dark", "true")
LETTERS = re.compile(r"^[stic r.=]+$")


def grid_of(lines):
    """The letters of the grid, without the legend."""
    return "".join(line[:39].replace(" ", "") for line in lines if LETTERS.match(line[:39]) and len(line[:39]) == 39)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_grid_has_each_part_in_proportion_and_the_legend_its_figures(width):
    shown = report(
        parts=(part("system", 6_000, 3, part("rules", 4_000), part("instructions", 2_000)), *REPORT.parts[1:])
    )
    lines = context_lines(shown, PLAIN, width)
    counts = {letter: grid_of(lines).count(letter) for letter in "sticr.="}
    assert sum(counts.values()) == 140
    whole = sum(group.tokens for group in groups_of(shown))
    for group in groups_of(shown):
        assert abs(counts[group.mark] - 140 * group.tokens / whole) <= 1.5
        assert any(f"{group.mark} {group.label:<17}{group.tokens:>10,}" in line for line in lines), group
    assert any("instruction files     2,000  1.0 %" in line for line in lines)
    assert all(cells_of(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "results: bash 22,500, read_file 13,500" in text and "Next compaction: snip, at 84,000" in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_picture_fits_on_a_screen_and_says_how_to_see_the_rest(width):
    lines = context_summary(REPORT, PLAIN, width)
    assert len(lines) <= 19 and len(grid_of(lines)) == 140
    assert "Next compaction: snip" in " ".join(lines) and lines[-1].startswith("Ctrl+O shows")
    assert [line for line in lines[:-1] if line not in context_lines(REPORT, PLAIN, width)] == []


def test_the_figures_are_those_of_the_json():
    data = json.loads(REPORT.to_json())
    tokens = {group.label: group.tokens for group in groups_of(REPORT)}
    parts = {each["name"]: each["tokens"] for each in data["parts"]}
    assert sum(tokens.values()) - tokens["free"] - tokens["for the reply"] == sum(parts.values())
    assert (tokens["free"], tokens["for the reply"]) == (data["free"], data["reserved_output"])
    assert (tokens["tools"], tokens["results"]) == (parts["tools"], parts["results"])


def test_colours_have_one_symbol_and_as_many_cells_as_letters():
    plain, dark = (context_lines(REPORT, theme, 80) for theme in (PLAIN, DARK))
    assert [cells_of(line) for line in plain] == [cells_of(line) for line in dark]
    row = next(line for line in dark if "■" in line)
    codes = re.findall(r"\x1b\[([\d;]+)m■", "".join(dark))
    assert len({code for code in codes if code != "0"}) == 6 and "■" in row


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=9).filter(any), st.integers(20, 200))
def test_all_cells_are_used_and_none_is_missing_for_what_is_small(tokens, cells):
    counts = cells_of_groups(tokens, cells)
    assert sum(counts) == cells
    assert all(bool(count) == bool(size) for count, size in zip(counts, tokens, strict=True))


@pytest.mark.parametrize("width", [8, 20, 33])
def test_a_very_narrow_terminal_gets_narrow_lines(width):
    for each in (REPORT, NOT_BEGUN):
        assert all(cells_of(line) <= width for line in context_lines(each, DARK, width))
