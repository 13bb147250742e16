"""What undo makes again has the owner that it had."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from restored_workspace import Workspace
from without_root_rights import owners_stay

from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import apply, plan
from bradawl.checkpoints.tree import WorkspaceTree

ALICE, BOB = (1234, 1235), (2345, 2346)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root owns files of others")


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path.resolve()) as made:
        yield made


def owners(top: Path) -> dict[str, tuple[int, int]]:
    return {str(path.relative_to(top)): (path.lstat().st_uid, path.lstat().st_gid) for path in top.rglob("*")}


def make(top: Path) -> None:
    """A folder of Alice's, with entries of hers, of Bob's and of root's."""
    (top / "folder/of bob").mkdir(parents=True)
    for name in ("edited", "replaced", "removed", "folder/of bob/file", "folder/secret of root"):
        (top / name).write_text("old")
    (top / "link").symlink_to("nowhere")
    for name in ("", "edited", "folder"):
        os.chown(top / name, *ALICE)
    for name in ("replaced", "removed", "folder/of bob", "folder/of bob/file", "link"):
        os.chown(top / name, *BOB, follow_symlinks=False)


def change(top: Path) -> None:
    """Remove all entries but one, and replace one by a file of root's."""
    (top / "edited").write_text("new")
    (top / "new").write_text("new")
    (top / "new").rename(top / "replaced")
    for name in ("removed", "folder/of bob/file", "folder/secret of root", "link"):
        (top / name).unlink()
    (top / "folder/of bob").rmdir()
    (top / "folder").rmdir()


def changed(work: Workspace) -> ChangeRecord:
    """Make and change the files; what a search records."""
    make(work.top)
    tree = WorkspaceTree((str(work.top),), work.store)
    try:
        assert tree.baseline(time.monotonic() + 60)
        change(work.top)
        return ChangeRecord("call", 0, tree.changes()[0])
    finally:
        tree.close()


def test_root_gives_back_what_belonged_to_others_and_to_itself_and_redo_does_too(work: Workspace) -> None:
    record, roots = changed(work), [os.fsencode(work.top)]
    after = owners(work.top)
    undone = apply(plan(work.store, [record], roots), work.store)
    assert undone.uncovered == ()
    found = owners(work.top)
    assert {name for name, owner in found.items() if owner == ALICE} == {"edited", "folder"}
    assert {name for name, owner in found.items() if owner == (0, 0)} == {"folder/secret of root"}
    assert {owner for name, owner in found.items() if name not in ("edited", "folder", "folder/secret of root")} == {
        BOB
    }
    redone = apply(plan(work.store, [undone], roots), work.store)
    assert redone.uncovered == () and owners(work.top) == after


def test_an_owner_that_can_not_be_given_is_said(work: Workspace) -> None:
    record = changed(work)
    with owners_stay():
        undone = apply(plan(work.store, [record], [os.fsencode(work.top)]), work.store)
    assert (work.top / "folder/of bob/file").read_text() == "old"
    said = "was restored, but not its owner (user 2345, group 2346): only root may give files to other users."
    assert f"{str(work.top / 'folder/of bob')!r} {said}" in undone.uncovered
    assert f"{str(work.top / 'link')!r} {said}" in undone.uncovered
    assert not any("edited" in sentence for sentence in undone.uncovered)


def test_an_owner_alone_that_changes_is_no_change(work: Workspace) -> None:
    make(work.top)
    tree = WorkspaceTree((str(work.top),), work.store)
    assert tree.baseline(time.monotonic() + 60)
    os.chown(work.top / "edited", *BOB)
    assert tree.changes() == ((), ())
    (work.top / "edited").unlink()
    (found,) = tree.changes()[0]
    assert found.before is not None and found.before.owner == BOB
    tree.close()
