"""`WorkspaceTree` in trees that are made to mislead it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from without_root_rights import modes_hold
from workspace_states import MemoryContents

from bradawl.checkpoints.folder import Folder
from bradawl.checkpoints.folder_walk import walk
from bradawl.checkpoints.record import Change, FileState
from bradawl.checkpoints.tree import WorkspaceTree


class InterferingContents(MemoryContents):
    """Does something while a content is being saved, as often as told."""

    def __init__(self) -> None:
        super().__init__()
        self.interfere: list[Callable[[], object]] = []

    def add(self, descriptor: int, size: int, previous: str = "") -> str:
        if self.interfere:
            self.interfere.pop(0)()
        return super().add(descriptor, size, previous)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def contents() -> InterferingContents:
    return InterferingContents()


@pytest.fixture
def tree(root: Path, contents: InterferingContents) -> Iterator[WorkspaceTree]:
    """Of an empty root."""
    made = WorkspaceTree((str(root),), contents)
    assert made.baseline(time.monotonic() + 60)
    yield made
    made.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def by_name(changes: tuple[Change, ...], root: Path) -> dict[str, Change]:
    return {os.fsdecode(change.path).removeprefix(f"{root}/"): change for change in changes}


def make_deep(root: Path, levels: int) -> None:
    """A chain of folders named d; each with a file f."""
    folder = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)


def remove_deep(root: Path) -> None:
    """Remove a chain, which is too deep for `shutil.rmtree`: inner folders are moved up first."""
    number = 0
    while (root / "d/d").exists():
        (root / "d/d").rename(root / f"moved{number}")
        (root / "d/f").unlink()
        (root / "d").rmdir()
        (root / f"moved{number}").rename(root / "d")
        number += 1
    (root / "d/f").unlink(missing_ok=True)
    (root / "d").rmdir()


def test_links_are_not_followed(root: Path, tree: WorkspaceTree, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside/secret")
    found = by_name(tree.changes()[0], root)
    assert found.keys() == {"link", "file"}
    assert found["link"].after == FileState("link", 0o777, target=os.fsencode(tmp_path / "outside"))
    assert tree.changes((f"{root}/link/secret",)) == ((), ())


def test_pipes_sockets_and_devices_are_not_opened(
    root: Path, tree: WorkspaceTree, contents: InterferingContents, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    found = by_name(tree.changes()[0], root)
    assert {change.after.kind for change in found.values() if change.after} == {"other"}
    assert contents.saved == {}


def test_a_file_replaced_by_a_pipe_before_it_is_opened(
    root: Path, tree: WorkspaceTree, contents: InterferingContents
) -> None:
    (root / "a").write_text("first")
    (root / "b").write_text("second")

    def replace() -> None:
        for name in ("a", "b"):  # one of them is open already
            (root / name).unlink()
            os.mkfifo(root / name)

    contents.interfere.append(replace)
    _, uncovered = tree.changes()
    assert len(uncovered) == 1
    assert uncovered[0].startswith("Replaced again and again during the search, so not saved: ")
    tree.refresh()
    assert tree.changes() == ((), ())


def test_a_file_that_changes_while_it_is_read_is_read_again(
    root: Path, tree: WorkspaceTree, contents: InterferingContents
) -> None:
    (root / "file").write_text("first")
    contents.interfere += [lambda: None, lambda: (root / "file").write_text("second content")]
    (root / "other").write_text("o")
    found = by_name(tree.changes()[0], root)
    states = [change.after for change in found.values()]
    for state in states:
        assert state is not None
        assert len(contents.saved[state.content]) == state.size
    tree.refresh()
    assert tree.changes() == ((), ())
    assert b"second content" in contents.saved.values()


def test_a_file_that_is_written_during_both_reads_is_compared_again(
    root: Path, tree: WorkspaceTree, contents: InterferingContents
) -> None:
    (root / "file").write_text("1")
    contents.interfere += [lambda: (root / "file").write_text("22"), lambda: (root / "file").write_text("333")]
    tree.changes()
    tree.refresh()
    assert b"333" in contents.saved.values()
    assert tree.changes() == ((), ())


def test_a_folder_swapped_for_a_link_during_the_search_is_not_left(
    root: Path, tree: WorkspaceTree, contents: InterferingContents, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (root / "a").write_text("a")
    (root / "d").mkdir()
    (root / "d/secret").write_text("own")

    def swap() -> None:
        (root / "d").rename(tmp_path / "away")
        (root / "d").symlink_to(tmp_path / "outside")

    contents.interfere.append(swap)  # the root is listed, d is not opened
    found = by_name(tree.changes()[0], root)
    assert found["d"].after is not None
    assert found["d"].after.kind == "link"
    assert b"secret" not in contents.saved.values()


def test_a_closed_file_is_listed_and_said_only_when_it_changes(root: Path, contents: InterferingContents) -> None:
    (root / "shut").write_text("secret")
    (root / "shut").chmod(0)
    (root / "open").write_text("open")
    with modes_hold():
        tree = WorkspaceTree((str(root),), contents)
        assert tree.baseline(time.monotonic() + 60)
        assert tree.changes() == ((), ())
        (root / "open").chmod(0)
        found, uncovered = tree.changes()
        assert uncovered == ("The contents of open can't be read, so they are not saved.",)
        change = by_name(found, root)["open"]
        assert change.before is not None
        assert contents.saved[change.before.content] == b"open"
        assert change.after == FileState("file", 0, "", 4)
        tree.close()


def test_a_closed_folder_keeps_what_is_known_of_it(root: Path, contents: InterferingContents) -> None:
    (root / "d").mkdir()
    (root / "d/file").write_text("known")
    try:
        with modes_hold():
            tree = WorkspaceTree((str(root),), contents)
            assert tree.baseline(time.monotonic() + 60)
            (root / "d/file").unlink()
            (root / "d").chmod(0)
            found, uncovered = tree.changes()
            assert by_name(found, root).keys() == {"d"}
            assert uncovered == ("Folders that can't be opened are not searched: d.",)
            assert tree.changes() == ((), ())
            (root / "d").chmod(0o755)
            assert by_name(tree.changes()[0], root).keys() == {"d", "d/file"}
            (root / "d/more").write_text("new")
            assert by_name(tree.changes()[0], root).keys() == {"d/more"}
            (root / "d").chmod(0o444)  # can be listed, not entered
            assert tree.changes()[1] == ("Folders that can't be opened are not searched: d.",)
            tree.close()
    finally:
        (root / "d").chmod(0o755)


def test_a_tree_of_5000_levels_is_searched_with_few_descriptors(
    root: Path, tree: WorkspaceTree, contents: InterferingContents
) -> None:
    make_deep(root, 5_000)
    before = open_descriptors()
    try:
        found, uncovered = tree.changes()
        levels = max(change.path.count(b"/d") for change in found)
        assert (4_096 - len(bytes(root))) // 2 - 1 <= levels <= 2_100
        assert len(uncovered) == 1
        assert uncovered[0].startswith("Folders with a path that is too long are not covered: d/d/d")
        assert len(uncovered[0]) < 6_000
        assert open_descriptors() == before
        tree.refresh()
        assert tree.changes()[0] == ()
        known = tree.dump()
        loaded = WorkspaceTree((str(root),), contents, known=known)
        assert loaded.is_listed
        assert loaded.changes()[0] == ()
        loaded.close()
    finally:
        remove_deep(root)
    assert len(tree.changes()[0]) == len(found)


def test_few_descriptors_are_open_at_a_time(tmp_path: Path) -> None:
    top = Folder(os.fsencode(tmp_path), "", None, "plain")
    folder = top
    for _ in range(300):
        folder = folder.add_folder("d", "plain")
    Path(os.fsdecode(folder.path)).mkdir(parents=True)
    before, most = open_descriptors(), 0
    visited: list[Folder] = []
    for _ in walk(top, lambda folder, _: visited.append(folder), lambda *_: None):
        most = max(most, open_descriptors() - before)
    assert len(visited) == 301
    assert most <= 66
    steps = walk(top, lambda *_: None, lambda *_: None)
    next(steps)
    steps.close()
    assert open_descriptors() == before


def test_no_descriptor_is_left_open(root: Path, contents: InterferingContents) -> None:
    before = open_descriptors()
    (root / "d/e").mkdir(parents=True)
    (root / "d/e/file").write_text("1")
    tree = WorkspaceTree((str(root),), contents)
    tree.baseline(time.monotonic())
    tree.close()
    del tree
    assert open_descriptors() == before


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b" ", b"-rf", "\u202e".encode(), b"\x1b[31m", b"a" * 255])
def test_any_name_is_found_and_shown_as_text(root: Path, tree: WorkspaceTree, name: bytes) -> None:
    path = root / os.fsdecode(name)
    path.write_text("1")
    assert [change.path for change in tree.changes()[0]] == [os.fsencode(root) + b"/" + name]
    with path.open("wb") as file:
        file.truncate(50_000_001)
    tree.changes()  # the earlier content is saved, so nothing is lost
    with path.open("wb") as file:
        file.truncate(50_000_002)
    _, (sentence,) = tree.changes()
    assert sentence.encode()  # valid text
    assert name.decode(errors="backslashreplace") in sentence


def test_a_folder_moved_and_replaced_by_one_of_the_same_name_between_calls(root: Path, tree: WorkspaceTree) -> None:
    (root / "d").mkdir()
    (root / "d/file").write_text("first")
    tree.changes()
    (root / "d").rename(root / "x")
    (root / "d").mkdir()
    (root / "d/other").write_text("second")
    tree.refresh()
    assert tree.changes() == ((), ())
    (root / "d/other").write_text("by user")
    (root / "x/file").write_text("by user")
    tree.refresh()
    assert tree.changes() == ((), ())


def test_a_folder_removed_and_made_again_between_calls_is_watched_again(root: Path, tree: WorkspaceTree) -> None:
    for text in ("first", "second", "third"):
        (root / "d").mkdir()
        (root / "d/file").write_text(text)
        tree.refresh()
        (root / "d/file").write_text(f"{text} by the user")
        tree.refresh()
        assert tree.changes() == ((), ())
        (root / "d/file").unlink()
        (root / "d").rmdir()
