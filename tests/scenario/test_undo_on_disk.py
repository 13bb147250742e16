"""What an undo restored is on the disk before it counts as done, so that a loss of power loses nothing."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from undo_world import UndoWorld

from bradawl.app.undo import UndoStopped
from bradawl.testing.fakes import RecordingEmit

DONE = {"text": "done"}


def path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


class Disk:
    """Sees what is written to the disk, and refuses to write one file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.refused = ""
        self._fsync: Callable[[int], None] = os.fsync
        self._unlink = os.unlink
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "unlink", self.unlink)

    def fsync(self, descriptor: int) -> None:
        path = path_of(descriptor)
        if self.refused and path.endswith(self.refused):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fsync(descriptor)
        self.steps.append(path)

    def unlink(self, name: "str | bytes", *, dir_fd: int | None = None) -> None:
        self._unlink(name, dir_fd=dir_fd)
        if os.fsencode(name).endswith(b".restore"):
            self.steps.append("intent removed")


def make(root: Path) -> None:
    """Files and folders that the call removes or changes."""
    (root / "folder/inner").mkdir(parents=True)
    (root / "folder/inner/removed").write_text("removed")
    (root / "changed").write_text("before")
    (root / "link").symlink_to("changed")


def change(root: Path) -> None:
    """What the call does."""
    (root / "folder/inner/removed").unlink()
    (root / "folder/inner").rmdir()
    (root / "changed").write_text("after")
    (root / "link").unlink()
    (root / "other").mkdir()
    (root / "other/made").write_text("made")


async def test_files_and_folders_are_on_the_disk_before_the_undo_counts_as_done(tmp_path, monkeypatch) -> None:
    world = UndoWorld(tmp_path)
    make(world.root)
    agent, _ = world.agent([world.doing("one", lambda: change(world.root)), DONE])
    async with agent.open() as session:
        await session.run("one", RecordingEmit())
        with world.undo(session) as undo:
            plan = await undo.plan()
            disk = Disk(monkeypatch)
            await undo.carry_out(plan)
    steps = disk.steps[: disk.steps.index("intent removed")]
    for name in ("changed", "folder/inner/removed", "folder/inner", "folder", ""):
        assert str(world.root / name) in steps, name
    world.close()


async def test_an_undo_whose_files_can_not_be_written_is_not_finished_and_can_be_repeated(tmp_path, monkeypatch):
    world = UndoWorld(tmp_path)
    make(world.root)
    agent, _ = world.agent([world.doing("one", lambda: change(world.root)), DONE])
    async with agent.open() as session:
        await session.run("one", RecordingEmit())
        undo = world.undo(session)
        disk = Disk(monkeypatch)
        disk.refused = "/project/changed"
        with pytest.raises(
            UndoStopped, match=r"not certain that they are on the disk: Input/output error: '.*/changed'"
        ):
            await undo.carry_out(await undo.plan())
        history = await undo.history()
        assert undo.unfinished(history) is not None and not history.has_undone
        disk.refused = ""
        disk.steps.clear()
        await undo.carry_out(await undo.plan())
        assert str(world.root / "changed") in disk.steps, "also what the first run restored"
        history = await undo.history()
        assert undo.unfinished(history) is None and history.has_undone
        assert (world.root / "changed").read_text() == "before"
        undo.close()
    world.close()
