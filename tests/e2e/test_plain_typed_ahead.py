"""Keys typed before a question is on the screen do not answer it: the program at a pseudo-terminal."""

import os
import subprocess
import time

import pytest
from plain_terminal import PATIENCE_S, PlainTerminal, bash
from terminal import START

NOT_AN_ANSWER = "typed before the question, so it is no answer: "
ASK = {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which one?", "options": ["red", "blue"]}}]}


class Typist(PlainTerminal):
    """A terminal, and the key that ends a line there."""

    def __init__(self, folder, script, *argv, TERM="xterm", **environ):
        super().__init__(folder, script, "--permission-mode", "default", *argv, TERM=TERM, **environ)
        self.enter = "\r" if TERM == "xterm" else "\n"

    def wait_for_question(self, prompt="Allow?"):
        """Read until an empty question is the last line."""
        end = time.monotonic() + PATIENCE_S
        while not self.text.endswith(f"\n{prompt}"):
            if not self._read(max(0.0, end - time.monotonic())):
                raise AssertionError(f"never saw a question in:\n{self.text}")

    def enter_lines(self, *lines):
        """Type lines in one write."""
        self.type("".join(line + self.enter for line in lines))


@pytest.fixture(params=["xterm", "dumb"])
def talk(tmp_path, request):
    """Starts the program with a script, where each command is asked about."""
    opened = []

    def start(script, *argv):
        opened.append(Typist(tmp_path, script, *argv, TERM=request.param))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def made(folder):
    return {each.name for each in folder.glob("t-*")}


def test_lines_behind_an_answer_do_not_answer_the_next_question(talk, tmp_path):
    script = [bash("touch t-1"), bash("touch t-2"), bash("touch t-3"), {"text": "Done.", "expect": "the user declined"}]
    terminal = talk(script, "go")
    terminal.wait_for_question()
    terminal.enter_lines("n", "y", "y", "y")
    terminal.wait_for("touch t-2")
    terminal.wait_for_question()
    assert NOT_AN_ANSWER + "y y y" in terminal.text or "noted; the model reads it" in terminal.text
    assert not made(tmp_path)
    terminal.enter_lines("y")
    terminal.wait_for("› Run    touch t-3")
    terminal.wait_for_question()
    terminal.enter_lines("n")
    terminal.wait_for("Done.")
    assert made(tmp_path) == {"t-2"}


def test_a_key_pressed_twice_does_not_answer_the_question_that_follows(talk, tmp_path):
    terminal = talk([bash("touch t-1"), bash("touch t-2"), {"text": "Done."}], "go")
    terminal.wait_for_question()
    terminal.enter_lines("y")
    terminal.wait_for("› Run    touch t-2")
    terminal.enter_lines("y")
    terminal.wait_for_question()
    assert made(tmp_path) == {"t-1"}
    terminal.enter_lines("n")
    terminal.wait_for("Done.")
    assert made(tmp_path) == {"t-1"}


def test_lines_behind_a_prompt_answer_nothing_and_reach_the_model(talk, tmp_path):
    terminal = talk([bash("touch t-1"), {"text": "Done."}])
    terminal.wait_for_prompt()
    terminal.enter_lines("go", "y")
    terminal.wait_for_question()
    terminal.enter_lines("n")
    terminal.wait_for("Done.")
    assert not made(tmp_path) and "noted; the model reads it" in terminal.text


@pytest.mark.parametrize("early", ["y", "\x1b[200~y\n", "\x1b[200~y\ny\n\x1b[201~", "é"])
def test_an_unfinished_line_or_paste_is_no_part_of_the_answer(talk, tmp_path, early):
    script = [bash("until [ -e go ]; do sleep 0.02; done"), bash("touch t-1"), {"text": "Done."}]
    terminal = talk(script, "--allowed-tools", "Bash(until:*),Bash(sleep:*),Bash([:*)", "work")
    terminal.wait_for_question()
    terminal.enter_lines("y")
    terminal.wait_for_output(b"\r\n")
    terminal.type(early)
    (tmp_path / "go").touch()
    terminal.wait_for("› Run    touch t-1")
    terminal.wait_for_question()
    terminal.enter_lines("")
    terminal.wait_for("Please answer")
    terminal.wait_for_question()
    assert not made(tmp_path)
    terminal.enter_lines("n")
    terminal.wait_for("Done.")


def test_a_question_of_the_model_is_not_answered_early(talk):
    terminal = talk([bash("touch t-1"), ASK, {"text": "Done.", "expect": "The user says: blue"}], "go")
    terminal.wait_for_question()
    terminal.enter_lines("n", "1")
    terminal.wait_for_question("Your answer:")
    terminal.enter_lines("2")
    terminal.wait_for("Done.")


def test_control_c_that_was_pressed_early_ends_the_turn(talk, tmp_path):
    terminal = talk([bash("touch t-1"), bash("touch t-2"), {"text": "Done."}], "go")
    terminal.wait_for_question()
    terminal.type(f"y{terminal.enter}\x03")
    terminal.wait_for("Interrupted.")
    assert "t-2" not in made(tmp_path)


def test_lines_from_a_pipe_answer_questions_in_their_order(tmp_path):
    (tmp_path / "script.json").write_text(
        '[{"tool_calls": [{"name": "bash", "arguments": {"command": "touch t-1"}}]}, {"text": "Done."}]'
    )
    run = subprocess.run(
        [*START, "-m", "scripted/script.json", "--permission-mode", "default"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        input="go\ny\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "Done." in run.stdout and made(tmp_path) == {"t-1"}
