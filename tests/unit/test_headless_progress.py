"""Progress of a run: lines of calls, retries and waits, and what the painter shows at a terminal."""

import asyncio
import io
import re
from types import SimpleNamespace

import pytest
from printed_events import ORIGIN, envelope, painted, progress
from tool_specs import OWN_TOOLS

from bradawl.app.headless import ModelWait
from bradawl.app.progress import Progress
from bradawl.app.rendering import command_error, command_output
from bradawl.app.tui.plain.approver import TerminalApprover
from bradawl.app.tui.plain.painter import Painter
from bradawl.core.deltas import CallDelta, RetryScheduled, TextDelta, ThinkingDelta
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    CheckpointTaken,
    Live,
    NoteQueued,
    ReplyWithdrawn,
    RequestSent,
    ToolFinished,
)
from bradawl.core.messages import Assistant, Note, Refusal, Text, ToolCall
from bradawl.core.permissions import Question, Request
from bradawl.core.usage import Usage

QUESTION = Question(ToolCall("a", "bash", '{"command": "rm x"}'), Request("bash", "", UNKNOWN), "why")


def live(item, agent="main"):
    return Live(agent, 0, item)


def prepared(call_id, name="bash", raw='{"command": "python main.py"}'):
    return envelope(CallPrepared(call_id, 1, name, raw, Effects()))


def finished(call_id, outcome="ok", text=""):
    return envelope(ToolFinished(call_id, outcome, (Text(text),)))


def at_terminal(*events, **options):
    return progress(*events, is_watched=True, **options)


def test_at_a_terminal_a_call_and_its_end_are_a_line_each():
    assert at_terminal(prepared("a"), finished("a")) == "› Run    python main.py\n  ✓\n"


def test_without_a_terminal_a_call_is_one_line_when_it_ends():
    assert progress(prepared("a")) == ""
    assert progress(prepared("a"), finished("a")) == "✓ Run    python main.py\n"


def test_without_a_terminal_overlapping_calls_have_a_line_each():
    shown = progress(prepared("a"), prepared("b", "look", "{}"), finished("b"), finished("a", "error", "No."))
    assert shown == "✓ look\n✗ Run    python main.py  No.\n"


def test_an_error_shows_its_first_line():
    text = "\n\n\x1b[31mNo such file\x1b[0m: x\nmore"
    assert at_terminal(prepared("a"), finished("a", "error", text)).endswith("\n  ✗ No such file: x\n")


def test_the_ends_of_overlapping_calls_repeat_their_line():
    shown = at_terminal(prepared("a"), prepared("b", "look", "{}"), finished("a"), finished("b", "error", "No."))
    assert shown == "› Run    python main.py\n› look\n✓ Run    python main.py\n✗ look  No.\n"


def test_the_end_of_a_call_that_began_in_an_earlier_run_is_not_given_the_name_of_a_tool():
    killed = finished("a", "interrupted", "The program ended while this call was running.")
    assert progress(killed) == "■ an earlier call  interrupted: The program ended while this call was running.\n"


def test_a_call_of_an_unknown_tool_is_named_too():
    events = (live(CallDelta(0, "a", "nosuch", "{")), finished("a", "error", "There is no tool nosuch."))
    assert at_terminal(*events) == "› nosuch\n  ✗ There is no tool nosuch.\n"
    assert progress(*events) == "✗ nosuch  There is no tool nosuch.\n"


@pytest.mark.parametrize(
    ("result", "summary"),
    [
        (
            "hi\n[stderr]\n/usr/bin/bash: line 1: nosuchcommand: command not found\n[exit code 127]",
            "exit code 127: nosuchcommand: command not found",
        ),
        ("[stderr]\nbash: nosuchcommand: command not found\n[exit code 127]", "exit code 127: nosuchcommand: comm"),
        ("(no output)\n[exit code 3]", "exit code 3"),
        ("one\n2 failed\n\n[exit code 1] (1.5 s)", "exit code 1: 2 failed"),
        ("[stderr]\nTraceback:\n  x\nKeyError: 'a'\n[exit code 1] (pipeline: 0 1)", "exit code 1: KeyError: 'a'"),
        ("out\n[stderr]\n \n[exit code 1]", "exit code 1: out"),
        ("waiting\n[timed out after 5 s; the command and its children were ended]", "timed out after 5 s: waiting"),
        ("[exit code 9]\nx\n[exit code 1]\n[working directory is now /x]\n[all of it: /y]", "exit code 1: x"),
        ("killed\n[exit code 137] (ended by SIGKILL)", "ended by SIGKILL: killed"),
        ("\x1b[31mred\x1b[0m\n[exit code 1]", "exit code 1: red"),
        ("command is empty; give a line of bash", ""),
    ],
)
def test_a_failed_command_shows_its_exit_code_and_its_most_informative_line(result, summary):
    line = command_error((Text(result),))
    assert line.startswith(summary) and bool(line) == bool(summary)


