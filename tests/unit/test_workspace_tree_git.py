"""Which git data `WorkspaceTree` covers."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace_states import MemoryContents

from bradawl.checkpoints.tree import WorkspaceTree

_GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*_GIT, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "file").write_text("1")
    git(made, "add", ".")
    git(made, "commit", "-qm", "first")
    return made


@pytest.fixture
def tree(root: Path) -> Iterator[WorkspaceTree]:
    made = WorkspaceTree((str(root),), MemoryContents())
    assert made.baseline(time.monotonic() + 60)
    yield made
    made.close()


def changed(tree: WorkspaceTree, root: Path) -> set[str]:
    return {os.fsdecode(change.path).removeprefix(f"{root}/") for change in tree.changes()[0]}


def test_a_commit_changes_refs_logs_and_index_and_no_objects(root: Path, tree: WorkspaceTree) -> None:
    (root / "file").write_text("22")
    git(root, "commit", "-qam", "second")
    expected = {"file", ".git/index", ".git/logs/HEAD", ".git/logs/refs/heads/main", ".git/refs/heads/main"}
    assert changed(tree, root) == expected


def test_a_stash_and_its_drop(root: Path, tree: WorkspaceTree) -> None:
    (root / "file").write_text("22")
    git(root, "stash")
    assert {".git/refs/stash", ".git/logs/refs/stash"} <= changed(tree, root)
    git(root, "stash", "drop")
    assert {".git/refs/stash", ".git/logs/refs/stash"} <= changed(tree, root)


@pytest.mark.parametrize(
    ("path", "is_covered"),
    [
        ("HEAD", True),
        ("ORIG_HEAD", True),
        ("MERGE_HEAD", True),
        ("CHERRY_PICK_HEAD", True),
        ("REVERT_HEAD", True),
        ("MERGE_MSG", True),
        ("BISECT_LOG", True),
        ("packed-refs", True),
        ("config", True),
        ("info/exclude", True),
        ("info/attributes", True),
        ("info/sparse-checkout", True),
        ("info/refs", False),
        ("rebase-merge/done", True),
        ("rebase-apply/next", True),
        ("sequencer/todo", True),
        ("refs/heads/a/b", True),
        ("refs/heads/a.lock", False),
        ("index.lock", False),
        ("objects/ab/cd", False),
        ("hooks/pre-commit", False),
        ("lfs/objects/x", False),
        ("FETCH_HEAD", False),
        ("worktrees/w/HEAD", True),
        ("worktrees/w/index", True),
        ("worktrees/w/logs/HEAD", True),
        ("worktrees/w/gitdir", True),
        ("worktrees/w/hooks/x", False),
        ("modules/m/HEAD", True),
        ("modules/group/m/refs/heads/main", True),
        ("modules/group/m/objects/ab/cd", False),
        ("modules/group/m/hooks/x", False),
    ],
)
def test_parts_of_git_data(root: Path, tree: WorkspaceTree, path: str, is_covered: bool) -> None:
    file = root / ".git" / path
    if "modules" in path:
        module = root / ".git" / path.partition("/m/")[0] / "m"
        module.mkdir(parents=True)
        (module / "HEAD").write_text("ref: refs/heads/main\n")
        tree.changes()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("other text\n")
    assert (f".git/{path}" in changed(tree, root)) is is_covered


def test_data_of_a_submodule_stay_known_when_its_head_is_removed(root: Path, tree: WorkspaceTree) -> None:
    module = root / ".git/modules/m"
    module.mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "index").write_text("index")
    assert changed(tree, root) == {".git/modules", ".git/modules/m", ".git/modules/m/HEAD", ".git/modules/m/index"}
    (module / "HEAD").unlink()
    assert changed(tree, root) == {".git/modules/m/HEAD"}


def test_a_nested_repository_is_a_plain_folder(root: Path, tree: WorkspaceTree) -> None:
    nested = root / "vendor/lib"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    (nested / "file").write_text("1")
    git(nested, "add", ".")
    git(nested, "commit", "-qm", "first")
    found = changed(tree, root)
    on_disk = {str(path.relative_to(root)) for path in nested.rglob("*")} | {"vendor", "vendor/lib"}
    assert found == on_disk
    assert any("/objects/" in path for path in found)


def test_a_repository_that_a_call_makes_is_covered_without_objects_and_hooks(tmp_path: Path) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    tree = WorkspaceTree((str(root),), MemoryContents())
    assert tree.baseline(time.monotonic() + 60)
    git(root, "init", "-q", "-b", "main")
    found = changed(tree, root)
    assert {".git", ".git/HEAD", ".git/config", ".git/refs", ".git/refs/heads"} <= found
    assert not any(path.startswith((".git/objects", ".git/hooks")) for path in found)
    tree.close()


def test_git_data_of_a_linked_working_tree_are_outside_and_said_when_they_change(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", str(linked), "-b", "other")
    tree = WorkspaceTree((str(linked),), MemoryContents())
    assert tree.baseline(time.monotonic() + 60)
    assert tree.changes() == ((), ())
    data = root / ".git/worktrees/linked"
    assert tree.uncovered() == (f"The git data in {data} are outside the workspace.",)
    git(linked, "commit", "--allow-empty", "-qm", "more")
    sentence = f"The git data in {data} have changed; they are outside the workspace."
    hint = "Undo leaves its branches, commits and index as they are, so git will show restored files as changed."
    assert tree.changes() == ((), (sentence, hint)) and not tree.is_exact
    git(linked, "commit", "--allow-empty", "-qm", "of the user")
    tree.refresh()
    assert tree.changes() == ((), ())
    tree.close()


def test_git_data_above_the_workspace_are_outside(root: Path) -> None:
    (root / "sub").mkdir()
    tree = WorkspaceTree((str(root / "sub"),), MemoryContents())
    assert tree.baseline(time.monotonic() + 60)
    assert tree.uncovered() == (f"The git data in {root / '.git'} are outside the workspace.",)
    (root / "sub/file").write_text("1")
    git(root, "add", "sub/file")
    found, uncovered = tree.changes()
    assert len(found) == 1
    assert uncovered == (f"The git data in {root / '.git'} have changed; they are outside the workspace.",)
    assert tree.is_exact, "only what is staged has changed"
    tree.close()


def test_both_roots_of_a_linked_working_tree_are_covered(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", str(linked), "-b", "other")
    tree = WorkspaceTree((str(root), str(linked)), MemoryContents())
    assert tree.baseline(time.monotonic() + 60)
    assert tree.uncovered() == ()
    git(linked, "commit", "--allow-empty", "-qm", "more")
    assert ".git/worktrees/linked/logs/HEAD" in changed(tree, root)
    tree.close()


def test_folders_of_git_data_that_are_not_covered_are_named_when_they_are_removed(
    root: Path, tree: WorkspaceTree
) -> None:
    (root / ".git/lfs/objects").mkdir(parents=True)
    assert tree.changes() == ((), ())
    shutil.rmtree(root / ".git/lfs")
    assert tree.changes() == ((), ("Not covered in git data: .git/lfs.",))
    assert tree.changes() == ((), ())
    shutil.rmtree(root / ".git")
    changes, (sentence,) = tree.changes()
    assert changes[0].path == os.fsencode(root / ".git")
    assert sentence.startswith("Not covered in git data: ") and ".git/objects" in sentence
