"""A command that fails for a relative path after an earlier `cd` says where it ran, and where the path is."""

import os
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import build, results

from bradawl.tools.bash import Bash
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses


@pytest.fixture
def real(tmp_path: Path):
    """Arguments of `build` for an agent with real files and processes, in a folder with `src` and `tests/x`."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "tests").mkdir()
    (work / "tests" / "x").write_text("1\n")
    (tmp_path / "above").write_text("2\n")
    processes = LocalProcesses(os.environ)
    yield {"tools": (Bash(),), "files": LocalFiles(str(work)), "processes": processes, "project": str(work)}
    processes.close()


async def outputs(real: dict[str, Any], *commands: str) -> list[str]:
    calls = [{"id": f"id_{n}", "name": "bash", "arguments": {"command": line}} for n, line in enumerate(commands)]
    agent, *_ = build([{"tool_calls": calls}, {"text": "ok"}], **real)
    async with agent.open() as session:
        await session.run("go")
        return results(session.transcript.messages)


@pytest.mark.parametrize(
    "line",
    [
        "cat tests/x",
        "ls tests/x",
        "wc -l missing tests/x",
        "python3 tests/x",
        "python3 -c \"open('tests/x')\"",
        "bash tests/x",
        "cat < tests/x",
        "cat tests/x | sort",
    ],
)
async def test_a_path_from_the_first_folder_is_explained_after_a_cd(real: dict[str, Any], line: str) -> None:
    project = real["project"]
    _, said = await outputs(real, "cd src", line)
    assert f"\n[the working directory is {project}/src, since an earlier cd; tests/x is in {project}]" in said


async def test_a_path_that_is_nowhere_names_the_working_directory_alone(real: dict[str, Any]) -> None:
    _, said = await outputs(real, "cd src", "cat tests/missing")
    assert said.endswith(f"\n[the working directory is {real['project']}/src, since an earlier cd]")


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("true", "cat missing"),  # nothing changed the directory
        ("cd src", "cd .. && cat missing"),  # the line changes it itself
        ("cd src", "cat /missing"),  # absolute
        ("cd src", "false"),
        ("cd src", "cat tests/x 2>/dev/null || true"),
        ("cd src", "echo 'tests/x: No such file or directory'; false"),  # only shown
    ],
)
async def test_other_failures_have_no_such_line(real: dict[str, Any], first: str, line: str) -> None:
    _, said = await outputs(real, first, line)
    assert "the working directory is " not in said


async def test_nothing_above_the_project_is_looked_for(real: dict[str, Any]) -> None:
    _, said = await outputs(real, "cd src", "cat ../../above/x ../above")
    assert said.endswith(f"\n[the working directory is {real['project']}/src, since an earlier cd]")