def test_only_results_of_commands_are_shortened_to_an_exit_code_and_a_line():
    result = "[stderr]\nbash: line 1: nosuch: command not found\n[exit code 127]"
    shown = progress(prepared("a"), finished("a", "error", result))
    assert shown == "✗ Run    python main.py  exit code 127: nosuch: command not found\n"
    message = "timeout is in seconds, from 1 to 600; it was 0"
    assert message in progress(prepared("a"), finished("a", "error", message))
    assert "✗ Read   python main.py  [exit code 1]" in progress(
        prepared("a", "read_file"), finished("a", "error", "[exit code 1]")
    )


def test_the_output_of_a_command_leaves_out_the_remarks_of_the_tool():
    text = "one\n\n[... lines 2-3 of 9 cut ...]\ntwo\n[stderr]\n  three\n[exit code 0]\n[working directory is now /x]"
    assert command_output((Text(text),)) == ["one", "two", "  three"]
    assert command_output((Text("(no output)\n[exit code 0]"),)) == []


def test_no_line_is_longer_than_the_terminal():
    raw = '{"command": "' + "x" * 500 + '"}'
    shown = at_terminal(prepared("a", raw=raw), prepared("b"), finished("a", "error", "y" * 500), width=40)
    assert max(map(len, shown.splitlines())) == 40
    assert re.fullmatch("✗ Run    x{10,}…  y{10,}…", shown.splitlines()[-1])


def test_retries_and_withdrawn_replies_are_shown():
    failure = Failure("server", "HTTP 500", retryable=True)
    shown = progress(live(RetryScheduled(2, 1.5, failure)), envelope(ReplyWithdrawn(1, failure)))
    assert shown.count("HTTP 500") == 2
    assert "1.5 s" in shown
    assert "the request failed and is sent again: HTTP 500" in shown, "no part of a reply was received"
    received = progress(envelope(ReplyWithdrawn(1, failure, Usage(5, 2))))
    assert "the reply broke off and is asked for again: HTTP 500" in received
    assert "trying again now (attempt 2)" in progress(live(RetryScheduled(2, 0.04, failure)))


def test_the_hint_of_a_failure_is_left_out_from_attempt_2_on():
    failure = Failure("overloaded", "Busy", retryable=True, hint="Name another model.")
    shown = [progress(live(RetryScheduled(attempt, 1.0, failure))) for attempt in (0, 1, 2)]
    assert ["Busy" in line for line in shown] == [True, True, True]
    assert ["Name another" in line for line in shown] == [True, True, False]


class WatchedStream(io.StringIO):
    """A stream with an event that each write sets."""

    def __init__(self):
        super().__init__()
        self.was_written = asyncio.Event()

    def write(self, text):
        self.was_written.set()
        return super().write(text)


