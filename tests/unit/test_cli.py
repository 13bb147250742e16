"""The command line as a function: argv, environment and streams in, exit code and text out."""

import io
import json
import os

import msgspec
import pytest
from cli_world import Terminal

from bradawl import __version__
from bradawl.agent.middleware import Middleware
from bradawl.app.cli import UsageError, parse
from bradawl.app.console import STDIN_LIMIT
from bradawl.core.effects import Effects
from bradawl.core.errors import SessionBusy
from bradawl.testing.fakes import FakeTool

# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], {"headless": False, "prompt": ""}),
        (["fix", "it"], {"headless": False, "prompt": "fix it"}),
        (["-p", "fix it"], {"headless": True, "prompt": "fix it"}),
        (["--print", "x"], {"headless": True, "prompt": "x"}),
        (["--prompt=x"], {"headless": True, "prompt": "x"}),
        (["-p", "--yolo", "fix it"], {"headless": True, "prompt": "fix it", "yolo": True}),
        (["-p"], {"headless": True, "prompt": ""}),
        (["-p", "-"], {"headless": True, "prompt": ""}),
        (["-p", "- a list"], {"prompt": "- a list"}),
        (["-p", "--", "--help"], {"prompt": "--help"}),
        (["-y"], {"yolo": True}),
        (["--dangerously-skip-permissions"], {"yolo": True}),
        ([], {"yolo": None}),
        (["--max-turns", "3"], {"max_steps": "3"}),
        (["-C", "/x"], {"cwd": "/x"}),
        (["-c"], {"continues": True}),
        (["--resume", "ID"], {"resume": "ID"}),
        (["-m", "a/b", "--effort", "low"], {"model": "a/b", "effort": "low"}),
        (["demo"], {"demo": True}),
        (["-p", "demo"], {"prompt": "demo"}),
        (["\udcff"], {"prompt": "\ufffd"}),
    ],
)
def test_options_are_named_like_the_settings(argv, expected):
    options = parse(argv)
    assert {name: options.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "argv",
    [
        ["--frobnicate"],
        ["-r"],
        ["-m"],
        ["-c", "-r", "x"],
        ["--output-format", "json"],
        ["--mod", "x"],
        ["--yolo=1"],
    ],
)
def test_a_wrong_command_line_is_refused(argv):
    with pytest.raises(UsageError):
        parse(argv)


# ------------------------------------------------------------------ without a run


def test_version_and_help_go_to_stdout(world):
    assert world.run("--version") == 0
    assert world.out == f"bradawl {__version__}\n"
    assert world.run("--help") == 0
    assert "--output-format" in world.out
    assert world.err == ""


def test_wrong_usage_is_one_line_and_exit_2(world):
    assert world.run("--frob") == 2
    assert world.out == ""
    assert world.err.count("\n") == 1
    assert "--frob" in world.err


@pytest.mark.parametrize("argv", [["-p"], ["-p", "  "], ["-p", "-"]])
def test_an_empty_prompt_is_wrong_usage(world, argv):
    assert world.run(*argv, stdin=" \n") == 2
    assert "prompt is empty" in world.err


def test_a_terminal_on_stdin_is_not_read(world):
    assert world.run("-p", stdin=Terminal("typed later")) == 2


def test_stdin_beyond_the_limit_is_refused(world):
    assert world.run("-p", stdin="x" * (STDIN_LIMIT + 1)) == 2
    assert "put it into a file" in world.err


# ------------------------------------------------------------------ a run


@pytest.mark.parametrize(
    ("argv", "stdin", "prompt"),
    [
        (["-p", "say"], "", "say"),
        (["-p", "say"], "data\n", "say\n\ndata\n"),
        (["-p"], "data", "data"),
        (["-p", "say"], Terminal("typed later"), "say"),
    ],
)
def test_piped_input_is_appended_to_the_prompt(world, argv, stdin, prompt):
    world.script = [{"text": "Done.", "expect": prompt}]
    assert world.run(*argv, stdin=stdin) == 0
    assert world.out == "Done.\n"


def test_only_the_answer_is_on_stdout(world):
    world.script = [
        {"text": "First I look.", "tool_calls": [{"id": "a", "name": "look", "arguments": {}}]},
        {"text": "It is\r\n\x1b[31mred\x1b[0m.\n\n"},
    ]
    assert world.run("-p", "x") == 0
    assert world.out == "It is\nred.\n"
    assert "✓ look  1 line\n" in world.err
    assert "To continue: bradawl -r" in world.err
    assert "\x1b" not in world.err


