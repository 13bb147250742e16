"""Random changes of random trees are undone to identical bytes and modes, step by step and at once, and redone."""

import os
import random
from pathlib import Path

import pytest
import tree_changes
from tree_changes import Tree, scan

from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import RestorePlan, apply, plan
from bradawl.checkpoints.store import ContentStore

CASES = int(os.environ.get("BRADAWL_RESTORE_CASES", "400"))
GROUPS = 10


def undo(store: ContentStore, records: list[ChangeRecord], top: Path) -> ChangeRecord:
    made: RestorePlan = plan(store, records, [os.fsencode(top)])
    assert (made.conflicts, made.impossible) == ((), ())
    done = apply(made, store)
    # A name of a file whose other names did not change must become a file of its own, which is said.
    assert all("(hard links)" in sentence for sentence in done.uncovered)
    return done


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", range(GROUPS))
def test_random_changes_are_undone_and_redone(tmp_path: Path, group: int):
    with ContentStore(tmp_path / "store") as store:
        for case in range(CASES // GROUPS):
            top = tmp_path / f"tree{case}"
            top.mkdir()
            check(random.Random(group * 1_000_000 + case), top, store)  # noqa: S311 a repeatable test
            with tree_changes.all_open(top):
                tree_changes.remove_tree(top)


def check(choice: random.Random, top: Path, store: ContentStore) -> None:
    for _ in range(choice.randrange(12)):
        tree_changes.random_change(choice, top)
    trees: list[Tree] = [scan(top, store)]
    records: list[ChangeRecord] = []
    for _ in range(choice.randrange(1, 6)):
        for _ in range(choice.randrange(1, 5)):
            tree_changes.random_change(choice, top)
        trees.append(scan(top, store))
        records.append(tree_changes.difference(trees[-2], trees[-1]))
    undone_at_once = undo(store, records[::-1], top)
    assert scan(top, store) == trees[0]
    undo(store, [undone_at_once], top)
    assert scan(top, store) == trees[-1]
    redo: list[ChangeRecord] = []
    for record, tree in zip(records[::-1], trees[-2::-1], strict=True):
        redo.append(undo(store, [record], top))
        assert scan(top, store) == tree
    for record, tree in zip(redo[::-1], trees[1:], strict=True):
        undo(store, [record], top)
        assert scan(top, store) == tree
