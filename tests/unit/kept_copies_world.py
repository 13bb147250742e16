"""A workspace with small limits, for tests of renamed files and folders whose contents are not saved."""

import os
import time
from pathlib import Path

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import RestorePlan, apply, plan
from bradawl.checkpoints.store import ContentStore
from bradawl.checkpoints.tree import WorkspaceTree

LIMITS = Coverage(file_bytes=1_000)
BIG, OTHER_BIG = b"b" * 2_000, b"o" * 2_000


class Work:
    """A workspace with small limits, its index, and the records of what `call` found."""

    def __init__(self, folder: Path, limits: Coverage = LIMITS) -> None:
        self.top = folder / "work"
        self.top.mkdir()
        self.store = ContentStore(folder / "store")
        self.limits = limits
        self.records: list[ChangeRecord] = []
        self.sentences: tuple[str, ...] = ()
        self.tree: WorkspaceTree | None = None

    def start(self) -> None:
        """List and save what exists now."""
        self.tree = WorkspaceTree((str(self.top),), self.store, self.limits)
        assert self.tree.baseline(time.monotonic() + 60)

    def call(self) -> None:
        """Record what has changed."""
        assert self.tree is not None
        found, self.sentences = self.tree.changes()
        self.records.append(ChangeRecord(str(len(self.records)), 1, found, self.sentences))

    def plan(self, records: list[ChangeRecord] | None = None) -> RestorePlan:
        return plan(self.store, self.records[::-1] if records is None else records, [os.fsencode(self.top)])

    def undo(self) -> ChangeRecord:
        return apply(self.plan(), self.store)

    def redo(self, record: ChangeRecord) -> ChangeRecord:
        return apply(self.plan([record]), self.store)

    def __truediv__(self, name: str) -> Path:
        return self.top / name

    def path(self, name: str) -> bytes:
        return os.fsencode(self.top / name)

    def state(self) -> dict[str, tuple[int, int, bytes]]:
        """Mode, inode and content by relative path; the inode only of what is not saved."""
        found: dict[str, tuple[int, int, bytes]] = {}
        for folder, folders, files in os.walk(self.top):
            for name in (*folders, *files):
                path = Path(folder, name)
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else b""
                is_large = len(content) > self.limits.file_bytes
                found[str(path.relative_to(self.top))] = (status.st_mode, status.st_ino if is_large else 0, content)
        return found

    def close(self) -> None:
        if self.tree is not None:
            self.tree.close()
        self.store.close()


def check_undo_and_redo(work: Work, before: dict[str, tuple[int, int, bytes]]) -> None:
    after = work.state()
    planned = work.plan()
    assert not planned.conflicts and not planned.impossible and not planned.lost
    undone = work.undo()
    assert undone.uncovered == ()
    assert work.state() == before
    redone = work.redo(undone)
    assert redone.uncovered == ()
    assert work.state() == after
    work.undo()
    assert work.state() == before


def make_packages(work: Work, name: str = "node_modules") -> None:
    (work / name / "x").mkdir(parents=True)
    (work / name / "x/i.js").write_bytes(b"1")
