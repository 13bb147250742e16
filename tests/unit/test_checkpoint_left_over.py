"""What a restore that stopped in the middle leaves is found again: files under temporary names, and opened folders."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from kept_copies_world import BIG, OTHER_BIG, Work, make_packages

from bradawl.checkpoints.errors import RestoreStopped
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.opened_notes import close_again, close_left_open, noted_walk
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.checkpoints.renames import park, rename, rename_all
from bradawl.checkpoints.restore import RestorePlan, apply, plan
from bradawl.checkpoints.store import ContentStore
from bradawl.checkpoints.store_folder import StoreFolder


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    made = Work(tmp_path)
    yield made
    made.close()


def inverse(record: ChangeRecord) -> ChangeRecord:
    changes = tuple(Change(each.path, each.after, each.before) for each in record.changes)
    return msgspec.structs.replace(record, changes=changes)


def begun(work: Work, stop_after: int) -> ChangeRecord | None:
    """Undo, and stop after some changes; returns what was intended, None if it was not stopped."""
    intended: list[ChangeRecord] = []
    answers = iter([False] * stop_after)
    try:
        apply(
            work.plan(),
            work.store,
            begin=lambda record, _opened: intended.append(record),
            should_stop=lambda: next(answers, True),
        )
    except RestoreStopped:
        return intended[0]
    return None


def plan_rest(work: Work, record: ChangeRecord) -> RestorePlan:
    return plan(work.store, [record], [os.fsencode(work.top)], is_interrupted=True)


def file_for_folder(work: Work) -> None:
    shutil.rmtree(work / "plain")
    (work / "big").rename(work / "plain")
    (work / "file").unlink()


def ring(work: Work) -> None:
    (work / "big").rename(work / "aside")
    (work / "other").rename(work / "big")
    (work / "aside").rename(work / "other")
    (work / "file").unlink()


def replaced(work: Work) -> None:
    (work / "big").rename(work / "moved")
    (work / "big").write_text("small")
    (work / "file").unlink()


def packages(work: Work) -> None:
    (work / "node_modules").rename(work / ".tox")
    (work / "file").unlink()


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("change", [file_for_folder, ring, replaced, packages])
@pytest.mark.parametrize("stop_after", range(8))
def test_a_stopped_undo_of_renames_is_finished_and_taken_back(
    work: Work, stop_after: int, change: Callable[[Work], None], goes_on: bool
) -> None:
    (work / "big").write_bytes(BIG)
    (work / "other").write_bytes(OTHER_BIG)
    (work / "plain").mkdir()
    (work / "plain/x").write_text("x")
    (work / "file").write_text("file")
    make_packages(work)
    work.start()
    before = work.state()
    change(work)
    work.call()
    after = work.state()
    record = begun(work, stop_after)
    if record is None:
        assert work.state() == before
        return
    rest = plan_rest(work, inverse(record) if goes_on else record)
    assert (rest.conflicts, rest.impossible, rest.lost) == ((), (), ())
    assert apply(rest, work.store).uncovered == ()
    assert work.state() == (before if goes_on else after)


def test_the_temporary_file_of_a_killed_undo_does_not_keep_the_folder_that_it_made(work: Work) -> None:
    (work / "gone").mkdir()
    (work / "gone/file").write_text("x")
    work.start()
    shutil.rmtree(work / "gone")
    work.call()
    record = begun(work, 1)
    assert record is not None and not any((work / "gone").iterdir())
    (work / "gone/.bradawl-1.tmp").write_text("x")
    (work / "gone/.bradawl-2.tmp").write_text("of another program")
    roots = [os.fsencode(work.top)]

    def staying() -> tuple[bytes, ...]:
        return plan(work.store, [record], roots, is_interrupted=True, temporary=b".bradawl-1.tmp").staying

    assert staying() == (work.path("gone"),)
    (work / "gone/.bradawl-2.tmp").unlink()
    assert staying() == ()


class Killed(BaseException):
    """Ends a restore."""


PARKED = ".bradawl-0123456789abcdef.renamed"


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize(
    ("change", "moves"),
    [
        (replaced, [("big", "")]),
        (ring, [("big", PARKED)]),
        (ring, [("big", PARKED), ("other", "big")]),
        (ring, [("other", PARKED), ("big", "other")]),
    ],
)
def test_an_undo_that_was_killed_between_two_renames_is_finished_and_taken_back(
    work: Work, change: Callable[[Work], None], moves: list[tuple[str, str]], goes_on: bool
) -> None:
    (work / "big").write_bytes(BIG)
    (work / "other").write_bytes(OTHER_BIG)
    (work / "file").write_text("file")
    work.start()
    before = work.state()
    change(work)
    work.call()
    after, intended = work.state(), list[ChangeRecord]()

    def begin(record: ChangeRecord, _opened: object) -> None:
        intended.append(record)
        raise Killed

    with pytest.raises(Killed):
        apply(work.plan(), work.store, begin=begin)
    for name, to in moves:
        (work / name).rename(work / to) if to else (work / name).unlink()
    rest = plan_rest(work, inverse(intended[0]) if goes_on else intended[0])
    assert (rest.conflicts, rest.impossible, rest.lost) == ((), (), ())
    assert apply(rest, work.store).uncovered == ()
    assert work.state() == (before if goes_on else after)


def test_what_can_not_be_renamed_gets_its_name_back(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    top = os.fsencode(tmp_path)
    failed: list[str] = []

    def fail(_path: bytes, error: OSError) -> None:
        failed.append(str(error.strerror))

    with FolderWalk([top]) as walk:
        parked = park(walk, top + b"/a", top + b"/a")
        renames, present = {top + b"/none/x": top + b"/a"}, {top + b"/a": parked}
        assert list(rename_all(walk, renames, present, fail)) == []
        assert (tmp_path / "a").read_text() == "a" and failed == [os.strerror(errno.ENOENT)]
        parked = park(walk, top + b"/a", top + b"/a")
        (tmp_path / "a").write_text("by the user")
        assert list(rename_all(walk, renames, {top + b"/a": parked}, fail)) == []
    assert (tmp_path / "a").read_text() == "by the user"
    assert Path(os.fsdecode(parked)).read_text() == "a" and os.fsdecode(parked) in failed[1]


def test_a_folder_that_was_opened_gets_its_mode_under_its_new_name(tmp_path: Path) -> None:
    (tmp_path / "old/inner").mkdir(parents=True)
    (tmp_path / "old/inner").chmod(0o500)
    (tmp_path / "old").chmod(0o500)
    top = os.fsencode(tmp_path)
    with FolderWalk([top]) as walk:
        walk.folder(top + b"/old/inner")
        rename(walk, top + b"/old", top + b"/new")
    assert [mode_of(tmp_path / name) for name in ("new", "new/inner")] == [0o500, 0o500]


def test_a_folder_of_the_user_with_a_temporary_name_is_left_alone(work: Work) -> None:
    make_packages(work)
    (work / ".bradawl-0123456789abcdef.renamed").mkdir()
    (work / ".bradawl-0123456789abcdef.renamed/mine").write_text("mine")
    work.start()
    shutil.rmtree(work / "node_modules")
    work.call()
    assert work.plan().lost
    work.undo()
    assert (work / ".bradawl-0123456789abcdef.renamed/mine").read_text() == "mine"


_KILLED = """
import os, signal, sys
from pathlib import Path
from bradawl.checkpoints import restore
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore
if os.geteuid() == 0:
    os.chown(sys.argv[1], 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)
