"""Pastes: short and long, with escapes and other line ends; folded, unfolded, sent whole."""

import json

import pytest
from test_live_queue import busy

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e5"
    "27de fc0000000049454e44ae426082".replace(" ", "")
)


def prompt_parts(home):
    """The parts of the last prompt."""
    (path,) = home.glob(".local/share/bradawl/projects/*/sessions/*.jsonl")
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    return [event["parts"] for event in events if event["type"] == "PromptSubmitted"][-1]


def prompt_text(home):
    return prompt_parts(home)[0]["text"]


@pytest.fixture
def talk(live):
    terminal = live([{"text": "Read."}, {"text": "Read again."}], "-y")
    terminal.wait_idle()
    return terminal


def test_a_short_paste_is_text_and_its_newlines_do_not_send(talk):
    talk.paste("one\r\ntwo\rthree\nfour")
    talk.until(lambda: talk.typed == "one\ntwo\nthree\nfour", "four lines")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompt_text(talk.home) == "one\ntwo\nthree\nfour"
    talk.leave()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("x" * 6_000, "6,000 characters"),
        ("".join(f"line {number}\n" for number in range(200)), "200 lines"),
        ("".join(f"l {number}\r\n" for number in range(50)), "50 lines"),
        ("é漢🙂" * 500, "1,500 characters"),
        ("a word and " * 90_000, "990,000 characters"),
    ],
    ids=["6000", "200 lines", "CR LF", "wide", "1 MB"],
)
def test_a_long_paste_is_folded_and_sent_whole(talk, text, size):
    """Defects: a long line arrived cut; 200 lines filled the screen."""
    talk.type("see: ")
    talk.paste(text)
    talk.until(lambda: size in talk.typed, "a folded paste")
    assert talk.typed.startswith("see: [Pasted text #1") and len(talk.box) == 3
    talk.type(" end")
    talk.press("enter")
    talk.wait_turns(1)
    text = text.replace("\r\n", "\n")
    assert prompt_text(talk.home) == f"see: {text} end"
    assert "[Pasted text #1" in talk.text and text[:40] * 2 not in talk.whole_text
    talk.leave()


def test_a_paste_during_a_turn_arrives_whole(live, project):
    talk = busy(live, {"text": "Heard.", "expect": "y" * 6_000})
    talk.paste("y" * 6_000)
    talk.until(lambda: "6,000 characters" in talk.typed, "a folded paste")
    talk.press("enter")
    talk.wait_for("queued:")
    (project / "go").touch()
    talk.wait_for("Heard.")
    talk.wait_turns(1)
    talk.leave()


def test_a_folded_paste_unfolds_and_can_be_edited(talk):
    text = "".join(f"row {number}\n" for number in range(8))
    talk.paste(text)
    talk.until(lambda: "[Pasted text #1 · 8 lines]" in talk.typed, "a folded paste")
    talk.press("tab")
    talk.until(lambda: "row 7" in talk.typed and "Pasted" not in talk.typed, "the text of the paste")
    talk.type("row 8")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompt_text(talk.home).strip() == text + "row 8"
    talk.leave()


def test_backspace_removes_a_whole_mark(talk):
    talk.type("before ")
    talk.paste("z" * 900)
    talk.until(lambda: "900 characters" in talk.typed, "a folded paste")
    talk.press("backspace")
    talk.until(lambda: talk.typed == "before", "no mark")
    talk.type("after")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompt_text(talk.home) == "before after"
    talk.leave()


def test_two_pastes_have_numbers_and_their_own_texts(talk):
    talk.paste("a" * 900)
    talk.type(" and ")
    talk.paste("b" * 900)
    talk.until(lambda: "#2" in talk.typed, "two marks")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompt_text(talk.home) == "a" * 900 + " and " + "b" * 900
    talk.leave()


def test_a_mark_that_is_typed_is_only_text(talk):
    talk.send("[Pasted text #1 · 8 lines]")
    talk.wait_turns(1)
    assert prompt_text(talk.home) == "[Pasted text #1 · 8 lines]"
    talk.leave()


def test_escapes_in_a_paste_are_removed(talk):
    talk.paste("red \x1b[31mtext\x1b[0m \x1b]0;pwned\x07 \u202etxet \x00\x08 end\tof it")
    talk.until(lambda: "end" in talk.typed, "the text")
    talk.press("enter")
    talk.wait_turns(1)
    sent = prompt_text(talk.home)
    assert not set(sent) & set("\x1b\x00\x08\x07\u202e") and sent.startswith("red ") and "end\tof it" in sent
    assert talk.screen.title != "pwned"
    talk.leave()


def test_a_paste_of_keys_is_no_key(talk):
    talk.paste("/exit\r\x03\x04\x1b\x1by")
    talk.until(lambda: talk.typed.startswith("/exit"), "the text")
    assert talk.process.poll() is None
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.leave()


def test_the_path_of_an_image_attaches_it(talk, project):
    image = project / "a picture.png"
    image.write_bytes(PNG)
    talk.type("look at ")
    talk.paste(str(image).replace(" ", "\\ "))
    talk.until(lambda: "[Image #1 a picture.png]" in talk.typed, "an image")
    talk.press("enter")
    talk.wait_turns(1)
    kinds = [part.get("type") for part in prompt_parts(talk.home)]
    assert "Image" in kinds
    assert "attached: a picture.png" in talk.words
    talk.leave()


def test_a_paste_without_marks_at_a_terminal_that_has_none(live):
    """Then line ends send; nothing is lost."""
    talk = live([{"text": "First answer."}, {"text": "Second answer."}], "-y", answers=False)
    talk.wait_idle()
    talk.type("one\rtwo\r")
    talk.wait_for("Second answer.")
    talk.wait_idle()
    talk.leave()
