"""Texts of a run: names of calls, usage, questions and answers, text cleaned for a terminal, exit codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_events import ORIGIN, envelope
from tool_specs import spec_of

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import Meter, Result, exit_code
from bradawl.app.headless import answer_text
from bradawl.app.rendering import call_line, usage_text
from bradawl.app.tui.plain.approver import TerminalApprover, choices_text, parse_answer, question_text
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AssistantReplied,
    RequestSent,
)
from bradawl.core.messages import Assistant, ToolCall
from bradawl.core.permissions import Question, Request
from bradawl.core.usage import Usage
from bradawl.safety.control_characters import StreamCleaner, clean, escape


@pytest.mark.parametrize(
    ("name", "raw", "line"),
    [
        ("bash", '{"timeout": 3, "command": "ls\\n-l"}', "bash(ls -l)"),
        ("grep", '{"path": "src", "pattern": "x.*"}', "grep(x.*)"),
        ("read_file", '{"file_paths": ["a", "b"]}', "read_file(a, b)"),
        ("read_file", '{"file_path": "", "file_paths": ["a"]}', "read_file(a)"),
        ("other", '{"n": 1, "what": "this"}', "other(this)"),
        ("other", "", "other()"),
        ("other", "{broken", "other({broken)"),
        ("evil\x1b[2J", '{"command": "\\u001b]0;t\\u0007x"}', "evil(x)"),
    ],
)
def test_a_call_is_shown_with_its_main_argument(name, raw, line):
    assert call_line(spec_of(name), raw) == line


@pytest.mark.parametrize(
    ("usage", "cost", "text"),
    [
        (Usage(), None, "1 step"),
        (Usage(), 0.0, "1 step"),
        (Usage(1200, 30), None, "1 step, 1,200 tokens in, 30 out, cost unknown"),
        (Usage(200, 30, cache_read=1000), 0.01, "1 step, 1,200 tokens in (1,000 cached), 30 out, $0.0100"),
        (Usage(5, 1, source="estimated"), None, "1 step, ~5 tokens in, ~1 out, cost unknown"),
        (
            Usage(7100, 2104, cache_read=41_000, source="estimated"),
            0.123,
            "1 step, ~48.1k tokens in (41.0k cached), ~2,104 out, ~$0.12",
        ),
        (Usage(999_949, 999_950), 1234.5, "1 step, 999.9k tokens in, 1.0M out, $1,234.50"),
    ],
)
def test_an_unknown_cost_is_never_shown_as_zero(usage, cost, text):
    assert usage_text(1, usage, cost) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [("", ""), (" \n", ""), ("a", "a\n"), ("a\n\n", "a\n"), ("  a", "  a\n"), ("\x1b[1ma\x07", "a\n")],
)
def test_an_answer_has_one_newline_at_its_end(text, printed):
    assert answer_text(text) == printed


# ------------------------------------------------------------------ clean text


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$q\x1b\\x", "x"),
        ("\x1b(Bx\x1b=y\x1bcz", "xyz"),
        ("\x9b2Jx\x9d0;t\x9cy", "xy"),
        ("\x1b]0;no end\nnext line", "\nnext line"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("\ud800a", "a"),
        ("grüße 漢字 👍", "grüße 漢字 👍"),
    ],
)
def test_control_sequences_are_removed_from_text(dirty, shown):
    assert clean(dirty) == shown


@given(st.text(alphabet=st.sampled_from("ab\x1b[]P;m0\x07\\\n\x9b\x9c\x9d \u202e")))
def test_cleaned_text_has_no_control_characters_and_stays_the_same_when_cleaned_again(text):
    shown = clean(text)
    assert not set(shown) & set("\x1b\x07\x9b\x9c\x9d\u202e")
    assert clean(shown) == shown


@given(st.lists(st.text(alphabet=st.sampled_from("ab\x1b[]P;m0\x07\\\n\x9b\x9c\x9d "), max_size=6)))
def test_a_text_in_pieces_is_cleaned_like_the_whole(pieces):
    cleaner = StreamCleaner()
    assert "".join(map(cleaner.feed, pieces)) + cleaner.finish() == clean("".join(pieces))


@given(st.text())
def test_escaped_text_shows_every_character(text):
    shown = escape(text)
    assert len(shown) >= len(text)
    assert all(character.isprintable() or character in "\n\t" for character in shown)


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize(
    ("typed", "allowed", "scope", "message"),
    [
        ("y", True, "once", ""),
        (" YES ", True, "once", ""),
        ("a", True, "session", ""),
        ("n", False, "once", ""),
        ("no, use git mv", False, "once", "use git mv"),
    ],
)
def test_a_clear_answer_is_accepted(typed, allowed, scope, message):
    answer = parse_answer(typed)
    assert answer is not None
    assert (answer.allowed, answer.scope, answer.message, answer.by) == (allowed, scope, message, "user")


@pytest.mark.parametrize("typed", ["", " ", "yn", "ye", "y but only once", "always sure", "ok", "1", "\x1b[A", "nope"])
def test_an_unclear_answer_is_none(typed):
    assert parse_answer(typed) is None


COMMAND = Effects(unknown=True, seal="s")


def question(raw='{"command": "rm -rf x\\u202e\\nls"}', name="bash", effects=COMMAND):
    return Question(ToolCall("a", name, raw), Request(name, "", effects), "what it changes can't be told")


@pytest.mark.parametrize(
    ("name", "effects", "covered"),
    [
        ("bash", COMMAND, "a = this exact command for the rest of the session"),
        ("deploy", UNKNOWN, "a = this exact deploy call for the rest of the session"),
        ("write_file", Effects(writes=("/x",)), "a = every write_file call for the rest of the session"),
        ("evil\x1b[2J", Effects(writes=("/x",)), "a = every evil\\x1b[2J call for the rest of the session"),
    ],
)
def test_the_question_says_what_a_yes_for_the_session_covers(name, effects, covered):
    assert covered in choices_text(question(name=name, effects=effects))


def test_a_question_shows_the_whole_command_with_hidden_characters_escaped():
    assert question_text(question()).splitlines()[1:] == ["    rm -rf x\\u202e", "    ls"]
    assert "\\x1b[2J" in question_text(question('{"command": "\\u001b[2J", "timeout": 5}'))
    assert "{broken" in question_text(question("{broken"))


async def ask(*typed):
    lines = iter(typed)
    shown: list[str] = []
    cancelled: list[bool] = []

    async def read(_: str) -> str:
        line = next(lines)
        if isinstance(line, BaseException):
            raise line
        return line

    approver = TerminalApprover(shown.append, read, lambda: cancelled.append(True))
    return await approver.ask(question()), shown, cancelled


async def test_an_unclear_answer_is_asked_again():
    answer, shown, _ = await ask("what?", "", "y")
    assert answer.allowed
    assert len(shown) == 3
    assert "a = this exact command for the rest of the session" in shown[0]


async def test_ctrl_c_at_a_question_is_a_no_that_ends_the_turn():
    answer, _, cancelled = await ask(KeyboardInterrupt())
    assert not answer.allowed
    assert cancelled == [True]


async def test_at_the_end_of_the_input_the_call_is_refused_and_the_turn_goes_on():
    answer, _, cancelled = await ask("hm", EOFError())
    assert (answer.allowed, answer.by, cancelled) == (False, "nobody", [])


async def test_without_a_user_every_call_that_asks_is_refused():
    answer = await DenyAllApprover().ask(question())
    assert (answer.allowed, answer.by, answer.message) == (False, "nobody", "No user is present to be asked.")


# ------------------------------------------------------------------ exit codes and times


@pytest.mark.parametrize(
    ("reason", "retryable", "saved", "code"),
    [
        ("completed", False, True, 0),
        ("completed", False, False, 74),
        ("error", False, True, 1),
        ("error", True, False, 75),
        ("steps", False, True, 4),
        ("budget", False, True, 4),
        ("time", False, False, 4),
        ("refused", False, True, 5),
        ("cancelled", False, True, 143),
        ("interrupted", False, True, 1),
    ],
)
def test_the_exit_code_follows_from_the_reason(reason, retryable, saved, code):
    failure = Failure("server", "x", retryable=retryable) if reason == "error" else None
    assert exit_code(reason, failure, saved=saved, signal_code=143) == code


def test_a_lone_surrogate_does_not_break_the_json():
    assert '"a?"' in Result(subtype="success", is_error=False, result="a\ud800").to_json()


def test_the_meter_counts_only_the_time_the_model_took():
    times = iter([0.0, 1.0, 3.0, 10.0, 10.5, 20.0])
    meter = Meter(lambda: next(times))
    reply = AssistantReplied(1, Assistant((), ORIGIN), "end_turn", usage=Usage(5, 1), cost=None)
    for event in (RequestSent(1, ""), reply, RequestSent(2, ""), reply):
        meter.emit(envelope(event))
    assert (meter.waited_ms(), meter.elapsed_ms()) == (2500, 20_000)
    assert meter.by_model()["m"].input_tokens == 10
    assert meter.by_model()["m"].cost_usd is None
