"""The search process at its start: restores that were killed are reported, and their temporary files removed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bradawl.agent.changes import UnsavedChanges
from bradawl.checkpoints.client import LocalChanges
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.restore_intent import RestoreIntent, RestoreIntents
from bradawl.checkpoints.store import ContentStore
from bradawl.core.workspace import Checkpoint

TEMPORARY = b".bradawl-0123456789abcdef.tmp"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ContentStore]:
    with ContentStore(tmp_path / "checkpoints") as store:
        yield store


async def test_a_killed_restore_is_reported_until_its_session_goes_on(tmp_path: Path, store: ContentStore) -> None:
    root = tmp_path / "ws"
    (root / "closed").mkdir(parents=True)
    (root / "closed").chmod(0o700)
    (root / os.fsdecode(TEMPORARY)).write_text("half")
    (root / ".bradawl-fedcba9876543210.tmp").write_text("the user's")
    record = ChangeRecord("", 1, (Change(os.fsencode(root / "file"), None, FileState("file", 0o644, "ab" * 32, 1)),))
    ref = store.save_record(record)
    store.flush()
    opened = ((os.fsencode(root / "closed"), 0o500),)
    intents = RestoreIntents(store.folder)
    intents.write(RestoreIntent("S1", "undo", "both", 3, 9, "2", ref, TEMPORARY, opened))

    async def warnings_of(*calls: str) -> list[str]:
        said: list[str] = []
        changes = LocalChanges((str(root),), str(tmp_path / "checkpoints"), environment={}, notify=said.append)
        try:
            for call in calls:
                await changes.begin(call, None)
                changes.end(call)
            await changes.settle()
        finally:
            changes.close()
        return said

    assert await warnings_of("S2.main/c1") == [], "the restore runs"
    assert (root / os.fsdecode(TEMPORARY)).exists()
    intents.close()
    (said,) = await warnings_of("S2.main/c1")
    assert "An undo to before step 2 of session S1 stopped in the middle" in said
    assert "`bradawl undo S1` finishes it, `bradawl undo S1 --redo` takes it back" in said
    assert not (root / os.fsdecode(TEMPORARY)).exists()
    assert (root / ".bradawl-fedcba9876543210.tmp").read_text() == "the user's"
    assert stat.S_IMODE((root / "closed").stat().st_mode) == 0o500
    (root / "closed").chmod(0o700)
    assert len(await warnings_of("S11.main/c1", "undo/restore")) == 1
    assert len(await warnings_of("S1.main/c1")) == 1, "the last time"
    assert intents.read("S1") is None
    assert await warnings_of("S1.main/c1") == []


async def test_without_undo_each_call_gets_a_checkpoint_of_its_owner() -> None:
    changes = UnsavedChanges("its changes are not saved.")
    assert await changes.begin("S.main/1", None) == ()
    changes.end("S.main/1")
    changes.end("S.agent/2")
    assert await changes.begin("S.main/3", ("/ws/a",)) == (Checkpoint("1", "", "its changes are not saved."),)
    assert await changes.settle("S.main") == ()
    assert await changes.settle("S.agent") == (Checkpoint("2", "", "its changes are not saved."),)
    assert not await changes.covers()
