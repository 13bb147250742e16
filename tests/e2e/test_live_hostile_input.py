"""Text that comes from elsewhere, at a live terminal: it runs nothing, answers nothing, and attaches nothing."""

import json
import os
from pathlib import Path

import pytest
from live_terminal import bash
from test_live_approvals import RUN, made
from test_live_paste import PNG, prompt_parts, prompt_text
from test_live_queue import busy

LOG = "".join(f"log line {number}\n" for number in range(40))


@pytest.fixture
def talk(live):
    terminal = live([{"text": "Read."}, {"text": "Read again."}], "-y")
    terminal.wait_idle()
    return terminal


# ------------------------------------------------------------------ pastes are no commands


@pytest.mark.parametrize("text", ["!touch t-1 #\n", "/exit\n", "/mode bypass\n", "  !touch t-1; #\n"])
def test_a_folded_paste_that_looks_like_a_command_is_a_message(talk, project, text):
    """Defect: a folded paste that began with `!` ran, and nothing of it had been on the screen."""
    talk.paste(text + LOG)
    talk.until(lambda: "41 lines" in talk.typed, "a folded paste")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompt_text(talk.home) == text + LOG and made(project) == set()
    talk.leave()


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_pasted_name_attaches_nothing_until_the_user_confirms_it(talk, project, is_folded):
    """Defect: a pasted text attached the files that it named."""
    (project / "notes.md").write_text("remember the milk\n")
    talk.paste("see @notes.md" + LOG * is_folded)
    talk.until(lambda: "Pasted text" in talk.typed if is_folded else talk.typed == "see @notes.md", "the paste")
    talk.type(" what is this, me@home?")
    talk.press("enter")
    talk.wait_turns(1)
    assert "remember" not in json.dumps(prompt_parts(talk.home))
    if not is_folded:
        assert "notes.md is not attached: its @ was pasted" in talk.words
    talk.leave()


def test_tab_confirms_a_pasted_name(talk, project):
    (project / "notes.md").write_text("remember the milk\n")
    talk.paste("see @notes")
    talk.until(lambda: talk.typed == "see @notes", "the paste")
    talk.wait_for("notes.md")
    talk.press("tab")
    talk.until(lambda: talk.typed == "see @notes.md", "the completed name")
    talk.type("now")
    talk.press("enter")
    talk.wait_turns(1)
    assert "remember the milk" in json.dumps(prompt_parts(talk.home)) and "attached: notes.md" in talk.words
    talk.leave()


def test_a_paste_that_is_too_long_is_refused_and_the_text_stays(talk):
    talk.type("see ")
    talk.paste("0123456789abcde\n" * 260_000)
    talk.wait_for_words("The pasted text is not inserted: it has more than 4,000,000 characters.")
    assert talk.typed == "see"
    talk.press("ctrl+c")
    talk.leave()


# ------------------------------------------------------------------ what waits comes back whole


def test_the_image_of_a_message_that_waits_comes_back_with_it(live, project):
    """Defect: it was lost when the message was taken back."""
    image = project / "pic.png"
    image.write_bytes(PNG)
    talk = busy(live, {"text": "First turn."}, {"text": "A picture."})
    talk.type("look at ")
    talk.paste(str(image))
    talk.until(lambda: "[Image #1 pic.png]" in talk.typed, "an image")
    talk.press("enter")
    talk.wait_for("queued:")
    talk.press("up")
    talk.until(lambda: talk.typed == "look at [Image #1 pic.png]", "the message in the input line")
    talk.press("enter")
    talk.wait_for("queued:")
    talk.press("esc")
    talk.wait_turns(1)
    talk.until(lambda: talk.typed == "look at [Image #1 pic.png]", "the message in the input line")
    talk.press("enter")
    talk.wait_turns(2)
    assert "Image" in [part.get("type") for part in prompt_parts(talk.home)]
    talk.leave()


def test_a_long_message_that_is_taken_back_is_folded_and_whole(live, project):
    talk = busy(live, {"text": "Heard.", "expect": "log line 39"})
    talk.paste(LOG)
    talk.until(lambda: "40 lines" in talk.typed, "a folded paste")
    talk.press("enter")
    talk.wait_for("queued:")
    talk.press("up")
    talk.until(lambda: talk.typed == "[Pasted text #1 · 40 lines]", "the folded paste")
    talk.press("enter")
    talk.wait_for("queued:")
    (project / "go").touch()
    talk.wait_for("Heard.")
    talk.wait_turns(1)
    talk.leave()


