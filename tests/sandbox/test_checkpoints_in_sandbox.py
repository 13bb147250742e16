"""Commands in bubblewrap: what they changed is found, and they can't reach what is saved for undo."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bwrap import needs_bwrap

from bradawl import ModelSettings, Settings, build_agent
from bradawl.agent.agent import Agent
from bradawl.app.build.workspace import folders_of
from bradawl.checkpoints.store import ContentStore
from bradawl.core.events import CheckpointTaken, Envelope, ToolFinished
from bradawl.core.messages import Text

pytestmark = needs_bwrap


class SandboxedProject:
    """A workspace whose agent runs its scripted commands in bubblewrap."""

    def __init__(self, place: Path) -> None:
        self.place, self.root = place, place / "work"
        self.root.mkdir()
        self.agents: list[Agent] = []

    def settings(self, *lines: str | dict[str, Any], **changes: Any) -> Settings:
        given = [{"command": line} if isinstance(line, str) else line for line in lines]
        script = [
            {"tool_calls": [{"id": f"c{n}", "name": "bash", "arguments": arguments}]}
            for n, arguments in enumerate(given)
        ]
        (self.place / "script.json").write_text(json.dumps([*script, {"text": "done"}]))
        standard = {
            "model": ModelSettings("scripted", str(self.place / "script.json")),
            "cwd": str(self.root),
            "home": str(self.place / "data"),
            "user_home": str(self.place),
            "environment": {"HOME": str(self.place), "PATH": os.environ["PATH"]},
            "sandbox": "required",
            "user_tools": False,
        }
        return Settings(**{**standard, **changes})

    async def run(self, *lines: str | dict[str, Any], **changes: Any) -> list[Envelope]:
        """The entries of a session in which the model calls bash with each of the lines."""
        agent = build_agent(self.settings(*lines, **changes))
        entries: list[Envelope] = []
        try:
            async with agent.open() as session:
                await session.run("go", lambda item: entries.append(item) if isinstance(item, Envelope) else None)
        finally:
            await agent.aclose()
        return entries

    @property
    def checkpoints(self) -> Path:
        return Path(folders_of(self.settings()).checkpoints)

    def changed(self, entries: list[Envelope]) -> dict[str, list[str]]:
        with ContentStore(self.checkpoints) as store:
            return {
                entry.event.call_id: [
                    os.path.relpath(os.fsdecode(change.path), self.root)
                    for change in store.record(entry.event.checkpoint_ref).changes
                ]
                for entry in entries
                if isinstance(entry.event, CheckpointTaken) and entry.event.checkpoint_ref
            }


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SandboxedProject]:
    yield SandboxedProject(Path(os.path.realpath(tmp_path)))


def outputs(entries: list[Envelope]) -> list[str]:
    finished = [entry.event for entry in entries if isinstance(entry.event, ToolFinished)]
    return ["".join(part.text for part in event.shown if isinstance(part, Text)) for event in finished]


async def test_a_command_is_credited_with_its_changes_and_with_nothing_of_the_sandbox(project: SandboxedProject):
    (project.root / "old").write_text("1")
    entries = await project.run("echo hi > new; rm old", "true", "git init -q . && git status --short", "touch last")
    changed = project.changed(entries)
    assert changed["c0"] == ["new", "old"] and changed["c3"] == ["last"] and "c1" not in changed
    assert all(path == ".git" or path.startswith(".git/") for path in changed["c2"])


async def test_the_placeholders_of_a_running_job_are_no_changes(project: SandboxedProject):
    """They exist while the other commands are searched, and until the session is left."""
    job = {"command": "touch of-job; sleep 30", "run_in_background": True}
    wait = "until [ -e of-job ]; do sleep 0.01; done; mkdir empty; touch nothing"
    entries = await project.run("git init -q .", job, wait, "mkdir .other; : > of-c3")
    changed = project.changed(entries)
    found = sorted(path for call in ("c1", "c2", "c3") for path in changed.get(call, ()))
    assert found == [".other", "empty", "nothing", "of-c3", "of-job"]


async def test_the_placeholders_of_another_session_are_no_changes(project: SandboxedProject):
    settings = project.settings({"command": "touch by-other; sleep 30", "run_in_background": True})
    script = (project.place / "script.json").rename(project.place / "other.json")
    other = build_agent(msgspec.structs.replace(settings, model=ModelSettings("scripted", str(script))))
    lines = ("echo 1 > mine; until [ -e by-other ]; do sleep 0.01; done", "echo 2 > mine; touch empty")
    try:
        async with other.open() as session:
            run = asyncio.create_task(project.run(*lines))
            while not (project.root / "mine").exists():  # noqa: ASYNC110 - made by another process
                await asyncio.sleep(0.01)
            await session.run("go")
            changed = project.changed(await run)
            names = {path.name for path in project.root.iterdir()}
            assert names > {"by-other", "empty", "mine"}, "the other session holds placeholders"
    finally:
        await other.aclose()
    assert changed == {"c0": ["by-other", "mine"], "c1": ["empty", "mine"]}


async def test_a_command_can_not_reach_what_is_saved(project: SandboxedProject):
    (project.root / "notes").write_text("TOP-SECRET")
    entries = await project.run(
        "echo changed > notes",
        "cd ..; find . -name '*.pack'; find . -type f -exec grep -l TOP-[S]EC {} +; echo searched",
        "cd ..; python3 -c 'import shutil; shutil.rmtree(\"data\", True)'; echo tried",
        "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done; echo listed",
    )
    changed, looked, removed, listed = outputs(entries)
    assert "[exit code 0]" in changed, changed
    assert looked.splitlines()[0] == "searched" and "tried" in removed
    assert "listed" in listed and "checkpoints.worker" not in listed
    assert project.changed(entries)["c0"] == ["notes"]
    with ContentStore(project.checkpoints) as store:
        (change,) = store.record(next(refs(entries))).changes
        assert change.before is not None and store.read(change.before.content) == b"TOP-SECRET"


def refs(entries: list[Envelope]) -> Iterator[str]:
    return (entry.event.checkpoint_ref for entry in entries if isinstance(entry.event, CheckpointTaken))


async def test_nothing_is_saved_or_started_with_undo_switched_off(project: SandboxedProject):
    entries = await project.run("echo hi > new", undo=False)
    assert (project.root / "new").exists() and not project.checkpoints.exists()
    assert not any(refs(entries))
