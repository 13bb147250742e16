"""A lone surrogate in the arguments of a call: the call is refused, and the model sees why, whatever the tool."""

import json

import pytest
from scripted_agent import build, results

from bradawl.core.messages import Assistant, calls_of
from bradawl.providers.encoding import replayable_arguments
from bradawl.testing.fakes import FakeTool, MemoryFiles
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.todo_write import TodoWrite
from bradawl.tools.write_file import WriteFile

TOOLS = (
    *(Bash(), EditFile(), MultiEdit(), ReadFile(), WriteFile(), TodoWrite()),
    *(Grep(None), Glob(None), FakeTool("own")),
)
CALLS = {
    "bash": {"command": "echo x\ud83d > a.py"},
    "edit_file": {"file_path": "a.py", "old_string": "one", "new_string": "x\ud83d"},
    "multi_edit": {"edits": [{"file_path": "a.py", "old_string": "one", "new_string": "\udc00x"}]},
    "read_file": {"file_path": "x\ud83d"},
    "write_file": {"file_path": "a.py", "content": "x\ud83d"},
    "todo_write": {"todos": [{"content": "x\ud83d", "status": "pending"}]},
    "grep": {"pattern": "x\ud83d"},
    "glob": {"pattern": "x\ud83d"},
    "own": {"text": "ok", "\ud83d": 1},
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_with_half_a_character_is_refused(name: str) -> None:
    files = MemoryFiles({"/project/a.py": b"one\n"})
    agent, *_ = build(
        [{"tool_calls": [{"id": "x", "name": name, "arguments": json.dumps(CALLS[name])}]}, {"text": "ok"}],
        tools=tuple(tool for tool in TOOLS if tool.spec.name == name),
        files=files,
    )
    async with agent.open() as session:
        await session.run("go")
        messages = session.transcript.messages
    half = "\\udc00" if name == "multi_edit" else "\\ud83d"
    assert results(messages) == [
        f"{name} was not run: its arguments hold half a character (the lone surrogate {half}). Send it again with the "
        "whole character, or without it."
    ]
    assert files.files == {"/project/a.py": b"one\n"}
    reply = messages[1]
    assert isinstance(reply, Assistant)
    assert "\ufffd" in replayable_arguments(calls_of(reply)[0])


async def test_both_halves_together_are_a_character() -> None:
    files = MemoryFiles({})
    call = {"id": "x", "name": "write_file", "arguments": json.dumps({"file_path": "a", "content": "\U0001f600"})}
    agent, *_ = build([{"tool_calls": [call]}, {"text": "ok"}], tools=(WriteFile(),), files=files)
    async with agent.open() as session:
        await session.run("go")
    assert files.files["/project/a"] == "\U0001f600".encode()
