"""A workspace whose changes are recorded by a simple scanner, for tests of restoring."""

import os
from pathlib import Path
from typing import Self

from tree_changes import Tree, difference, scan

from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import RestorePlan, plan
from bradawl.checkpoints.store import ContentStore
from bradawl.sandbox.filesystem.tree_removal import remove_folder


class Workspace:
    """A folder, a store, and the records of what `changed` between two calls of it."""

    def __init__(self, folder: Path) -> None:
        self.top = folder / "workspace"
        self.top.mkdir()
        self.store = ContentStore(folder / "store")
        self.trees: list[Tree] = [self.scan()]
        self.records: list[ChangeRecord] = []

    def scan(self) -> Tree:
        return scan(self.top, self.store)

    def start(self) -> None:
        """Forget what was recorded."""
        self.trees, self.records = [self.scan()], []

    def changed(self) -> None:
        """Record what changed since the last call."""
        self.trees.append(self.scan())
        self.records.append(difference(self.trees[-2], self.trees[-1]))

    def plan(self) -> RestorePlan:
        return plan(self.store, self.records[::-1], [os.fsencode(self.top)])

    def path(self, name: str) -> bytes:
        return os.fsencode(self.top / name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        remove_folder(str(self.top))
