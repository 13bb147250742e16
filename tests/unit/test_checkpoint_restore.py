"""Planning and applying an undo: conflicts, git data, links, hostile changes between plan and apply."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from restored_workspace import Workspace
from tree_changes import difference, scan

from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.restore import apply, compose, plan
from bradawl.checkpoints.store import ContentStore

FILE = FileState("file", 0o644, "aa", 1)
OTHER = FileState("file", 0o644, "bb", 1)
THIRD = FileState("file", 0o600, "bb", 1)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as made:
        yield made


# ------------------------------------------------------------------ composing


def test_the_first_state_before_and_the_last_after_are_composed():
    older = ChangeRecord("1", 1, (Change(b"/w/a", None, FILE), Change(b"/w/b", FILE, OTHER)))
    newer = ChangeRecord("2", 2, (Change(b"/w/a", FILE, OTHER), Change(b"/w/c", FILE, None)))
    composed = compose([newer, older])
    assert {path: (each.wanted, each.expected) for path, each in composed.items()} == {
        b"/w/a": (None, OTHER),
        b"/w/b": (FILE, OTHER),
        b"/w/c": (FILE, None),
    }
    assert not any(each.is_changed_between for each in composed.values())


@pytest.mark.parametrize("between", [None, OTHER, THIRD])
def test_a_change_between_two_records_is_marked(between: FileState | None):
    first = ChangeRecord("1", 1, (Change(b"/w/a", None, FILE),))
    second = ChangeRecord("2", 2, (Change(b"/w/a", between, FileState("link", 0o777)),))
    third = ChangeRecord("3", 3, (Change(b"/w/a", FileState("link", 0o777), OTHER),))
    assert compose([third, second, first])[b"/w/a"].is_changed_between
    assert not compose([third, second])[b"/w/a"].is_changed_between


def test_a_change_between_two_undone_calls_is_a_conflict(work: Workspace):
    file = work.top / "file"
    file.write_text("one")
    work.start()
    file.write_text("two")
    work.changed()
    file.write_text("by the user")
    work.trees.append(work.scan())
    file.write_text("three")
    work.changed()
    (change,) = work.plan().conflicts
    assert (change.path, "between" in change.conflict) == (work.path("file"), True)
    assert apply(work.plan(), work.store).changes == ()
    assert file.read_text() == "three"
    apply(work.plan(), work.store, overwrite=[change.path])
    assert file.read_text() == "one"


# ------------------------------------------------------------------ planning


def test_a_plan_changes_nothing(work: Workspace):
    (work.top / "closed").mkdir()
    (work.top / "closed" / "file").write_text("old")
    (work.top / "closed" / "file").chmod(0)
    (work.top / "closed").chmod(0)
    work.start()
    (work.top / "closed").chmod(0o700)
    (work.top / "closed" / "file").chmod(0o600)
    (work.top / "closed" / "file").write_text("new")
    (work.top / "closed" / "file").chmod(0)
    (work.top / "closed").chmod(0)
    work.changed()
    size = work.store.stored_bytes()
    made = work.plan()
    assert [change.path for change in made.changes] == [work.path("closed/file")]
    assert (work.scan(), work.store.stored_bytes()) == (work.trees[-1], size)
    apply(made, work.store)
    assert work.scan() == work.trees[0]
    (work.top / "closed").chmod(0o700)


@pytest.mark.parametrize("user", ["edits", "removes", "replaces by a link", "changes the mode"])
def test_a_file_that_the_user_changed_is_a_conflict(work: Workspace, user: str):
    file, kept = work.top / "file", work.top / "kept"
    file.write_text("old")
    kept.write_text("old")
    work.start()
    file.write_text("new")
    kept.write_text("new")
    work.changed()
    if user == "edits":
        file.write_text("the user's")
    elif user == "changes the mode":
        file.chmod(0o755)
    else:
        file.unlink()
        if user != "removes":
            file.symlink_to("kept")
    theirs = work.scan()
    made = work.plan()
    assert [change.path for change in made.conflicts] == [work.path("file")]
    record = apply(made, work.store)
    assert [change.path for change in record.changes] == [work.path("kept")]
    assert work.scan() == theirs | {work.path("kept"): work.trees[0][work.path("kept")]}
    record = apply(work.plan(), work.store, overwrite=[work.path("file")])
    assert work.scan() == work.trees[0]
    apply(plan(work.store, [record], [os.fsencode(work.top)]), work.store)
    assert work.scan()[work.path("kept")] == work.trees[0][work.path("kept")]
    assert work.scan().get(work.path("file")) == theirs.get(work.path("file"))


def test_what_is_as_wanted_already_is_left_out(work: Workspace):
    file = work.top / "file"
    file.write_text("old")
    work.start()
    file.write_text("new")
    work.changed()
    file.write_text("old")
    assert (work.plan().changes, work.plan().conflicts) == ((), ())


def test_a_file_made_by_the_user_under_a_removed_name_is_a_conflict(work: Workspace):
    (work.top / "file").write_text("old")
    work.start()
    (work.top / "file").unlink()
    work.changed()
    (work.top / "file").write_text("the user's")
    (change,) = work.plan().conflicts
    assert change.conflict == "it was made since"


def test_what_cannot_be_restored_is_listed(work: Workspace, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_text("outside")
    gone = FileState("file", 0o644, "ab" * 32, 5)
    paths = ("gone", "unsaved", "../outside", "pipe", "a/../x")
    os.mkfifo(work.top / "pipe")
    changes = [
        Change(work.path("gone"), gone, None),
        Change(work.path("unsaved"), FileState("file", 0o644, "", 9), None),
        Change(os.fsencode(outside), gone, FILE),
        Change(work.path("pipe"), None, FileState("other", 0o644)),
        Change(work.path("pipe2"), FileState("other", 0o644), None),
        Change(os.fsencode(f"{work.top}/a/../x"), None, FILE),
        Change(os.fsencode(work.top), None, FileState("folder", 0o755)),
        Change(b"relative", None, FILE),
    ]
    work.records = [ChangeRecord("1", 1, tuple(changes), ("Other folders are not covered.",))]
    made = work.plan()
    assert {path for path, _ in made.impossible} == {change.path for change in changes}, paths
    assert (made.changes, made.uncovered) == ((), ("Other folders are not covered.",))
    assert "no longer reaches so far back" in dict(made.impossible)[work.path("gone")]
    assert apply(made, work.store).changes == ()
    assert outside.read_text() == "outside"
    assert stat.S_ISFIFO((work.top / "pipe").stat().st_mode)


def test_a_path_below_what_is_no_folder_any_more_is_impossible(work: Workspace):
    (work.top / "folder").mkdir()
    (work.top / "folder" / "file").write_text("old")
    work.start()
    (work.top / "folder" / "file").unlink()
    work.changed()
    (work.top / "folder").rmdir()
    (work.top / "folder").write_text("the user's")
    ((path, why),) = work.plan().impossible
    assert (path, why) == (work.path("folder/file"), f"{work.top}/folder is not a folder that can be entered")


def test_folders_removed_since_are_made_again(work: Workspace):
    (work.top / "a" / "b").mkdir(parents=True)
    (work.top / "a" / "b" / "file").write_text("old")
    work.start()
    (work.top / "a" / "b" / "file").unlink()
    work.changed()
    (work.top / "a" / "b").rmdir()
    (work.top / "a").rmdir()
    before = work.scan()
    record = apply(work.plan(), work.store)
    assert (work.top / "a" / "b" / "file").read_text() == "old"
    assert [change.path for change in record.changes] == [work.path(name) for name in ("a", "a/b", "a/b/file")]
    apply(plan(work.store, [record], [os.fsencode(work.top)]), work.store)
    assert work.scan() == before


def test_a_made_file_too_large_to_be_saved_is_removed_if_the_user_agrees(work: Workspace):
    (work.top / "large").write_bytes(b"x" * 5_000)
    work.changed()
    work.store.largest_bytes = 4_000
    work.records = [
        ChangeRecord("1", 1, (Change(work.path("large"), None, FileState("file", 0o644, "", 5_000)),)),
    ]
    (change,) = work.plan().conflicts
    assert "too large" in change.conflict
    assert apply(work.plan(), work.store).changes == ()
    with ContentStore(work.top.parent / "empty") as store:
        store.largest_bytes = 4_000
        (removed,) = apply(work.plan(), store, overwrite=[change.path]).changes
    assert removed.before == FileState("file", 0o644, "", 5_000)
    assert list(work.top.iterdir()) == []


# ------------------------------------------------------------------ folders and hard links


def test_a_made_folder_with_files_of_the_user_stays(work: Workspace):
    (work.top / "made").mkdir()
    (work.top / "made" / "ours").write_text("ours")
    work.changed()
    (work.top / "made" / "theirs").write_text("theirs")
    record = apply(work.plan(), work.store)
    assert [path.name for path in (work.top / "made").iterdir()] == ["theirs"]
    assert record.uncovered == (
        f"{str(work.top / 'made')!r} was not restored: the folder holds other files, so it stays.",
    )
    assert [change.path for change in record.changes] == [work.path("made/ours")]


def test_names_of_one_file_stay_names_of_one_file(work: Workspace):
    (work.top / "one").write_text("old")
    (work.top / "two").hardlink_to(work.top / "one")
    inode = (work.top / "one").stat().st_ino
    work.start()
    (work.top / "one").write_text("longer than before")
    (work.top / "two").chmod(0o400)
    work.changed()
    record = apply(work.plan(), work.store)
    assert record.uncovered == ()
    assert work.scan() == work.trees[0]
    assert {(work.top / name).stat().st_ino for name in ("one", "two")} == {inode}


def test_a_name_outside_the_roots_keeps_its_content(work: Workspace, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_text("old")
    (work.top / "inside").hardlink_to(outside)
    work.start()
    outside.write_text("new")
    work.changed()
    record = apply(work.plan(), work.store)
    assert ((work.top / "inside").read_text(), outside.read_text()) == ("old", "new")
    (sentence,) = record.uncovered
    assert "hard links" in sentence


# ------------------------------------------------------------------ hostile changes


@pytest.mark.parametrize("call", ["edits", "removes", "makes"])
@pytest.mark.parametrize("moment", ["before the plan", "after the plan"])
def test_a_folder_swapped_for_a_link_leads_nowhere(work: Workspace, tmp_path: Path, call: str, moment: str):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = work.top / "folder"
    folder.mkdir()
    if call != "makes":
        (folder / "file").write_text("old")
    work.start()
    if call == "removes":
        (folder / "file").unlink()
    else:
        (folder / "file").write_text("new")
        (outside / "file").write_text("new")
    work.changed()
    theirs = scan(outside, work.store)

    def swap() -> None:
        folder.rename(work.top / "moved")
        folder.symlink_to(outside)

    if moment == "before the plan":
        swap()
    made = work.plan()
    if moment == "after the plan":
        swap()
    now = work.scan()
    record = apply(made, work.store, overwrite=[work.path("folder/file")])
    assert scan(outside, work.store) == theirs
    assert (work.scan(), record.changes) == (now, ())


def test_the_workspace_swapped_for_a_link_is_an_error(work: Workspace, tmp_path: Path):
    (work.top / "file").write_text("new")
    work.changed()
    made = work.plan()
    work.top.rename(tmp_path / "moved")
    work.top.symlink_to(tmp_path / "moved")
    record = apply(made, work.store)
    assert (record.changes, len(record.uncovered)) == ((), 1)
    assert (tmp_path / "moved" / "file").read_text() == "new"


def test_a_file_changed_after_the_plan_is_left_alone(work: Workspace):
    for name in ("edited", "kept", "made"):
        (work.top / name).write_text("old")
    work.start()
    for name in ("edited", "kept"):
        (work.top / name).write_text("new")
    (work.top / "made").unlink()
    work.changed()
    made = work.plan()
    (work.top / "edited").write_text("by the user")
    (work.top / "made").write_text("by the user")
    record = apply(made, work.store, overwrite=[work.path("edited")])
    assert [(work.top / name).read_text() for name in ("edited", "kept", "made")] == [
        "by the user",
        "old",
        "by the user",
    ]
    assert [change.path for change in record.changes] == [work.path("kept")]
    assert len(record.uncovered) == 2


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder"])
def test_a_file_replaced_by_another_kind_after_the_plan_is_left_alone(
    work: Workspace, kind: str, monkeypatch: pytest.MonkeyPatch
):
    (work.top / "file").write_text("old")
    work.start()
    (work.top / "file").write_text("new")
    work.changed()
    made = work.plan()
    (work.top / "file").unlink()
    if kind == "fifo":
        os.mkfifo(work.top / "file")
    elif kind == "socket":
        monkeypatch.chdir(work.top)
        with socket.socket(socket.AF_UNIX) as made_socket:
            made_socket.bind("file")
    else:
        (work.top / "file").mkdir()
    record = apply(made, work.store)
    assert (record.changes, len(record.uncovered)) == ((), 1)


def test_a_very_deep_tree_is_restored(work: Workspace):
    depth = 1_500  # more than a process may have open files
    descriptor = os.open(work.top, os.O_RDONLY)
    path, paths = os.fsencode(work.top), []
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor, path = inner, path + b"/d"
        paths.append(path)
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=descriptor))
    os.close(descriptor)
    folders = tuple(Change(each, None, FileState("folder", 0o755)) for each in paths)
    empty = FileState("file", 0o644, work.store.add_bytes(b""), 0)
    work.records = [ChangeRecord("1", 1, (*folders, Change(path + b"/file", None, empty)))]
    record = apply(work.plan(), work.store)
    assert (record.uncovered, len(record.changes)) == ((), depth + 1)
    assert list(work.top.iterdir()) == []
    work.records = [record]
    record = apply(work.plan(), work.store)
    assert (record.uncovered, len(record.changes)) == ((), depth + 1)
    work.records = [record]
    assert apply(work.plan(), work.store).uncovered == ()
    assert list(work.top.iterdir()) == []


# ------------------------------------------------------------------ errors in the middle

_FULL = """
import resource, signal, sys
from pathlib import Path
import msgspec
from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import apply, plan
from bradawl.checkpoints.store import ContentStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = ContentStore(Path(sys.argv[1]))
made = plan(store, [store.record(sys.argv[3])], [sys.argv[2].encode()])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
record = apply(made, store)
print(len(record.changes), *record.uncovered, sep="\\n")
"""


def run_with_limit(work: Workspace, limit: int) -> subprocess.CompletedProcess[str]:
    ref = work.store.save_record(work.records[0])
    work.store.flush()
    command = [sys.executable, "-c", _FULL, work.store.folder.path, work.top, ref, limit]
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)


def test_nothing_is_changed_if_the_present_contents_cannot_be_saved(work: Workspace):
    (work.top / "file").write_text("old")
    work.start()
    (work.top / "file").write_text("new" * 1_000)
    with ContentStore(work.top.parent / "other") as other:
        work.records = [difference(work.trees[0], scan(work.top, other))]
    now = (work.top / "file").read_text()
    done = run_with_limit(work, 100)
    assert "OSError" in done.stderr
    assert (work.top / "file").read_text() == now


def test_an_error_in_the_middle_leaves_a_record_of_what_was_done(work: Workspace):
    for name in ("a", "b", "c"):
        (work.top / name).write_text(name * (10_000 if name == "b" else 10))
    work.start()
    for name in ("a", "b", "c"):
        (work.top / name).write_text("new")
    work.changed()
    done = run_with_limit(work, 5_000)
    assert done.stdout.split("\n")[0] == "2"
    assert f"{str(work.top / 'b')!r} was not restored: File too large." in done.stdout
    assert [(work.top / name).read_text() for name in ("a", "b", "c")] == ["a" * 10, "new", "c" * 10]
    assert sorted(path.name for path in work.top.iterdir()) == ["a", "b", "c"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns files of others")
def test_what_root_restores_belongs_to_the_owner_of_the_workspace(work: Workspace):
    (work.top / "folder").mkdir()
    (work.top / "folder" / "link").symlink_to("nowhere")
    for name in ("edited", "removed"):
        (work.top / name).write_text("old")
        os.chown(work.top / name, 1234, 1234)
    os.chown(work.top, 1234, 1234)
    work.start()
    (work.top / "edited").write_text("new")
    (work.top / "removed").unlink()
    (work.top / "folder" / "link").unlink()
    (work.top / "folder").rmdir()
    work.changed()
    apply(work.plan(), work.store)
    assert {(work.top / name).lstat().st_uid for name in ("edited", "removed", "folder", "folder/link")} == {1234}
