"""What a command changed is undone although all processes were killed at once, as by a loss of power."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from terminal import START, run_program


def call(command: str) -> dict[str, object]:
    return {"tool_calls": [{"id": command, "name": "bash", "arguments": {"command": command}}]}


def kill_with_children(process: "subprocess.Popen[bytes]") -> None:
    """Kill the program and what it has started, the search process first."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    for pid in {*children, *(each for task in tasks for each in task.read_text().split())}:
        if os.getpgid(int(pid)) == int(pid):
            os.killpg(int(pid), signal.SIGKILL)  # a command with its children
        else:
            os.kill(int(pid), signal.SIGKILL)
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    ("commands", "is_asked"),  # nobody knows what the user has changed since the command that ran
    [
        (("rm kept; echo 1 > new; sleep 60",), True),
        (("rm kept; echo 1 > new", "sleep 60"), False),
        (("echo 1 > new", "rm kept; sleep 60"), True),
    ],
)
def test_the_last_commands_are_undone_after_a_loss_of_power(
    tmp_path: Path, commands: tuple[str, ...], *, is_asked: bool
) -> None:
    root, script = tmp_path / "project", tmp_path / "script.json"
    (tmp_path / "home").mkdir()
    root.mkdir()
    (root / "kept").write_text("kept")
    script.write_text(json.dumps([*map(call, commands), {"text": "done"}]))
    environ = {
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "TERM": "dumb",
        "BRADAWL_MODEL": f"scripted/{script}",
    }
    with subprocess.Popen(
        [*START, "-y", "-p", "go"],
        cwd=root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        until = time.monotonic() + 60
        while (root / "kept").exists() or not (root / "new").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.5)  # until the second command runs
        kill_with_children(process)
    done = run_program(("undo", "--to", "1"), root, environ)
    assert ("maybe you changed it" in done.stderr + done.stdout) == is_asked, (done.stdout, done.stderr)
    if is_asked:
        assert done.returncode == 1
        done = run_program(("undo", "--to", "1", "--force", "."), root, environ)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (root / "kept").read_text() == "kept" and not (root / "new").exists()
