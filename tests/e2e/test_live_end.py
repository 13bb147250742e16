"""However the program ends, the terminal is as it was before, and nothing is lost."""

import json
import os
import signal
import termios
from pathlib import Path

import pytest
from live_terminal import bash
from pseudo_terminal import PATIENCE_S
from terminal import START

SLOW = bash("sleep 300", text="Slow.")
ASK = {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which one?", "options": ["red", "blue"]}}]}


def journal(folder: Path) -> list[dict]:
    """The events of the only session."""
    (path,) = folder.parent.glob(".local/share/bradawl/projects/*/sessions/*.jsonl")
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


def error_reports(folder: Path) -> list[Path]:
    return [path for path in folder.parent.rglob("*") if "error" in path.name and path.is_file()]


@pytest.fixture(params=[False, True], ids=["plain keys", "kitty keys"])
def talk(live, request):
    terminal = live([SLOW, {"text": "Again."}], "-y", has_kitty=request.param)
    terminal.wait_idle()
    assert {1004, 2004} <= terminal.screen.private
    assert terminal.emulator.kitty_depth == request.param
    assert termios.tcgetattr(terminal.fd) != terminal.termios  # raw mode
    return terminal


def test_ctrl_d(talk):
    talk.leave()


def test_exit(talk):
    talk.send("/exit")
    assert talk.end() == 0
    talk.assert_restored()


def test_ctrl_c_twice(talk):
    talk.press("ctrl+c")
    talk.wait_for("Ctrl+C again leaves")
    talk.press("ctrl+c")
    assert talk.end() == 0
    talk.assert_restored()


def test_ctrl_d_does_nothing_while_there_is_text(talk):
    talk.type("abc")
    talk.until(lambda: talk.typed == "abc", "the text")
    talk.press("home ctrl+d")
    talk.until(lambda: talk.typed == "bc", "a deleted character")
    talk.press("ctrl+c")
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.leave()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("state", ["idle", "text", "busy", "question"])
def test_a_signal(live, number, state):
    talk = live([ASK if state == "question" else SLOW], "-y")
    talk.wait_idle()
    if state == "text":
        talk.type("half a line")
        talk.wait_for("half a line")
    elif state == "busy":
        talk.send("go")
        talk.wait_for("sleep 300")
    elif state == "question":
        talk.send("go")
        talk.wait_for_question("The model asks")
    talk.process.send_signal(number)
    assert talk.end() == 128 + number
    talk.assert_restored()
    assert error_reports(talk.folder) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group(live, number):
    talk = live([SLOW], "-y")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for("sleep 300")
    os.killpg(talk.process.pid, number)
    assert talk.end() == 128 + number
    talk.assert_restored()


def test_sigint_from_outside_ends_the_turn_and_not_the_program(talk):
    talk.send("go")
    talk.wait_for("sleep 300")
    talk.process.send_signal(signal.SIGINT)
    talk.wait_for("Interrupted.")
    talk.wait_turns(1)
    talk.send("more")
    talk.wait_for("Again.")
    talk.wait_turns(2)
    talk.leave()


def test_sigint_from_outside_at_an_idle_line_clears_it_and_twice_leaves(talk):
    talk.type("half a line")
    talk.wait_for("half a line")
    talk.process.send_signal(signal.SIGINT)
    talk.until(lambda: talk.typed == "", "an empty line")
    talk.process.send_signal(signal.SIGINT)
    talk.wait_for("Ctrl+C again leaves")
    talk.process.send_signal(signal.SIGINT)
    assert talk.end() == 0
    talk.assert_restored()


def test_ctrl_d_during_a_turn_ends_both(talk):
    talk.send("go")
    talk.wait_for("sleep 300")
    talk.press("ctrl+d")
    assert talk.end() == 0
    talk.assert_restored()
    assert "To resume this session: bradawl -r" in talk.text
    assert journal(talk.folder)[-1] == {"type": "TurnFinished", "reason": "cancelled"}


@pytest.mark.parametrize("error", ["SystemExit(9)", "KeyboardInterrupt()", "MemoryError()"])
def test_a_tool_that_raises_what_ends_programs(live, project, error):
    folder = project.parent / ".config/bradawl/tools"
    folder.mkdir(parents=True)
    (folder / "crash.py").write_text(
        f'from bradawl import tool\n\n@tool\ndef crash() -> str:\n    """Crash."""\n    raise {error}\n'
    )
    talk = live([{"tool_calls": [{"id": "a", "name": "crash", "arguments": {}}]}, {"text": "On."}], "-y")
    talk.wait_idle()
    talk.send("go")
    talk.until(lambda: talk.process.poll() is not None or (talk.is_idle and "crash" in talk.text), "an end")
    talk.press("ctrl+d")
    talk.end()
    talk.assert_restored()


def test_a_disk_that_is_full_in_the_middle_of_a_turn(live):
    """A limit on the size of files stands in for it."""
    program = ("bash", "-c", 'ulimit -f 24; export PYTHONDONTWRITEBYTECODE=1; exec "$0" "$@"', *START)
    talk = live([bash("echo hello", text=" ".join(map(str, range(20_000)))), {"text": "On."}], "-y", program=program)
    talk.wait_idle()
    talk.send("go")
    talk.wait_for("This turn could not be saved")
    talk.wait_turns(1)
    talk.press("ctrl+d")
    talk.end()
    talk.assert_restored()


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_terminal_that_is_closed(live, is_busy):
    talk = live([SLOW], "-y")
    talk.wait_idle()
    if is_busy:
        talk.send("go")
        talk.wait_for("sleep 300")
    os.close(talk.fd)
    talk.fd = os.open(os.devnull, os.O_RDONLY)  # `close` closes it
    assert talk.process.wait(PATIENCE_S) in (0, 128 + signal.SIGHUP)
    assert error_reports(talk.folder) == []
    if is_busy:
        assert journal(talk.folder)[-1] == {"type": "TurnFinished", "reason": "cancelled"}


def test_a_kill_of_everything_loses_nothing_that_was_said(live, project):
    talk = live([{"text": "First answer."}, SLOW], "-y")
    talk.wait_idle()
    talk.send("one")
    talk.wait_turns(1)
    talk.send("two")
    talk.wait_for("sleep 300")
    os.killpg(talk.process.pid, signal.SIGKILL)
    talk.end()
    again = live([{"text": "Second answer."}], "-y", "-c")
    again.wait_for("two", "Slow.")
    again.wait_idle()
    again.send("and?")
    again.wait_for("Second answer.")
    again.wait_turns(1)
    again.leave()


def test_the_last_screen_has_the_conversation_and_no_input_line(talk):
    talk.send("go")
    talk.wait_for("sleep 300")
    talk.press("esc")
    talk.wait_turns(1)
    talk.type("not sent")
    talk.wait_for("not sent")
    talk.press("ctrl+c")
    talk.leave()
    assert talk.lines[-1].startswith("To resume this session: bradawl -r ")
    assert not talk.box and "not sent" not in talk.whole_text
    assert talk.screen.cursor.x == 0 and talk.screen.cursor.y == len(talk.lines)
