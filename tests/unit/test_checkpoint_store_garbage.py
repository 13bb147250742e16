"""Garbage collection: the quota holds, the newest records survive, other live processes keep what they use."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bradawl.checkpoints.errors import ContentGone
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore

KB = 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def record_of(before: str, after: str, at: int) -> ChangeRecord:
    change = Change(b"/w/file", FileState("file", 0o644, before), FileState("file", 0o644, after))
    return ChangeRecord(f"call-{at}", at, (change,))


def fill(store: ContentStore, count: int, size: int, start: int = 0) -> tuple[list[str], list[str]]:
    """Contents and the records of their changes, each in a pack of its own."""
    contents = [store.add_bytes(os.urandom(size))]
    records = []
    for number in range(count):
        contents.append(store.add_bytes(os.urandom(size)))
        records.append(store.save_record(record_of(contents[-2], contents[-1], start + number)))
        store.start_new_pack()
    store.flush()
    return contents, records


def is_readable(store: ContentStore, name: str) -> bool:
    try:
        store.read(name)
    except ContentGone:
        return False
    return True


def test_nothing_is_dropped_below_the_quota(folder: Path):
    with ContentStore(folder, quota_bytes=2_000 * KB) as store:
        contents, records = fill(store, 10, 100 * KB)
        assert store.collect_garbage([]) == 0
        assert all(is_readable(store, name) for name in contents + records)


@pytest.mark.parametrize("size", [10 * KB, 100 * KB, 1_100 * KB])
def test_the_oldest_records_are_dropped_first(folder: Path, size: int):
    with ContentStore(folder, quota_bytes=10 * size) as store:
        contents, records = fill(store, 20, size)
        assert store.collect_garbage(contents[-1:]) > 9 * size
        assert store.stored_bytes() <= 10 * size
        kept = [is_readable(store, ref) for ref in records]
        assert kept == sorted(kept)
        assert 6 <= sum(kept) <= 10
        for ref in records[-6:]:
            (change,) = store.record(ref).changes
            assert change.before is not None
            assert change.after is not None
            assert is_readable(store, change.before.content)
            assert is_readable(store, change.after.content)
        with pytest.raises(ContentGone, match="no longer reaches so far back"):
            store.record(records[0])


def test_live_contents_stay_and_are_copied_out_of_old_packs(folder: Path):
    with ContentStore(folder, quota_bytes=600 * KB) as store:
        live = []
        for _ in range(20):
            live.append(store.add_bytes(os.urandom(10 * KB)))
            fill(store, 1, 40 * KB)
        assert store.stored_bytes() > 1_500 * KB
        store.collect_garbage(live)
        assert store.stored_bytes() <= 600 * KB
        assert all(is_readable(store, name) for name in live)
    with ContentStore(folder) as store:
        assert all(is_readable(store, name) for name in live)


def test_a_version_keeps_what_it_is_a_difference_to(folder: Path):
    with ContentStore(folder, quota_bytes=400 * KB) as store:
        content = bytearray(os.urandom(100 * KB))
        name = ""
        for number in range(30):
            content[number * 10] ^= 1
            name = store.add_bytes(bytes(content), name)
            store.start_new_pack()
        fill(store, 10, 50 * KB)
        store.collect_garbage([name])
        assert store.stored_bytes() <= 400 * KB
    with ContentStore(folder) as store:
        assert store.read(name) == content


def test_another_live_process_keeps_what_it_wrote_and_what_it_found(folder: Path):
    with ContentStore(folder, quota_bytes=500 * KB) as old:
        contents, _ = fill(old, 10, 50 * KB)
    with ContentStore(folder, quota_bytes=100 * KB) as store, ContentStore(folder) as other:
        data = os.urandom(2_000 * KB)
        assert other.has(contents[3])
        mine = [other.add_bytes(os.urandom(50 * KB)), other.add_bytes(data)]
        fill(store, 10, 50 * KB)
        store.collect_garbage([])
        assert all(is_readable(other, name) for name in [*mine, contents[3]])
        with ContentStore(folder) as third:
            assert [is_readable(third, name) for name in (*mine, contents[3], contents[5])] == [True] * 3 + [False]


def test_what_a_dead_process_wrote_is_collected(folder: Path):
    with ContentStore(folder) as store:
        contents, _ = fill(store, 10, 50 * KB)
    left = folder / "0123456789abcdef-1.new"
    left.write_bytes(bytes(50 * KB))
    user = folder / "0123456789abcdef.user"
    user.write_bytes(b"")
    with ContentStore(folder, quota_bytes=100 * KB) as store:
        store.collect_garbage([])
        assert left.exists(), "its process may be about to lock its file"
    os.utime(user)
    with ContentStore(folder, quota_bytes=10 * KB) as store:
        store.folder.young_s = 0.0
        store.collect_garbage([])
        assert not left.exists()
        assert not user.exists()
        assert not any(is_readable(store, name) for name in contents)


def test_a_content_dropped_by_another_process_is_saved_again(folder: Path):
    data = os.urandom(50 * KB)
    with ContentStore(folder) as store:
        name = store.add_bytes(data)
        fill(store, 3, 50 * KB)
    with ContentStore(folder) as slow, ContentStore(folder, quota_bytes=10 * KB) as store:
        assert slow.index.find(bytes.fromhex(name)) is not None
        store.collect_garbage([])
        assert slow.add_bytes(data) == name
        assert slow.read(name) == data
        assert store.read(name) == data


def test_a_content_moved_by_another_process_is_found(folder: Path):
    with ContentStore(folder) as store:
        name = store.add_bytes(b"moved" * KB)
        store.add_bytes(os.urandom(50 * KB))
    with ContentStore(folder) as slow, ContentStore(folder, quota_bytes=20 * KB) as store:
        assert slow.index.find(bytes.fromhex(name)) is not None
        assert store.collect_garbage([name]) > 0
        assert slow.read(name) == b"moved" * KB


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_keep_the_quota_and_the_newest_records(folder: Path, seed: int):
    choice = random.Random(seed)  # noqa: S311 a repeatable test
    quota = choice.choice([50 * KB, 200 * KB, 1_000 * KB])
    store = ContentStore(folder, quota_bytes=quota)
    files: dict[int, bytes] = {}
    history: list[tuple[str, bytes, bytes]] = []
    for number in range(150):
        which = choice.randrange(4)
        before = files.get(which, b"")
        after = choice.randbytes(choice.randrange(10 * KB)) if choice.random() < 0.5 else before + b"x" * number
        previous = store.add_bytes(before)
        record = record_of(previous, store.add_bytes(after, previous), number)
        history.append((store.save_record(record), before, after))
        files[which] = after[: 10 * KB]
        if choice.random() < 0.1:
            store.close()
            store = ContentStore(folder, quota_bytes=quota)
        if choice.random() < 0.2:
            live = [store.add_bytes(data) for data in files.values()]
            store.collect_garbage(live)
            assert store.stored_bytes() <= quota
            assert [store.read(name) for name in live] == list(files.values())
            check_newest(store, history, int(0.8 * quota) - sum(len(data) + 100 for data in files.values()))
    store.close()


def check_newest(store: ContentStore, history: list[tuple[str, bytes, bytes]], room: int) -> None:
    """The newest records that certainly fit are complete."""
    for ref, before, after in reversed(history):
        room -= len(before) + len(after) + 600
        if room < 0:
            return
        (change,) = store.record(ref).changes
        assert change.before is not None
        assert change.after is not None
        assert (store.read(change.before.content), store.read(change.after.content)) == (before, after)


_SHARING = """
import random, sys
from pathlib import Path
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore
choice = random.Random(sys.argv[2])
for _ in range(4):
    live = {}
    with ContentStore(Path(sys.argv[1]), quota_bytes=300_000) as store:
        for number in range(100):
            key = choice.randrange(12)
            data = random.Random(choice.randrange(40)).randbytes(key * 1_000 if key < 11 else 1_100_000)
            name = store.add_bytes(data, live.get(key, ("", b""))[0])
            live[key] = (name, data)
            store.save_record(ChangeRecord("c", number, (Change(b"/x", None, FileState("file", 0o644, name)),)))
            if number % 5 == 0:
                store.flush()
                store.collect_garbage(name for name, _ in live.values())
            for name, data in live.values():
                if not store.has(name) or store.read(name) != data:
                    sys.exit(f"{name} is lost")
"""


def test_processes_that_collect_at_the_same_time_keep_their_live_contents(folder: Path):
    """Contents are drawn from a small pool, so that processes find and drop each other's."""
    workers = [
        subprocess.Popen([sys.executable, "-c", _SHARING, str(folder), str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert ([worker.returncode for worker in workers], errors) == ([0] * 3, [""] * 3)
    with ContentStore(folder, quota_bytes=300_000) as store:
        store.folder.young_s = 0.0
        store.collect_garbage([])
        assert store.stored_bytes() <= 300_000


def test_records_survive_next_to_live_contents_that_nearly_fill_the_quota(folder: Path):
    with ContentStore(folder, quota_bytes=1_000 * KB) as store:
        live = [store.add_bytes(os.urandom(10 * KB)) for _ in range(90)]
        _, records = fill(store, 20, 10 * KB)
        store.collect_garbage(live)
        assert store.stored_bytes() <= 1_000 * KB
        assert all(is_readable(store, name) for name in live)
        assert [is_readable(store, ref) for ref in records[-2:]] == [True, True]
