"""Placeholders of sandboxes are no changes of a call; everything else at the same paths is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.store import ContentStore
from bradawl.checkpoints.tree import WorkspaceTree
from bradawl.sandbox.mounts.placeholder_records import recorded_placeholders
from bradawl.sandbox.mounts.placeholders import Placeholder, PlaceholderStore


class Workspace:
    """A workspace, its index, and the placeholders of an agent's sandbox."""

    def __init__(self, place: Path) -> None:
        self.root, self.state = place / "root", place / "state"
        (self.root / "sub").mkdir(parents=True)
        self.store = ContentStore(place / "store")
        self.placeholders = PlaceholderStore(str(self.state))
        self.tree = self.new_tree()

    def new_tree(self) -> WorkspaceTree:
        tree = WorkspaceTree((str(self.root),), self.store, Coverage(sandbox_state=str(self.state)))
        assert tree.baseline(float("inf"))
        return tree

    def hold(self, *names: str) -> tuple[str, ...]:
        """Create placeholders; names that end in / are folders."""
        wanted = (Placeholder(str(self.root / name), name.endswith("/")) for name in names)
        return self.placeholders.acquire(wanted)

    def changed(self) -> list[str]:
        return [os.fsdecode(os.path.relpath(each.path, os.fsencode(self.root))) for each in self.tree.changes()[0]]

    def close(self) -> None:
        self.tree.close()
        self.store.close()
        self.placeholders.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path)
    yield workspace
    workspace.close()


def test_placeholders_come_and_go_without_a_change(workspace: Workspace) -> None:
    held = workspace.hold(".vscode/", ".envrc", "sub/.idea/")
    assert workspace.changed() == []
    workspace.tree.refresh()
    (workspace.root / "real").mkdir()
    assert workspace.changed() == ["real"]
    workspace.placeholders.release(held)
    assert workspace.changed() == []
    assert workspace.hold(".vscode/", ".envrc") and workspace.changed() == []


def test_placeholders_of_a_killed_agent_are_no_change_when_they_are_removed(workspace: Workspace) -> None:
    workspace.hold(".vscode/", ".envrc")
    workspace.tree.close()
    workspace.tree = workspace.new_tree()
    workspace.placeholders.close()
    assert workspace.changed() == []


def test_a_placeholder_that_is_filled_is_a_change(workspace: Workspace) -> None:
    workspace.hold(".vscode/", ".envrc", "sub/.idea/")
    assert workspace.changed() == []
    (workspace.root / ".vscode/settings.json").write_text("{}")
    (workspace.root / ".envrc").write_text("x")
    assert workspace.changed() == [".envrc", ".vscode", ".vscode/settings.json"]


def test_what_the_user_puts_into_a_placeholder_between_two_calls_belongs_to_no_call(workspace: Workspace) -> None:
    workspace.hold(".vscode/")
    assert workspace.changed() == []
    (workspace.root / ".vscode/settings.json").write_text("{}")
    workspace.tree.refresh()
    assert workspace.changed() == []


def test_an_empty_file_or_folder_that_no_sandbox_made_is_a_change(workspace: Workspace) -> None:
    workspace.hold(".vscode/", ".envrc")
    assert workspace.changed() == []
    for name in (".vscode", ".envrc"):  # other ones at the same paths
        (workspace.root / name).rename(workspace.root / f"{name}.old")
    (workspace.root / ".vscode").mkdir()
    (workspace.root / ".envrc").touch()
    assert workspace.changed() == [".envrc", ".envrc.old", ".vscode", ".vscode.old"]


def test_an_entry_that_was_there_before_is_never_taken_for_a_placeholder(workspace: Workspace) -> None:
    (workspace.root / ".vscode").mkdir()
    assert workspace.changed() == [".vscode"]
    found = (workspace.root / ".vscode").stat()
    workspace.state.mkdir(exist_ok=True)
    line = f"placeholder\0folder {found.st_dev} {found.st_ino}\0{workspace.root}/.vscode\0"
    (workspace.state / "sandbox-0").write_text(line)
    (workspace.root / ".vscode").rmdir()
    assert workspace.changed() == [".vscode"]


def test_records_that_are_damaged_or_no_files_list_nothing(tmp_path: Path) -> None:
    (tmp_path / "sandbox-1").write_bytes(b"\xff\0\0placeholder\0x")
    (tmp_path / "sandbox-2").mkdir()
    os.mkfifo(tmp_path / "sandbox-3")
    (tmp_path / "sandbox-4").symlink_to("sandbox-5")
    (tmp_path / "sandbox-5").write_bytes(b"placeholder\0folder 1 2\0/a\xff\0placeholder\0fol")
    (tmp_path / "other").write_bytes(b"placeholder\0folder 1 2\0/b\0")
    assert recorded_placeholders(str(tmp_path)) == {("/a\udcff", "folder 1 2")}
    assert recorded_placeholders(str(tmp_path / "missing")) == set()
