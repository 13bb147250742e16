"""The content store: contents and records survive processes that write, die and collect garbage at the same time."""

import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.checkpoints.deltas import apply_delta, encode_delta
from bradawl.checkpoints.errors import ContentDamaged, ContentGone
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore

MB = 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "checkpoints"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def added(store: ContentStore, path: Path, size: int | None = None, previous: str = "") -> str:
    with path.open("rb") as file:
        return store.add(file.fileno(), path.stat().st_size if size is None else size, previous)


def record_of(*contents: str, at: int = 0) -> ChangeRecord:
    states = [FileState("file", 0o644, content) for content in contents]
    changes = tuple(Change(f"/w/{number}".encode(), None, state) for number, state in enumerate(states))
    return ChangeRecord(f"call-{at}", at, changes)


# ------------------------------------------------------------------ contents


@pytest.mark.parametrize("size", [0, 1, 5_000, 16_384, MB, 1_048_577, 3 * MB])
def test_a_content_is_read_back_by_this_and_another_store(folder: Path, tmp_path: Path, size: int):
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    with ContentStore(folder) as store, ContentStore(folder) as other:
        name = added(store, tmp_path / "file")
        assert name == sha256(data)
        assert (store.has(name), other.has(name)) == (True, True)
        assert (store.read(name), other.read(name)) == (data, data)
        with (tmp_path / "copy").open("wb") as copy:
            other.copy_to(name, copy.fileno())
        assert (tmp_path / "copy").read_bytes() == data


@pytest.mark.parametrize("size", [0, 3, 5_000, 100_000, 100 * MB])
def test_the_expected_size_is_only_a_hint(folder: Path, tmp_path: Path, size: int):
    data = os.urandom(20_000)
    (tmp_path / "file").write_bytes(data)
    with ContentStore(folder) as store:
        name = added(store, tmp_path / "file", size)
        assert name == sha256(data)
    with ContentStore(folder) as store:
        assert store.read(name) == data


def test_a_content_is_saved_once(folder: Path, tmp_path: Path):
    for name, size in (("small", 5_000), ("large", 2 * MB), ("streamed", 2 * MB)):
        (tmp_path / name).write_bytes(os.urandom(size))
        with ContentStore(folder) as store:
            added(store, tmp_path / name)
            store.flush()
            before = store.stored_bytes()
            added(store, tmp_path / name)
            assert store.stored_bytes() == before
        with ContentStore(folder) as store:
            added(store, tmp_path / name, 100 * MB if name == "streamed" else None)
            assert store.stored_bytes() == before


def test_an_unknown_content_is_gone(folder: Path, tmp_path: Path):
    with ContentStore(folder) as store:
        assert not store.has(sha256(b"x"))
        for ask in (store.read, store.record, lambda name: store.copy_to(name, 0)):
            with pytest.raises(ContentGone, match="undo no longer reaches so far back"):
                ask(sha256(b"x"))
    assert not folder.exists()


@pytest.mark.parametrize("size", [100, 2 * MB])
def test_a_damaged_content_is_not_returned(folder: Path, tmp_path: Path, size: int):
    with ContentStore(folder) as store:
        name = store.add_bytes(b"x" * size)
    (file,) = [each for each in folder.iterdir() if each.suffix in (".pack", ".large")]
    with file.open("r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"y")
    with ContentStore(folder) as store:
        with pytest.raises(ContentDamaged):
            store.read(name)
        with (tmp_path / "copy").open("wb") as copy, pytest.raises(ContentDamaged):
            store.copy_to(name, copy.fileno())


def test_folder_and_files_are_private_and_links_are_refused(folder: Path, tmp_path: Path):
    with ContentStore(folder) as store:
        store.add_bytes(b"small")
        store.add_bytes(os.urandom(2 * MB))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    with ContentStore(tmp_path / "link") as store, pytest.raises(OSError):
        store.add_bytes(b"small")
    assert list(outside.iterdir()) == []


def test_a_removed_store_is_noticed(folder: Path):
    with ContentStore(folder) as store:
        store.add_bytes(b"one")
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
        with pytest.raises(OSError):
            store.flush()


# ------------------------------------------------------------------ records


def test_a_record_is_read_back(folder: Path):
    record = ChangeRecord(
        "c", 5, (Change(b"/w/\xff", FileState("link", 0o777, target=b"\xfe"), None),), ("Other folders.",)
    )
    with ContentStore(folder) as store:
        ref = store.save_record(record)
        assert store.save_record(record) == ref
    with ContentStore(folder) as store:
        assert store.record(ref) == record
        with pytest.raises(ContentDamaged):
            store.record(store.add_bytes(b"not a record"))


# ------------------------------------------------------------------ differences


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=20), st.binary(max_size=20))
def test_a_difference_makes_the_new_version(begin: bytes, end: bytes, old: bytes, new: bytes):
    before, after = begin + old + end, begin + new + end
    delta = encode_delta(bytes(32), before, after)
    assert apply_delta(before, delta) == after
    assert len(delta) <= 48 + len(new)


