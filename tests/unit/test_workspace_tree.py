"""What `WorkspaceTree` finds, within which limits, and what it says of the rest."""

import errno
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from workspace_states import MemoryContents, difference, states_in

from bradawl.checkpoints.coverage import CACHE_TAG_START, Coverage
from bradawl.checkpoints.record import Change, FileState
from bradawl.checkpoints.tree import WorkspaceTree

MakeTree = Callable[..., WorkspaceTree]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def contents() -> MemoryContents:
    return MemoryContents()


@pytest.fixture
def make_tree(root: Path, contents: MemoryContents) -> Iterator[MakeTree]:
    """Makes trees of the root with a complete baseline."""
    made: list[WorkspaceTree] = []

    def make(*, is_complete: bool = True, known: bytes | None = None, **limits: object) -> WorkspaceTree:
        tree = WorkspaceTree((str(root),), contents, msgspec.convert(limits, Coverage), known)
        made.append(tree)
        assert not is_complete or tree.baseline(time.monotonic() + 60)
        return tree

    yield make
    for tree in made:
        tree.close()


def paths(changes: tuple[Change, ...], root: Path) -> list[str]:
    return [os.fsdecode(change.path).removeprefix(f"{root}/") for change in changes]


def test_a_new_folder_is_listed_with_everything_in_it_and_a_removed_one_too(root: Path, make_tree: MakeTree) -> None:
    (root / "old/inner").mkdir(parents=True)
    (root / "old/inner/file").write_text("old")
    tree = make_tree()
    before = states_in(root)
    (root / "old").rename(root / "new")

    found, uncovered = tree.changes()

    assert paths(found, root) == ["new", "new/inner", "new/inner/file", "old", "old/inner", "old/inner/file"]
    assert (found, uncovered) == (difference(before, states_in(root)), ())
    assert tree.changes() == ((), ())


def test_what_the_user_changes_between_calls_belongs_to_no_call(root: Path, make_tree: MakeTree) -> None:
    (root / "file").write_text("1")
    tree = make_tree()
    (root / "file").write_text("2 by the user")
    (root / "users").mkdir()
    (root / "users/own").write_text("own")
    tree.refresh()
    (root / "file").write_text("3 by the call")

    found, _ = tree.changes()

    assert paths(found, root) == ["file"]
    assert found[0].before is not None
    assert found[0].before.size == len("2 by the user")


def test_without_watches_a_refresh_searches_everything(root: Path, make_tree: MakeTree) -> None:
    (root / "a/b").mkdir(parents=True)
    tree = make_tree(watches=1)
    assert not tree.is_incremental
    (root / "a/b/users").write_text("own")
    tree.refresh()
    assert tree.changes() == ((), ())


