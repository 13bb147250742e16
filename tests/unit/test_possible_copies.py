"""Undo of packed, copied and hard-linked files: nothing is removed that may be the only copy of what is not saved."""

import contextlib
import os
import random
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kept_copies_world import BIG, OTHER_BIG, Work, check_undo_and_redo, make_packages

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.restore import apply

NOISE = random.Random(1).randbytes(900_000)  # noqa: S311 - test data


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    made = Work(tmp_path)
    yield made
    made.close()


def copied(work: Work) -> None:
    (work / "big.bak").write_bytes((work / "big").read_bytes())


def compressed(work: Work) -> None:
    (work / "big.gz").write_bytes(zlib.compress((work / "big").read_bytes()))


def split(work: Work) -> None:
    for at in range(0, len(NOISE), 700):
        (work / f"part{at}").write_bytes(NOISE[at : at + 700])


def appended(work: Work) -> None:
    with (work / "small").open("ab") as file:
        file.write((work / "big").read_bytes())


def packed(work: Work) -> None:
    with tarfile.open(work / "all.tar.gz", "w:gz") as archive:
        archive.add(work / "big", "big")


@pytest.mark.parametrize("pack", [copied, compressed, split, appended, packed])
def test_what_may_hold_a_lost_file_is_left_alone_unless_the_user_agrees(
    work: Work, pack: Callable[[Work], None]
) -> None:
    (work / "big").write_bytes(NOISE)
    (work / "small").write_bytes(b"small")
    (work / "edited").write_bytes(b"old")
    work.start()
    before = set(work.state())
    pack(work)
    (work / "big").unlink()
    (work / "edited").write_bytes(b"new")
    work.call()
    after = work.state()
    planned = work.plan()
    made = {name for name in after if name not in before} or {"small"}
    assert {each.path for each in planned.conflicts} == {work.path(name) for name in made}
    assert "may hold what was big, which is not saved" in planned.conflicts[0].conflict
    assert [path for path, _ in planned.impossible] == [work.path("big")]
    apply(planned, work.store)
    assert all((work / name).read_bytes() == after[name][2] for name in made)
    again = work.plan()
    undone = apply(again, work.store, overwrite=[each.path for each in again.conflicts])
    assert set(work.state()) == before - {"big"} and (work / "small").read_bytes() == b"small"
    work.redo(undone)
    assert all((work / name).read_bytes() == after[name][2] for name in made)


def test_small_new_files_beside_a_lost_large_one_are_removed(work: Work) -> None:
    (work / "big").write_bytes(NOISE)
    work.start()
    (work / "big").unlink()
    (work / "new").write_bytes(b"n" * 300)
    work.call()
    assert not work.plan().conflicts
    work.undo()
    assert not (work / "new").exists()


def test_new_files_are_removed_if_the_large_file_is_unchanged(work: Work) -> None:
    (work / "log").write_bytes(BIG)
    work.start()
    (work / "log").chmod(0o600)
    (work / "new").write_bytes(OTHER_BIG)
    work.call()
    assert not work.plan().conflicts
    work.undo()
    assert not (work / "new").exists()


@pytest.mark.parametrize("content", [b"", b"longer" * 1_000])
def test_a_copy_of_a_large_file_that_was_overwritten_is_left_alone(work: Work, content: bytes) -> None:
    (work / "big").write_bytes(BIG)
    work.start()
    (work / "copy").write_bytes(BIG)
    (work / "big").write_bytes(content)
    work.call()
    assert [each.path for each in work.plan().conflicts] == [work.path("copy")]


def test_an_archive_of_removed_packages_is_left_alone(work: Work) -> None:
    make_packages(work)
    work.start()
    with tarfile.open(work / "packages.tar.gz", "w:gz") as archive:
        archive.add(work / "node_modules", "node_modules")
    shutil.rmtree(work / "node_modules")
    (work / "note").write_bytes(b"done")
    work.call()
    planned = work.plan()
    assert [each.path for each in planned.conflicts] == [work.path("packages.tar.gz")]
    apply(planned, work.store)
    assert (work / "packages.tar.gz").exists() and not (work / "note").exists()


def test_a_copy_of_removed_packages_is_left_alone(work: Work) -> None:
    make_packages(work)
    work.start()
    shutil.copytree(work / "node_modules", work / "copy")
    for name in ("copy", "copy/x"):
        os.utime(work / name, (1, 1))
    shutil.rmtree(work / "node_modules")
    work.call()
    assert [each.path for each in work.plan().conflicts] == [work.path("copy/x/i.js")]


def test_new_files_beside_a_removed_cache_are_removed(work: Work) -> None:
    make_packages(work, ".pytest_cache")
    work.start()
    shutil.rmtree(work / ".pytest_cache")
    (work / "report").write_bytes(b"r" * 500)
    work.call()
    assert not work.plan().conflicts


def test_a_redo_removes_new_files_although_something_is_lost(work: Work) -> None:
    make_packages(work)
    (work / "text").write_bytes(b"t" * 500)
    work.start()
    (work / "node_modules").rename(work / "other")
    (work / "text").unlink()
    work.call()
    undone = work.undo()
    shutil.rmtree(work / "node_modules")
    assert not work.plan([undone]).conflicts


