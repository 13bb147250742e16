"""`bradawl demo` from start to end. A fixture checks after each test that no temporary folder is left."""

import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bradawl.app.demo.approver import ScriptApprover
from bradawl.app.demo.run import run_demo
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Question, Request
from bradawl.testing.script import script_from

REFUSE_SANDBOX = Path(__file__).parents[1] / "refuse_sandbox.py"
NO_FILTER = 77

EDIT = {"file_path": "main.py", "old_string": "halper", "new_string": "helper", "replace_all": True}


async def demo(script=None):
    out = io.StringIO()
    return await run_demo(out, script), out.getvalue()


@pytest.mark.skipif(shutil.which("python3") is None, reason="python3 is not on PATH")
async def test_the_demo_shows_the_failure_the_repair_and_the_proof():
    code, shown = await demo()
    assert code == 0, shown
    places = [
        shown.index(text)
        for text in (
            "ImportError: cannot import name 'halper'",
            "› Read   main.py",
            "› Read   utils.py",
            "› Edit   main.py",
            "+from utils import helper",
            "› Run    python3 main.py",
            "    Hello, bradawl!",
            "4 steps",
            "Proved, not claimed",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("script", "reasons"),
    [
        ([{"text": "It is fixed, believe me."}], ["main.py does not hold what it should", "the program still fails"]),
        (
            [{"tool_calls": [{"name": "edit_file", "arguments": EDIT}]}],
            ["the model's script did not foresee this", "the turn ended with error"],
        ),
        (
            [
                {"tool_calls": [{"name": "edit_file", "arguments": EDIT}]},
                {"tool_calls": [{"name": "bash", "arguments": {"command": "echo 'helper = len' > utils.py"}}]},
                {"text": "Done."},
            ],
            ["utils.py does not hold what it should", "the program still fails: 7"],
        ),
        ([{"text": "no", "faults": {"status": 401}}], ["the turn ended with error"]),
    ],
)
async def test_a_model_that_only_claims_the_repair_fails_the_demo(script, reasons):
    code, shown = await demo(script)
    assert code == 1
    assert "The demo failed" in shown
    assert "Proved" not in shown
    for reason in reasons:
        assert reason in shown


async def test_a_closed_output_does_not_stop_the_demo():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    assert (await run_demo(Gone())) == 0


async def test_without_a_temporary_folder_the_error_gives_advice(tmp_path):
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path / "missing")
    try:
        with pytest.raises(SettingsError, match="TMPDIR"):
            await demo()
    finally:
        tempfile.tempdir = before


# ------------------------------------------------------------------ on other machines


def run_process(*prefix, environment, cwd=None, **streams):
    """Run `bradawl demo` with exactly these environment variables."""
    return subprocess.run(
        [*prefix, sys.executable, "-m", "bradawl", "demo"],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        timeout=50,
        **(streams or {"capture_output": True}),
    )


@pytest.mark.parametrize(
    ("refused", "shown"),
    [("landlock", "Sandbox: "), ("namespaces", "Sandbox: "), ("both", "Sandbox: none")],
)
def test_the_demo_completes_with_each_sandbox_and_without_and_names_it(refused, shown):
    ended = run_process(sys.executable, str(REFUSE_SANDBOX), refused, environment=dict(os.environ))
    if ended.returncode == NO_FILTER:
        pytest.skip(f"no filter of system calls: {ended.stderr}")
    assert ended.returncode == 0, ended
    assert "Proved, not claimed" in ended.stdout
    assert shown in ended.stdout


@pytest.mark.parametrize(
    "changes",
    [
        {"TMPDIR": "/nonexistent/folder"},
        {"TMPDIR": "/proc"},
        {"HOME": None},
        {"HOME": "/nonexistent"},
        {"HOME": "relative"},
        {"PATH": "/nonexistent"},
        {"PATH": None},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"},
        {"BRADAWL_PERMISSION_MODE": "plan", "BRADAWL_SANDBOX": "required", "OPENAI_BASE_URL": "http://127.0.0.1:1"},
    ],
    ids=str,
)
def test_the_demo_completes_with_unusual_environment_variables(changes, tmp_path):
    if changes.get("PYTHONUTF8") == "0" and not sys.prefix.isascii():
        pytest.skip(f"Python loads no module in C from {sys.prefix} where file names are ASCII")
    environment = {name: value for name, value in {**os.environ, **changes}.items() if value is not None}
    ended = run_process(environment=environment, cwd=tmp_path)
    assert ended.returncode == 0, ended
    assert "Proved, not claimed" in ended.stdout
    assert not list(tmp_path.iterdir())


def test_the_demo_completes_in_a_folder_with_shell_characters_in_its_name(tmp_path):
    temporary = tmp_path / "a b ü $(touch x) 'y' \"z\""
    temporary.mkdir()
    ended = run_process(environment={**os.environ, "TMPDIR": str(temporary)}, cwd=tmp_path)
    assert ended.returncode == 0, ended
    assert list(tmp_path.iterdir()) == [temporary]
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("program", ["#!/bin/sh\necho no version is set >&2; exit 127\n", "no program\n"])
def test_a_python3_that_does_not_start_is_not_used(program, tmp_path):
    (tmp_path / "python3").write_text(program)
    (tmp_path / "python3").chmod(0o755)
    ended = run_process(environment={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert ended.returncode == 0, ended
    assert "Proved, not claimed" in ended.stdout


def test_the_demo_completes_in_a_read_only_or_missing_working_directory(tmp_path):
    fixed, gone = tmp_path / "fixed", tmp_path / "gone"
    for folder in (fixed, gone):
        folder.mkdir()
    fixed.chmod(0o555)
    assert run_process(environment=dict(os.environ), cwd=fixed).returncode == 0
    start = f'cd {shlex.quote(str(gone))} && rmdir "$PWD" && exec "$0" -m bradawl demo'
    ended = subprocess.run(["/bin/sh", "-c", start, sys.executable], capture_output=True, text=True, timeout=50)
    assert ended.returncode == 0, ended


def test_the_demo_completes_without_standard_streams():
    start = 'exec "$0" -m bradawl demo <&- >&- 2>&-'
    assert subprocess.run(["/bin/sh", "-c", start, sys.executable], timeout=50).returncode == 0


# ------------------------------------------------------------------ permissions


@pytest.mark.parametrize(
    ("name", "arguments", "lifts", "is_allowed"),
    [
        ("edit_file", '{"file_path":"a"}', (), True),
        ("edit_file", '{"file_path":"b"}', (), False),
        ("edit_file", '{"file_path": "a"}', (), False),
        ("write_file", '{"file_path":"a"}', (), False),
        ("edit_file", '{"file_path":"a"}', ("sandbox",), False),
        ("edit_file", '{"file_path":"a"}', ("network",), False),
    ],
)
async def test_only_the_calls_of_the_script_are_allowed(name, arguments, lifts, is_allowed):
    script = script_from([{"tool_calls": [{"name": "edit_file", "arguments": {"file_path": "a"}}]}])
    question = Question(ToolCall("1", name, arguments), Request(name, "", Effects(lifts=lifts)), "it changes something")
    assert (await ScriptApprover(script).ask(question)).allowed is is_allowed
