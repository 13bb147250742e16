"""`--output-format stream-json` as a process: the control channel, signals, closed and slow readers, full disks."""

import json
import os
import queue
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from terminal import START

from real_processes import lives

STREAM = ("--output-format", "stream-json")
BOTH = ("--input-format", "stream-json", *STREAM)
TOUCH = {"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"command": "touch made"}}]}
WAIT = {"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"command": "echo > started; sleep 300"}}]}
DONE = {"text": "Done."}
PATIENCE_S = 60


class Program:
    """bradawl in a process, with its lines as they come."""

    def __init__(self, process) -> None:
        self.process = process
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def send(self, message) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def say(self, text) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": text}})

    def ask(self, subtype, **more) -> None:
        self.send({"type": "control_request", "request_id": f"of-{subtype}", "request": {"subtype": subtype, **more}})

    def answer(self, request, **response) -> None:
        inner = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self.send({"type": "control_response", "response": inner})

    def until(self, kind):
        """The next line of a type; None if the stream ends before it."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            if line["type"] == kind:
                return line
        return None

    def end(self):
        """Close stdin; returns the exit code and the last line."""
        self.process.stdin.close()
        return self.ended()

    def ended(self):
        last = None
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            last = line
        self._reader.join(PATIENCE_S)
        return self.process.wait(PATIENCE_S), last


@pytest.fixture
def start(tmp_path):
    """Starts bradawl in a folder, with a scripted model and pipes."""
    started = []

    def start(script, *argv, **options):
        (tmp_path / "script.json").write_text(json.dumps(script))
        environ = {
            **{"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "BRADAWL_MODEL": "scripted/script.json"},
            **{"BRADAWL_SANDBOX": "off", "BRADAWL_UNDO": "false"},
        }
        (tmp_path / "home").mkdir(exist_ok=True)
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen([*START, *argv], cwd=tmp_path, env=environ, **{**streams, "text": True, **options})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE_S)
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(BrokenPipeError):
                stream.close()


def agrees(result, code) -> bool:
    return (result["type"], result["exit_code"], result["is_error"]) == ("result", code, code != 0)


def test_a_question_is_asked_on_the_channel_and_its_answer_holds(start, tmp_path):
    other = {"tool_calls": [{"id": "c2", "name": "bash", "arguments": {"command": "touch other"}}]}
    program = Program(start([TOUCH, other, {**DONE, "expect": "not now"}], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    first = program.until("control_request")
    assert (first["request"]["tool_name"], first["request"]["input"]) == ("bash", {"command": "touch made"})
    program.answer(first, behavior="allow", updatedInput={"command": "touch made"})
    program.answer(program.until("control_request"), behavior="deny", message="not now")
    result = program.until("result")
    assert (result["result"], [each["tool_use_id"] for each in result["permission_denials"]]) == ("Done.", ["c2"])
    assert (tmp_path / "made").exists() and not (tmp_path / "other").exists()
    code, _ = program.end()
    assert code == 0


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"behavior": "perhaps"},
        {"behavior": "allow", "updatedInput": {"command": "touch instead"}},
        {"behavior": "allow", "updatedInput": None},
        {"behavior": "allow", "updatedPermissions": "all"},
        {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "bypassPermissions"}]},
        {"behavior": "allow", "updatedPermissions": [{"type": "addRules", "behavior": "deny", "rules": []}]},
        {"behavior": "allow", "updatedPermissions": [{"type": "removeRules", "behavior": "allow", "rules": []}]},
        {"behavior": "allow", "updatedPermissions": [None]},
    ],
)
def test_an_answer_that_cannot_be_kept_as_it_was_meant_is_a_refusal(start, tmp_path, response):
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    program.answer(program.until("control_request"), **response)
    assert [each["tool_use_id"] for each in program.until("result")["permission_denials"]] == ["c1"]
    assert program.end()[0] == 0
    assert not (tmp_path / "made").exists() and not (tmp_path / "instead").exists()


@pytest.mark.parametrize(
    "response",
    [
        {"behavior": "deny", "message": "no"},
        {"behavior": "perhaps"},
        {"behavior": "allow", "updatedInput": {"command": "touch instead"}},
        {"behavior": "allow", "updatedPermissions": [{"type": "addRules", "behavior": "deny", "rules": []}]},
        {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "bypassPermissions"}]},
        {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "no mode"}]},
    ],
)
@pytest.mark.parametrize("mode", ["auto", "dontAsk", "plan"])
def test_a_refused_answer_changes_no_mode(start, response, mode):
    """A mode before or after the update that is the reason of the refusal."""
    program = Program(start([TOUCH, DONE, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    update = {"type": "setMode", "mode": mode, "destination": "session"}
    others = response.get("updatedPermissions", [])
    program.answer(program.until("control_request"), **{**response, "updatedPermissions": [update, *others]})
    assert [each["tool_use_id"] for each in program.until("result")["permission_denials"]] == ["c1"]
    program.say("again")
    assert program.until("system")["permissionMode"] == "default"
    assert program.end()[0] == 0


def test_set_model_between_turns_and_in_a_turn_holds_for_the_next_one(start, tmp_path):
    (tmp_path / "other.json").write_text(json.dumps([{"text": "Other."}]))
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    question = program.until("control_request")
    program.ask("set_model", model="scripted/other.json")
    assert program.until("control_response")["response"]["subtype"] == "success"
    program.answer(question, behavior="allow")
    assert program.until("result")["result"] == "Done.", "the turn ends with the model that it began with"
    program.say("again")
    assert program.until("result")["result"] == "Other."
    program.ask("set_model")
    program.say("and again")
    assert program.until("system")["model"].endswith("script.json")
    program.end()


def test_a_mode_that_comes_with_a_yes_holds(start, tmp_path):
    program = Program(start([TOUCH, DONE, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    updates = [{"type": "setMode", "mode": mode} for mode in ("plan", "acceptEdits")]
    program.answer(program.until("control_request"), behavior="allow", updatedPermissions=updates)
    assert program.until("result")["permission_denials"] == [] and (tmp_path / "made").exists()
    program.say("again")
    assert program.until("system")["permissionMode"] == "acceptEdits"
    assert program.end()[0] == 0


def test_a_rule_that_would_allow_more_is_left_out_and_the_call_runs(start, tmp_path):
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    rule = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}], "destination": "session"}
    program.answer(program.until("control_request"), behavior="allow", updatedPermissions=[rule])
    assert program.until("result")["permission_denials"] == []
    assert program.end()[0] == 0 and (tmp_path / "made").exists()
    assert "updatedPermissions) was not added" in program.process.stderr.read()


@pytest.mark.parametrize("way", ["error", "end of the input"])
def test_a_question_without_an_answer_is_refused_as_without_a_user(start, tmp_path, way):
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    request = program.until("control_request")
    if way == "error":
        inner = {"subtype": "error", "request_id": request["request_id"], "error": "no callback"}
        program.send({"type": "control_response", "response": inner})
    code, last = program.end()
    assert code == 5 and agrees(last, code) and last["denials"][0]["tool_use_id"] == "c1"
    assert not (tmp_path / "made").exists()


def test_a_refusal_that_interrupts_ends_the_turn(start):
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    program.answer(program.until("control_request"), behavior="deny", message="stop", interrupt=True)
    assert program.until("result")["terminal_reason"] == "aborted_streaming"
    assert program.end()[0] == 130


def test_the_mode_that_refuses_questions_asks_nobody(start, tmp_path):
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.ask("set_permission_mode", mode="dontAsk")
    program.say("go")
    assert program.until("result")["denials"][0]["tool_use_id"] == "c1"
    assert program.end()[0] == 5 and not (tmp_path / "made").exists()


def test_an_interrupt_takes_the_question_back_and_the_session_goes_on(start):
    program = Program(start([TOUCH, DONE], *BOTH, "--permission-prompt-tool", "stdio"))
    program.say("go")
    request = program.until("control_request")
    program.ask("interrupt")
    assert program.until("control_cancel_request")["request_id"] == request["request_id"]
    assert program.until("result")["reason"] == "cancelled"
    program.answer(request, behavior="allow")  # too late: it must change nothing
    program.say("again")
    assert program.until("result")["result"] == "Done."
    assert program.end()[0] == 0


@pytest.mark.parametrize("when", ["in a turn", "between turns", "before a message"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
def test_a_signal_ends_the_run_and_the_last_line_says_so(start, tmp_path, number, code, when):
    os.mkfifo(tmp_path / "started")
    program = Program(start([WAIT] if when == "in a turn" else [DONE], *BOTH, "-y"))
    program.ask("mcp_status")
    program.until("control_response")
    if when != "before a message":
        program.say("go")
    if when == "in a turn":
        (tmp_path / "started").read_text()
    elif when == "between turns":
        assert program.until("result")["exit_code"] == 0
    program.process.send_signal(number)
    found, last = program.ended()
    assert found == code and agrees(last, code)
    assert (last["reason"], bool(last["session_id"])) == ("cancelled", True)
    assert "Traceback" not in program.process.stderr.read()


def test_a_closed_stdout_ends_the_turn_soon_and_keeps_the_session(start, tmp_path):
    os.mkfifo(tmp_path / "started")
    script = [{**WAIT, "text": "I wait."}, DONE]
    process = start(script, "-p", "go", *STREAM, "-y", "--include-partial-messages", stdin=subprocess.DEVNULL)
    session = json.loads(process.stdout.readline())["session_id"]
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 141
    said = process.stderr.read()
    assert "rror" not in said and "Traceback" not in said
    again = start([DONE], "-p", "again", "-r", session, stdin=subprocess.DEVNULL)
    assert again.communicate(timeout=PATIENCE_S)[0] == "Done.\n"


def test_a_closed_stdout_stops_a_running_command(start, tmp_path):
    os.mkfifo(tmp_path / "started")
    command = "echo $$ > started; sleep 300"
    script = [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}]
    process = start(script, *BOTH, "-y")
    program_said = {"type": "user", "message": {"role": "user", "content": "go"}}
    process.stdin.write(json.dumps(program_said) + "\n")
    process.stdin.flush()
    pid = int((tmp_path / "started").read_text())
    process.stdout.close()
    process.stdin.write(json.dumps({"type": "control_request", "request_id": "1", "request": {"subtype": "x"}}) + "\n")
    process.stdin.flush()  # its answer is the first line that can't be written
    assert process.wait(PATIENCE_S) == 141
    assert not lives(pid)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_code_74_and_one_line_on_stderr(start):
    with Path("/dev/full").open("w") as full:
        process = start([DONE], "-p", "go", *STREAM, stdin=subprocess.DEVNULL, stdout=full)
        said = process.stderr.read()
    assert process.wait(PATIENCE_S) == 74
    assert "The stream could not be written: No space left on device" in said


def test_a_reader_that_stalls_stops_neither_the_run_nor_its_end_by_signals(start, tmp_path):
    """stdout is a pipe that nobody reads: the lines fill it, and the run goes on to its last step."""
    os.mkfifo(tmp_path / "started")
    process = start([{"text": "word " * 100_000}, DONE], "-p", "go", *STREAM, stdin=subprocess.DEVNULL)
    while "1 step" not in (line := process.stderr.readline()):
        assert line, "bradawl ended"
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 143


def test_a_long_message_is_read_and_one_over_the_limit_ends_the_input(start):
    program = Program(start([DONE], *BOTH))
    program.say("x" * 3_000_000)
    assert program.until("result")["exit_code"] == 0
    with suppress(BrokenPipeError):  # bradawl may have ended before all is written
        for _ in range(52):
            program.process.stdin.write("y" * 1_000_000)
        program.process.stdin.flush()
    code, last = program.ended()
    assert code == 2 and agrees(last, code) and "more than 50,000,000 bytes" in last["errors"][0]


def test_characters_may_arrive_in_halves(start):
    process = start([{**DONE, "expect": "gr\u00fc\u00dfe"}], *BOTH, text=False)
    data = json.dumps({"type": "user", "message": {"content": "gr\u00fc\u00dfe"}}, ensure_ascii=False).encode() + b"\n"
    for place in range(len(data)):
        process.stdin.write(data[place : place + 1])
        process.stdin.flush()
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert json.loads(out.splitlines()[-1])["result"] == "Done."


def test_an_answer_is_in_the_file_as_a_whole_or_not_at_all(start, tmp_path):
    answer = tmp_path / "answer.md"
    answer.write_text("old\n")
    answer.chmod(0o640)
    failed = start([{"faults": {"status": 400}}], "-p", "x", "-o", "answer.md", stdin=subprocess.DEVNULL)
    _, said = failed.communicate(timeout=PATIENCE_S)
    assert failed.returncode == 1 and answer.read_text() == "old\n"
    assert "answer.md is left as it was" in said
    done = start([DONE], "-p", "x", "-o", "answer.md", stdin=subprocess.DEVNULL)
    assert done.communicate(timeout=PATIENCE_S)[0] == "Done.\n"
    assert (done.returncode, answer.read_text(), answer.stat().st_mode & 0o777) == (0, "Done.\n", 0o640)
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".new")] == []


def test_an_answer_that_cannot_be_saved_is_printed_and_the_code_says_so(start, tmp_path):
    process = start([DONE], "-p", "x", "-o", "none/answer.md", "--output-format", "json", stdin=subprocess.DEVNULL)
    out, said = process.communicate(timeout=PATIENCE_S)
    result = json.loads(out)
    assert (process.returncode, result["exit_code"], result["result"]) == (74, 74, "Done.")
    assert "none/answer.md is left as it was" in said