async def let_timers_fire():
    """Yield to the event loop until timers of zero seconds have fired."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_waiting_for_the_model_is_shown_unless_text_arrives():
    stream = WatchedStream()
    wait = ModelWait(Progress(stream), patience_s=0.0)
    wait.emit(envelope(RequestSent(1, "")))
    await stream.was_written.wait()
    wait.emit(envelope(RequestSent(2, "")))
    wait.emit(live(TextDelta(0, "Hm")))
    await let_timers_fire()
    assert stream.getvalue() == "  waiting for the model...\n"


async def test_a_wait_that_is_stopped_shows_nothing():
    stream = WatchedStream()
    wait = ModelWait(Progress(stream), patience_s=0.0)
    wait.emit(live(RetryScheduled(2, 0.0, Failure("server", "x"))))
    wait.stop()
    await let_timers_fire()
    assert stream.getvalue() == ""


def test_colour_is_used_only_if_it_is_switched_on():
    assert "\x1b[2m" in at_terminal(prepared("a"), finished("a"), colour=True)
    assert "\x1b" not in progress(prepared("a"), finished("a"))


def test_a_closed_stream_is_no_error():
    stream = io.StringIO()
    shown = Progress(stream)
    stream.close()
    shown.emit(prepared("a"))
    shown.emit(finished("a"))


# ------------------------------------------------------------------ the painter


def replied(text):
    return envelope(AssistantReplied(1, Assistant((Text(text),), ORIGIN), "end_turn"))


def test_a_refusal_that_was_not_streamed_is_painted_and_one_that_was_is_not_repeated():
    refused = envelope(AssistantReplied(1, Assistant((Refusal("I won't."),), ORIGIN), "refusal"))
    assert painted(refused) == "I won't.\n"
    assert painted(live(TextDelta(0, "I won't.")), refused) == "I won't.\n"


def test_text_is_painted_once_as_it_arrives():
    items = (
        live(ThinkingDelta(0, "hm")),
        live(TextDelta(1, "\n\nIt \x1b")),
        live(TextDelta(1, "[1mis.")),
        replied("It is."),
    )
    assert painted(*items) == "(thinking) hm\nIt is.\n"


def test_text_that_was_never_streamed_is_painted_when_it_is_whole():
    assert painted(envelope(RequestSent(1, "")), replied("Whole.")) == "Whole.\n"


def test_text_of_another_agent_is_not_painted():
    assert painted(live(TextDelta(0, "inner"), "sub"), live(TextDelta(0, "outer")), replied("outer")) == "outer\n"


def test_a_line_that_ended_is_not_ended_again():
    shown = painted(live(TextDelta(0, "Look.\n")), replied("Look.\n"), prepared("a"), finished("a"))
    assert shown.startswith("Look.\n✓ Run ")


def test_the_diff_of_an_edit_is_shown():
    raw = '{"file_path": "a.py", "old_string": "x", "new_string": "y"}'
    diff = "Edited a.py: +1 -1\n-x\n+\x1b[2Jy"
    shown = painted(prepared("a", "edit_file", raw), finished("a", "ok", diff))
    assert shown.endswith("✓ Edit   a.py  +1 -1\n    Edited a.py: +1 -1\n    -x\n    +y\n")


def test_the_last_lines_of_a_commands_output_are_shown():
    text = "\n".join(f"line {number}" for number in range(9)) + "\n[stderr]\n\tup\x1b[2J\n[exit code 1]"
    shown = painted(prepared("a"), finished("a", "error", text))
    assert shown.splitlines() == [
        "✗ Run    python main.py  exit code 1: up",
        *(f"    line {number}" for number in range(5, 9)),
        "        up",
    ]
    assert painted(prepared("a"), finished("a", "refused", "bash was not run: no")).count("\n") == 1


def test_a_note_of_the_user_is_acknowledged():
    assert "noted" in painted(envelope(NoteQueued(Note("n", "also this", "user"))))
    assert painted(envelope(NoteQueued(Note("n", "job 1 ended", "job")))) == ""


def test_changes_that_are_found_while_the_model_answers_do_not_break_its_text():
    found = envelope(CheckpointTaken("a", "ref"))
    assert painted(live(TextDelta(0, "It")), found, live(TextDelta(0, " is."))) == "It is."


async def test_nothing_is_painted_over_an_open_question():
    console = SimpleNamespace(stdout=io.StringIO(), stdout_colour=False)
    console.draw = console.stdout.write
    painter = Painter(console)
    painter.learn(OWN_TOOLS)

    async def read(_: str) -> str:
        before = console.stdout.getvalue()
        painter.emit(prepared("b", "look", "{}"))
        painter.emit(finished("b"))
        assert console.stdout.getvalue() == before
        return "n"

    approver = TerminalApprover(painter.line, read, lambda: None, painter.holding)
    assert not (await approver.ask(QUESTION)).allowed
    assert console.stdout.getvalue().endswith("(a reason may follow)\n✓ look\n")


def test_items_held_back_during_a_question_are_painted_even_if_it_is_cancelled():
    console = SimpleNamespace(stdout=io.StringIO(), stdout_colour=False)
    console.draw = console.stdout.write
    painter = Painter(console)
    painter.learn(OWN_TOOLS)
    with pytest.raises(asyncio.CancelledError), painter.holding():
        painter.emit(prepared("a"))
        painter.emit(finished("a", "cancelled"))
        raise asyncio.CancelledError
    assert "■ Run    python main.py  cancelled: " in console.stdout.getvalue()