def test_waiting_for_a_silent_model_is_reported_once(world):
    world.script = [{"text": "Done.", "faults": {"delay_ms": 10}}]
    world.model_patience_s = 0.0
    assert world.run("-p", "x") == 0
    assert world.err.count("waiting for the model...") == 1
    world.stderr, world.model_patience_s = io.StringIO(), 30.0
    assert world.run("-p", "x") == 0
    assert "waiting" not in world.err


def test_json_is_one_object_that_agrees_with_the_exit_code(world):
    world.script = [
        {"tool_calls": [{"id": "a", "name": "look", "arguments": {}}], "usage": {"input": 10, "output": 2}},
        {"text": "Done \x1b.", "usage": {"input": 5, "output": 1, "cache_read": 7}},
    ]
    assert world.run("-p", "x", "--output-format", "json") == 0
    result = json.loads(world.out)
    assert world.out.count("\n") == 1
    assert result["type"] == "result"
    assert (result["subtype"], result["is_error"], result["exit_code"]) == ("success", False, 0)
    assert (result["result"], result["num_turns"], result["reason"]) == ("Done \x1b.", 2, "completed")
    assert result["total_cost_usd"] is None
    assert result["usage"] == {
        "input_tokens": 15,
        "output_tokens": 3,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 0,
    }
    assert [usage["inputTokens"] for usage in result["modelUsage"].values()] == [15]
    assert result["session_id"] == world.store.latest()


def test_the_step_limit_has_its_own_exit_code(world):
    world.script = [{"tool_calls": [{"id": "a", "name": "look", "arguments": {}}]}] * 3
    assert world.run("-p", "x", "--max-steps", "1", "--output-format", "json") == 4
    result = json.loads(world.out)
    assert (result["subtype"], result["exit_code"], result["is_error"]) == ("error_max_turns", 4, True)
    assert "--max-steps" in result["errors"][0]


@pytest.mark.parametrize(("status", "code"), [(400, 1), (401, 1), (503, 75), (429, 75)])
def test_a_failure_that_can_be_retried_exits_with_75(world, status, code):
    world.script = [{"faults": {"status": status}}] * 20
    assert world.run("-p", "x", "--output-format", "json") == code
    result = json.loads(world.out)
    assert (result["exit_code"], result["reason"]) == (code, "error")
    assert len(result["errors"]) == 1
    assert "Traceback" not in world.err


@pytest.mark.parametrize(("argv", "stdin"), [(["-p", "x"], ""), ([], "x\n")])
def test_the_text_of_a_refusal_is_shown_once(world, argv, stdin):
    world.script = [{"text": "I can't do that.", "stop": "refusal"}]
    world.run(*argv, stdin=stdin)
    assert (world.out + world.err).count("I can't do that.") == 1


def test_the_folder_of_the_debug_log_is_printed(world):
    world.run("-p", "x", "--debug")
    assert f"{world.home}/.local/share/bradawl/debug" in world.err


def test_a_session_is_continued_by_id_and_as_the_latest(world):
    assert world.run("-p", "one") == 0
    first = world.store.latest()
    assert world.run("-p", "two", "-c") == 0
    assert world.run("-p", "three", "-r", first) == 0
    assert world.store.latest() == first


def test_a_text_for_the_system_prompt_of_a_continued_session_is_pointed_out(world):
    world.script = [{"text": "one"}, {"text": "two"}]
    assert world.run("-p", "one", "--append-system-prompt", "Be brief.") == 0
    assert "keeps its system prompt" not in world.err
    assert world.run("-p", "two", "-c", "--append-system-prompt", "Be brief.") == 0
    assert "a session that is continued keeps its system prompt" in world.err


@pytest.mark.parametrize("argv", [["-c"], ["-r", "01UNKNOWN"]])
def test_an_unknown_session_is_a_one_line_error(world, argv):
    assert world.run("-p", "x", *argv, "--output-format", "json") == 1
    assert world.err.count("\n") == 1
    assert json.loads(world.out)["exit_code"] == 1


def test_wrong_settings_are_one_line_on_stderr_and_one_json_object(world):
    assert world.run("-p", "x", "--max-steps", "no", "--output-format=json") == 2
    assert world.err.count("\n") == 1
    result = json.loads(world.out)
    assert (result["exit_code"], result["is_error"]) == (2, True)
    assert "--max-steps" in result["errors"][0]


