"""Streamed Markdown: what is committed, frame by frame, is what one rendering of the whole text gives."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.markdown import MarkdownStream
from bradawl.app.tui.render.theme import Theme, theme_named

PLAIN = theme_named("plain", "none")
DARK = theme_named("dark", "256")
BOLD, RESET = "\x1b[1m", "\x1b[0m"

LINES = st.sampled_from(
    [
        *("", "", "# Heading with `code`", "text of a paragraph", "**bold** and *emphasis* and `code`", "===", "---"),
        *(
            "- item",
            "- another item with **bold**",
            "  - nested",
            "  continued",
            "* star",
            "1. one",
            "2. two",
            "10. ten",
        ),
        *("    indented", "> quoted", ">", "> - list in a quote", "> > deep", "```python", "```", "  ```", "~~~"),
        *("def f(): '''doc", "'''", "/* open", "*/", "| a | b |", "|---|--:|", "| 1 | `x` |", "| long cell | y | z |"),
        *(
            "[a](http://x.y) and [b][r]",
            "日本語のテキスト",
            "e\u0301 👩‍👩‍👧 🇩🇪",
            "\tafter a tab\tand another",
            "snake_case_name",
        ),
        *("&amp; \\* <b>", "two blanks  ", "backslash\\", "- [x] done", "- [ ] open", "- - - deep", "* * *", "x" * 90),
        *(
            "a **bold that never ends",
            "a ` that never ends",
            "word " * 120,
            "`code` and *emphasis* in many words " * 30,
        ),
        *("شريط المهام", "- ", "1.", "* ", "a | b", "\\| x \\|"),
    ]
)
TEXTS = st.builds("\n".join, st.lists(LINES, max_size=40)) | st.text(max_size=300)
WIDTHS = st.sampled_from([1, 2, 5, 12, 20, 40, 80])


def whole(text: str, cells: int, theme: Theme = PLAIN) -> list[str]:
    stream = MarkdownStream(theme, cells)
    stream.feed(text)
    return stream.finish()


def in_pieces(text: str, cells: int, sizes: list[int], limit: int, theme: Theme = PLAIN) -> list[str]:
    stream = MarkdownStream(theme, cells)
    lines: list[str] = []
    while text:
        for size in sizes:
            stream.feed(text[:size])
            text = text[size:]
        frame = stream.frame(limit)
        lines += frame.committed
        assert len(frame.tail) <= limit
        assert all(fits(line, cells) for line in frame.tail)
    return lines + stream.finish()


def fits(line: str, cells: int) -> bool:
    """Whether a line has at most so many cells, no escape sequence but colours, and ends without one."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    ends_plain = "\x1b" not in line or line.rpartition("\x1b[")[2].startswith("0m")
    return width(line) <= cells and not re.search(r"[\x00-\x1f\x7f-\x9f]", plain) and ends_plain


@given(TEXTS, WIDTHS, st.lists(st.integers(1, 50), min_size=1, max_size=4), st.sampled_from([0, 1, 4, 12]))
@example("+ plus\n\n    code\n  ```\n*/ text", 40, [1], 4)
@example("- item\n\n\t1. one\n  - nested\n", 40, [1], 4)
@example("- a\n  - b\n  text\n\n  para\n- c", 40, [1], 4)
@example("- ```\n  \n- item", 40, [1], 4)
@example("```\n\n\ncode", 40, [1], 4)
@example("`code " * 200, 12, [7], 4)
@example("long paragraph " * 60 + "  \nhard break", 20, [40], 4)
@example("word " * 200 + "\n---\n", 20, [3], 4)
@example("word " * 200 + "| a |\n| b |\n|---|\n", 20, [3], 4)
def test_pieces_and_frames_give_the_lines_of_the_whole_text(text: str, cells: int, sizes: list[int], limit: int):
    assert in_pieces(text, cells, sizes, limit) == whole(text, cells)


@given(TEXTS, WIDTHS)
@example("&#x1b;[31m \x1b[31mred\x1b[0m \x9b31m \x1b]0;title\x07 &#x202e;", 40)
@example("`\x1b[2J`\n\n```\n\x1b[2J\n```\n[\x1b[2J](http://\x1b[2J)\n\n[r]: http://a\x1bb '\x07'", 40)
@example("| \x1b[2J |\n|---|\n| \r\x08 |", 40)
def test_each_line_fits_and_closes_its_colours_and_passes_no_other_escape_sequence(text: str, cells: int):
    assert all(fits(line, cells) for line in whole(text, cells, DARK))


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=8), min_size=1, max_size=300), WIDTHS, st.integers(1, 40))
def test_no_word_is_lost_or_repeated(words: list[str], cells: int, size: int):
    text = " ".join(words)
    assert "".join(in_pieces(text, cells, [size], 3)).replace(" ", "") == "".join(words)


