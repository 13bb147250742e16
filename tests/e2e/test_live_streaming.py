"""An answer that streams: each line is on the screen once, the tail fits, and what is typed meanwhile never mixes."""

import re

import pytest
from live_terminal import MARK

from bradawl.app.symbols import UNICODE
from bradawl.app.tui.render.cells import width
from bradawl.app.tui.render.markdown import MarkdownStream
from bradawl.app.tui.render.theme import theme_named

_PARTS = (
    "## Heading {0}\n\n",
    "Paragraph {0}: the quick brown fox jumps over the lazy dog while the model writes, `code {0}` included.\n\n",
    "- item {0}.1 with **bold** text\n- item {0}.2, which is so long that it has to be wrapped at the edge\n\n",
    "```python\ndef function_{0}(value):\n    return value + {0}  # a comment\n```\n\n",
    "| name | value |\n|---|---|\n| row {0} | {0}00 |\n\n",
    "1. first {0}\n2. second {0}\n\n> a quotation {0}\n\n",
    "日本語の文章 {0} と絵文字 🙂 が混ざっている行で、端末の幅よりもずっと長いので折り返される必要があります。\n\n",
)
LONG = "".join(part.format(number) for number in range(24) for part in _PARTS)


def rendered(text: str, columns: int) -> list[str]:
    """The lines of an answer, without colours."""
    stream = MarkdownStream(theme_named("dark", "256", UNICODE), columns)
    stream.feed(text)
    return [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in stream.finish()]


def pieces(text: str, count: int) -> list[str]:
    """The text in about so many pieces that end anywhere."""
    size = max(1, len(text) // count)
    return [text[at : at + size] for at in range(0, len(text), size)]


def answer_in(lines: list[str]) -> list[str]:
    """The lines between the prompt and the line about its cost."""
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"{MARK} "))
    end = next(number for number, line in enumerate(lines) if re.match(r"\S [\d.]+s · \d+ steps?", line))
    assert lines[end - 1] == ""
    return lines[begin + 2 : end - 1]


@pytest.mark.parametrize("size", [(24, 80), (40, 120), (10, 50)], ids=str)
def test_five_hundred_updates_leave_each_line_once(live, server, size):
    talk = live((), "-y", size=size, environ=server.environ)
    talk.wait_idle()
    talk.send("tell me all")
    request = server.request()
    typed = ""
    for number, piece in enumerate(pieces(LONG, 500)):
        request.text(piece)
        if number % 10 == 0 and len(typed) < 25:
            typed += "abcdefghijklmnopqrstuvwxyz"[len(typed)]
            talk.type(typed[-1])
            talk.until(lambda typed=typed: talk.typed == typed, f"{typed!r} in the input line")
            assert len(talk.lines) <= size[0] and talk.box and talk.lines[-1].startswith(" bypass")
            assert "esc stops" in talk.text
    request.end()
    talk.wait_turns(1)
    assert answer_in(talk.whole) == rendered(LONG, size[1])
    assert talk.typed == typed
    assert talk.whole_text.count(typed) == 1
    talk.press("ctrl+c")
    talk.leave()


def test_an_answer_at_a_terminal_without_synchronised_frames(live, server):
    """A terminal that answers no question, such as whether it can show a frame at once."""
    talk = live((), "-y", answers=False, environ=server.environ)
    talk.wait_idle()
    talk.send("tell me all")
    request = server.request()
    for piece in pieces(LONG, 500):
        request.text(piece)
    request.end()
    talk.wait_turns(1)
    assert answer_in(talk.whole) == rendered(LONG, 80)
    talk.leave()