def test_a_wrong_command_line_is_also_one_json_object(world):
    assert world.run("-p", "x", "--frob", "--output-format", "json") == 2
    assert json.loads(world.out)["errors"]


def test_a_busy_session_exits_with_75(world):
    def build(settings, approver):
        raise SessionBusy("Process 7 is using this session.")

    assert world.run("-p", "x", build=build) == 75
    assert world.err == "bradawl: Process 7 is using this session.\n"


def test_an_internal_error_is_one_line_and_a_report_that_only_its_owner_can_read(world):
    def build(settings, approver):
        raise ZeroDivisionError("secret path")

    assert world.run("-p", "x", build=build) == 1
    assert world.out == ""
    assert world.err.count("\n") == 1
    assert "internal error" in world.err
    (report,) = (world.home / ".local/share/bradawl/errors").iterdir()
    assert str(report) in world.err
    assert "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600


class Defective(Middleware):
    """A middleware with a defect."""

    async def before_step(self):
        raise KeyError("colour")


def with_defect(world):
    return lambda settings, approver: msgspec.structs.replace(world.build(settings, approver), middleware=(Defective,))


def test_a_defect_of_a_middleware_fails_the_turn_and_the_session_can_be_continued(world):
    assert world.run("-p", "x", build=with_defect(world)) == 1
    assert "bradawl: The middleware Defective in before_step failed: KeyError: 'colour'\n" in world.err
    (report,) = (world.home / ".local/share/bradawl/errors").iterdir()
    assert f"note: details of the error that ended the turn are in {report}\n" in world.err
    assert "Traceback" in report.read_text() and "ExceptionGroup" not in world.err
    assert f"To continue: bradawl -r {world.store.latest()}" in world.err
    assert world.run("-r", world.store.latest(), "-p", "y") == 0


def test_a_defect_of_a_middleware_is_in_the_json_with_the_session(world):
    assert world.run("-p", "x", "--output-format", "json", build=with_defect(world)) == 1
    result = json.loads(world.out)
    assert (result["reason"], result["session_id"], result["is_error"]) == ("error", world.store.latest(), True)
    assert result["errors"] == ["The middleware Defective in before_step failed: KeyError: 'colour'"]


def test_a_defect_of_a_middleware_does_not_end_a_conversation(world):
    assert world.run(stdin="one\n/status\n", build=with_defect(world)) == 0
    assert "The middleware Defective in before_step failed" in world.out + world.err
    assert "session" in world.out


def test_an_internal_error_whose_report_cannot_be_written_is_one_line(world):
    def build(settings, approver):
        raise ZeroDivisionError

    world.environ["BRADAWL_HOME"] = "/proc/nowhere"
    assert world.run("-p", "x", build=build) == 1
    assert "could not be written" in world.err
    assert world.err.count("\n") == 1


def test_ctrl_c_before_the_run_exits_with_130(world):
    def build(settings, approver):
        raise KeyboardInterrupt

    assert world.run("-p", "x", "--output-format", "json", build=build) == 130
    assert json.loads(world.out)["reason"] == "cancelled"


class ChangeTool(FakeTool):
    """A tool that declares a write and writes nothing."""

    def effects(self, params, context):
        return Effects(writes=("/x",))


def with_change(world):
    """Builds the agent of a world with `ChangeTool` as its only tool."""
    return lambda settings, approver: msgspec.structs.replace(
        world.build(settings, approver), tools=(ChangeTool("change"),)
    )


def test_without_a_user_to_ask_the_call_is_refused(world):
    world.script = [{"tool_calls": [{"id": "a", "name": "change", "arguments": {}}]}, {"text": "I could not."}]
    code = world.run("-p", "x", "--output-format", "json", build=with_change(world))
    result = json.loads(world.out)
    assert result["exit_code"] == code
    assert result["permission_denials"] == [{"tool_name": "change", "tool_use_id": "a", "tool_input": {}}]
    assert "--yolo" in world.err


# ------------------------------------------------------------------ broken streams


