"""Cancelled turns leave no process and no unlogged change behind. Real files and processes."""

import asyncio
import contextlib
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import assert_valid, build

from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.grep import Grep
from bradawl.tools.read_file import ReadFile
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses
from real_processes import open_files


def _real_script() -> list[dict[str, Any]]:
    def tool(name: str, number: int, **arguments: Any) -> dict[str, Any]:
        return {"id": f"id_{name}_{number}", "name": name, "arguments": arguments}

    return [
        {"text": "reading", "tool_calls": [tool("read_file", 1, file_path="a.txt"), tool("grep", 1, pattern="one")]},
        {
            "text": "changing",
            "tool_calls": [
                tool("edit_file", 2, file_path="a.txt", old_string="one", new_string="two"),
                tool("bash", 2, command="(sleep 5 & sleep 5 & cat a.txt); sleep 0.02"),
            ],
        },
        {"text": "done"},
    ]


def _children() -> list[str]:
    """Child processes of this test, including zombies."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(entry.parent.name)
    return found


async def _one_real_run(folder: Path, cancel_after_s: float) -> tuple[str, str]:
    (folder / "a.txt").write_text("one\n")
    processes = LocalProcesses(environment=dict(os.environ))
    clock, ids = FakeClock(is_eager=True), FakeIds()
    agent, *_ = build(
        _real_script(),
        tools=(Bash(), ReadFile(), EditFile(), Grep(str(Path(sys.executable).with_name("rg")))),
        files=LocalFiles(home=str(folder)),
        processes=processes,
        store=LocalStore(folder / "home", folder, clock, ids),
        project=str(folder),
        clock=clock,
        ids=ids,
        on_close=processes.close,
    )
    try:
        async with agent.open() as session:
            turn = asyncio.ensure_future(session.run("go"))
            asyncio.get_running_loop().call_later(cancel_after_s, session.cancel)
            result = await turn
            assert_valid(session.transcript.messages)
            assert (folder / "a.txt").read_text() in ("one\n", "two\n")
            return result.reason, session.id
    finally:
        await agent.aclose()


def _assert_logged(folder: Path, session_id: str) -> None:
    """Every change on the disk has a log entry that precedes it, and the log ends with the end of the turn."""
    log = next(folder.glob(f"home/**/{session_id}.jsonl"), None)
    kinds = [] if log is None else [json.loads(line)["event"]["type"] for line in log.read_text().splitlines()]
    assert not kinds or kinds[-1] == "TurnFinished"
    if (folder / "a.txt").read_text() == "two\n":
        assert "ToolStarted" in kinds


@pytest.mark.skipif(sys.platform != "linux", reason="looks for leaks in /proc")
@pytest.mark.timeout(180)
@pytest.mark.slow
@pytest.mark.timeout(240)  # hundreds of turns; on a busy machine more than a minute
async def test_500_cancellations_at_random_leave_nothing_behind(tmp_path: Path) -> None:
    dice = random.Random(20261121)  # noqa: S311 - no secret is made of it
    reasons: dict[str, int] = {}

    before = open_files()
    for number in range(500):
        folder = tmp_path / str(number)
        folder.mkdir()
        reason, session_id = await _one_real_run(folder, dice.random() * 0.05)
        reasons[reason] = reasons.get(reason, 0) + 1
        _assert_logged(folder, session_id)
        assert not _children(), f"run {number} left a process"
    assert open_files() <= before + 1
    assert reasons.get("cancelled", 0) > 100, reasons
