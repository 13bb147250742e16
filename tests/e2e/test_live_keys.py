"""Each key of the table of keys does at a live terminal what the table says."""

import json
import os
import shlex
import sys

import pytest
from live_terminal import MARK, bash
from pseudo_terminal import KEYS

TODOS = [{"content": "look", "status": "completed"}, {"content": "mend", "status": "in_progress"}]

PASTE_MARKS = b"\x1b[?2004h"
"""Switches on the marks of pasted text, which are off while another program has the terminal."""


@pytest.fixture(params=[False, True], ids=["xterm", "kitty"])
def talk(live, request):
    script = [{"text": "First."}, {"text": "Second."}, {"text": "Third."}]
    terminal = live(script, "-y", has_kitty=request.param)
    terminal.wait_idle()
    terminal.until(lambda: terminal.emulator.kitty_depth == request.param, "the terminal's keys")
    return terminal


def prompts(folder):
    """The prompts that the session has, in their order."""
    (path,) = folder.parent.glob(".local/share/bradawl/projects/*/sessions/*.jsonl")
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    return [event["parts"][0]["text"] for event in events if event["type"] == "PromptSubmitted"]


@pytest.mark.parametrize("newline", ["ctrl+j", "alt+enter", "shift+enter", "\\ enter"])
def test_four_ways_to_begin_a_new_line(talk, newline):
    if newline == "shift+enter" and not talk.emulator.kitty_depth:
        pytest.skip("the terminal does not tell it from Enter")
    talk.type("one")
    talk.press(newline)
    talk.type("two")
    talk.until(lambda: talk.typed == "one\ntwo", "two lines")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompts(talk.folder) == ["one\ntwo"]
    assert f"{MARK} one\n  two" in talk.text
    talk.leave()


def test_escape_twice_clears_the_text_and_the_history_has_it(talk):
    talk.type("a thought")
    talk.until(lambda: talk.typed == "a thought", "the text")
    talk.press("esc esc")
    talk.until(lambda: talk.typed == "", "no text")
    talk.press("up")
    talk.until(lambda: talk.typed == "a thought", "the text from the history")
    talk.press("ctrl+c")
    talk.leave()


def test_escape_twice_without_text_chooses_a_step(talk):
    talk.send("hello")
    talk.wait_turns(1)
    talk.press("esc esc")
    talk.wait_for_question("Go back to before which prompt?")
    talk.wait_for("1. hello", "no files")
    talk.press("esc")
    talk.wait_for("Nothing was changed.")
    talk.wait_idle()
    assert talk.typed == ""
    talk.assert_no_leaks()


def test_ctrl_c_at_the_prompt_is_forgotten_by_the_next_key(talk):
    """Defect: Ctrl+C, a new text, and Ctrl+C much later left and lost the text."""
    talk.press("ctrl+c")
    talk.wait_for("Ctrl+C again leaves")
    talk.type("something new")
    talk.until(lambda: talk.typed == "something new", "the text")
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "no text")
    assert talk.process.poll() is None
    talk.press("up")
    talk.until(lambda: talk.typed == "something new", "the text from the history")
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "no text")
    talk.leave()


def test_escape_interrupts_a_turn_and_the_next_prompt_is_answered(live):
    talk = live([bash("sleep 300"), {"text": "Go on."}], "-y")
    talk.wait_idle()
    talk.send("wait")
    talk.wait_for("sleep 300", "esc stops")
    talk.press("esc")
    talk.wait_for("Interrupted.")
    talk.wait_turns(1)
    talk.send("and now")
    talk.wait_for("Go on.")
    talk.wait_turns(2)
    talk.leave()