class BrokenStream(io.StringIO):
    """A stream that fails on every write."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        """Raise the error."""
        raise self._error


def test_a_closed_pipe_on_stdout_is_no_error(world):
    world.stdout = BrokenStream(BrokenPipeError())
    assert world.run("-p", "x") == 0
    assert "rror" not in world.err


def test_an_answer_that_cannot_be_written_is_an_error(world):
    world.stdout = BrokenStream(OSError(28, "No space left on device"))
    assert world.run("-p", "x") == 74
    assert "No space left on device" in world.err.splitlines()[-1]


def test_a_closed_stderr_does_not_stop_the_run(world):
    world.stderr = BrokenStream(OSError(5, "Input/output error"))
    assert world.run("-p", "x") == 0
    assert world.out == "Done.\n"


def test_waiting_for_a_silent_pipe_ends(world):
    reading, writing = os.pipe()
    try:
        with os.fdopen(reading) as stdin:
            assert world.run("-p", "x", stdin=stdin) == 0
    finally:
        os.close(writing)
    assert "nothing came on stdin" in world.err


def test_a_pipe_is_read_to_its_end(world):
    world.script = [{"text": "Done.", "expect": "from the pipe"}]
    reading, writing = os.pipe()
    os.write(writing, b"from the pipe")
    os.close(writing)
    with os.fdopen(reading) as stdin:
        assert world.run("-p", "x", stdin=stdin) == 0


# ------------------------------------------------------------------ interactive mode without a terminal


def test_lines_of_a_pipe_are_prompts_and_commands(world):
    world.script = [{"text": "One."}, {"text": "Two.", "expect": "second\nline"}]
    assert world.run(stdin="first\nsecond\\\nline\n/model\n/nonsense\n/exit\nnever\n") == 0
    assert world.out.index("One.") < world.out.index("Two.") < world.out.index("scripted/")
    assert "There is no command /nonsense" in world.out
    assert "To resume this session: bradawl -r" in world.out


def test_a_prompt_on_the_command_line_is_the_first_of_the_conversation(world):
    world.script = [{"text": "One.", "expect": "fix it"}]
    assert world.run("fix", "it") == 0
    assert world.out.count("One.") == 1


def test_clear_begins_a_new_session(world):
    world.script = [{"text": "One."}, {"text": "Two."}]
    assert world.run(stdin="a\n/clear\nb\n/status\n") == 0
    assert world.out.count("To come back to this session") == world.out.count("To resume this session") == 1
    assert "\nmode          " in world.out and "\nsandbox       " in world.out


def test_a_resumed_conversation_shows_its_last_turn(world):
    world.run("-p", "what is it?")
    world.stdout = io.StringIO()
    assert world.run("-c", stdin="") == 0
    assert world.out.startswith("> what is it?\nDone.\n")


@pytest.mark.parametrize("stdin", ["", "\n \n"])
def test_an_empty_pipe_without_a_prompt_is_wrong_usage(world, stdin):
    assert world.run(stdin=stdin) == 2
    assert world.out == ""
    assert "prompt is empty" in world.err
    assert world.err.count("\n") == 1


def test_a_conversation_without_a_prompt_names_no_session_to_resume(world):
    assert world.run(stdin="/model\n") == 0
    assert "resume" not in world.out


@pytest.mark.parametrize(
    ("argv", "stdin", "is_unattended"),
    [
        (["-p", "x"], "", True),
        (["x"], "", True),
        ([], "x\n", True),
        (["-p", "x"], Terminal(), True),
        (["x"], Terminal("/exit\n"), False),
    ],
)
def test_a_run_without_a_user_to_answer_is_headless_and_has_a_step_limit(world, argv, stdin, is_unattended):
    seen = []

    def build(settings, approver):
        seen.append((settings.headless, settings.max_steps is not None))
        return world.build(settings, approver)

    assert world.run(*argv, stdin=stdin, build=build) == 0
    assert seen == [(is_unattended, is_unattended)]


def test_a_permission_question_can_be_answered_from_a_pipe(world):
    calls = [{"id": "a", "name": "change", "arguments": {}}, {"id": "b", "name": "change", "arguments": {"n": 1}}]
    world.script = [{"tool_calls": calls}, {"text": "Changed both."}]
    assert world.run(stdin="do it\na\n", build=with_change(world)) == 0
    assert "a = every change call for the rest of the session" in world.out
    assert world.out.count("Allow?") == 1
    assert "Changed both." in world.out


@pytest.mark.parametrize(
    "line", ["undo 3 talk", "undo last step", "redo", "rewind 1", "diff", "diff 2.1", "rewind 2 code"]
)
def test_a_mistyped_undo_is_never_a_prompt(line):
    with pytest.raises(UsageError):
        parse(line.split())


@pytest.mark.parametrize("line", ["diff the two files", "redo it in Rust", "rewind the tape in 3 steps"])
def test_prompts_may_begin_with_the_name_of_a_slash_command(line):
    assert parse(line.split())["prompt"] == line
