"""What a restore checks before it overwrites, and what it says if it can't restore."""

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_copies_world import Work
from restored_workspace import Workspace

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.file_states import digest_of
from bradawl.checkpoints.record import ChangeRecord, FileState
from bradawl.checkpoints.restore import apply, plan
from bradawl.checkpoints.restored_files import place_file, place_link
from bradawl.checkpoints.store import ContentStore


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as made:
        yield made


# ------------------------------------------------------------------ what appears or changes at the last moment


class SlowStore(ContentStore):
    """A store in which reading takes so long that the user changes a file meanwhile."""

    def __init__(self, folder: Path, changed: Path) -> None:
        super().__init__(folder)
        self._changed = changed

    def copy_to(self, sha256: str, descriptor: int) -> None:
        super().copy_to(sha256, descriptor)
        self._changed.write_text("by the user")


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_file_that_changes_while_its_old_content_is_read_is_left_alone(work: Workspace, is_removed: bool) -> None:
    (work.top / "file").write_text("old")
    work.start()
    if is_removed:
        (work.top / "file").unlink()
    else:
        (work.top / "file").write_text("new")
    work.changed()
    work.store.flush()
    with SlowStore(work.store.folder.path, work.top / "file") as store:
        done = apply(plan(store, work.records, [os.fsencode(work.top)]), store)
    assert (work.top / "file").read_text() == "by the user"
    assert len(done.uncovered) == 1 and [each.name for each in work.top.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_appears_after_the_last_check_is_not_replaced(work: Workspace, kind: str) -> None:
    folder = os.open(work.top, os.O_RDONLY)

    def appears() -> bool:
        (work.top / "name").write_text("by the user")
        return False

    try:
        with pytest.raises(OSError, match="at this very moment"):
            if kind == "file":
                state = FileState("file", 0o644, work.store.add_bytes(b"old"), 3)
                place_file(folder, b"name", state, work.store, b"temporary", check=appears)
            else:
                place_link(folder, b"name", b"target", b"temporary", appears)
    finally:
        os.close(folder)
    assert (work.top / "name").read_text() == "by the user"
    assert [each.name for each in work.top.iterdir()] == ["name"]


# ------------------------------------------------------------------ the only copy


def flip(folder: Path, content: bytes) -> None:
    for path in folder.iterdir():
        data = path.read_bytes()
        path.write_bytes(data.replace(content, content[:-1] + b"?"))


@pytest.mark.parametrize("size", [10, 40_000, 2_000_000])
def test_a_present_content_whose_saved_copy_is_damaged_is_saved_again(work: Workspace, size: int) -> None:
    work.start()
    precious = os.urandom(16).hex().encode() * (size // 32 + 1)
    (work.top / "file").write_bytes(precious)
    work.changed()
    work.store.close()
    flip(work.store.folder.path, precious)
    with ContentStore(work.store.folder.path) as store:
        done = apply(plan(store, work.records, [os.fsencode(work.top)]), store)
        assert not (work.top / "file").exists()
    for _ in range(2):
        with ContentStore(work.store.folder.path) as store:
            back = apply(plan(store, [done], [os.fsencode(work.top)]), store)
            assert (back.uncovered, (work.top / "file").read_bytes()) == ((), precious)
            done = apply(plan(store, [back], [os.fsencode(work.top)]), store)


# ------------------------------------------------------------------ files that grow


def test_a_file_that_grows_faster_than_it_is_read_does_not_hold_up_its_reader(work: Workspace) -> None:
    path = work.top / "sparse"
    path.write_bytes(b"start")
    with path.open("r+b") as file:
        file.truncate(1 << 42)
        began = time.monotonic()
        reader = threading.Thread(target=digest_of, args=(file.fileno(), 5), daemon=True)
        reader.start()
        reader.join(30)
        assert not reader.is_alive(), time.monotonic() - began
        with pytest.raises(OSError, match="grows"):
            work.store.add(file.fileno(), 5)
    assert not list(work.store.index.items())


def test_a_digest_is_that_of_the_whole_file(work: Workspace) -> None:
    data = os.urandom(3_000_000)
    (work.top / "file").write_bytes(data)
    with (work.top / "file").open("rb") as file:
        assert digest_of(file.fileno(), 10) == hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ folders of the workspace


@pytest.mark.parametrize("is_reversed", [True, False])
def test_a_removed_added_folder_inside_the_workspace_comes_back(work: Workspace, is_reversed: bool) -> None:
    (work.top / "added/deep").mkdir(parents=True)
    (work.top / "added/file").write_text("1")
    work.start()
    (work.top / "added/file").unlink()
    (work.top / "added/deep").rmdir()
    (work.top / "added").rmdir()
    work.changed()
    roots = [os.fsencode(work.top), work.path("added")]
    done = apply(plan(work.store, work.records, roots[::-1] if is_reversed else roots), work.store)
    assert (done.uncovered, work.scan()) == ((), work.trees[0])
    apply(plan(work.store, [done], roots), work.store)
    assert work.scan() == work.trees[1]


def test_a_lock_whose_name_would_be_too_long_refuses_nothing(work: Workspace) -> None:
    (work.top / ".git/refs").mkdir(parents=True)
    (work.top / "file").write_text("old")
    work.start()
    (work.top / ".git/refs" / ("a" * 252)).write_text("new")
    (work.top / "file").write_text("new")
    work.changed()
    assert apply(work.plan(), work.store).uncovered == ()
    assert work.scan() == work.trees[0]


_CLOSED = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from kept_copies_world import Work
if os.geteuid() == 0:
    os.chown(sys.argv[1], 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)
work = Work(Path(sys.argv[1]))
(work / "file").write_text("old")
work.top.chmod(0o751)
work.start()
work.top.chmod(0)
work.call()

undone = work.undo()
print(oct(work.top.stat().st_mode), undone.uncovered)
work.redo(undone)
print(oct(work.top.stat().st_mode))
work.top.chmod(0o700)
"""


def test_the_closed_folder_of_the_workspace_is_opened_again() -> None:
    place = Path("/tmp") / f"bradawl-root.{os.getpid()}"
    place.mkdir()
    try:
        command = [sys.executable, "-c", _CLOSED, str(place), str(Path(__file__).parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.stderr, done.stdout.splitlines()) == ("", ["0o40751 ()", "0o40000"])
    finally:
        subprocess.run(["rm", "-r", str(place)], check=True)


# ------------------------------------------------------------------ errors in the middle

_FULL = """
import resource, signal, sys
from pathlib import Path
from bradawl.checkpoints.restore import apply, plan
from bradawl.checkpoints.store import ContentStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = ContentStore(Path(sys.argv[1]))
made = plan(store, [store.record(sys.argv[3])], [sys.argv[2].encode()])
def begin(*_):
    store.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
record = apply(made, store, begin=begin)
print(len(record.unrestored), *record.uncovered, sep="\\n")
print(record.changes[0].after.content == made.changes[0].wanted.content)
"""


def test_a_file_that_was_overwritten_in_part_on_a_full_disk_is_tried_again(work: Workspace) -> None:
    (work.top / "a").write_bytes(os.urandom(100_000))
    os.link(work.top / "a", work.top / "b")
    work.start()
    (work.top / "a").write_bytes(b"new")
    work.changed()
    ref = work.store.save_record(work.records[0])
    work.store.flush()
    command = [sys.executable, "-c", _FULL, work.store.folder.path, work.top, ref]
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "2" and "File too large" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_what_is_not_restored_for_want_of_descriptors_is_tried_again(work: Workspace) -> None:
    deep = work.top / "/".join("abcdefghijkl" * 3)
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")
    (work.top / "file").write_text("1")
    work.start()
    shutil.rmtree(work.top / "a")
    (work.top / "file").write_text("2")
    work.changed()
    planned = work.plan()
    unlimited = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 20, unlimited[1]))
    try:
        record = apply(planned, work.store)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, unlimited)
    missing = {path for path in work.trees[0] if work.scan().get(path) != work.trees[0][path]}
    assert work.path("a/" * 2 + "b") not in missing
    assert len(record.uncovered) == len(record.unrestored) > 10 and "Too many open files" in record.uncovered[0]
    assert {change.path for change in record.unrestored} >= missing
    again = plan(work.store, [ChangeRecord("", 1, record.unrestored)], [os.fsencode(work.top)])
    assert again.conflicts == () and apply(again, work.store).uncovered == ()
    assert work.scan() == work.trees[0]


# ------------------------------------------------------------------ many renames


@pytest.mark.parametrize("how", ["moved", "shifted", "removed"])
def test_thousands_of_files_that_are_not_saved_are_planned_and_renamed_in_linear_time(tmp_path: Path, how: str) -> None:
    seconds: list[float] = []
    for count in (1_000, 1_000, 4_000, 4_000):  # the first time is that of a cold start; others may be disturbed
        place = tmp_path / f"{len(seconds)}"
        place.mkdir()
        work = Work(place, Coverage(file_bytes=10))
        (work / "data").mkdir()
        for number in range(count):
            (work / f"data/{number:06}").write_bytes(b"x" * 20)
        work.start()
        if how == "moved":
            (work / "data").rename(work / "data2")
        elif how == "shifted":
            for number in reversed(range(count)):
                (work / f"data/{number:06}").rename(work / f"data/{number + 1:06}")
        else:
            (work / "new").mkdir()
            for number in range(count):
                (work / f"data/{number:06}").unlink()
                (work / f"new/{number:06}").write_bytes(b"1")
        work.call()
        began = time.process_time()
        apply(work.plan(), work.store)
        seconds.append(time.process_time() - began)
        work.close()
    assert min(seconds[2:]) < 9 * max(seconds[:2]), seconds