def test_ctrl_r_finds_a_prompt_and_enter_takes_it(talk):
    """Defect: Ctrl+R, text, Enter stayed in the search."""
    for number, text in enumerate(("the first prompt", "another one"), 1):
        talk.send(text)
        talk.wait_turns(number)
    talk.press("ctrl+r")
    talk.wait_for("search:")
    talk.type("first")
    talk.until(lambda: talk.typed == "the first prompt", "the prompt that was found")
    talk.press("enter")
    talk.wait_until_gone("search:")
    talk.type(" again")
    talk.until(lambda: talk.typed == "the first prompt again", "a text that is edited")
    talk.press("enter")
    talk.wait_turns(3)
    assert prompts(talk.folder)[-1] == "the first prompt again"
    talk.leave()


@pytest.mark.parametrize("key", ["esc", "ctrl+c"])
def test_a_search_can_be_left(talk, key):
    talk.send("the first prompt")
    talk.wait_turns(1)
    talk.press("ctrl+r")
    talk.wait_for("search:")
    talk.type("prompt")
    talk.until(lambda: talk.typed == "the first prompt", "the prompt that was found")
    talk.press(key)
    talk.wait_until_gone("search:")
    assert talk.typed == ("the first prompt" if key == "esc" else "")
    talk.press("ctrl+c")
    talk.leave()


@pytest.mark.parametrize("key", ["esc", "enter"])
def test_a_draft_that_a_search_replaces_is_in_the_history(talk, key):
    talk.send("the first prompt")
    talk.wait_turns(1)
    talk.type("precious draft")
    talk.press("ctrl+r")
    talk.wait_for("search:")
    talk.type("first")
    talk.until(lambda: talk.typed == "the first prompt", "the prompt that was found")
    talk.press(key)
    talk.wait_until_gone("search:")
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "no text")
    for _ in range(3):
        if talk.typed != "precious draft":
            talk.press("up")
            talk.until(lambda: talk.typed != "", "an entry")
            talk.read(0.2)
    talk.until(lambda: talk.typed == "precious draft", "the draft")
    talk.press("ctrl+c")
    talk.leave()


def test_up_and_down_walk_through_earlier_prompts_and_back_to_the_text(talk):
    for number, text in enumerate(("one", "two"), 1):
        talk.send(text)
        talk.wait_turns(number)
    talk.type("a draft")
    for key, text in (("up", "two"), ("up", "one"), ("down", "two"), ("down", "a draft")):
        talk.press(key)
        talk.until(lambda text=text: talk.typed == text, text)
    talk.press("ctrl+c")
    talk.leave()


def test_shift_tab_goes_through_the_modes(live):
    talk = live([], "--permission-mode", "default")
    talk.until(lambda: talk.lines[-1:] and talk.lines[-1].startswith(" default"), "the mode")
    seen = []
    while not seen or seen[-1] != "default":
        before = talk.lines[-1]
        talk.press("shift+tab")
        talk.until(lambda before=before: talk.is_idle and talk.lines[-1] != before, "another mode")
        seen.append(talk.lines[-1].split()[0])
    assert "plan" in seen and "accept-edits" in seen
    talk.leave()


def test_ctrl_o_shows_results_in_full_with_search_and_leaves_the_conversation_as_it_was(live):
    talk = live([bash("seq 1 300"), {"text": "Counted."}], "-y")
    talk.wait_idle()
    talk.send("count")
    talk.wait_turns(1)
    before = talk.whole
    assert "\n    137" not in talk.whole_text
    talk.press("ctrl+o")
    talk.wait_for("the conversation in full", "Counted.")
    talk.press("home")
    talk.wait_for("bradawl 0.")
    talk.type("/137")
    talk.press("enter")
    talk.until(lambda: any(line.strip() == "137" for line in talk.lines), "line 137")
    talk.press("end pageup g / q esc q")
    talk.wait_idle()
    assert talk.whole == before
    talk.leave()


def test_ctrl_t_shows_the_todos(live):
    call = {"tool_calls": [{"name": "todo_write", "arguments": {"todos": TODOS}}]}
    talk = live([call, {"text": "Planned."}], "-y")
    talk.wait_idle()
    talk.send("plan")
    talk.wait_turns(1)
    count = talk.whole_text.count("mend")
    talk.press("ctrl+t")
    talk.until(lambda: talk.whole_text.count("mend") > count, "the todos once more")
    talk.leave()


