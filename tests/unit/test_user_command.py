"""Commands that the user types after `!`: output of any length, and how they end."""

import asyncio
import os
import resource
import signal

import pytest

from bradawl.app.tui.printed_output import PrintedOutput
from bradawl.app.user_command import UserShell, run_user_command
from patience import no_wait

ENVIRONMENT = {"PATH": os.environ["PATH"]}


class Printed:
    """A printer that keeps what it prints."""

    def __init__(self):
        self.texts = []

    def dim(self, text):
        self.texts.append(text)

    line = error = diff = dim

    @property
    def text(self):
        return "\n".join(self.texts)


def run(command, cwd="/", show=lambda _: None):
    return asyncio.run(run_user_command(command, str(cwd), ENVIRONMENT, show))


def printed(*pieces):
    """What is printed of an output that comes in pieces."""
    printer = Printed()
    output = PrintedOutput(printer)
    for piece in pieces:
        output.show(piece)
    output.end()
    return printer.text


# ------------------------------------------------------------------ what the model gets


def test_output_exit_code_and_both_streams():
    done = run("echo out; echo err >&2; exit 3")
    assert (done.output, done.exit_code) == ("out\nerr\n", 3)
    assert done.note("x") == "The user ran this command in a shell of their own (exit code 3):\n$ x\nout\nerr"


def test_of_one_endless_line_the_model_gets_both_ends_and_the_number_of_characters_between_them():
    done = run("printf begin; head -c 20000000 /dev/zero | tr '\\0' x; printf end")
    assert done.output.startswith("beginxxx") and done.output.endswith("xxxend")
    assert "[... 19,980,008 characters left out ...]" in done.output and len(done.output) < 21_000


def test_a_character_and_a_sequence_that_are_cut_by_the_pipe_are_whole():
    """Defect: a read that ended within a character or an escape sequence broke it."""
    shown = []
    done = run("printf '\\303'; sleep 0.1; printf '\\251\\033[3'; sleep 0.1; printf '1mred'", show=shown.append)
    assert done.output == "".join(shown) == "\xe9red"


def test_a_long_output_needs_little_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = PrintedOutput(Printed())
    run("head -c 40000000 /dev/zero | tr '\\0' x", show=output.show)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


ELSEWHERE = "setsid sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do :; done; yes"
"""A program that keeps the pipe open and that is not ended with the others."""


@pytest.mark.parametrize("command", ["yes", "yes | tr -d '\\n'", "trap '' TERM INT HUP; yes", ELSEWHERE])
def test_an_endless_output_is_ended_at_once(command, tmp_path):
    async def cancelled():
        shell, seen = UserShell(), asyncio.Event()
        output = PrintedOutput(Printed())

        def show(text):
            output.show(text)
            seen.set()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(shell.run(command, str(tmp_path), ENVIRONMENT, show))
            await seen.wait()
            shell.cancel()
            return await task

    try:
        with no_wait(60):
            done = asyncio.run(cancelled())
    finally:
        if (tmp_path / "pid").exists():
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert done.exit_code is None
    assert "was cancelled" in done.note("yes") and len(done.output) < 21_000


# ------------------------------------------------------------------ what the user sees


def test_lines_are_printed_as_they_are_complete():
    printer = Printed()
    output = PrintedOutput(printer)
    output.show("one\ntw")
    assert printer.texts == ["one"]
    output.show("o\nthree")
    assert printer.texts == ["one", "two"]
    output.end()
    assert printer.texts == ["one", "two", "three"]


@pytest.mark.parametrize("size", [1_000, 65_536, 3_000_000])
def test_a_long_line_is_cut_and_its_length_told(size):
    text = "x" * 3_000_000
    pieces = [text[place : place + size] for place in range(0, len(text), size)]
    assert printed(*pieces) == printed(*pieces, "\n") == "x" * 2_000 + " [2,998,000 more characters]"


def test_of_many_lines_the_first_are_printed_and_the_others_counted():
    text = "".join(f"{number}\n" for number in range(10_000))
    for pieces in ([text], text.splitlines(keepends=True), [text[:777], text[777:]]):
        shown = printed(*pieces).split("\n")
        assert shown[:2] == ["0", "1"] and shown[-2:] == ["499", "... 9,500 more lines"]
    assert printed("a\n" * 500, "rest").endswith("... 1 more line")


def test_many_long_lines_are_printed_up_to_a_number_of_characters():
    shown = printed(*["y" * 5_000 + "\n"] * 400)
    assert len(shown) < 110_000 and shown.endswith("more lines")


def test_empty_lines_stay():
    assert printed("a\n\n\nb\n") == "a\n\n\nb"