@pytest.mark.parametrize("key", ["n", "tab"])
def test_a_draft_with_a_paste_survives_a_question_that_takes_text(ask, project, key):
    """Defect: after the reason of a no, the draft had a mark without its text."""
    wait = "until [ -e go ]; do sleep 0.02; done"
    talk = ask(bash(wait), bash("touch t-1"), {"text": "Done."}, {"text": "Read."})
    talk.wait_for_question(RUN)
    talk.press("y")
    talk.wait_until_gone(RUN)
    talk.paste(LOG)
    talk.until(lambda: "40 lines" in talk.typed, "a folded paste")
    (project / "go").touch()
    talk.wait_for_question("touch t-1")
    talk.press(key)
    talk.wait_for("Say why" if key == "n" else "A note for the model")
    talk.type("because")
    talk.press("enter")
    talk.wait_for("Done.")
    talk.wait_turns(1)
    talk.until(lambda: talk.typed == "[Pasted text #1 · 40 lines]", "the draft")
    talk.press("enter")
    talk.wait_turns(2)
    assert prompt_text(talk.home) == LOG
    talk.leave()


# ------------------------------------------------------------------ what is no answer


NO_ANSWERS = [
    "\x1b[200~y\x1b[201~",
    "\x1b[200~y\r\x1b[201~",
    "\x1b[121;1:3u",
    "\x1b[121;9u",
    "\x1b[121;17u",
    "\x1b[121;33u",
    "\x1b[13;1:3u",
    "\x1b[O\x1b[I",
    f"\x1b]52;c;{'y' * 300}\x07",
    "\x1bP>|yay(1)\x1b\\",
    "\x1b[>0;276;0c",
    "\x1b[<0;10;10M",
    "\x1b[M !y",
]


def test_what_a_terminal_sends_by_itself_is_no_answer(ask, project):
    talk = ask(bash("touch t-1"), {"text": "Done."}, has_kitty=True)
    talk.wait_for_question(RUN)
    for data in NO_ANSWERS:
        talk.type(data)
        talk.press("down")
        talk.until(lambda: "\u276f a" in talk.text, f"the second answer after {data!r}")
        talk.press("up")
        talk.until(lambda: "\u276f y" in talk.text, f"the first answer after {data!r}")
        assert talk.is_asking and made(project) == set(), data
    talk.press("y")
    talk.wait_for("Done.")
    talk.wait_turns(1)
    assert made(project) == {"t-1"}
    talk.leave()


@pytest.mark.parametrize("early", ["y\r", "\x1b[200~y\r\x1b[201~", "yyy\r\r"])
def test_keys_typed_before_the_question_about_trust_do_not_answer_it(live, project, early):
    """Defect: `y` and Enter, typed before the question was on the screen, trusted the project."""
    (project / "AGENTS.md").write_text("Be nice.\n")
    talk = live([{"text": "Nice."}])
    talk.type(early)
    talk.wait_for("is not trusted")
    talk.until(lambda: talk.box and "trust it" in talk.box[0], "the question")
    talk.press("enter")
    talk.wait_for_words("Not trusted now")
    assert not list(talk.home.glob(".local/share/bradawl/trust*"))


# ------------------------------------------------------------------ commands of the user


FLOODS = {
    "head -c 20000000 /dev/zero | tr '\\0' x; echo": "more characters]",
    "yes": "y\ny",
    "yes | tr -d '\\n'": "esc stops",
}
"""Commands, and what is seen while they run."""


@pytest.mark.parametrize("command", FLOODS)
@pytest.mark.parametrize("key", ["esc", "ctrl+c"])
def test_a_flood_of_output_leaves_the_terminal_usable(live, command, key):
    talk = live([{"text": "I see.", "expect": "was cancelled"}], "-y")
    talk.wait_idle()
    talk.send(f"!{command}; sleep 300")
    talk.wait_for("esc stops", FLOODS[command])
    talk.type("usable")
    talk.until(lambda: talk.typed == "usable", "what is typed meanwhile")
    talk.press(key)
    talk.wait_for("cancelled")
    talk.wait_idle()
    assert len(talk.raw) < 2_000_000
    assert resident_mb(talk.process.pid) < 200
    talk.press("enter")
    talk.wait_for("I see.")
    talk.wait_turns(1)
    talk.leave()


def resident_mb(pid):
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6