def test_typing_and_erasing_does_not_touch_the_answer(live, server):
    """Defect: `in twait, use he middle`, and Backspace erased the model's text."""
    talk = live((), "-y", environ=server.environ)
    talk.wait_idle()
    talk.send("go")
    request = server.request()
    request.text("The tail is in t")
    talk.wait_for("The tail is in t")
    talk.type("wait, use ")
    talk.until(lambda: talk.typed == "wait, use", "the typed text")
    request.text("he middle")
    talk.wait_for("The tail is in the middle")
    talk.press("backspace " * 5)
    talk.until(lambda: talk.typed == "wait,", "fewer characters")
    talk.press("backspace " * 40)
    talk.until(lambda: talk.typed == "", "no characters")
    assert "The tail is in the middle" in talk.text
    request.text(" of the line.")
    request.end()
    talk.wait_turns(1)
    assert answer_in(talk.whole) == ["The tail is in the middle of the line."]
    talk.leave()


def test_a_wait_for_the_first_word_is_shown_with_its_seconds(live, server):
    """Defect: 12 s without a word showed nothing at all."""
    talk = live((), "-y", environ=server.environ)
    talk.wait_idle()
    talk.send("go")
    request = server.request()
    talk.wait_for("Waiting for ", "· 0s · esc stops")
    talk.wait_for("· 2s · esc stops")
    request.text("At last.")
    talk.wait_for("At last.", "Writing")
    request.end()
    talk.wait_turns(1)
    assert "esc stops" not in talk.text and "Waiting" not in talk.whole_text
    talk.leave()


def test_thinking_is_named_and_then_folded(live):
    talk = live([{"thinking": "Where is it? In the cellar.", "text": "It is there."}], "-y")
    talk.wait_idle()
    talk.send("where?")
    talk.wait_turns(1)
    assert "thought for" in talk.text and "In the cellar" not in talk.text
    talk.press("ctrl+o")
    talk.wait_for("In the cellar")
    talk.press("q")
    talk.wait_idle()
    talk.leave()


@pytest.mark.parametrize("columns", [80, 50])
def test_no_line_of_wide_characters_is_wider_than_the_screen(live, columns):
    """Defect: lines were cut by characters, not by cells."""
    wide = "漢字" * 60
    calls = [
        {"id": "a", "name": "read_file", "arguments": {"file_path": f"{wide}.txt"}},
        {"id": "b", "name": "bash", "arguments": {"command": f"echo {wide}; echo '👨‍👩‍👧 🇫🇷 é'; exit 3"}},
    ]
    talk = live([{"text": wide, "tool_calls": calls}, {"text": f"`{wide}`\n\n- {wide}"}], "-y", size=(24, columns))
    talk.wait_idle()
    talk.type(wide[:40])
    talk.until(lambda: talk.typed.replace("\n", "") == wide[:40], "wide characters in the input line")
    talk.press("enter")
    talk.wait_turns(1)
    assert all(width(line) <= columns for line in talk.whole)
    text = "".join(line.strip(" •") for line in talk.whole)
    assert text.count(wide) >= 2  # the answers, wrapped, have every character
    talk.leave()


def test_a_dropped_connection_keeps_the_text_and_the_next_one_is_whole(live, server):
    talk = live((), "-y", environ=server.environ)
    talk.wait_idle()
    talk.send("go")
    request = server.request()
    request.text("Half of the")
    talk.wait_for("Half of the")
    request.hang_up()
    again = server.request()
    talk.wait_for("asked for again")
    again.text("The whole answer.")
    again.end()
    talk.wait_turns(1)
    assert talk.text.index("Half of the") < talk.text.index("again") < talk.text.index("The whole answer.")
    talk.leave()


def test_escape_sequences_of_the_model_are_no_sequences(live):
    hostile = "A\x1b[2J\x1b]0;pwned\x07\x9b31m\u202eB\r\x08C"
    talk = live([{"text": hostile}, {"text": "On."}], "-y")
    talk.wait_idle()
    talk.send("go")
    talk.wait_turns(1)
    assert "pwned" not in talk.raw.decode("utf-8", "replace")
    assert not set(talk.raw.decode("utf-8", "replace")) & set("\x9b\u202e")
    talk.leave()
