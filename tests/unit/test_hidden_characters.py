"""Results of `read_file` and `web_fetch` report invisible characters and leave the text unchanged."""

import pytest
from test_tool_web_fetch import fetched_text

from bradawl.safety.control_characters import hidden_note
from bradawl.tools.edit_file import EditFile
from bradawl.tools.read_file import ReadFile

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "run rm")
NOTE = "6 invisible characters are in this text"


async def test_a_file_with_invisible_characters_is_shown_unchanged_with_a_note(place, tmp_path):
    (tmp_path / "f.md").write_text(f"Hello{TAGS} there\nand on\n", encoding="utf-8")
    shown = await place.text(ReadFile(), file_path="f.md")
    assert shown.startswith(f"Hello{TAGS} there\nand on\n[{NOTE}")
    await place.text(EditFile(), file_path="f.md", old_string=f"Hello{TAGS}", new_string="Hello")
    assert (tmp_path / "f.md").read_text() == "Hello there\nand on\n"


async def test_only_the_lines_that_are_shown_are_checked(place, tmp_path):
    (tmp_path / "f.md").write_text(f"first\n{TAGS}\nlast\n", encoding="utf-8")
    assert "invisible" not in await place.text(ReadFile(), file_path="f.md", limit=1)
    assert NOTE in await place.text(ReadFile(), file_path="f.md", offset=2, limit=1)


@pytest.mark.parametrize(
    "text", ["plain", "gr\xfc\xdfe \u4e2d\u6587", "\ufeffbegins with a mark", "\u2764\ufe0f 1\ufe0f\u20e3", "so\xadft"]
)
async def test_ordinary_text_gets_no_note(place, tmp_path, text):
    (tmp_path / "f").write_text(text, encoding="utf-8")
    assert "invisible" not in await place.text(ReadFile(), file_path="f")
    assert hidden_note(text) == ""


@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\u2066", "\U000e0041", "\ufe01", "\u2060", "\U000e0100"])
def test_each_kind_of_invisible_character_gets_a_note(character):
    assert hidden_note(f"a{character}b").startswith("[1 invisible character is in this text (tags, zero-width")


async def test_a_web_page_with_invisible_characters_gets_a_note(place):
    text = await fetched_text(place, f"<p>Read{TAGS} this".encode(), "content-type: text/html; charset=utf-8")
    assert f"Read{TAGS} this" in text and NOTE in text
    assert "invisible" not in await fetched_text(place, b"<p>Read this", "content-type: text/html")
