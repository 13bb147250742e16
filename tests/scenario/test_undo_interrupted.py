"""An undo whose caller is cancelled is done to its end, and its session knows it."""

import asyncio
from pathlib import Path

import pytest
from undo_world import UndoWorld, WalkingChanges

from bradawl.core.workspace import Checkpoint
from bradawl.testing.fakes import RecordingEmit

DONE = {"text": "done"}


class WaitingChanges(WalkingChanges):
    """The search after an undo waits for the test."""

    def __init__(self, world: UndoWorld) -> None:
        super().__init__(world.root, world.store)
        self.is_reached, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        if owner == "undo" and not (self.root / "a").exists():
            self.is_reached.set()
            await self.may_go_on.wait()
        return await super().settle(owner)


async def test_a_cancelled_undo_is_logged_and_its_user_is_told(tmp_path: Path) -> None:
    world = UndoWorld(tmp_path)
    changes = WaitingChanges(world)
    agent, _ = world.agent([world.writing("one", "a", "1"), DONE], changes=changes)
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("one", emit)
        undo = world.undo(session)
        doing = asyncio.create_task(undo.carry_out(await undo.plan()))
        await changes.is_reached.wait()
        doing.cancel()
        await asyncio.sleep(0)
        changes.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await doing
        history = await undo.history()
        assert not (world.root / "a").exists() and history.has_undone and undo.unfinished(history) is None
        assert emit.warnings[-1:] == ("The undo was done before it could be interrupted.",)
        await undo.carry_out(await undo.plan_redo())
        assert (world.root / "a").read_text() == "1"
        undo.close()
    world.close()
