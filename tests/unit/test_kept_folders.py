"""Undo of renamed folders that are not covered: they are renamed back or left alone, and never removed."""

import shutil
from pathlib import Path

import pytest
from kept_copies_world import BIG, Work, check_undo_and_redo, make_packages

from bradawl.checkpoints.errors import RestoreRefused
from bradawl.checkpoints.restore import apply


@pytest.fixture
def work(tmp_path: Path):
    made = Work(tmp_path)
    yield made
    made.close()


def test_a_renamed_folder_of_packages_is_renamed_back(work: Work) -> None:
    make_packages(work)
    work.start()
    before = work.state()
    (work / "node_modules").rename(work / "nm_old")
    work.call()
    check_undo_and_redo(work, before)


@pytest.mark.parametrize("name", ["__pycache__", ".cache"])
def test_a_renamed_cache_is_renamed_back(work: Work, name: str) -> None:
    make_packages(work, name)
    work.start()
    before = work.state()
    (work / name).rename(work / "old")
    work.call()
    check_undo_and_redo(work, before)


def test_a_renamed_virtual_environment_is_renamed_back(work: Work) -> None:
    make_packages(work, ".venv")
    (work / ".venv/pyvenv.cfg").write_text("home = /usr/bin")
    work.start()
    before = work.state()
    (work / ".venv").rename(work / "v2")
    work.call()
    check_undo_and_redo(work, before)


def test_a_renamed_folder_that_lost_its_cache_tag_is_renamed_back(work: Work) -> None:
    make_packages(work, "c")
    (work / "c/CACHEDIR.TAG").write_bytes(b"Signature: 8a477f597d28d172789f06886806bc55")
    work.start()
    (work / "c").rename(work / "d")
    (work / "d/CACHEDIR.TAG").unlink()
    work.call()
    undone = work.undo()
    assert not (work / "d").exists() and (work / "c/x/i.js").read_bytes() == b"1"
    work.redo(undone)
    assert not (work / "c").exists() and (work / "d/x/i.js").read_bytes() == b"1"


def test_a_renamed_project_with_packages_comes_back_whole(work: Work) -> None:
    make_packages(work, "app/node_modules")
    (work / "app/main.js").write_bytes(b"main")
    (work / "app/model").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "app").rename(work / "web")
    (work / "web/main.js").write_bytes(b"changed")
    work.call()
    check_undo_and_redo(work, before)


def test_packages_moved_into_a_new_folder_come_back(work: Work) -> None:
    make_packages(work)
    work.start()
    before = work.state()
    (work / "attic").mkdir()
    (work / "node_modules").rename(work / "attic/nm")
    work.call()
    check_undo_and_redo(work, before)


def test_packages_whose_name_is_taken_by_an_empty_folder_come_back(work: Work) -> None:
    make_packages(work)
    work.start()
    (work / "node_modules").rename(work / "nm_old")
    (work / "node_modules").mkdir()
    work.call()
    undone = work.undo()
    assert undone.uncovered == ()
    assert (work / "node_modules/x/i.js").exists() and not (work / "nm_old").exists()


def test_packages_whose_name_is_taken_by_other_packages_are_left_alone(work: Work) -> None:
    make_packages(work)
    work.start()
    (work / "node_modules").rename(work / "nm_old")
    make_packages(work)
    (work / "new").write_bytes(b"new")
    work.call()
    after = work.state()
    planned = work.plan()
    assert [path for path, _ in planned.impossible] == [work.path("nm_old"), work.path("node_modules")]
    apply(planned, work.store)
    del after["new"]
    assert work.state() == after


def test_folders_of_packages_that_were_swapped_are_swapped_back(work: Work) -> None:
    make_packages(work, "a/node_modules")
    make_packages(work, "b/node_modules")
    (work / "b/node_modules/x/i.js").write_bytes(b"2")
    work.start()
    before = work.state()
    (work / "a/node_modules").rename(work / "c")
    (work / "b/node_modules").rename(work / "a/node_modules")
    (work / "c").rename(work / "b/node_modules")
    work.call()
    check_undo_and_redo(work, before)


def test_a_renamed_folder_that_a_later_call_changed_goes_back_one_step_at_a_time(work: Work) -> None:
    make_packages(work)
    work.start()
    before = work.state()
    (work / "node_modules").rename(work / "nm_old")
    work.call()
    renamed = work.state()
    (work / "nm_old/x").rename(work / "y")
    work.call()
    changed = work.state()
    with pytest.raises(RestoreRefused, match="one step at a time"):
        work.plan()
    assert work.state() == changed
    apply(work.plan([work.records.pop()]), work.store)
    assert work.state() == renamed
    check_undo_and_redo(work, before)


def test_removed_packages_come_back_empty_and_are_named(work: Work) -> None:
    for name in ("node_modules", ".cache", "sub/__pycache__"):
        make_packages(work, name)
    work.start()
    for name in ("node_modules", ".cache", "sub"):
        shutil.rmtree(work / name)
    work.call()
    planned = work.plan()
    why = "was removed; what was in it is not saved (how much that was is not known)."
    assert planned.lost == (f".cache {why}", f"node_modules {why}", f"sub/__pycache__ {why}")
    apply(planned, work.store)
    assert list((work / "node_modules").iterdir()) == []


def test_packages_installed_anew_are_not_said_to_be_removed(work: Work) -> None:
    make_packages(work)
    work.start()
    shutil.rmtree(work / "node_modules")
    make_packages(work)
    (work / "lock").write_bytes(b"1")
    work.call()
    planned = work.plan()
    assert planned.lost == () and [each.path for each in planned.changes] == [work.path("lock")]
    assert "node_modules" in " ".join(planned.uncovered)


def test_a_new_folder_with_the_inode_number_of_removed_packages_is_removed(work: Work) -> None:
    make_packages(work)
    work.start()
    shutil.rmtree(work / "node_modules")
    for name in ("build", "dist", "out"):
        (work / name).mkdir()
    work.call()
    work.undo()
    assert not {"build", "dist", "out"} & {path.name for path in work.top.iterdir()}
