"""A conversation by plain lines at a terminal: questions, interrupts, signals, what is typed during a turn."""

import signal
import termios

import pytest
from plain_terminal import PlainTerminal, bash


@pytest.fixture
def terminal(tmp_path):
    """Opens terminals and closes them."""
    opened = []

    def open_terminal(script, *argv, **environ):
        opened.append(PlainTerminal(tmp_path, script, *argv, **environ))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_a_conversation_asks_streams_is_interrupted_and_resumed(terminal, tmp_path):
    script = [
        {"text": "I look.", **bash("echo \u202ehello")},
        {"text": "It \u001b[2Jsays hello."},
        {"text": "Slow.", **bash("sleep 300")},
        {"text": "Two lines it was.", "expect": "one\ntwo"},
    ]
    talk = terminal(script)
    talk.wait_for_prompt()
    talk.type("what is it?\r")
    talk.wait_for("Allow?")
    assert "echo \\u202ehello" in talk.text
    talk.type("perhaps\r")
    talk.wait_for("Please answer y, a or n.")
    assert "a = this exact command for the rest of the session" in talk.text
    talk.type("a\r")
    talk.wait_for("It says hello.")
    talk.wait_for_prompt()
    talk.type("now wait\r")
    talk.wait_for("› Run    sleep 300")
    talk.type("\x03")
    talk.wait_for("Interrupted.")
    talk.wait_for_prompt()
    talk.type("half a line\x03")
    talk.wait_for("once more leaves")
    talk.wait_for_prompt()
    talk.type("one\\\rtwo\r")
    talk.wait_for("Two lines it was.")
    talk.wait_for_prompt()
    talk.type("\x04")
    assert talk.end() == 0
    assert "To resume this session: bradawl -r" in talk.text
    assert not (tmp_path / ".local/share/bradawl/history").exists()  # the terminal edits the lines

    again = terminal([{"text": "Here."}], "-c")
    again.wait_for("Two lines it was.")
    again.wait_for_prompt()
    again.type("\x03")
    again.wait_for("once more leaves")
    again.wait_for_prompt()
    again.type("\x03")
    assert again.end() == 0


def test_a_dumb_terminal_gets_plain_lines(terminal):
    talk = terminal([{"text": "Plain."}], TERM="dumb")
    talk.wait_for_prompt()
    talk.type("hello\\\n")
    talk.type("there\n")
    talk.wait_for("Plain.")
    talk.wait_for_prompt()
    talk.type("\x03")
    talk.wait_for("once more leaves")
    talk.type("/exit\n")
    assert talk.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_busy", [False, True])
def test_a_signal_restores_the_terminal_settings(terminal, number, is_busy):
    talk = terminal([{"text": "Slow.", **bash("sleep 300")}], "-y")
    before = termios.tcgetattr(talk.fd)
    talk.wait_for_prompt()
    if is_busy:
        talk.type("go\r")
        talk.wait_for("› Run    sleep 300")
    talk.process.send_signal(number)
    assert talk.end() == 128 + number
    assert termios.tcgetattr(talk.fd) == before
    assert "Traceback" not in talk.text


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (500, 1)])
def test_a_very_small_terminal_is_no_error(terminal, size):
    talk = terminal([{"text": "Here I am."}, bash("echo hello"), {"text": "Done."}], "-y", size=size)
    talk.type("hello\r")
    talk.wait_for_output(b"Here I am.")
    talk.type("/exit\r")
    assert talk.end() == 0
    assert b"Traceback" not in talk.raw


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_text_typed_during_a_turn_is_sent_to_the_model_and_commands_wait(terminal, tmp_path, kind):
    script = [
        bash("until [ -e go ]; do sleep 0.02; done"),
        {"text": "Also that.", "expect": "and the tests"},
        {"text": "Heard.", "expect": "half a line"},
    ]
    talk = terminal(script, "-y", TERM=kind)
    talk.wait_for_prompt()
    talk.type("do it\n")
    talk.wait_for("› Run    until")
    talk.type("and the tests\n")
    talk.wait_for("noted")
    talk.type("/keys\n")
    talk.wait_for("that waits")
    talk.type("half a l")
    talk.wait_for("half a l")
    (tmp_path / "go").touch()
    talk.wait_for("Also that.")
    talk.wait_for("Enter sends")
    talk.type("ine\n")
    talk.wait_for("Heard.")
    talk.wait_for_prompt()
    talk.type("/exit\n")
    assert talk.end() == 0


def test_a_question_stays_readable_while_other_calls_end(terminal, tmp_path):
    calls = [
        {"id": "a", "name": "bash", "arguments": {"command": "eval echo one"}},
        {"id": "b", "name": "read_file", "arguments": {"file_path": "script.json"}},
    ]
    talk = terminal([{"tool_calls": calls}, {"text": "Both."}])
    talk.wait_for_prompt()
    talk.type("both\r")
    talk.wait_for("Allow?")
    assert talk.text.endswith("Allow?")
    talk.type("y\r")
    talk.wait_for("Both.")
    assert "    one" in talk.text
    talk.wait_for_prompt()
    talk.type("\x04")
    assert talk.end() == 0


def test_a_message_during_a_command_of_the_user_is_the_next_prompt(terminal, tmp_path):
    talk = terminal([{"text": "Heard.", "expect": "what was that"}], "--yolo")
    talk.wait_for_prompt()
    talk.type("!echo begun; until [ -e go ]; do sleep 0.02; done\r")
    talk.wait_for("\nbegun")
    talk.type("what was that\r")
    talk.wait_for("that waits for the end of the work")
    (tmp_path / "go").touch()
    talk.wait_for("Heard.")
    talk.wait_for_prompt()
    assert "with your next prompt" not in talk.text
    talk.type("\x04")
    assert talk.end() == 0


def test_an_answer_that_came_with_the_last_check_is_shown_below_it(terminal):
    arguments = {"command": "touch done && echo 3 passed", "answer_if_ok": "It was the sum."}
    check = {"text": "Now the check.", "tool_calls": [{"id": "a", "name": "bash", "arguments": arguments}]}
    talk = terminal([check, {"text": "late"}], "--yolo")
    talk.wait_for_prompt()
    talk.type("go\r")
    talk.wait_for("The check ended with: 3 passed")
    talk.wait_for_prompt()
    assert talk.text.index("Now the check.") < talk.text.index("› Run    touch") < talk.text.index("It was the sum.")
    assert "late" not in talk.text
    talk.type("more\r")
    talk.wait_for("late")