def test_a_block_is_committed_when_the_next_begins():
    stream = MarkdownStream(PLAIN, 40)
    stream.feed("# Title\n\nfirst paragraph\n\nsec")
    frame = stream.frame(10)
    assert frame.committed == ["# Title", "", "first paragraph"]
    assert frame.tail == ["", "sec"]
    assert stream.frame(10).committed == []


def test_the_items_of_an_open_list_are_committed_one_by_one():
    stream = MarkdownStream(PLAIN, 40)
    stream.feed("1. one\n2. two\n   - inner\n   - last")
    frame = stream.frame(10)
    assert frame.committed == ["1. one", "2. two"]
    assert frame.tail == ["   ◦ inner", "   ◦ last"]
    stream.feed("\n3. three\n")
    assert stream.frame(10).tail == ["3. three"]
    assert stream.finish() == ["3. three"]


def test_the_lines_of_an_open_fence_are_committed_as_they_complete_and_keep_their_colours():
    text = '1. see\n   ```python\n   """doc\n   if\n   """\n   if x: pass\n   ```\n'
    stream = MarkdownStream(DARK, 40)
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        stream.feed(line)
        frame = stream.frame(5)
        lines += frame.committed
        assert len(frame.tail) <= 1
    assert lines + stream.finish() == whole(text, 40, DARK)
    string, keyword = DARK.code("string"), DARK.code("keyword")
    assert f"     \x1b[{string}mif{RESET}" in lines
    assert any(f"\x1b[{keyword}mif{RESET}" in line for line in lines)


def test_a_long_table_keeps_its_columns_and_is_committed_row_by_row():
    head = "| name | value |\n|---|---|\n"
    stream = MarkdownStream(PLAIN, 40)
    stream.feed(head + "".join(f"| n{number} | {number} |\n" for number in range(30)))
    committed = stream.frame(5).committed
    assert len(committed) == 32
    stream.feed("| a name that is much too long for its column | 31 |\n")
    assert all(len(line) <= 15 for line in stream.finish())


def test_a_link_reference_counts_for_what_is_behind_it_and_stays_visible():
    lines = whole("[a][r]\n\n[r]: http://x.y\n\n[a][r] [^1]\n\n[^1]: a footnote", 60)
    assert lines == ["[a][r]", "", "[r]: http://x.y", "", "a (http://x.y) [^1]", "", "[^1]: a footnote"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\n- b", ["a", "", "• b"]),
        ("- [ ] a\n- [x] b", ["☐ a", "☑ b"]),
        ("> a\n> b", ["│ a b"]),
        ("**a** `b`", ["a `b`"]),
        ("<script>&lt;\n</script>", ["<script>< </script>"]),
        ("![pic](x.png)", ["pic (x.png)"]),
        ("a\tb", ["a   b"]),
        ("a\r\nb\rc", ["a b c"]),
        ("```\na\tb\n\n```", ["  a   b", ""]),
        ("9. a\n1. b", ["9. a", "10. b"]),
        ("| a |\n|--:|\n| bcde |", ["   a", "────", "bcde"]),
        ("a  \nb", ["a", "b"]),
    ],
)
def test_blocks_look_as_readers_expect(text: str, lines: list[str]):
    assert whole(text, 40) == lines


def test_emphasis_has_its_look_over_the_look_around_it():
    assert whole("**a *b***", 40, DARK) == [f"{BOLD}a {RESET}\x1b[1;3mb{RESET}"]


def test_a_new_width_counts_from_then_on():
    stream = MarkdownStream(PLAIN, 10)
    stream.feed("one two three\n\nfour five six seven")
    assert stream.frame(9).committed == ["one two", "three"]
    stream.resize(40)
    assert stream.frame(9).tail == ["", "four five six seven"]


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("a **bo", f"a {BOLD}bo{RESET}"),
        ("a **", "a"),
        ("a `co", f"a \x1b[{DARK.code('code')}mco{RESET}"),
        ("see [the page](https://exam", "see the page"),
        ("- a **bo", f"\x1b[{DARK.code('dim')}m•{RESET} a {BOLD}bo{RESET}"),
        ("a **b** c", f"a {BOLD}b{RESET} c"),
    ],
)
def test_what_is_unfinished_looks_as_it_will_probably_be(text: str, tail: str):
    stream = MarkdownStream(DARK, 40)
    stream.feed(text)
    assert stream.frame(4).tail == [tail]


def test_a_very_deep_text_is_shown_as_it_is():
    text = "> " * 300 + "bottom"
    assert "bottom" in "".join(whole(text, 80))
    assert "bottom" in "".join(whole("- " * 300 + "bottom", 80))
    assert "x" in "".join(whole("[" * 5_000 + "x", 80))


def test_the_stream_can_be_used_again():
    stream = MarkdownStream(PLAIN, 40)
    for _ in range(2):
        stream.feed("a\n\nb")
        assert stream.finish() == ["a", "", "b"]