def test_a_queue_that_overflows_leads_to_a_full_search(root: Path, make_tree: MakeTree) -> None:
    (root / "d").mkdir()
    (root / "d/file").write_text("")
    tree = make_tree()
    assert tree.is_incremental
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("a very long queue")
    names = [root / "x", root / "y"]
    for number in range(most // 4 + 10):  # create, close_write, attrib and delete of two names in turn
        names[number % 2].touch()
        names[number % 2].unlink()
    (root / "d/file").write_text("by the user")
    tree.refresh()
    assert tree.is_incremental
    assert tree.changes() == ((), ())
    (root / "d/file").write_text("again")
    tree.refresh()
    assert tree.changes() == ((), ())


def test_a_root_that_is_replaced_is_searched_anew(root: Path, make_tree: MakeTree) -> None:
    (root / "file").write_text("first")
    tree = make_tree()
    root.rename(root.parent / "away")
    root.mkdir()
    (root / "file").write_text("second")
    tree.refresh()
    assert tree.changes() == ((), ())
    (root / "file").write_text("third")
    assert paths(tree.changes()[0], root) == ["file"]


def test_a_root_that_is_removed_is_a_change_with_everything_in_it(root: Path, make_tree: MakeTree) -> None:
    (root / "file").write_text("first")
    tree = make_tree()
    root.rename(root.parent / "away")
    found, _ = tree.changes()
    assert [(change.path, change.after) for change in found] == [
        (os.fsencode(root), None),
        (os.fsencode(root / "file"), None),
    ]
    root.mkdir()
    assert [change.path for change in tree.changes()[0]] == [os.fsencode(root)]


def test_given_paths_are_compared_alone(root: Path, make_tree: MakeTree) -> None:
    (root / "one").write_text("1")
    (root / "two").write_text("2")
    tree = make_tree()
    wanted = (str(root / "one"), str(root / "new/deep/file"))
    tree.refresh(wanted)
    (root / "one").write_text("changed")
    (root / "two").write_text("changed")
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/file").write_text("new")
    assert paths(tree.changes(wanted)[0], root) == ["new", "new/deep", "new/deep/file", "one"]
    assert paths(tree.changes()[0], root) == ["two"]


def test_given_paths_are_saved_before_the_baseline_is_complete(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("before")
    (root / "a/other").write_text("other")
    tree = make_tree(is_complete=False)
    wanted = (str(root / "a/b/file"), str(root / "a/new"))
    tree.refresh(wanted)
    assert list(contents.saved.values()) == [b"before"]
    (root / "a/b/file").write_text("after")
    (root / "a/new").write_text("new")
    found, uncovered = tree.changes(wanted)
    assert (paths(found, root), uncovered) == (["a/b/file", "a/new"], ())
    assert tree.baseline(time.monotonic() + 60)
    assert tree.changes() == ((), ())


def test_a_path_outside_the_workspace_is_said(root: Path, make_tree: MakeTree) -> None:
    tree = make_tree()
    assert tree.changes((f"{root}-other/file",)) == (
        (),
        (f"Outside the workspace, so not covered: {root}-other/file.",),
    )


def test_a_file_changed_before_its_content_was_saved_is_said(root: Path, make_tree: MakeTree) -> None:
    (root / "file").write_text("before")
    tree = make_tree(is_complete=False)
    tree.refresh()  # lists the files
    assert tree.is_listed
    (root / "file").write_text("after all")
    assert tree.baseline(time.monotonic() + 60)  # must not take the new content for the old one
    found, uncovered = tree.changes()
    before = found[0].before
    assert before is not None and before.identity is not None
    assert msgspec.structs.replace(before, identity=None) == FileState("file", 0o644, "", len("before"))
    assert uncovered == ("The earlier contents of file were not saved.",)


def test_the_baseline_returns_after_each_slice(root: Path, make_tree: MakeTree, contents: MemoryContents) -> None:
    for number in range(20):
        (root / f"file{number}").write_text(str(number))
    tree = make_tree(is_complete=False)
    slices = 1
    while not tree.baseline(time.monotonic()):
        slices += 1
    assert slices > 20
    assert len(contents.saved) == 20


def test_a_file_over_the_limit_is_not_saved_and_said_when_it_changes(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    (root / "large").write_bytes(bytes(1_001))
    tree = make_tree(file_bytes=1_000)
    assert tree.changes() == ((), ())
    assert contents.saved == {}
    (root / "large").write_bytes(bytes(1_000) + b"x")
    assert tree.changes() == ((), ("Files over the size limit are not saved: large may have changed.",))
    assert tree.uncovered() == ("Files over 50 MB are not saved: large.",)
    (root / "large").unlink()
    found, uncovered = tree.changes()
    assert paths(found, root) == ["large"]
    assert uncovered == ("The earlier contents of large were not saved.",)


def test_the_baseline_saves_the_smallest_files_if_there_is_too_much(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    for size in (500, 10, 300, 20):
        (root / f"file{size}").write_bytes(bytes(size))
    tree = make_tree(baseline_bytes=400)
    assert sorted(map(len, contents.saved.values())) == [10, 20, 300]
    assert "file500" in tree.uncovered()[0]


@pytest.mark.parametrize(
    ("folder", "mark", "is_said"),
    [
        ("node_modules", None, True),
        ("sub/node_modules", None, True),
        ("__pycache__", None, False),
        ("venv", ("pyvenv.cfg", b"home = /usr"), True),
        ("target", ("CACHEDIR.TAG", CACHE_TAG_START + b"\n"), True),
    ],
)
def test_heavy_folders_are_not_entered(
    root: Path, make_tree: MakeTree, folder: str, mark: tuple[str, bytes] | None, is_said: bool
) -> None:
    heavy = root / folder
    heavy.mkdir(parents=True)
    (heavy / "content").write_text("1")
    if mark is not None:
        (heavy / mark[0]).write_bytes(mark[1])
    tree = make_tree()
    (heavy / "content").write_text("2")
    (heavy / "more").write_text("2")
    found, uncovered = tree.changes()
    assert found == ()
    assert ([folder in sentence for sentence in uncovered] == [True]) is is_said
    assert folder in tree.uncovered()[0]


def test_a_false_cache_tag_does_not_hide_a_folder(root: Path, make_tree: MakeTree) -> None:
    (root / "src").mkdir()
    (root / "src/CACHEDIR.TAG").write_text("Signature: another")
    tree = make_tree()
    (root / "src/file").write_text("new")
    assert paths(tree.changes()[0], root) == ["src/file"]


def test_a_mark_that_is_added_later_does_not_hide_a_folder(root: Path, make_tree: MakeTree) -> None:
    (root / "src").mkdir()
    (root / "src/file").write_text("old")
    tree = make_tree()
    (root / "src/CACHEDIR.TAG").write_bytes(CACHE_TAG_START)
    (root / "src/pyvenv.cfg").write_text("")
    tree.refresh()
    (root / "src/file").unlink()
    assert paths(tree.changes()[0], root) == ["src/file"]


def test_a_given_file_in_a_heavy_folder_is_covered(root: Path, make_tree: MakeTree) -> None:
    (root / "node_modules/lib").mkdir(parents=True)
    (root / "node_modules/lib/file").write_text("before")
    (root / "node_modules/lib/other").write_text("other")
    tree = make_tree()
    wanted = (str(root / "node_modules/lib/file"), str(root / "node_modules/new/file"))
    tree.refresh(wanted)
    (root / "node_modules/lib/file").write_text("after")
    (root / "node_modules/new").mkdir()
    (root / "node_modules/new/file").write_text("new")
    found, uncovered = tree.changes(wanted)
    assert paths(found, root) == ["node_modules/lib/file", "node_modules/new", "node_modules/new/file"]
    assert uncovered == ()
    assert tree.changes()[0] == ()


def test_too_many_entries_are_left_out_far_from_the_root_and_said(root: Path, make_tree: MakeTree) -> None:
    (root / "a/b/c/d/e/f/data").mkdir(parents=True)
    for number in range(50):
        (root / f"a/b/c/d/e/f/data/{number}").touch()
    (root / "z").mkdir()
    (root / "z/file").write_text("1")
    tree = make_tree(entries=30)
    (root / "z/file").write_text("22")
    (root / "a/b/c/d/e/f/data/0").write_text("2")
    found, uncovered = tree.changes()
    sentence = "There are too many files and folders; not covered: a/b/c/d/e/f/data and what is in them."
    assert (paths(found, root), uncovered) == (["z/file"], (sentence,))
    assert tree.changes() == ((), (sentence,))


def test_a_folder_that_grows_over_the_limit_is_still_compared_by_its_known_names(
    root: Path, make_tree: MakeTree
) -> None:
    (root / "d").mkdir()
    (root / "d/known").write_text("1")
    tree = make_tree(entries=20)
    for number in range(50):
        (root / f"d/new{number}").touch()
    (root / "d/known").unlink()
    found, uncovered = tree.changes()
    assert paths(found, root) == ["d/known"]
    assert uncovered == ("There are too many files and folders; not covered: d and what is in them.",)


def test_a_search_that_takes_too_long_ends_and_says_so(root: Path, make_tree: MakeTree) -> None:
    for number in range(20):
        (root / str(number)).mkdir()
    tree = make_tree(search_s=0.0)
    _, uncovered = tree.changes()
    assert uncovered == ("The search ended after 0 s: only 1 folders were searched.",)
    assert not tree.is_exact
    assert not tree.is_incremental


def test_contents_that_there_is_no_time_for_are_saved_by_the_next_search(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    tree = make_tree(reading_s=0.0)
    for number in range(3):
        (root / str(number)).write_text(f"content {number}")
    found, uncovered = tree.changes()
    assert len(found) == 3
    assert uncovered[0].startswith("There was no time to save the new contents of")
    until = time.monotonic() + 60
    while len(contents.saved) < 3 and time.monotonic() < until:  # recent files are read again, too
        tree.refresh()
    assert len(contents.saved) == 3
    assert tree.changes() == ((), ())


def test_a_full_store_is_reported_and_the_search_goes_on(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    (root / "a").write_text("1")
    (root / "b").write_text("1")
    tree = make_tree()
    contents.error = OSError(errno.ENOSPC, "No space left on device")
    (root / "a").write_text("22")
    (root / "b").write_text("22")
    found, uncovered = tree.changes()
    assert paths(found, root) == ["a", "b"]
    assert uncovered == ("The new contents of a, b could not be written to the store.",)
    assert tree.store_error is not None
    assert tree.store_error.errno == errno.ENOSPC
    contents.error = None
    tree.refresh()
    assert b"22" in contents.saved.values()


def test_a_saved_index_finds_what_has_changed_since(root: Path, make_tree: MakeTree, contents: MemoryContents) -> None:
    (root / "d").mkdir()
    name = os.fsdecode(b"\xff")
    for each in ("d/kept", f"d/{name}", "d/removed"):
        (root / each).write_text(each.encode(errors="surrogateescape").hex())
    dumped = make_tree().dump()
    (root / "d/removed").unlink()
    (root / f"d/{name}").write_text("changed")
    tree = make_tree(is_complete=False, known=dumped)
    assert tree.is_listed
    found, uncovered = tree.changes()
    assert (paths(found, root), uncovered) == (["d/removed", f"d/{name}"], ())
    assert tree.baseline(time.monotonic() + 60)
    assert tree.is_incremental


def test_a_saved_index_saves_again_what_the_store_has_dropped(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    (root / "file").write_text("content")
    dumped = make_tree().dump()
    contents.saved.clear()
    make_tree(known=dumped)
    assert list(contents.saved.values()) == [b"content"]


def test_a_damaged_index_is_ignored(root: Path, make_tree: MakeTree) -> None:
    (root / "file").write_text("content")
    dumped = make_tree().dump()
    dice = random.Random(1)  # noqa: S311 - not used for secrets
    damaged = [dumped[: dice.randrange(len(dumped))] for _ in range(20)]
    for _ in range(50):
        place = dice.randrange(len(dumped))
        damaged.append(dumped[:place] + bytes([dumped[place] ^ 1 << dice.randrange(8)]) + dumped[place + 1 :])
    for data in (b"", *damaged):
        assert not make_tree(is_complete=False, known=data).is_listed


def test_an_index_of_other_roots_is_ignored(tmp_path: Path, make_tree: MakeTree) -> None:
    (tmp_path / "other").mkdir()
    tree = WorkspaceTree((str(tmp_path / "other"),), MemoryContents(), known=make_tree().dump())
    assert not tree.is_listed
    tree.close()


def test_a_root_inside_another_is_searched_once(root: Path, contents: MemoryContents) -> None:
    (root / "in").mkdir()
    tree = WorkspaceTree((f"{root}/in", f"{root}/", str(root)), contents)
    assert tree.roots == (os.fsencode(root),)
    tree.close()


def test_contents_of_the_index_are_named_for_garbage_collection(
    root: Path, make_tree: MakeTree, contents: MemoryContents
) -> None:
    (root / "a").write_text("1")
    tree = make_tree()
    (root / "a").write_text("22")
    tree.changes()
    (sha256,) = tree.contents()
    assert contents.saved[sha256] == b"22"


def test_a_large_file_that_was_written_at_its_size_is_said_though_its_time_of_change_was_set_back(
    root: Path, make_tree: MakeTree
) -> None:
    large = root / "large"
    large.write_bytes(bytes(1_001))
    os.utime(large, (1_000_000_000, 1_000_000_000))
    tree = make_tree(file_bytes=1_000)
    with large.open("r+b") as opened:
        opened.write(b"x")
    os.utime(large, (1_000_000_000, 1_000_000_000))
    assert tree.changes() == ((), ("Files over the size limit are not saved: large may have changed.",))
    (root / "another name").hardlink_to(large)
    found, uncovered = tree.changes()
    assert (paths(found, root), uncovered) == (["another name"], ())
    large.chmod(0o600)
    found, uncovered = tree.changes()
    assert "may have changed" not in "".join(uncovered)


def test_a_large_file_is_recorded_with_what_shows_a_later_change(root: Path, make_tree: MakeTree) -> None:
    tree = make_tree(file_bytes=1_000)
    (root / "large").write_bytes(bytes(1_001))
    (change,) = tree.changes()[0]
    status = (root / "large").stat()
    assert change.after is not None and change.after.identity is not None
    assert change.after.identity[1::2] == (status.st_ino, status.st_mtime_ns)
