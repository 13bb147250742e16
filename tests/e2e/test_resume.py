"""A resumed session sends the same bytes as before and continues. Requests go over a real socket."""

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.testing.server import WireServer, serve_in_thread

SCRIPT = [
    {
        "thinking": "hm",
        "text": "looking",
        "tool_calls": [
            {"id": "c1", "name": "read_file", "arguments": {"file_path": "a.txt"}},
            {"id": "c2", "name": "read_file", "arguments": '{"file_path": '},
        ],
    },
    {"text": "it says one"},
    {"text": "I remember"},
]


def ask(server: WireServer, home: Path, folder: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "BRADAWL_HOME": str(home / "own"),
        "OPENAI_BASE_URL": server.base_url,
        "BRADAWL_CWD": str(folder),
    }
    code = run(["-m", "m", *arguments], environ, Console(StringIO(), out, err, environ))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (place / "a.txt").write_text("one\n")
    return place


def test_a_continued_session_sends_the_same_bytes_and_continues(tmp_path: Path, folder: Path) -> None:
    with serve_in_thread(SCRIPT) as server:
        code, out, err = ask(server, tmp_path, folder, "-p", "what does a.txt say?")
        assert (code, out) == (0, "it says one\n"), err
        code, out, err = ask(server, tmp_path, folder, "-c", "-p", "and now?")
        assert (code, out) == (0, "I remember\n"), err
        assert "Damaged" not in err and not server.failures
        before, after = (request["messages"] for request in server.requests[1:3])
    assert after[: len(before)] == before, "the prefix never changes"
    assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]
    assert server.requests[1]["tools"] == server.requests[2]["tools"]


def test_every_line_of_a_real_sessions_journal_is_json(tmp_path: Path, folder: Path) -> None:
    with serve_in_thread(SCRIPT) as server:
        ask(server, tmp_path, folder, "-p", "what does a.txt say?")
    (journal,) = (tmp_path / "own").glob("projects/*/sessions/*.jsonl")
    entries: list[dict[str, Any]] = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert entries[0]["event"]["type"] == "SessionOpened" and entries[0]["event"]["version"] == 1
    assert entries[-1]["event"] == {"type": "TurnFinished", "reason": "completed"}
    blobs = {path.name for path in (tmp_path / "own").glob("projects/*/blobs/*")}
    (prefix,) = (entry["event"] for entry in entries if entry["event"]["type"] == "PrefixOpened")
    assert {prefix["system_ref"], prefix["tools_ref"]} <= blobs


def test_after_a_kill_during_a_call_its_result_says_that_the_outcome_is_unknown(tmp_path: Path, folder: Path) -> None:
    suicide = {"id": "c1", "name": "bash", "arguments": {"command": "kill -9 $PPID"}}
    never = {"id": "c2", "name": "bash", "arguments": {"command": "echo never > never.txt"}}
    with serve_in_thread([{"text": "now", "tool_calls": [suicide, never]}, {"text": "I see"}]) as server:
        environ = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(tmp_path),
            "HOME": str(tmp_path),
            "BRADAWL_HOME": str(tmp_path / "own"),
            "OPENAI_BASE_URL": server.base_url,
        }
        command = [sys.executable, "-m", "bradawl", "--yolo", "-m", "m", "-p", "go"]
        ended = subprocess.run(command, env=environ, cwd=folder, capture_output=True, timeout=60)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        code, out, err = ask(server, tmp_path, folder, "-c", "-p", "what happened?")
        assert (code, out) == (0, "I see\n"), err
        roles = [(m["role"], m.get("content")) for m in server.requests[-1]["messages"]][2:]
    assert [role for role, _ in roles] == ["assistant", "tool", "tool", "user"]
    assert "may or may not have happened" in str(roles[1][1]) and "Not run" in str(roles[2][1])
    assert not (folder / "never.txt").exists()
