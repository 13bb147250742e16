"""A check with a hidden failure does not end the task with the answer that it brought along."""

import json
from pathlib import Path

import pytest

from bradawl import ModelSettings, Settings, build_agent


async def run(folder: Path, command: str) -> tuple[str, int]:
    """Answer and number of steps of a task whose model sends an answer with this command, and then says `late`."""
    (folder / "work").mkdir()
    (folder / "work" / "file").write_text("content\n")
    call = {"name": "bash", "arguments": {"command": f"touch done && {{ {command}\n}}", "answer_if_ok": "early"}}
    (folder / "script.json").write_text(json.dumps([{"tool_calls": [call]}, {"text": "late"}]))
    settings = Settings(
        model=ModelSettings("scripted", str(folder / "script.json")),
        cwd=str(folder / "work"),
        home=str(folder / "data"),
        user_home=str(folder),
        environment={"PATH": "/usr/bin:/bin"},
        sandbox="off",
        permission_mode="bypass",
        headless=True,
    )
    agent = build_agent(settings)
    try:
        result = await agent.run("go")
        return result.text.partition("\n")[0], result.steps
    finally:
        await agent.aclose()


@pytest.mark.parametrize(
    "command",
    [
        "false || true",
        "! false",
        "if grep -q x file; then :; fi",
        "yes | head -1",
        "yes | head -1; true",
        "cat file | grep content; true",
    ],
)
async def test_a_clean_check_ends_the_task(tmp_path, command):
    assert await run(tmp_path, command) == ("early", 1)


@pytest.mark.parametrize(
    "command",
    [
        "false; true",
        "false | cat",
        "false | cat; true",
        "grep -q nothing file; true",
        "no-such-program 2>&1 | tail -5; echo checked",
        "for name in a b; do cat $name 2>&1 | tail -1; done; echo checked",
    ],
)
async def test_a_check_with_a_hidden_failure_does_not(tmp_path, command):
    assert await run(tmp_path, command) == ("late", 2)
