"""bradawl as a process: signals, closed streams, and the modules that a start loads."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from terminal import START

from real_processes import lives

COMMAND = "echo > started; sleep 300"
SLOW = [{"text": "Wait.", "tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": COMMAND}}]}]


@pytest.fixture
def start(tmp_path):
    """Starts bradawl with a scripted model and a home folder of its own."""

    def start(script, *argv, TMPDIR="", **options):
        (tmp_path / "script.json").write_text(json.dumps(script))
        environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "BRADAWL_MODEL": "scripted/script.json"}
        if TMPDIR:
            environ["TMPDIR"] = TMPDIR
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([*START, *argv], cwd=tmp_path, env=environ, text=True, **streams)

    return start


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
def test_a_signal_ends_the_run_and_is_its_exit_code(start, tmp_path, number, code):
    os.mkfifo(tmp_path / "started")
    with start(SLOW, "-p", "x", "-y", "--output-format", "json") as process:
        (tmp_path / "started").read_text()  # ends when the command has written its first line
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code
    result = json.loads(out)
    assert (result["reason"], result["exit_code"]) == ("cancelled", code)
    assert "To continue" in err
    assert f"■ Run    {COMMAND}  cancelled: " in err
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform != "linux", reason="looks for survivors in /proc")
def test_a_second_ctrl_c_directly_after_the_first_exits_and_no_process_survives(start, tmp_path):
    deaf = "trap '' INT TERM; echo $$ > started; while :; do sleep 0.1; done"
    os.mkfifo(tmp_path / "started")
    script = [{"tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": deaf}}]}]
    with start(script, "-p", "x", "-y") as process:
        pid = int((tmp_path / "started").read_text())
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    # A signal just before the exit ends the process itself, which a shell reports as 130 too.
    assert process.returncode in {130, -signal.SIGINT}
    assert "Traceback" not in err
    end = time.monotonic() + 60
    while lives(pid):
        assert time.monotonic() < end, "the command outlived bradawl"
        time.sleep(0.01)
    with start([{"text": "Here again."}], "-c", "-p", "y") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "Here again.\n"), err


@pytest.mark.parametrize("numbers", [[signal.SIGTSTP, signal.SIGCONT], [signal.SIGWINCH] * 300, [signal.SIGPIPE]])
def test_signals_that_do_not_request_an_end_do_not_end_a_run(start, tmp_path, numbers):
    os.mkfifo(tmp_path / "started")
    os.mkfifo(tmp_path / "go")
    with start(
        [calls("echo > started; cat go; echo done"), {"text": "Done.", "expect": "done"}], "-p", "x", "-y"
    ) as run:
        (tmp_path / "started").read_text()
        for number in numbers:
            run.send_signal(number)
        (tmp_path / "go").write_text("went\n")
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (0, "Done.\n"), err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_demo_and_removes_its_folder(start, tmp_path, number, code):
    with start([], "demo", TMPDIR=str(tmp_path)) as process:
        while "$ bradawl" not in process.stdout.readline():
            assert process.poll() is None
        assert list(tmp_path.glob("bradawl-demo-*"))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert not list(tmp_path.glob("bradawl-*"))
    assert err.startswith("bradawl: Interrupted")
    assert err.count("\n") == 1
    assert "Proved" not in out


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, None])
def test_a_start_without_a_prompt_is_an_error(start, stdin):
    with start([], stdin=stdin or subprocess.PIPE) as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, "prompt is empty" in err) == (2, True)


def calls(*commands):
    return {"tool_calls": [{"name": "bash", "arguments": {"command": command}} for command in commands]}


def test_a_failed_command_is_reported_in_one_line_with_its_reason(start):
    with start(
        [calls("echo hi; nosuchcommand", "cat < nowhere", "sh -c 'kill -9 $$'"), {}], "-p", "x", "-y"
    ) as process:
        _, err = process.communicate(timeout=60)
    told = [line.rpartition("  ")[2] for line in err.splitlines() if line.startswith("✗ Run    ")]
    assert told[0] == "exit code 127: nosuchcommand: command not found"
    assert told[1] == "exit code 1: nowhere: No such file or directory"
    assert told[2].startswith("exit code 137")


def test_a_permission_for_the_session_covers_this_command_and_no_other(start, tmp_path):
    script = [calls("echo again >> log"), calls("echo again >> log", "rm log"), {"text": "Done."}]
    with start(script, stdin=subprocess.PIPE) as process:
        out, _ = process.communicate("go\na\nn\n", timeout=60)
    assert (tmp_path / "log").read_text() == "again\nagain\n"
    assert out.count("Allow?") == 2
    assert "⊘ Run    rm log  refused: " in out
    assert "To resume" in out


def test_a_closed_stdout_causes_no_traceback(start):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with start([{"text": "x" * 200_000}], "-p", "x", stdout=writing) as process:
            _, err = process.communicate(timeout=60)
    finally:
        os.close(writing)
    assert process.returncode == 0
    assert "rror" not in err
    assert "Traceback" not in err


def test_missing_standard_streams_are_no_error():
    script = 'exec "$@" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", *START, "--version"], timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_load_few_modules(argument):
    code = f"import sys; from bradawl.app.cli import main; main(['{argument}']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"asyncio", "msgspec", "httpx2", "prompt_toolkit", "subprocess", "inspect"}


def test_a_run_loads_no_terminal_and_no_network(tmp_path):
    (tmp_path / "script.json").write_text('[{"text": "Done."}]')
    code = "import sys; from bradawl.app.cli import main; main(['-p', 'x']); print(*sorted(sys.modules))"
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "BRADAWL_MODEL": "scripted/script.json"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environ,
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    unwanted = {"httpx2", "prompt_toolkit", "tomllib", "bradawl.app.tui.repl"}
    assert not loaded & unwanted
