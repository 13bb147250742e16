"""The log names what each call changed: real tools, files, processes, and the real search process."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import build
from scripted_subagents import TwoScripts, entries_of, task

from bradawl.agent.agent import Agent
from bradawl.checkpoints.client import LocalChanges
from bradawl.checkpoints.store import ContentStore
from bradawl.core.events import (
    CallPrepared,
    CheckpointTaken,
    Envelope,
    Event,
    JobEnded,
    PromptSubmitted,
    ToolFinished,
    TurnFinished,
)
from bradawl.folds.undo_history import undo_history
from bradawl.testing.fakes import MemoryStore
from bradawl.tools.agent import AgentTool
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.machine import SystemClock
from bradawl.workspace.processes import LocalProcesses

Script = list[dict[str, Any]]


class Project:
    """A workspace with an agent whose model follows a script."""

    def __init__(self, place: Path) -> None:
        self.root, self.folder = place / "project", place / "data/checkpoints"
        self.root.mkdir()
        self.store = MemoryStore()
        self.warnings: list[str] = []

    def agent(self, script: Script, sub: Script | None = None) -> Agent:
        processes = LocalProcesses({"PATH": os.environ["PATH"]})
        changes = LocalChanges((str(self.root),), str(self.folder), notify=self.warnings.append)

        def close() -> None:
            changes.close()
            processes.close()

        agent, *_ = build(
            [],
            model=TwoScripts(script, sub or []),
            tools=(Bash(), ReadFile(), EditFile(), WriteFile(), AgentTool()),
            files=LocalFiles(home=str(self.root)),
            processes=processes,
            project=str(self.root),
            store=self.store,
            clock=SystemClock(),
            changes=changes,
            on_close=close,
        )
        return agent

    async def run(self, script: Script, sub: Script | None = None) -> None:
        async with closed(self.agent(script, sub)) as agent:
            assert (await agent.run("go")).reason == "completed"

    @property
    def events(self) -> list[Event]:
        return [entry.event for entry in entries_of(self.store)]

    def leave_log(self, entries: Sequence[Envelope]) -> None:
        """Leave these entries of the session, as a killed program leaves them."""
        (name,) = self.store.logs
        self.store.history[name] = ()
        self.store.logs[name].entries[:] = entries

    def changed(self, agent: str | None = None) -> dict[str, list[str]]:
        """By call id the changed paths, relative to the workspace, in the order of the log."""
        found: dict[str, list[str]] = {}
        with ContentStore(self.folder) as store:
            for entry in entries_of(self.store, agent):
                if isinstance(entry.event, CheckpointTaken) and entry.event.checkpoint_ref:
                    changes = store.record(entry.event.checkpoint_ref).changes
                    paths = [os.path.relpath(os.fsdecode(change.path), self.root) for change in changes]
                    found.setdefault(entry.event.call_id, []).extend(paths)
        return found


@contextlib.asynccontextmanager
async def closed(agent: Agent) -> AsyncIterator[Agent]:
    try:
        yield agent
    finally:
        await agent.aclose()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def tool(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def bash(call_id: str, command: str, **arguments: Any) -> dict[str, Any]:
    return tool(call_id, "bash", command=command, **arguments)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens in another process."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing in this process is informed
            await asyncio.sleep(0.01)


async def test_each_call_is_credited_with_its_changes(project: Project):
    (project.root / "a").write_text("one\n")
    await project.run(
        [
            {"tool_calls": [tool("read", "read_file", file_path="a")]},
            {"tool_calls": [tool("edit", "edit_file", file_path="a", old_string="one", new_string="two")]},
            {"tool_calls": [tool("write", "write_file", file_path="new/b", content="b")]},
            {"tool_calls": [bash("shell", "mv a c; mkdir empty; for i in 1 2; do echo $i > $i; done")]},
            {"tool_calls": [bash("look", "ls")]},
            {"text": "done"},
        ]
    )
    assert project.changed() == {
        "edit": ["a"],
        "write": ["new", "new/b"],
        "shell": ["1", "2", "a", "c", "empty"],
    }
    assert isinstance(project.events[-1], TurnFinished) and project.warnings == []


@pytest.mark.parametrize("_", range(20))
async def test_calls_of_one_reply_are_credited_with_their_own_changes(project: Project, _: int):
    calls = [tool(name, "write_file", file_path=f"{name}/file", content=name) for name in ("one", "two", "three")]
    await project.run([{"tool_calls": calls}, {"text": "done"}])
    assert project.changed() == {name: [name, f"{name}/file"] for name in ("one", "two", "three")}


async def test_a_job_is_credited_with_what_it_changes_until_it_ends(project: Project):
    line = (
        "echo 1 > first; until [ -e go ]; do sleep 0.01; done; echo 2 > second; until [ -e stop ]; do sleep 0.01; done"
    )
    script = [
        {"tool_calls": [bash("job", line, run_in_background=True)]},
        {"tool_calls": [bash("wait", "until [ -s first ]; do sleep 0.01; done")]},
        {"tool_calls": [bash("other", "echo x > mine; echo > go; until [ -s second ]; do sleep 0.01; done")]},
        {"tool_calls": [bash("stop", "echo > stop")]},
        {"text": "done"},
    ]
    async with closed(project.agent(script)) as agent, agent.open() as session:
        await session.run("go")
        await until(lambda: any(isinstance(event, JobEnded) for event in project.events))
    changed = project.changed()
    assert changed["other"] == ["go", "mine", "second"]  # it ended before the job
    assert sorted(path for paths in changed.values() for path in paths) == ["first", "go", "mine", "second", "stop"]
    assert "first" in (*changed.get("job", ()), *changed.get("wait", ()))


async def test_calls_with_the_id_of_a_call_whose_job_runs_are_credited_apart_from_the_job(project: Project):
    over = project.root.with_name("over")  # made when no call runs: what the job does then is certainly its own
    line = f"echo 1 > first; until [ -e {over} ]; do sleep 0.01; done; echo 2 > second"
    script = [
        {"tool_calls": [bash("same", line, run_in_background=True)]},
        {"tool_calls": [bash("same", "until [ -s first ]; do sleep 0.01; done; echo x > mine")]},
        {"tool_calls": [bash("same", "rm mine")]},
        {"text": "done"},
    ]
    async with closed(project.agent(script)) as agent, agent.open() as session:
        await session.run("go")
        over.touch()
        await until(lambda: any(isinstance(event, JobEnded) for event in project.events))
    entries = entries_of(project.store)
    applied = undo_history(entries).applied
    assert all(each.is_known for each in applied), applied
    by_call: dict[int, set[str]] = {}
    with ContentStore(project.folder) as store:
        for each in applied:
            changes = store.record(each.ref).changes
            paths = {os.path.relpath(os.fsdecode(change.path), project.root) for change in changes}
            by_call.setdefault(each.prepared, set()).update(paths)
    prepared = [entry.seq for entry in entries if isinstance(entry.event, CallPrepared)]
    of_job, made, removed = (by_call[each] for each in prepared)
    assert "mine" in made and "mine" in removed and "mine" not in of_job and "second" in of_job
    assert "second" not in made | removed
    refs = [each.ref for each in applied]
    assert len(refs) == len(set(refs))
    jobs = {each.prepared: each.job is not None for each in applied}
    assert [jobs[each] for each in prepared] == [True, False, False]


async def test_a_job_that_ends_with_the_session_is_credited_at_its_close(project: Project):
    line = "trap 'echo bye > last; exit' TERM; echo 1 > ready; while :; do sleep 0.01; done"
    script = [
        {"tool_calls": [bash("job", line, run_in_background=True)]},
        {"tool_calls": [bash("wait", "while [ ! -s ready ]; do sleep 0.01; done")]},
        {"text": "done"},
    ]
    async with closed(project.agent(script)) as agent, agent.open() as session:
        await session.run("go")
    assert "last" in project.changed()["job"]


async def test_a_call_of_a_sub_agent_is_credited_in_the_log_of_the_sub_agent(project: Project):
    sub = [{"tool_calls": [bash("same-id", "echo sub > by-sub")]}, {"text": "did it"}]
    main = [
        {"tool_calls": [bash("same-id", "echo main > by-main")]},
        {"tool_calls": [task("spawn", "do it")]},
        {"text": "done"},
    ]
    await project.run(main, sub)
    assert project.changed("main") == {"same-id": ["by-main"]}
    (name,) = {entry.agent for entry in entries_of(project.store)} - {"main"}
    assert project.changed(name) == {"same-id": ["by-sub"]}


async def test_a_cancelled_command_is_credited_with_what_it_had_done(project: Project):
    script = [{"tool_calls": [bash("slow", "echo 1 > half; sleep 30; echo 2 > rest")]}, {"text": "never"}]
    async with closed(project.agent(script)) as agent, agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await until((project.root / "half").exists)
        session.cancel()
        assert (await turn).reason == "cancelled"
    assert project.changed() == {"slow": ["half"]}
    kinds = [type(event) for event in project.events]
    assert kinds[-1] is TurnFinished and kinds.index(ToolFinished) < kinds.index(CheckpointTaken)


async def killed_in_a_call(project: Project) -> tuple[str, list[Envelope]]:
    """Leave a session as a program leaves it that is killed while its call `cut` runs. Returns its id and its log."""
    (project.root / "a").write_text("before")
    agent = project.agent([{"tool_calls": [bash("cut", "echo x > a; sleep 30")]}, {"text": "never"}])
    assert isinstance(agent.changes, LocalChanges)
    async with closed(agent), agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await until(lambda: (project.root / "a").read_text() == "x\n")
        agent.changes.close()  # as if the agent had died: the call has not ended
        entries = [each for each in entries_of(project.store) if not isinstance(each.event, ToolFinished)]
        session.cancel()
        await turn
    project.leave_log(entries)
    return session.id, entries


async def test_what_an_interrupted_call_changed_is_logged_when_the_session_is_resumed(project: Project):
    name, _ = await killed_in_a_call(project)
    async with closed(project.agent([{"text": "resumed"}])) as again, again.open(name) as session:
        await session.run("go on")
    assert project.changed() == {"cut": ["a"]}
    (taken,) = [event for event in project.events if isinstance(event, CheckpointTaken)]
    assert "by the user since" in taken.uncovered


@pytest.mark.parametrize("last", [TurnFinished, PromptSubmitted])
async def test_what_an_interrupted_call_changed_is_logged_although_the_resume_is_killed_too(
    project: Project, last: type[Event]
):
    name, entries = await killed_in_a_call(project)
    async with closed(project.agent([{"text": "resumed"}])) as again, again.open(name) as resumed:
        await resumed.run("go on")
    assert project.changed() == {"cut": ["a"]}
    later = entries_of(project.store)[len(entries) :]
    killed_at = next(number for number, each in enumerate(later, 1) if isinstance(each.event, last))
    project.leave_log([*entries, *later[:killed_at]])
    assert project.changed() == {}
    async with closed(project.agent([])) as again, again.open(name) as resumed:
        await resumed.log_changes()
    assert project.changed() == {"cut": ["a"]}


async def test_without_the_process_calls_run_and_say_that_nothing_is_saved(project: Project, tmp_path: Path):
    agent = project.agent([{"tool_calls": [bash("c", "echo x > a")]}, {"text": "done"}])
    broken = LocalChanges(
        (str(project.root),), str(project.folder), interpreter="/nowhere", notify=project.warnings.append
    )
    agent = Agent(
        **{name: getattr(agent, name) for name in agent.__struct_fields__ if name != "changes"}, changes=broken
    )
    async with closed(agent):
        assert (await agent.run("go")).reason == "completed"
    (taken,) = [event for event in project.events if isinstance(event, CheckpointTaken)]
    assert not taken.checkpoint_ref and "Undo can't restore it" in taken.uncovered
    assert (project.root / "a").read_text() == "x\n" and len(project.warnings) == 1
    assert json.dumps(project.warnings).count("can't be undone") == 1


async def test_a_search_that_takes_too_long_is_logged_as_unknown_and_again_when_it_ends(monkeypatch, tmp_path):
    project = Project(tmp_path)
    monkeypatch.setattr("bradawl.checkpoints.client.SETTLE_S", 0.2)
    writing = {"id": "w", "name": "write_file", "arguments": {"file_path": "a", "content": "1"}}
    async with closed(project.agent([{"tool_calls": [writing]}, {"text": "done"}, {"text": "again"}])) as agent:
        changes = agent.changes
        assert isinstance(changes, LocalChanges)
        end = changes.end

        def stop_and_end(call_id: str) -> None:
            assert changes.pid is not None
            os.kill(changes.pid, signal.SIGSTOP)
            end(call_id)

        monkeypatch.setattr(changes, "end", stop_and_end)
        async with agent.open() as session:
            await session.run("go")
            (unknown,) = (each for each in project.events if isinstance(each, CheckpointTaken))
            assert (unknown.call_id, unknown.checkpoint_ref) == ("w", "") and "not known" in unknown.uncovered
            assert changes.pid is not None
            os.kill(changes.pid, signal.SIGCONT)
            await session.run("go on")
    assert project.changed() == {"w": ["a"]}
