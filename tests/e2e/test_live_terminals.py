"""Kinds of terminals: dark and light, without colours, without Unicode, dumb, and none at all."""

import json
import os
import re
import subprocess

import pytest
from live_terminal import LEAKS, bash
from terminal import START

COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:[34][0-8]|9[0-7]|10[0-7])[;m]")
ANSWER = {"text": "# Title\n\nSome **bold** text and `code`.\n\n```python\nreturn 1\n```\n"}


def test_the_terminal_is_asked_and_its_answers_are_no_text(live):
    talk = live([ANSWER], "-y", background="rgb:ffff/ffff/ffff", has_kitty=True)
    talk.wait_idle()
    talk.until(lambda: talk.emulator.kitty_depth == 1, "keys as kitty names them")
    talk.type("\x1b[O\x1b[I\x1b]11;rgb:0000/0000/0000\x1b\\")  # focus, and an answer that nobody asked for
    talk.send("hello")
    talk.wait_turns(1)
    talk.leave()


@pytest.mark.parametrize("late", ["\x1b]11;rgb:ff", "\x1b[?2026;", "\x1b[?6"])
def test_an_answer_in_two_pieces_is_no_text(live, late):
    rest = {"\x1b]11;rgb:ff": "ff/ffff/ffff\x07", "\x1b[?2026;": "2$y", "\x1b[?6": "2c"}[late]
    talk = live([ANSWER], "-y", answers=False)
    talk.wait_idle()
    talk.type(late)
    talk.type(rest)
    talk.type("x")
    talk.until(lambda: talk.typed == "x", "only what was typed")
    talk.press("ctrl+c")
    talk.leave()


def test_light_and_dark_differ(live):
    def colours(background):
        talk = live([ANSWER], "-y", background=background)
        talk.wait_for_output(b"\x1b[?2026h")
        talk.wait_idle()
        talk.send("hello")
        talk.wait_turns(1)
        place = next(row for row in range(24) if "return 1" in talk.screen.line(row))
        found = [cell.fg for _, cell in sorted(talk.screen.buffer[place].items())]
        talk.leave()
        return found

    assert colours("rgb:ffff/ffff/ffff") != colours("rgb:0000/0000/0000")


def test_no_color_sends_no_colours(live):
    talk = live([ANSWER, bash("echo hello")], "-y", environ={"NO_COLOR": "1"})
    talk.wait_idle()
    talk.send("hello")
    talk.wait_turns(1)
    assert COLOUR.search(talk.raw) is None
    assert all(cell.fg == cell.bg == "default" for row in talk.screen.buffer.values() for cell in row.values())
    talk.leave()


def test_a_locale_without_unicode_gets_ascii(live):
    talk = live(
        [{"text": "- one\n- two"}, bash("echo hello"), {"text": "Done."}], "-y", environ={"LANG": "C", "LC_ALL": "C"}
    )
    talk.until(lambda: talk.lines and talk.lines[-1].startswith(" bypass"), "the status line")
    talk.type("hello\r")
    talk.wait_for("two")
    talk.until(lambda: "cost unknown" in talk.text, "the end of the turn")
    assert talk.whole_text.isascii(), talk.whole_text
    talk.leave()


@pytest.mark.parametrize("kind", ["linux", "vt100", "xterm", "screen", "tmux-256color", "xterm-kitty", "foot"])
def test_every_kind_of_terminal(live, kind):
    talk = live([ANSWER], "-y", environ={"TERM": kind}, answers=kind not in ("linux", "vt100"))
    talk.until(lambda: talk.lines and talk.lines[-1].startswith(" bypass"), "the status line")
    talk.type("hello\r")
    talk.wait_for("Title", "return 1")
    talk.until(lambda: "cost unknown" in talk.text, "the end of the turn")
    if kind in ("linux", "vt100"):
        assert b"\x1b]" not in talk.raw and b"\x1b[>" not in talk.raw and b"$p" not in talk.raw
    talk.leave()


@pytest.mark.parametrize(
    ("argv", "environ"), [(["--plain"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": ""}), ([], {"BRADAWL_PLAIN": "1"})]
)
def test_plain_lines_hold_no_sequences_but_colours(live, argv, environ):
    talk = live([ANSWER], "-y", *argv, environ=environ)
    talk.until(lambda: talk.text.endswith("\n>"), "a plain prompt")
    talk.type("hello\n")
    talk.wait_for("return 1")
    talk.until(lambda: talk.text.endswith("\n>"), "a plain prompt")
    talk.type("/exit\n")
    assert talk.end() == 0
    assert talk.screen.private == {7, 25}
    rest = talk.raw
    for code in (b"\x1b[2m", b"\x1b[31m", b"\x1b[32m", b"\x1b[0m", b"\x1b[1m", b"\x1b[33m"):
        rest = rest.replace(code, b"")
    assert b"\x1b" not in rest, rest


# ------------------------------------------------------------------ streams that are no terminals


def run(project, script, *argv, **streams):
    (project / "script.json").write_text(json.dumps(script))
    environ = {
        "HOME": str(project.parent),
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "BRADAWL_MODEL": "scripted/script.json",
    }
    return subprocess.run([*START, *argv], cwd=project, env=environ, check=False, timeout=60, **streams)


def test_pipes_on_both_sides(project):
    done = run(project, [ANSWER, {"text": "Second."}], "-y", input=b"hello\nmore\n", capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"Some **bold** text" in done.stdout and b"Second." in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr


def test_nothing_on_stdin(project):
    done = run(project, [ANSWER], "-y", stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode != 0 and b"prompt" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("piped", ["stdin", "stdout"])
def test_one_side_is_a_pipe_and_the_other_a_terminal(project, piped):
    """Neither draws a live region, and neither waits for keys that can't come."""
    master, slave = os.openpty()
    try:
        if piped == "stdin":
            done = run(project, [ANSWER], "-y", input=b"hello\n", stdout=slave, stderr=subprocess.PIPE)
            shown = os.read(master, 65_536)
        else:
            os.write(master, b"hello\n/exit\n")
            done = run(project, [ANSWER], "-y", stdin=slave, capture_output=True)
            shown = done.stdout
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 0, done.stderr
    assert b"Some **bold** text" in shown
    for mode in (b"\x1b[?", b"\x1b]", b"\x1b[>", b"\x1b[J"):
        assert mode not in shown, shown
    assert LEAKS.search(done.stderr.decode()) is None


def test_doctor_describes_the_terminal_of_the_conversation(live):
    talk = live([], "-y")
    talk.wait_idle()
    talk.send("/doctor")
    talk.until(lambda: "xterm-256color, 80 x 24" in " ".join(talk.whole_text.split()), "the terminal")
    talk.until(lambda: talk.is_idle, "the end of the command")
    talk.leave()
