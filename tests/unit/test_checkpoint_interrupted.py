"""Restores that are stopped or killed: what each leaves is found by its intent, and nothing else is removed."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from restored_workspace import Workspace

from bradawl.checkpoints.errors import RestoreStopped
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.checkpoints.restore import apply, plan
from bradawl.checkpoints.restore_intent import (
    RestoreIntent,
    RestoreIntents,
    close_opened_folders,
    new_temporary_name,
    remove_temporary_files,
    unfinished_text,
)
from bradawl.checkpoints.store import ContentStore

TEMPORARY = b".bradawl-0123456789abcdef.tmp"
INTENT = RestoreIntent("session", "undo", "both", 3, 9, "2", "ab" * 32, TEMPORARY)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as made:
        yield made


def inverse(record: ChangeRecord) -> ChangeRecord:
    changes = tuple(Change(each.path, each.after, each.before) for each in record.changes)
    return msgspec.structs.replace(record, changes=changes)


def test_an_intent_is_read_by_another_process_and_left_over_when_its_writer_is_gone(work: Workspace) -> None:
    intents = RestoreIntents(work.store.folder)
    assert (intents.read("session"), intents.left_over()) == (None, [])
    intents.write(INTENT)
    with ContentStore(work.store.folder.path) as other:
        seen = RestoreIntents(other.folder)
        assert (seen.read("session"), seen.left_over()) == (INTENT, [])
        again = msgspec.structs.replace(INTENT, ref="cd" * 32)
        intents.write(again)
        assert (seen.read("session"), seen.left_over()) == (again, [])
        intents.close()
        assert seen.left_over() == [again]
        intents.remove("session")
        assert (seen.read("session"), seen.left_over()) == (None, [])


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode(INTENT)[:-4]])
def test_a_damaged_intent_is_none(work: Workspace, data: bytes) -> None:
    work.store.folder.made()
    (work.store.folder.path / "session.restore").write_bytes(data)
    intents = RestoreIntents(work.store.folder)
    assert (intents.read("session"), intents.left_over()) == (None, [])


def test_only_the_temporary_file_of_the_intent_is_removed(work: Workspace) -> None:
    users = work.top / ".bradawl-fedcba9876543210.tmp"
    users.write_text("the user's")
    mine = work.top / TEMPORARY.decode()
    mine.write_text("half")
    (work.top / "folder").mkdir()
    elsewhere = work.top / "folder" / TEMPORARY.decode()
    elsewhere.mkdir()
    remove_temporary_files(
        INTENT, [work.path("a"), work.path("folder/b"), work.path("none/c")], [os.fsencode(work.top)]
    )
    assert (users.exists(), mine.exists(), elsewhere.is_dir()) == (True, False, True)


def test_a_lock_of_git_is_removed_only_if_it_is_the_temporary_file(work: Workspace) -> None:
    git = work.top / ".git"
    git.mkdir()
    for name in ("index.lock", "HEAD.lock"):
        (git / name).write_text("git's")
    temporary = git / TEMPORARY.decode()
    temporary.write_text("new")
    (git / "config.lock").hardlink_to(temporary)
    paths = [work.path(f".git/{name}") for name in ("index", "HEAD", "config")]
    remove_temporary_files(INTENT, paths, [os.fsencode(work.top)])
    assert sorted(path.name for path in git.iterdir()) == ["HEAD.lock", "index.lock"]


def test_folders_that_were_opened_get_their_modes_unless_they_have_another_one(work: Workspace) -> None:
    for name, mode in (("closed", 0o700), ("users", 0o755)):
        (work.top / name).mkdir()
        (work.top / name).chmod(mode)
    opened = ((work.path("closed"), 0o500), (work.path("users"), 0o500), (work.path("gone"), 0o500))
    close_opened_folders(msgspec.structs.replace(INTENT, opened=opened), [os.fsencode(work.top)])
    assert stat.S_IMODE((work.top / "closed").stat().st_mode) == 0o500
    assert stat.S_IMODE((work.top / "users").stat().st_mode) == 0o755


@pytest.mark.parametrize("stop_after", range(9))
def test_a_stopped_restore_is_finished_and_taken_back(work: Workspace, stop_after: int) -> None:
    (work.top / "folder").mkdir()
    for number in range(3):
        (work.top / "folder" / f"old{number}").write_text("old")
    work.start()
    for number in range(3):
        (work.top / "folder" / f"old{number}").unlink()
        (work.top / f"new{number}").write_text("new")
    work.changed()
    intended: list[ChangeRecord] = []
    calls = iter(range(99))
    roots = [os.fsencode(work.top)]

    def stopped() -> None:
        apply(
            work.plan(),
            work.store,
            begin=lambda record, _: intended.append(record),
            should_stop=lambda: next(calls) >= stop_after,
        )

    if stop_after < 6:
        with pytest.raises(RestoreStopped) as error:
            stopped()
        assert (error.value.done, error.value.total) == (stop_after, 6)
        apply(plan(work.store, intended, roots, is_interrupted=True), work.store)
        assert work.scan() == work.trees[-1], "taken back"
    else:
        stopped()
    apply(plan(work.store, [inverse(intended[0])], roots, is_interrupted=True), work.store)
    assert work.scan() == work.trees[0], "finished"


@pytest.mark.parametrize("written", range(12))
def test_a_file_with_several_names_that_was_overwritten_in_part_is_no_conflict(work: Workspace, written: int) -> None:
    file = work.top / "a"
    file.write_bytes(b"0123456789ab")
    (work.top / "b").hardlink_to(file)
    work.start()
    file.write_bytes(b"xyz")
    work.changed()
    wanted = b"0123456789ab"
    with file.open("r+b") as half:
        half.write(wanted[:written])
    roots = [os.fsencode(work.top)]
    record = inverse(work.records[0])
    if written:
        assert plan(work.store, work.records, roots).conflicts, "without a restore that was killed it is one"
    for going in (work.records, [record]):
        made = plan(work.store, going, roots, is_interrupted=True)
        assert made.conflicts == ()
    apply(plan(work.store, work.records, roots, is_interrupted=True), work.store)
    assert work.scan() == work.trees[0]
    file.write_bytes(b"xyQ")
    assert len(plan(work.store, work.records, roots, is_interrupted=True).conflicts) == 2, "the user's"


def test_no_two_restores_have_one_temporary_name() -> None:
    assert len({new_temporary_name() for _ in range(100)}) == 100


def test_a_file_of_the_user_under_the_temporary_name_stays(work: Workspace) -> None:
    (work.top / "file").write_text("old")
    work.start()
    (work.top / "file").write_text("new")
    work.changed()
    (work.top / TEMPORARY.decode()).write_text("the user's")
    apply(work.plan(), work.store, temporary=TEMPORARY)
    assert (work.top / "file").read_text() == "old"
    assert (work.top / TEMPORARY.decode()).read_text() == "the user's"


def test_the_records_of_abandoned_restores_are_kept_once_each(work: Workspace) -> None:
    intents = RestoreIntents(work.store.folder)
    assert intents.abandoned("session") == ()
    intents.abandon("session")
    assert intents.abandoned("session") == ()
    for ref in ("ab" * 32, "cd" * 32, "ab" * 32):
        intents.write(msgspec.structs.replace(INTENT, ref=ref))
        assert intents.abandoned("session")[-1] == ref
        intents.abandon("session")
        assert intents.read("session") is None
    assert intents.abandoned("session") == ("ab" * 32, "cd" * 32)
    assert intents.abandoned("other") == ()
    (work.store.folder.path / "session.abandoned").write_bytes(b"ab" * 32 + b"\xff" * 64 + b"cd")
    assert intents.abandoned("session") == ("ab" * 32,)


@pytest.mark.parametrize("stop_after", range(12))
def test_what_an_abandoned_restore_has_done_is_no_conflict(work: Workspace, stop_after: int) -> None:
    (work.top / "folder").mkdir(mode=0o750)
    for number in range(4):
        (work.top / "folder" / f"old{number}").write_text("old")
    (work.top / "closed").mkdir(mode=0o500)
    work.start()
    for number in range(4):
        (work.top / "folder" / f"old{number}").unlink()
        (work.top / f"new{number}").write_text("new")
    (work.top / "folder").rmdir()
    (work.top / "closed").chmod(0o555)
    work.changed()
    first = work.records[0]
    intended: list[ChangeRecord] = []
    calls = iter(range(99))
    roots = [os.fsencode(work.top)]
    with pytest.raises(RestoreStopped) if stop_after < 10 else contextlib.nullcontext():
        apply(
            work.plan(),
            work.store,
            begin=lambda record, _: intended.append(record),
            should_stop=lambda: next(calls) >= stop_after,
        )
    if (work.top / "folder").exists():
        (work.top / "folder").chmod(0o700)  # as if the process had been killed, which sets no modes at its end
    work.trees.append(work.scan())
    for number in (0, 3):
        for name in (f"folder/old{number}", f"new{number}"):
            if (work.top / name).exists():
                (work.top / name).write_text("by a later call")
    work.changed()
    records = [work.records[-1], first]
    if 6 <= stop_after < 10:
        assert plan(work.store, records, roots).conflicts
    planned = plan(work.store, records, roots, abandoned=intended)
    assert planned.conflicts == ()
    apply(planned, work.store)
    assert work.scan() == work.trees[0]
    (work.top / "folder/old1").write_text("the user's")
    planned = plan(work.store, [inverse(first)], roots, abandoned=intended)
    assert [each.path for each in planned.conflicts] == [work.path("folder/old1")]


@pytest.mark.parametrize("lost", [b"", bytes(6_000), b"01" * 1_024, b"01" * 1_024 + bytes(3_952)], ids=len)
def test_a_file_whose_end_a_loss_of_power_has_kept_from_the_disk_is_no_conflict(work: Workspace, lost: bytes) -> None:
    removed, changed = work.top / "removed", work.top / "changed"
    for file in (removed, changed):
        file.write_bytes(b"01" * 3_000)
    work.start()
    removed.unlink()
    changed.write_bytes(b"xyz" * 4_000)
    work.changed()
    for file in (removed, changed):
        file.write_bytes(lost)
    roots = [os.fsencode(work.top)]
    assert len(plan(work.store, work.records, roots).conflicts) == 2, "without a restore that was killed they are"
    made = plan(work.store, work.records, roots, is_interrupted=True)
    assert made.conflicts == ()
    apply(made, work.store)
    assert work.scan() == work.trees[0]
    for users in (b"01" * 1_000, b"01" * 255 + b"0Q", b"01" * 255 + b"\0\0"):
        removed.write_bytes(users)
        assert len(plan(work.store, work.records, roots, is_interrupted=True).conflicts) == (users[-1] != 0)


def test_the_commands_for_a_restore_that_stopped_name_its_folder() -> None:
    said = unfinished_text(INTENT, "session", ("-C", "/the project"))
    assert "`bradawl undo -C '/the project' session` finishes it" in said
    assert "`bradawl undo -C '/the project' session --redo` takes it back" in said