def test_ctrl_b_moves_the_running_command_to_the_background(live):
    talk = live([bash("echo begun; sleep 300"), {"text": "It goes on.", "expect": "job"}], "-y")
    talk.wait_idle()
    talk.press("ctrl+b")
    talk.wait_for("no command runs")
    talk.send("start")
    talk.wait_for("sleep 300", "begun")
    talk.press("ctrl+b")
    talk.wait_for("It goes on.")
    talk.wait_for("1 job")
    talk.leave()


def test_ctrl_g_edits_the_text_in_the_users_editor(live, project):
    editor, program = project / "editor", project / "editor.py"
    editor.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {program} "$@"\n')
    program.write_text(
        "import sys, tty, os\ntext = open(sys.argv[1]).read()\n"
        "assert os.isatty(0) and os.isatty(1)\nprint('EDITOR sees', repr(text))\n"
        "open(sys.argv[1], 'w').write(text + ' and more\\nlines')\n"
    )
    editor.chmod(0o700)
    talk = live([{"text": "Read."}], "-y", environ={"VISUAL": str(editor), "EDITOR": "false"})
    talk.wait_idle()
    talk.type("some text")
    talk.until(lambda: talk.typed == "some text", "the text")
    talk.press("ctrl+g")
    talk.until(lambda: talk.typed == "some text and more\nlines", "the edited text")
    talk.press("enter")
    talk.wait_turns(1)
    assert prompts(project) == ["some text and more\nlines"]
    talk.leave()


def test_an_editor_that_fails_leaves_the_text(live):
    talk = live([], "-y", environ={"VISUAL": "false"})
    talk.wait_idle()
    talk.type("some text")
    talk.until(lambda: talk.typed == "some text", "the text")
    talk.press("ctrl+g")
    talk.until(lambda: talk.raw.count(PASTE_MARKS) == 2, "the modes of the terminal after the editor")
    # The line is drawn again once the terminal shows no typed keys by itself.
    talk.until(lambda: "╭" in talk.raw.rpartition(PASTE_MARKS)[2].decode(errors="replace"), "the input line")
    talk.type("!")
    talk.until(lambda: talk.typed == "some text!", "the text")
    talk.press("ctrl+c")
    talk.leave()


def test_ctrl_l_draws_the_region_again(talk):
    before = talk.text
    os.write(talk.fd, b"")
    talk.emulator.feed(b"\x1b7\rGARBAGE\x1b8")  # another program writes into the input line
    assert "GARBAGE" in talk.text
    talk.press("ctrl+l")
    talk.until(lambda: talk.text == before, "the screen as before")
    talk.leave()


def test_question_mark_lists_the_keys_on_an_empty_line_alone(talk):
    talk.press("?")
    talk.wait_for_whole("next permission mode")
    talk.wait_idle()
    talk.type("why?")
    talk.until(lambda: talk.typed == "why?", "the text")
    talk.press("ctrl+c")
    talk.leave()


def test_keys_with_no_meaning_type_nothing(talk):
    for sequence in ("\x1b[24~", "\x1b[1;5P", "\x1bOP", "\x1b[57441;5u", "\x1b[200;200H", "\x1b[I", "\x1b[O", "\x00"):
        talk.type(sequence)
    talk.type("a\u0301bc")
    talk.until(lambda: "bc" in talk.typed, "the text")
    assert talk.typed in ("a\u0301bc", "\u00e1bc")
    for name in ("home", "end", "left", "right", "delete", "pageup", "pagedown"):
        talk.type(KEYS[name])
    talk.type("d")
    talk.until(lambda: talk.typed.endswith("d"), "the text")
    talk.press("ctrl+c")
    talk.leave()
