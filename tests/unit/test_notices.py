"""Each warning arrives exactly once: in a conversation, in a headless run, in a command, and at an embedder."""

import io
from pathlib import Path

import pytest
from cli_world import World

from bradawl.agent.agent import Agent
from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.core.deltas import Notice
from bradawl.core.events import Live
from bradawl.core.ports import OpenSession
from bradawl.testing.fakes import MemoryStore, RecordingEmit, ScriptedApprover

FROM_SETTINGS = "not a regular file"
FROM_STORE = "the end of the log was mended"
FROM_TURN = "The system prompt of this session is lost"
FROM_START = "NO SANDBOX"


class MendingStore(MemoryStore):
    """A store that warns with each session it opens again, and has lost the texts of the session."""

    def open(self, session_id: str) -> OpenSession:
        """The session, without its stored texts."""
        opened = super().open(session_id)
        return OpenSession(opened.log, MemoryStore().blobs, opened.entries, (FROM_STORE,))


@pytest.fixture
def project(world: World) -> Path:
    """A project whose settings file is a folder."""
    folder = world.home / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".bradawl" / "config.toml").mkdir(parents=True)
    return folder


@pytest.fixture
def session_id(world: World) -> str:
    """A session in the world's store, which warns when the session is opened again."""
    world.store = MendingStore()
    assert world.run("-p", "go", "--sandbox", "off") == 0
    world.stdout, world.stderr = io.StringIO(), io.StringIO()
    return world.store.latest() or ""


@pytest.mark.parametrize(
    ("argv", "typed", "of_turn"),
    [
        ((), "go on\nand on\n", 1),
        (("-p", "go on"), "", 1),
        (("-p", "go on", "--output-format", "json"), "", 1),
        (("-p", "/status"), "", 0),
    ],
    ids=["conversation", "headless", "json", "slash command"],
)
def test_each_warning_of_a_run_is_printed_once_and_to_stderr(world, project, session_id, argv, typed, of_turn):
    world.script = [{"text": "One."}, {"text": "Two."}]
    assert world.run("-C", str(project), "-r", session_id, *argv, stdin=typed) == 0
    warnings = (FROM_SETTINGS, FROM_STORE, FROM_TURN, FROM_START)
    assert [world.err.count(text) for text in warnings] == [1, 1, of_turn, of_turn], world.err
    assert not any(text in world.out for text in warnings)


@pytest.mark.parametrize(
    "argv", [["trust"], ["trust", "--show"], ["models", "openai"], ["models", "openai", "--json"]], ids=" ".join
)
def test_each_warning_of_a_command_is_printed_once_and_to_stderr(world, project, monkeypatch, argv):
    monkeypatch.chdir(project)
    environ = {"HOME": str(world.home), "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    run(argv, environ, Console(io.StringIO(), world.stdout, world.stderr, environ))
    noted = [line for line in world.err.splitlines() if line.startswith("note: ") and FROM_SETTINGS in line]
    assert len(noted) == 1, world.err
    assert "note: " not in world.out


def agent_of(world: World) -> Agent:
    """An agent as an embedder has it."""
    world.script = [{"text": "One."}, {"text": "Two."}]
    settings = type("Settings", (), {"yolo": True, "max_steps": None})()
    return world.build(settings, ScriptedApprover())


async def test_an_embedder_gets_each_warning_once_with_the_events(world, session_id):
    items = [each async for each in agent_of(world).stream("go on", session_id)]
    texts = [each.item.text for each in items if isinstance(each, Live) and isinstance(each.item, Notice)]
    assert [text[:20] for text in texts] == [FROM_STORE[:20], FROM_TURN[:20]]


async def test_a_warning_waits_for_the_first_turn_that_shows_events(world, session_id):
    emit = RecordingEmit()
    async with agent_of(world).open(session_id) as session:
        await session.run("go on")
        assert not emit.warnings
        await session.run("and on", emit)
        assert len(emit.warnings) == 2
        session.show_with(emit)
    assert len(emit.warnings) == 2
