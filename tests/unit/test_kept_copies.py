"""Undo of renamed files: what is not saved is renamed back or left alone, and never removed."""

import os
import random
import shutil
from pathlib import Path

import pytest
from kept_copies_world import BIG, OTHER_BIG, Work, check_undo_and_redo, make_packages

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.errors import RestoreRefused
from bradawl.checkpoints.restore import apply


@pytest.fixture
def work(tmp_path: Path):
    made = Work(tmp_path)
    yield made
    made.close()


def test_a_renamed_large_file_is_renamed_back(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "big").rename(work / "other")
    work.call()
    assert work.sentences == ()
    check_undo_and_redo(work, before)


def test_a_renamed_folder_with_large_files_comes_back_whole(work: Work) -> None:
    (work / "data/deep").mkdir(parents=True)
    for name in ("one", "two", "deep/three"):
        (work / "data" / name).write_bytes(BIG)
    (work / "data/small").write_bytes(b"small")
    work.start()
    before = work.state()
    (work / "data").rename(work / "dataset")
    (work / "dataset/small").write_bytes(b"changed")
    (work / "dataset/new").write_bytes(b"new")
    work.call()
    check_undo_and_redo(work, before)


def test_a_file_beyond_the_first_budget_is_saved_under_its_new_name(tmp_path: Path) -> None:
    work = Work(tmp_path, Coverage(file_bytes=10_000, baseline_bytes=1_000))
    (work / "data").mkdir()
    (work / "data/one").write_bytes(BIG)
    work.start()
    (work / "data").rename(work / "dataset")
    work.call()
    assert work.sentences == ()
    undone = work.undo()
    assert undone.uncovered == () and (work / "data/one").read_bytes() == BIG and not (work / "dataset").exists()
    work.close()


def test_two_names_that_were_swapped_are_swapped_back(work: Work) -> None:
    (work / "a").write_bytes(BIG)
    (work / "b").write_bytes(OTHER_BIG)
    work.start()
    before = work.state()
    (work / "a").rename(work / "c")
    (work / "b").rename(work / "a")
    (work / "c").rename(work / "b")
    work.call()
    check_undo_and_redo(work, before)


def test_a_ring_and_a_chain_of_names(work: Work) -> None:
    names = ("a", "b", "c", "d")
    for number, name in enumerate(names):
        (work / name).write_bytes(bytes([number]) * (2_000 + number % 2))
    work.start()
    before = work.state()
    (work / "d").rename(work / "e")
    for name, to in (("c", "x"), ("b", "c"), ("a", "b"), ("x", "a")):
        (work / name).rename(work / to)
    work.call()
    check_undo_and_redo(work, before)


def test_a_chain_over_several_calls(work: Work) -> None:
    (work / "a").write_bytes(BIG)
    work.start()
    before = work.state()
    for name, to in (("a", "b"), ("b", "c"), ("c", "sub/d")):
        (work / to).parent.mkdir(exist_ok=True)
        (work / name).rename(work / to)
        work.call()
    check_undo_and_redo(work, before)


def test_a_large_file_renamed_over_a_saved_one(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "small").write_bytes(b"small")
    work.start()
    before = work.state()
    (work / "big").rename(work / "small")
    work.call()
    check_undo_and_redo(work, before)


def test_a_large_file_renamed_over_another_one_is_kept_and_the_other_named(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "gone").write_bytes(OTHER_BIG)
    work.start()
    (work / "big").rename(work / "gone")
    work.call()
    assert [path for path, _ in work.plan().impossible] == [work.path("gone")]
    undone = work.undo()
    assert (work / "big").read_bytes() == BIG and not (work / "gone").exists()
    work.redo(undone)
    assert (work / "gone").read_bytes() == BIG and not (work / "big").exists()


def test_a_name_that_is_taken_by_a_new_file_is_freed(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "big").rename(work / "old")
    (work / "big").write_bytes(b"new")
    work.call()
    check_undo_and_redo(work, before)


def test_a_name_that_is_taken_by_a_new_folder_is_freed(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "big").rename(work / "old")
    (work / "big").mkdir()
    (work / "big/inner").write_bytes(b"new")
    work.call()
    check_undo_and_redo(work, before)


def test_a_large_file_moved_into_a_new_folder_below_its_own_name(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "big").rename(work / "x")
    (work / "big").mkdir()
    (work / "x").rename(work / "big/big")
    work.call()
    work.undo()
    assert [path.read_bytes() for path in work.top.rglob("*") if path.is_file()] == [BIG]


def test_hard_links_of_a_large_file(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "second").hardlink_to(work / "big")
    work.start()
    before = work.state()
    (work / "big").rename(work / "x")
    (work / "second").rename(work / "y")
    work.call()
    check_undo_and_redo(work, before)
    assert (work / "big").samefile(work / "second")


def test_a_new_hard_link_of_a_large_file_is_removed(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "second").hardlink_to(work / "big")
    work.call()
    work.undo()
    assert (work / "big").read_bytes() == BIG and not (work / "second").exists()