work = Path(sys.argv[1], "work")
(work / "closed/inner").mkdir(parents=True)
(work / "closed/inner/file").write_text("model")
(work / "closed/inner").chmod(0o300)
(work / "closed").chmod(0)
store = ContentStore(Path(sys.argv[1], "store"))
before = store.add_bytes(b"user")
path = os.fsencode(work / "closed/inner/file")
after = FileState("file", (work / "closed").parent.stat().st_mode & 0o666, "", 5)
record = ChangeRecord("c", 1, (Change(path, FileState("file", 0o644, before, 4), after),))
planned = restore.plan(store, [record], [os.fsencode(work)])
if sys.argv[2] == "plan":
    record = ChangeRecord("c", 1, (*record.changes, Change(b"/" + b"x", None, None)))
    store.holds = store.has = lambda _name: os.kill(os.getpid(), signal.SIGKILL)
    restore.plan(store, [record], [os.fsencode(work)])
store.flush = lambda: os.kill(os.getpid(), signal.SIGKILL)
restore.apply(planned, store, overwrite=[path])
"""


@pytest.mark.parametrize("moment", ["plan", "apply"])
def test_folders_that_a_killed_process_has_opened_are_closed_by_the_next_one(tmp_path: Path, moment: str) -> None:
    # Others can't enter the folders of pytest.
    place = Path("/tmp") / f"bradawl-opened.{os.getpid()}"
    place.mkdir()
    try:
        command = [sys.executable, "-c", _KILLED, str(place), moment]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -9, done.stderr
        closed = place / "work/closed"
        assert mode_of(closed) == 0o700
        folder = StoreFolder(place / "store")
        close_left_open(folder)
        assert not list((place / "store").glob("*.opened"))
        folder.close()
        assert mode_of(closed) == 0
        closed.chmod(0o700)
        assert mode_of(closed / "inner") == 0o300
    finally:
        for path in (place / "work/closed", place / "work/closed/inner"):
            path.chmod(0o700)
        shutil.rmtree(place)


def test_a_folder_that_is_to_stay_open_is_not_closed_after_the_restore(work: Work) -> None:
    (work / "closed").mkdir(mode=0o700)
    (work / "closed/file").write_text("old")
    (work / "other").mkdir(mode=0o755)
    (work / "other/file").write_text("old")
    work.start()
    before = work.state()
    for name in ("closed", "other"):
        (work / name / "file").write_text("new")
        (work / name).chmod(0o500)
    work.call()
    opened: list[tuple[bytes, int]] = []
    apply(work.plan(), work.store, begin=lambda _record, folders: opened.extend(folders))
    assert opened == [(work.path("other"), 0o500)]
    close_again(opened, [os.fsencode(work.top)])
    assert work.state() == before


def test_a_folder_that_was_noted_with_the_mode_it_has_now_keeps_that(tmp_path: Path) -> None:
    (tmp_path / "top/closed").mkdir(parents=True)
    (tmp_path / "top/closed").chmod(0o500)
    with ContentStore(tmp_path / "store") as store:
        with noted_walk(store.folder, [os.fsencode(tmp_path / "top")]) as walk:
            walk.folder(os.fsencode(tmp_path / "top/closed"))
            walk.set_mode(os.fsencode(tmp_path / "top/closed"), 0o700)
            (note,) = (tmp_path / "store").glob("*.opened")
            left = note.read_bytes()
        (tmp_path / "store/one.opened").write_bytes(left)
        close_left_open(store.folder)
        assert mode_of(tmp_path / "top/closed") == 0o700


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_a_living_process_has_opened_stays_open(tmp_path: Path) -> None:
    (tmp_path / "top/closed").mkdir(parents=True)
    (tmp_path / "top/closed").chmod(0o500)
    with ContentStore(tmp_path / "store") as store, ContentStore(tmp_path / "store") as other:
        with noted_walk(store.folder, [os.fsencode(tmp_path / "top")]) as walk:
            walk.folder(os.fsencode(tmp_path / "top/closed"))
            close_left_open(other.folder)
            assert mode_of(tmp_path / "top/closed") == 0o700
        assert mode_of(tmp_path / "top/closed") == 0o500
        assert not list((tmp_path / "store").glob("*.opened"))


def test_a_folder_that_got_another_mode_since_keeps_it_and_damaged_notes_are_removed(tmp_path: Path) -> None:
    (tmp_path / "top/closed").mkdir(parents=True)
    with ContentStore(tmp_path / "store") as store:
        walk = noted_walk(store.folder, [os.fsencode(tmp_path / "top")])
        (tmp_path / "top/closed").chmod(0o500)
        with walk as opened:
            opened.folder(os.fsencode(tmp_path / "top/closed"))
            (note,) = (tmp_path / "store").glob("*.opened")
            left = note.read_bytes()
        (tmp_path / "top/closed").chmod(0o755)
        (tmp_path / "store/one.opened").write_bytes(left)
        (tmp_path / "store/two.opened").write_bytes(b"\xff" * 20)
        close_left_open(store.folder)
        assert mode_of(tmp_path / "top/closed") == 0o755
        (tmp_path / "top/closed").chmod(0o700)
        (tmp_path / "store/three.opened").write_bytes(left + left[:-3])
        close_left_open(store.folder)
        assert mode_of(tmp_path / "top/closed") == 0o500
        assert not list((tmp_path / "store").glob("*.opened"))


def test_a_folder_that_can_not_be_noted_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "top/closed").mkdir(parents=True)
    (tmp_path / "top/closed").chmod(0o500)
    (tmp_path / "file").write_text("")
    folder = StoreFolder(tmp_path / "file" / "store")
    with noted_walk(folder, [os.fsencode(tmp_path / "top")]) as walk, pytest.raises(OSError):
        walk.folder(os.fsencode(tmp_path / "top/closed"))
    assert mode_of(tmp_path / "top/closed") == 0o500
