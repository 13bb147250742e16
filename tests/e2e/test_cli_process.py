"""bradawl as a process: signals, closed streams, and what a start loads."""

import json
import os
import signal
import subprocess
import sys

import pytest

START = (sys.executable, "-c", "import sys; from bradawl.app.cli import main; sys.exit(main())")
SLOW = [{"text": "Wait.", "tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": "sleep 300"}}]}]


@pytest.fixture
def start(tmp_path):
    """Starts bradawl in a home of its own with a script as its model."""

    def start(script, *argv, **options):
        (tmp_path / "script.json").write_text(json.dumps(script))
        environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "BRADAWL_MODEL": "scripted/script.json"}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([*START, *argv], cwd=tmp_path, env=environ, text=True, **streams)

    return start


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_and_is_its_exit_code(start, number, code):
    with start(SLOW, "-p", "x", "-y", "--output-format", "json") as process:
        assert process.stderr.readline() == "> bash(sleep 300)\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == code
    result = json.loads(out)
    assert (result["reason"], result["exit_code"]) == ("cancelled", code)
    assert "To continue" in err
    assert "Traceback" not in err


def test_a_reader_who_leaves_sees_no_traceback(start):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with start([{"text": "x" * 200_000}], "-p", "x", stdout=writing) as process:
            _, err = process.communicate(timeout=20)
    finally:
        os.close(writing)
    assert process.returncode == 0
    assert "rror" not in err
    assert "Traceback" not in err


def test_missing_streams_are_no_error():
    script = 'exec "$@" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", *START, "--version"], timeout=20, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_a_question_about_bradawl_loads_next_to_nothing(argument):
    code = f"import sys; from bradawl.app.cli import main; main(['{argument}']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
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
        timeout=20,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    unwanted = {"httpx2", "prompt_toolkit", "tomllib", "bradawl.app.tui.repl"}
    assert not loaded & unwanted
