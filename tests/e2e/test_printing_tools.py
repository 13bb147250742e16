"""What a user's tool prints, or a program it starts, does not mix with the answer on stdout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = """
import os
import subprocess

from bradawl import tool

print("printed at the start")


@tool(read_only=True)
def greet(name: str) -> str:
    "Greet."
    print("printed in the call")
    os.system("echo printed by a program")
    subprocess.run(["echo", "printed by another"])
    return f"hello {name}"
"""
PRINTED = ("printed at the start", "printed in the call", "printed by a program", "printed by another")


@pytest.fixture
def run(tmp_path: Path):
    """Runs the program with the tool, in a folder with a script that calls it."""
    tools = tmp_path / "home" / ".config" / "bradawl" / "tools"
    tools.mkdir(parents=True)
    (tools / "greet.py").write_text(TOOL)
    call = {"id": "1", "name": "greet", "arguments": {"name": "world"}}
    script = [{"tool_calls": [call]}, {"text": "Done.", "expect": "hello world"}]
    (tmp_path / "script.json").write_text(json.dumps(script))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["BRADAWL_SANDBOX"] = "off"

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "bradawl", *argv, "-m", "scripted/script.json"]
        done = subprocess.run(
            line, cwd=tmp_path, env=environment, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60
        )
        assert done.returncode in (0, 1), done.stderr
        return done

    return run


def test_the_answer_alone_is_on_stdout(run) -> None:
    done = run("-p", "go")
    assert done.stdout == "Done.\n"
    assert all(text in done.stderr for text in PRINTED), done.stderr


def test_the_json_object_alone_is_on_stdout(run) -> None:
    assert json.loads(run("-p", "go", "--output-format", "json").stdout)["result"] == "Done."


def test_doctors_json_alone_is_on_stdout(run) -> None:
    done = run("doctor", "--json")
    assert {"user tools"} <= {check["name"] for check in json.loads(done.stdout)["checks"]}
    assert "printed at the start" in done.stderr