@pytest.mark.parametrize("size", [16_384, 300_000, 3 * MB])
@pytest.mark.parametrize("is_named", [True, False])
def test_versions_of_a_file_take_the_space_of_their_changes(folder: Path, tmp_path: Path, size: int, is_named: bool):
    content = bytearray(os.urandom(size))
    versions, previous = [], ""
    with ContentStore(folder) as store:
        for number in range(100):
            place = 2_000 + number * 100
            content[place : place + 10] = b"%010d" % number
            (tmp_path / "file").write_bytes(content)
            previous = added(store, tmp_path / "file", previous=previous if is_named else "")
            versions.append(bytes(content))
        assert store.stored_bytes() < 100 * 200 + (100 // min(64, 67_108_864 // size) + 1) * (size + 200)
    with ContentStore(folder) as store:
        assert all(store.read(sha256(version)) == version for version in versions)


# ------------------------------------------------------------------ writers that die


def test_a_pack_cut_at_any_byte_keeps_the_contents_before(folder: Path):
    contents = [b"", b"one", b"two" * 20, b"three" * 30]
    ends = [0]
    with ContentStore(folder) as store:
        for data in contents:
            store.add_bytes(data)
            ends.append(store.stored_bytes())
    (pack,) = folder.glob("*.pack")
    whole = pack.read_bytes()
    for cut in range(len(whole) + 1):
        pack.write_bytes(whole[:cut])
        with ContentStore(folder) as store:
            kept = [store.has(sha256(data)) for data in contents]
            assert kept == [end <= cut for end in ends[1:]]
            name = store.add_bytes(contents[-1])
            assert store.read(name) == contents[-1]
        for other in set(folder.glob("*.pack")) - {pack}:
            other.unlink()


def test_zeros_behind_a_pack_are_not_contents(folder: Path):
    with ContentStore(folder) as store:
        name = store.add_bytes(b"one")
    (pack,) = folder.glob("*.pack")
    pack.write_bytes(pack.read_bytes() + bytes(10_000))
    with ContentStore(folder) as store:
        assert store.read(name) == b"one"
        assert [digest.hex() for digest, _ in store.index.items()] == [name]


_WRITER = """
import os, sys
from pathlib import Path
from bradawl.checkpoints.store import ContentStore
store = ContentStore(Path(sys.argv[1]))
number = 0
while True:
    data = (b"%s-%d " % (sys.argv[2].encode(), number)) * (1 + number % 5_000)
    store.add_bytes(data)
    if number == 200:
        print("ready", flush=True)
    number += 1
"""


def test_killed_writers_leave_a_readable_store(folder: Path):
    for round_number in range(3):
        names = [f"{round_number}{letter}" for letter in "ab"]
        writers = [
            subprocess.Popen([sys.executable, "-c", _WRITER, str(folder), name], stdout=subprocess.PIPE)
            for name in names
        ]
        try:
            for writer in writers:
                assert writer.stdout is not None
                assert writer.stdout.readline() == b"ready\n"
        finally:
            for writer in writers:
                writer.send_signal(signal.SIGKILL)
                writer.communicate()
    with ContentStore(folder) as store:
        for name in [f"{number}{letter}" for number in range(3) for letter in "ab"]:
            for number in range(200):
                data = f"{name}-{number} ".encode() * (1 + number % 5_000)
                assert store.read(sha256(data)) == data
        assert all(hashlib.sha256(store.read(digest.hex())).digest() == digest for digest, _ in store.index.items())


_FULL = """
import hashlib, os, resource, signal, sys
from pathlib import Path
from bradawl.checkpoints.store import ContentStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = ContentStore(Path(sys.argv[1]))
first = store.add_bytes(b"before" * 100)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, resource.RLIM_INFINITY))
for size in (8_000, 3_000_000):
    data = os.urandom(size)
    try:
        store.add_bytes(data)
    except OSError as error:
        print(error.errno)
    assert not store.has(hashlib.sha256(data).hexdigest())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.add_bytes(b"after" * 1_000)
store.flush()
"""


def test_a_full_disk_is_an_error_and_leaves_nothing_half_visible(folder: Path):
    done = subprocess.run([sys.executable, "-c", _FULL, str(folder)], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.split()) == ("", [str(errno.EFBIG)] * 2)
    with ContentStore(folder) as store:
        assert store.read(sha256(b"before" * 100)) == b"before" * 100
        assert store.read(sha256(b"after" * 1_000)) == b"after" * 1_000
        assert len(list(store.index.items())) == 2
    assert not list(folder.glob("*.new"))
