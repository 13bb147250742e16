"""docs/undo.md agrees with the program: its commands, its limits, and its example, which runs."""

import inspect
import re
from pathlib import Path

import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app import undo_commands
from bradawl.app.cli import parse
from bradawl.app.slash_commands import commands_in
from bradawl.checkpoints.coverage import HEAVY_FOLDERS, QUIET_FOLDERS, Coverage
from bradawl.checkpoints.store import ContentStore

PAGE = (Path(__file__).parents[2] / "docs" / "undo.md").read_text()


def test_the_page_has_all_slash_commands_and_no_others() -> None:
    named = set(re.findall(r"^\| `(/\w+)", PAGE, re.MULTILINE))
    assert named == {f"/{each.name}" for each in commands_in(vars(undo_commands))}


def test_the_command_lines_of_the_page_are_understood() -> None:
    lines = re.findall(r"^\$ bradawl (undo[^#\n]*)", PAGE, re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        assert parse(line.split())["command"] == "undo"


def test_the_limits_of_the_page_are_those_of_the_program() -> None:
    limits = Coverage()
    assert f"over {limits.file_bytes // 1_000_000} MB" in PAGE
    assert f"beyond {limits.baseline_bytes // 1_000_000} MB" in PAGE
    assert f"beyond {limits.entries:,}" in PAGE
    quota = inspect.signature(ContentStore).parameters["quota_bytes"].default
    assert f"at most {quota // 1_000_000_000} GB" in PAGE


def test_the_page_names_all_folders_that_are_not_covered_and_no_others() -> None:
    (heavy,) = re.findall(r"^- what is in folders that .* fill: (.*); Python", PAGE, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", heavy)) == HEAVY_FOLDERS - QUIET_FOLDERS
    (quiet,) = re.findall(r"^- what is in caches: (.*)$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", quiet)) == QUIET_FOLDERS


async def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project, script = tmp_path / "project", tmp_path / "script.json"
    project.mkdir()
    write = (
        '[{"tool_calls": [{"id": "w", "name": "write_file", "arguments": {"file_path": "new", "content": "1"}}]}, {}]'
    )
    script.write_text(write.replace("{}", '{"text": "done"}'))
    settings = Settings(
        model=ModelSettings("scripted", str(script)),
        cwd=str(project),
        home=str(tmp_path / "home"),
        permission_mode="bypass",
    )
    agent = build_agent(settings)
    try:
        session_id = (await agent.run("write it")).session_id
        assert (project / "new").exists()
        source = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
        body = "".join(f"    {line}\n" for line in source.splitlines())
        namespace: dict[str, object] = {"agent": agent, "session_id": session_id, "settings": settings}
        exec(f"async def example():\n{body}", namespace)  # noqa: S102 - the project's own page
        await namespace["example"]()  # type: ignore[operator]  # defined by the line above
    finally:
        await agent.aclose()
    assert (project / "new").read_text() == "1"  # undone and redone
    assert str(project / "new") in capsys.readouterr().out
