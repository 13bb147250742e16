"""Neither undo nor redo completes a repository from parts unasked, if git would run a program from it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from undo_world import UndoWorld

from bradawl.app.undo import UndoRefused
from bradawl.app.undo_text import plan_text

DONE = {"text": "done"}
ARMED = '[core]\n\tfsmonitor = "touch x; false"\n'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[UndoWorld]:
    world = UndoWorld(tmp_path)
    yield world
    world.close()


async def test_the_user_is_asked_about_the_part_that_completes_it(world: UndoWorld) -> None:
    data = world.root / "d"

    def plant() -> None:
        world.write("d/HEAD", "ref: refs/heads/main\n")
        world.write("d/config", ARMED)
        (data / "refs").mkdir()

    def split() -> None:
        (data / "HEAD").unlink()
        (data / "objects").mkdir()

    agent, _ = world.agent([world.doing("plant", plant), DONE, world.doing("split", split), DONE])
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        world.write("d/objects/own.txt", "the user's")
        plan = await undo.plan()
        assert "! d/HEAD: git would take the folder for a repository" in plan_text(plan, undo.root)
        with pytest.raises(UndoRefused):
            await undo.carry_out(plan)
        await undo.carry_out(plan, keep_conflicts=True)
        assert not (data / "HEAD").exists()


async def test_a_redo_asks_as_well(world: UndoWorld) -> None:
    data = world.root / "d"

    def plant() -> None:
        world.write("d/HEAD", "ref: refs/heads/main\n")
        world.write("d/config", ARMED)
        (data / "refs").mkdir()

    agent, _ = world.agent([world.doing("plant", plant), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan())
        assert not data.exists()
        (data / "objects").mkdir(parents=True)
        plan = await undo.plan_redo()
        assert "! d/HEAD: git would take the folder for a repository" in plan_text(plan, undo.root)
        shutil.rmtree(data)
        await undo.carry_out(await undo.plan_redo())
        assert (data / "HEAD").exists()
