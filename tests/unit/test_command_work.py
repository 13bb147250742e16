"""`/todos`, `/agents` and `/jobs` show what the model does beside its text."""

import asyncio

import pytest
from command_world import CommandWorld

from bradawl.app.slash_commands import CommandError
from bradawl.app.symbols import ASCII
from bradawl.core.events import AgentEnded, AgentSpawned, StateChanged, Todo, TodosSet
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.agent import AgentTool
from bradawl.tools.bash import Bash
from bradawl.workspace.files import LocalFiles


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    return CommandWorld(tmp_path)


async def test_todos_shows_the_whole_list(world):
    world.script = [{"text": "x"}]
    async with world.conversation() as talk:
        assert await talk.type("/todos") == "The model has no to-do list."
        await talk.prompt("a")
        todos = (Todo("one", "completed"), Todo("two\n\x1b[2J", "in_progress"), *(Todo(f"t{n}") for n in range(30)))
        talk.session.session.conversation.record(StateChanged(TodosSet(todos)))
        lines = (await talk.type("/todos")).splitlines()
        assert lines[:3] == ["1 of 32 completed", "☑ one", "◐ two"] and lines[-1] == "☐ t29"
        talk.frontend.symbols = ASCII
        lines = (await talk.type("/todos")).splitlines()
    assert lines[:3] == ["1 of 32 completed", "[x] one", "[>] two"] and lines[-1] == "[ ] t29"


async def test_agents_shows_what_each_was_asked_how_it_ended_and_what_it_cost(world):
    calls = [{"id": "t", "name": "agent", "arguments": {"prompt": "Find the parser.\nAll of it."}}]
    reply = {"text": "found", "usage": {"input": 1_000, "output": 10}}
    world.agent_changes = {
        "tools": (AgentTool(),),
        "model": ScriptedModel([{"tool_calls": calls}, reply, {"text": "Done."}]),
    }
    async with world.conversation() as talk:
        assert await talk.type("/agents") == "No sub-agent was started in this session."
        assert await talk.prompt("a") == "Done."
        first, second = (await talk.type("/agents")).splitlines()
        conversation = talk.session.session.conversation
        conversation.record(AgentSpawned("agent-2", "u", "general", "Never ends."))
        running = (await talk.type("/agents")).splitlines()[2:]
        conversation.record(AgentEnded("agent-2", "cancelled"))
        ended = (await talk.type("/agents")).splitlines()[2]
    assert first == "agent-1 (general)  completed, 0 s, 1 step, 1,000 tokens in, 10 out, cost unknown"
    assert second == "  Find the parser. All of it."
    assert running[0].startswith("agent-2 (general)  running, ") and running[1] == "  Never ends."
    assert ended.startswith("agent-2 (general)  cancelled, ")


async def until_shown(talk, line: str, part: str) -> str:
    async with asyncio.timeout(60):
        while part not in (text := await talk.type(line)):  # noqa: ASYNC110 - a program prints it
            await asyncio.sleep(0.01)
    return text


async def test_jobs_shows_the_end_of_the_output_and_leaves_it_for_the_model(world, processes):
    wait, go = "while [ ! -e {} ]; do sleep 0.05; done", world.project / "go"
    serve = f"echo begun; {wait.format(go)}; echo first; printf '\\033[2J\\n'; echo last; {wait.format('never')}"
    call = {"id": "j", "name": "bash", "arguments": {"command": serve, "run_in_background": True}}
    world.script = [{"tool_calls": [call]}, {"text": "Started."}]
    world.agent_changes = {
        "tools": (Bash(patience_s=1),),
        "processes": processes,
        "files": LocalFiles(str(world.home)),
    }
    async with world.conversation() as talk:
        assert await talk.type("/jobs") == "No background job was started in this run."
        with pytest.raises(CommandError, match="none was started"):
            await talk.type("/jobs show job-1")
        await talk.prompt("serve")
        text = await until_shown(talk, "/jobs show job-1", "(nothing printed since it is in the background)")
        assert text.startswith("job-1  running, ")
        go.touch()
        text = await until_shown(talk, "/jobs show 1", "\n  last")
        assert text.startswith("job-1  running, ") and text.endswith("\n  first\n  \n  last")
        unread = await talk.session.session.jobs.read_output("job-1")
        assert b"first" in unread.printed and b"last" in unread.printed
        with pytest.raises(CommandError, match="no background job 'job-7' to end; running: job-1"):
            await talk.type("/jobs end job-7")
        assert "Ends with it: job-1 (echo begun" in (await talk.run("/clear")).text
        assert await talk.type("/jobs end job-1") == "Ended job-1."
        assert "ended by SIGTERM" in await talk.type("/jobs")
        with pytest.raises(CommandError, match="to end; none is running"):
            await talk.type("/jobs end job-1")
