"""What a plan of an undo renames, leaves alone, asks about and can't restore, each with the reason that users read."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from restored_workspace import Workspace

from bradawl.checkpoints.kept_copies import identity_of
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.restore import RestorePlan, apply, plan
from bradawl.checkpoints.restore_plan import PlannedChange

FOLDER = FileState("folder", 0o755)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path.resolve()) as made:
        yield made


def planned(work: Workspace, *changes: Change, **options: bool) -> RestorePlan:
    record = ChangeRecord("1", 1, tuple(sorted(changes, key=lambda each: each.path)))
    return plan(work.store, [record], [os.fsencode(work.top)], **options)


def unsaved(path: Path) -> FileState:
    """The state of a file whose content is not saved, or of a folder that is not entered."""
    found = path.lstat()
    kind = "folder" if path.is_dir() else "file"
    size = 0 if path.is_dir() else found.st_size
    return FileState(kind, stat.S_IMODE(found.st_mode), "", size, identity=identity_of(found))


def saved(work: Workspace, text: str, mode: int = 0o644) -> FileState:
    path = work.top.parent / "content"
    path.write_text(text)
    with path.open("rb") as file:
        return FileState("file", mode, work.store.add(file.fileno(), len(text)), len(text))


def write(work: Workspace, name: str, text: str, mode: int = 0o644) -> Path:
    path = work.top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


# ------------------------------------------------------------------ what is not saved


def moved(work: Workspace, name: str, to: str) -> tuple[Change, Change]:
    """Rename a file or folder that is not saved; the changes that a search would record."""
    before = unsaved(work.top / name)
    (work.top / name).rename(work.top / to)
    return Change(work.path(name), before, None), Change(work.path(to), None, unsaved(work.top / to))


def test_an_unsaved_file_is_renamed_back(work: Workspace):
    write(work, "big", "x" * 90, 0o600)
    changes = moved(work, "big", "big2")
    made = planned(work, *changes)
    back, away = made.changes
    assert (back.path, back.source, back.wanted, back.moves_away) == (
        work.path("big"),
        work.path("big2"),
        changes[0].before,
        False,
    )
    assert (away.path, away.source, away.wanted, away.moves_away) == (work.path("big2"), b"", None, True)
    assert away.now is not None and away.now.identity is not None
    assert (made.conflicts, made.impossible, made.lost, made.is_partial) == ((), (), (), False)


def test_an_unsaved_file_that_takes_the_name_of_a_saved_one_is_renamed_and_that_is_restored(work: Workspace):
    write(work, "big", "x" * 90)
    first, second = moved(work, "big", "small")
    old = saved(work, "old")
    made = planned(work, first, msgspec.structs.replace(second, before=old))
    back, away = made.changes
    assert (back.source, away.wanted, away.moves_away) == (work.path("small"), old, True)
    assert made.impossible == ()


def test_what_was_in_the_place_of_a_renamed_file_and_is_gone_is_impossible_alone(work: Workspace):
    write(work, "big", "x" * 90)
    first, second = moved(work, "big", "other")
    made = planned(work, first, msgspec.structs.replace(second, before=FileState("file", 0o644, "ab" * 32, 5)))
    assert [(change.path, change.source, change.wanted is None) for change in made.changes] == [
        (work.path("big"), work.path("other"), False),
        (work.path("other"), b"", True),
    ]
    assert made.impossible == (
        (work.path("other"), "its content is not kept any more: undo no longer reaches so far back"),
    )


def test_an_unsaved_file_that_the_user_changed_after_its_rename_is_a_conflict(work: Workspace):
    write(work, "big", "x" * 90)
    changes = moved(work, "big", "big2")
    (work.top / "big2").write_text("y" * 80)
    (conflict,) = planned(work, *changes).conflicts
    assert conflict.path == work.path("big2")
    assert conflict.conflict == "it holds what was big, which is not saved; it was changed since it was renamed"
    assert planned(work, *changes).impossible == ((work.path("big"), "its content was not saved"),)


def test_what_may_be_a_copy_of_an_unsaved_file_is_a_conflict(work: Workspace):
    big = write(work, "big", "x" * 90)
    before, times = unsaved(big), big.stat()
    copy = write(work, "copy", "x" * 90)
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    big.unlink()
    made = planned(work, Change(work.path("big"), before, None), Change(work.path("copy"), None, unsaved(copy)))
    assert [change.conflict for change in made.conflicts] == [
        "it holds what was big, which is not saved; it may be a copy"
    ]
    assert made.impossible == ((work.path("big"), "its content was not saved"),)


def test_an_unsaved_folder_is_renamed_back_with_all_in_it_or_said_to_be_lost(work: Workspace):
    write(work, "packages/x/y", "1")
    changes = moved(work, "packages", "away")
    inner = Change(work.path("away/x/y"), None, saved(work, "1"))
    made = planned(work, *changes, inner)
    assert [(change.path, change.source) for change in made.changes] == [
        (work.path("away"), b""),
        (work.path("packages"), work.path("away")),
    ]
    (work.top / "away/x/y").unlink()
    (work.top / "away/x").rmdir()
    (work.top / "away").rmdir()
    made = planned(work, *changes)
    assert made.lost == ("packages was removed; what was in it is not saved (how much that was is not known).",)
    assert made.is_partial


# ------------------------------------------------------------------ conflicts and what is impossible


def only_change(made: RestorePlan) -> PlannedChange:
    (change,) = made.changes
    return change


def test_each_conflict_says_what_happened(work: Workspace):
    old, new = saved(work, "old"), saved(work, "new")
    path = work.path("f")
    assert only_change(planned(work, Change(path, old, new))).conflict == "it was removed since"
    file = write(work, "f", "user")
    assert only_change(planned(work, Change(path, old, new))).conflict == "it was changed since"
    assert only_change(planned(work, Change(path, old, None))).conflict == "it was made since"
    file.write_text("new")
    assert only_change(planned(work, Change(path, old, new))).conflict == ""
    file.chmod(0o600)
    assert only_change(planned(work, Change(path, old, new))).conflict == "it was changed since"
    file.chmod(0o644)
    records = [
        ChangeRecord("2", 2, (Change(path, saved(work, "user"), new),)),
        ChangeRecord("1", 1, (Change(path, old, old),)),
    ]
    made = plan(work.store, records, [os.fsencode(work.top)])
    assert only_change(made).conflict == "it was changed between the calls that are undone, and not by them"
    work.store.largest_bytes = 2
    too_large = "its present content is too large to be saved, so this could not be undone"
    assert only_change(planned(work, Change(path, None, new))).conflict == too_large
    assert only_change(planned(work, Change(path, old, new))).conflict == too_large
    assert only_change(planned(work, Change(path, msgspec.structs.replace(new, mode=0o600), new))).conflict == ""
    work.store.largest_bytes = 3
    assert only_change(planned(work, Change(path, None, new))).conflict == ""


@pytest.mark.parametrize("how", ["in place", "replaced"])
def test_a_file_too_large_to_be_saved_that_was_rewritten_at_its_size_since_is_a_conflict(work: Workspace, how: str):
    file = write(work, "made", "by the call")
    change = Change(work.path("made"), None, unsaved(file))
    assert only_change(planned(work, change)).conflict == ""
    if how == "replaced":
        write(work, "new", "by the user").rename(file)
    else:
        file.write_text("by the user")
        os.utime(file, ns=(1, 1))
    assert only_change(planned(work, change)).conflict == "it was changed since"


def test_a_file_too_large_to_be_saved_that_undo_and_redo_made_again_is_no_conflict(work: Workspace):
    file = write(work, "made", "by the call")
    change = Change(work.path("made"), None, unsaved(file))
    undone = apply(planned(work, change), work.store)
    assert not file.exists()
    apply(plan(work.store, [undone], [os.fsencode(work.top)]), work.store)
    os.utime(file, ns=(1, 1))
    assert file.read_text() == "by the call"
    assert only_change(planned(work, change)).conflict == ""


def test_each_impossible_path_says_why(work: Workspace):
    old = saved(work, "old")
    os.mkfifo(work.top / "pipe")
    write(work, "file", "x")
    top = os.fsencode(work.top)
    cases = {
        work.path("pipe"): (Change(work.path("pipe"), old, None), "devices, sockets and pipes are not restored"),
        work.path("p2"): (
            Change(work.path("p2"), FileState("other", 0o644), None),
            "devices, sockets and pipes are not restored",
        ),
        work.path("u"): (Change(work.path("u"), FileState("file", 0o644, "", 3), None), "its content was not saved"),
        work.path("a/../x"): (Change(work.path("a/../x"), None, old), "it is outside of the folders that undo covers"),
        work.path("file/x"): (
            Change(work.path("file/x"), old, None),
            f"{work.top}/file is not a folder that can be entered",
        ),
        top: (Change(top, None, FOLDER), "it is the workspace itself"),
    }
    for path, (change, why) in cases.items():
        assert planned(work, change).impossible == ((path, why),)
    made = planned(work, *(change for change, _ in cases.values()))
    assert made.impossible == tuple(sorted((path, why) for path, (_, why) in cases.items()))
    assert (made.changes, made.git) == ((), ())
    assert made.is_partial


def test_the_outermost_folders_to_add_are_named(work: Workspace):
    out = work.top.parent
    paths = [f"{out}/o/a", f"{out}/o/p/b", f"{out}/o2/c", f"{out}/it's/d", f"{out}/o/z"]
    changes = [Change(os.fsencode(path), None, FOLDER) for path in paths]
    made = planned(work, *changes)
    outside = "it is outside of the folders that undo covers; give its folder with --add-dir "
    assert dict(made.impossible) == {
        os.fsencode(path): outside + folder
        for path, folder in zip(
            paths, (f"{out}/o", f"{out}/o", f"{out}/o2", f"""'{out}/it'"'"'s'""", f"{out}/o"), strict=True
        )
    }
    assert made.outside == tuple(
        Change(each.path, None, FOLDER) for each in sorted(changes, key=lambda each: each.path)
    )
    assert planned(work, Change(b"/x", None, FOLDER)).impossible == ((b"/x", outside + "/"),)


def test_gits_data_is_a_part_of_its_own(work: Workspace):
    old = saved(work, "old")
    names = (".git", ".git/config", "sub/.git/HEAD", ".gitx", "x.git/y", "sub/.gitignore")
    made = planned(work, *(Change(work.path(name), old if "/" in name else FOLDER, None) for name in names))
    assert [change.path for change in made.git] == sorted(map(work.path, (".git", ".git/config", "sub/.git/HEAD")))
    assert [change.path for change in made.changes] == sorted(map(work.path, (".gitx", "x.git/y", "sub/.gitignore")))


# ------------------------------------------------------------------ after a restore that was killed


@pytest.mark.parametrize(
    ("text", "mode", "conflict"),
    [
        ("old text", 0o600, ""),
        ("new text", 0o600, ""),
        ("new text", 0o644, ""),
        ("old text", 0o644, ""),
        ("old text", 0o755, "it was changed since"),
        ("user", 0o644, "it was changed since"),
        ("old", 0o644, "it was changed since"),
        ("oldt", 0o644, "it was changed since"),
        ("oxd text", 0o644, "it was changed since"),
    ],
)
def test_a_state_on_the_way_is_no_conflict_after_a_restore_that_was_killed(
    text: str, mode: int, conflict: str, work: Workspace
):
    old, new = saved(work, "old text", 0o600), saved(work, "new text", 0o644)
    write(work, "f", text, mode)
    change = Change(work.path("f"), old, new)
    if (text, mode) != ("old text", 0o600):
        assert only_change(planned(work, change, is_interrupted=True)).conflict == conflict
    else:
        assert planned(work, change, is_interrupted=True).changes == ()
    if (text, mode) in (("new text", 0o600), ("old text", 0o644)):
        assert only_change(planned(work, change)).conflict == "it was changed since"


@pytest.mark.parametrize("begins", ["n", "new", "new content th"])
def test_a_file_that_was_overwritten_in_part_is_no_conflict_after_a_kill(begins: str, work: Workspace):
    old, new = "new content that is long", "old"
    change = Change(work.path("f"), saved(work, old), saved(work, new))
    write(work, "f", begins + new[len(begins) :])
    assert only_change(planned(work, change, is_interrupted=True)).conflict == ""
    assert only_change(planned(work, change)).conflict == "it was changed since"


def test_a_path_that_changes_its_kind_may_be_missing_after_a_kill(work: Workspace):
    file = saved(work, "x")
    for before, after, conflict in (
        (FOLDER, file, ""),
        (file, FOLDER, ""),
        (file, saved(work, "y"), "it was removed since"),
        (FOLDER, FileState("folder", 0o700), "it was removed since"),
    ):
        made = planned(work, Change(work.path("f"), before, after), is_interrupted=True)
        assert only_change(made).conflict == conflict
        assert only_change(planned(work, Change(work.path("f"), before, after))).conflict == "it was removed since"


def test_a_folder_that_was_opened_is_no_conflict_after_a_kill(work: Workspace):
    (work.top / "d").mkdir()
    change = Change(work.path("d"), FileState("folder", 0o500), FileState("folder", 0o050))
    for mode, conflict in ((0o700, ""), (0o750, ""), (0o777, "it was changed since")):
        (work.top / "d").chmod(mode)
        assert only_change(planned(work, change, is_interrupted=True)).conflict == conflict
        assert only_change(planned(work, change)).conflict == "it was changed since"


def test_a_file_of_terabytes_is_planned_without_being_read(work: Workspace):
    file, path = work.top / "huge", work.path("huge")
    file.touch()
    os.truncate(file, 8 << 40)
    old = saved(work, "old")
    huge = FileState("file", stat.S_IMODE(file.stat().st_mode), "", 8 << 40)
    too_large = "its present content is too large to be saved, so this could not be undone"
    assert only_change(planned(work, Change(path, None, huge))).conflict == too_large
    made = planned(work, Change(path, old, huge))
    assert only_change(made).conflict == too_large
    undone = apply(made, work.store, overwrite=[path])
    assert file.read_text() == "old" and undone.uncovered == ()
    assert undone.changes[0].before is not None and undone.changes[0].before.content == ""
