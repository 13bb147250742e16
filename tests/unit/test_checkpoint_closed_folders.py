"""Undo of folders without rights for their owner, whose contents are not saved, for a user other than root."""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_copies_world import Work, check_undo_and_redo

NOBODY = 65_534


@pytest.fixture
def work() -> Iterator[Work]:
    # Others can't enter the folders of pytest.
    with contextlib.ExitStack() as ending:
        folder = Path(tempfile.mkdtemp(prefix="bradawl-closed.", dir="/tmp"))
        ending.callback(shutil.rmtree, folder)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
            ending.callback(os.seteuid, 0)
        work = Work(folder)
        ending.callback(open_all, work.top)
        ending.callback(work.close)
        yield work


def open_all(folder: Path) -> None:
    folder.chmod(0o700)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            open_all(path)


def make_closed(work: Work, name: str, mode: int = 0) -> None:
    (work / name / "sub").mkdir(parents=True)
    (work / name / "sub/file").write_bytes(b"1")
    (work / name).chmod(mode)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mode", [0, 0o200, 0o300])
def test_a_renamed_closed_folder_is_renamed_back(work: Work, mode: int) -> None:
    make_closed(work, "c", mode)
    inode = (work / "c").stat().st_ino
    work.start()
    before = work.state()
    (work / "c").rename(work / "d")
    work.call()
    check_undo_and_redo(work, before)
    assert (work / "c").stat().st_ino == inode and mode_of(work / "c") == mode
    (work / "c").chmod(0o700)
    assert (work / "c/sub/file").read_bytes() == b"1"


def test_a_closed_folder_that_was_renamed_and_opened_comes_back_closed(work: Work) -> None:
    make_closed(work, "c")
    work.start()
    (work / "c").rename(work / "d")
    (work / "d").chmod(0o700)
    work.call()
    undone = work.undo()
    assert undone.uncovered == () and not (work / "d").exists() and mode_of(work / "c") == 0
    (work / "c").chmod(0o700)
    assert (work / "c/sub/file").read_bytes() == b"1"


def test_a_closed_folder_in_a_renamed_one_is_renamed_back(work: Work) -> None:
    (work / "top").mkdir()
    (work / "top/text").write_bytes(b"t")
    make_closed(work, "top/c")
    work.start()
    before = work.state()
    (work / "top").rename(work / "other")
    work.call()
    check_undo_and_redo(work, before)


def test_a_folder_that_was_closed_after_it_was_searched_loses_nothing(work: Work) -> None:
    make_closed(work, "c", 0o755)
    work.start()
    (work / "c").chmod(0)
    work.call()
    (work / "c").rename(work / "d")
    work.call()
    work.undo()
    open_all(work.top)
    found = [path for path in (work / "c/sub/file", work / "d/sub/file") if path.exists()]
    assert [path.read_bytes() for path in found]


def test_a_closed_folder_that_was_removed_is_named(work: Work) -> None:
    make_closed(work, "c")
    work.start()
    (work / "c").chmod(0o700)
    shutil.rmtree(work / "c")
    work.call()
    assert work.plan().lost == ("c was removed; what was in it is not saved (how much that was is not known).",)