def contents(work: Work) -> set[bytes]:
    """The contents of all files, compressed ones too."""
    found: set[bytes] = set()
    for path in work.top.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found.add(data)
            with contextlib.suppress(zlib.error):
                found.add(zlib.decompress(data))
    return found


def change_at_random(work: Work, choice: random.Random) -> None:
    paths = sorted(path for path in work.top.rglob("*") if path.is_file())
    target = work / choice.choice(("a", "b", "d/c", "x", "y", "new/z"))
    if not paths:
        return
    source = choice.choice(paths)
    target.parent.mkdir(exist_ok=True)
    kind = choice.choice(("rename", "copy", "compress", "link", "remove", "remove", "shorten", "append"))
    match kind:
        case "rename":
            source.rename(target)
        case "copy" if source != target:
            target.write_bytes(source.read_bytes())
        case "compress":
            (work / f"{source.name}.z").write_bytes(zlib.compress(source.read_bytes()))
        case "link" if not target.exists():
            target.hardlink_to(source)
        case "remove":
            source.unlink()
        case "shorten":
            source.write_bytes(b"short")
        case "append":
            with source.open("ab") as file:
                file.write(b"more")
        case _:
            pass


@pytest.mark.parametrize("seed", range(150))
def test_no_content_that_is_not_saved_is_lost_by_undo(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - test data
    work = Work(tmp_path)
    for name in ("a", "b", "d/c", "small"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(choice.randbytes(10 if name == "small" else choice.randint(1_500, 90_000)))
    (work / "hard").hardlink_to(work / choice.choice(("a", "b")))
    work.start()
    originals = contents(work)
    for _ in range(choice.randint(1, 3)):
        for _ in range(choice.randint(1, 4)):
            change_at_random(work, choice)
        work.call()
    kept = contents(work)
    present = {each for each in originals if any(data.startswith(each) for data in kept)}
    for _ in range(2):  # the second undo finds what the first one left
        apply(work.plan(), work.store)
        found = contents(work)
        assert all(any(data.startswith(each) for data in found) for each in present)
    work.close()


# ------------------------------------------------------------------ hard links


def test_a_hard_link_brings_a_removed_large_file_back(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "sub").mkdir()
    (work / "sub/link").hardlink_to(work / "big")
    work.start()
    before = work.state()
    (work / "big").unlink()
    work.call()
    assert work.sentences == ()
    assert [each.path for each in work.plan().changes] == [work.path("big")]
    check_undo_and_redo(work, before)
    assert (work / "big").samefile(work / "sub/link")


def test_a_hard_link_brings_a_file_back_that_the_first_search_did_not_save(tmp_path: Path) -> None:
    work = Work(tmp_path, Coverage(file_bytes=10_000, baseline_bytes=1_000))
    (work / "big").write_bytes(BIG)
    (work / "link").hardlink_to(work / "big")
    work.start()
    (work / "big").unlink()
    work.call()
    undone = work.undo()
    assert undone.uncovered == () and (work / "big").read_bytes() == BIG
    work.close()


def test_a_replaced_large_file_comes_back_from_its_hard_link(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "link").hardlink_to(work / "big")
    work.start()
    before = work.state()
    (work / "big").unlink()
    (work / "big").write_bytes(b"new")
    work.call()
    undone = work.undo()
    assert undone.uncovered == () and work.state() == before
    assert (work / "big").samefile(work / "link")
    work.redo(undone)
    assert (work / "big").read_bytes() == b"new" and (work / "link").read_bytes() == BIG


def test_a_removed_name_comes_back_from_a_renamed_one(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "link").hardlink_to(work / "big")
    work.start()
    before = work.state()
    (work / "big").unlink()
    (work / "link").rename(work / "other")
    work.call()
    check_undo_and_redo(work, before)
    assert (work / "big").samefile(work / "link")


def test_a_hard_link_that_was_written_to_since_is_not_used(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "link").hardlink_to(work / "big")
    work.start()
    (work / "big").unlink()
    work.call()
    (work / "link").write_bytes(OTHER_BIG)
    planned = work.plan()
    assert [path for path, _ in planned.impossible] == [work.path("big")] and not planned.changes


def test_a_hard_link_that_changes_between_plan_and_restore_is_not_used(work: Work) -> None:
    (work / "big").write_bytes(BIG)
    (work / "link").hardlink_to(work / "big")
    work.start()
    (work / "big").unlink()
    work.call()
    planned = work.plan()
    (work / "link").unlink()
    (work / "link").write_bytes(OTHER_BIG)
    record = apply(planned, work.store)
    assert len(record.uncovered) == 1 and not (work / "big").exists()


# ------------------------------------------------------------------ long paths


def test_a_folder_with_a_path_that_is_too_long_is_named_when_it_is_removed(tmp_path: Path) -> None:
    length = len(str(tmp_path)) + 700
    work = Work(tmp_path, Coverage(path_bytes=length))
    folder = work / "deep"
    while len(str(folder)) < length + 300:
        folder = folder / ("d" * 100)
    folder.mkdir(parents=True)
    (folder / "leaf").write_bytes(b"precious")
    work.start()
    shutil.rmtree(work / "deep")
    work.call()
    planned = work.plan()
    assert planned.is_partial
    (sentence,) = planned.lost
    assert "deep/ddd" in sentence and "was removed; what was in it is not saved" in sentence and len(sentence) < 400
    work.close()