def test_a_large_file_renamed_and_edited_is_a_conflict(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "big").rename(work / "other")
    with (work / "other").open("ab") as file:
        file.write(b"more")
    work.call()
    planned = work.plan()
    (conflict,) = planned.conflicts
    assert conflict.path == work.path("other") and "big" in conflict.conflict
    assert [path for path, _ in planned.impossible] == [work.path("big")]
    apply(planned, work.store)
    assert (work / "other").read_bytes() == BIG + b"more"


def test_a_copy_of_a_large_file_is_a_conflict(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    shutil.copy2(work / "big", work / "copy")
    (work / "big").unlink()
    work.call()
    planned = work.plan()
    assert [each.path for each in planned.conflicts] == [work.path("copy")]
    assert [path for path, _ in planned.impossible] == [work.path("big")]


def test_a_file_that_only_has_the_inode_number_of_a_removed_one_is_not_taken_for_it(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "big").unlink()
    (work / "new").write_bytes(b"n" * 2_100)
    work.call()
    planned = work.plan()
    assert [each.conflict for each in planned.conflicts] == ["it may hold what was big, which is not saved"]
    apply(planned, work.store, overwrite=[work.path("new")])
    assert not (work / "new").exists()


def test_the_mode_of_a_large_file_is_restored(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "big").chmod(0o700)
    work.call()
    assert work.sentences == ()
    check_undo_and_redo(work, before)


def test_a_large_file_renamed_with_another_mode(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "big").rename(work / "other")
    (work / "other").chmod(0o400)
    work.call()
    check_undo_and_redo(work, before)


def test_a_saved_file_that_grows_over_the_limit_is_restored_and_not_named(work: Work) -> None:
    (work / "a").write_bytes(b"small")
    work.start()
    before = work.state()
    (work / "a").write_bytes(BIG)
    (work / "new").write_bytes(BIG)
    work.call()
    assert work.sentences == ()
    work.undo()
    assert work.state() == before


def test_a_source_that_the_user_changed_since_is_left_alone_with_its_target(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "big").rename(work / "other")
    work.call()
    (work / "big").write_bytes(b"the user's")
    planned = work.plan()
    assert [each.path for each in planned.conflicts] == [work.path("big")]
    apply(planned, work.store)
    assert (work / "big").read_bytes() == b"the user's" and (work / "other").read_bytes() == BIG
    undone = apply(work.plan(), work.store, overwrite=[work.path("big")])
    assert (work / "big").read_bytes() == BIG and not (work / "other").exists()
    work.redo(undone)
    assert (work / "big").read_bytes() == b"the user's" and (work / "other").read_bytes() == BIG


def test_a_rename_is_left_alone_if_its_target_appears_after_the_plan(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "big").rename(work / "other")
    work.call()
    planned = work.plan()
    (work / "big").write_bytes(b"new")
    record = apply(planned, work.store)
    assert len(record.uncovered) == 2
    assert (work / "big").read_bytes() == b"new" and (work / "other").read_bytes() == BIG


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b"-rf", b"a" * 255])
def test_names_of_any_bytes(work: Work, name: bytes) -> None:
    make_packages(work)
    (work / "big").write_bytes(BIG)
    work.start()
    before = work.state()
    (work / "d").mkdir()
    (work / "big").rename(work / "d" / os.fsdecode(name))
    (work / "node_modules").rename(work / os.fsdecode(name))
    work.call()
    check_undo_and_redo(work, before)


@pytest.mark.parametrize("seed", range(60))
def test_random_renames_lose_nothing_and_are_undone_and_redone(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - test data
    work = Work(tmp_path)
    for name in ("a", "b", "data/c", "data/d"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(choice.randbytes(2_000))
    for name in ("s", "data/t"):
        (work / name).write_bytes(choice.randbytes(10))
    make_packages(work)
    make_packages(work, "data/.cache")
    work.start()
    before = work.state()
    kept = {content for _, _, content in before.values()}
    for _ in range(choice.randint(1, 3)):
        for _ in range(choice.randint(1, 4)):
            paths = sorted(work.top.rglob("*"))
            source = choice.choice([path for path in paths if not {"x"} & set(path.parts)])
            target = choice.choice(
                [work.top, *(p for p in (work / "data", work / "new") if p.is_dir())]
            ) / choice.choice("abstuvw")
            if source not in target.parents and not target.exists():
                source.rename(target)
            (work / "new").mkdir(exist_ok=True)
        work.call()
    after = work.state()
    try:
        planned = work.plan()
    except RestoreRefused:
        work.close()
        return
    undone = apply(planned, work.store)
    present = work.state()
    assert kept <= {content for _, _, content in present.values()}
    if not planned.conflicts and not planned.impossible and not undone.uncovered:
        assert present == before
        work.redo(undone)
        assert work.state() == after
    else:
        pytest.fail(f"{planned.impossible} {planned.conflicts} {undone.uncovered}")
    work.close()
