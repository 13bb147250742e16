"""Times that a file system such as tmpfs keeps, but that don't fit 64 bits in nanoseconds, end nothing."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from watched_history import Repository

from bradawl.checkpoints.folder import Signature, signature
from bradawl.checkpoints.folder_reader import list_entries
from bradawl.checkpoints.kept_copies import identity_of, is_known_file
from bradawl.checkpoints.record import Identity
from bradawl.sandbox.filesystem.tree_removal import remove_folder

SECONDS = [9_223_372_036_854_775_807, -9_223_372_036_854_775_808, 20_000_000_000]
MEMORY = Path("/dev/shm")


@pytest.fixture
def place() -> Iterator[Path]:
    if not os.access(MEMORY, os.W_OK):
        pytest.skip("needs a tmpfs")
    made = Path(tempfile.mkdtemp(dir=MEMORY))
    yield made
    remove_folder(str(made))


def set_time(path: Path, seconds: int) -> None:
    os.utime(path, ns=(seconds * 1_000_000_000, seconds * 1_000_000_000))
    assert path.lstat().st_mtime_ns == seconds * 1_000_000_000


@pytest.mark.parametrize("seconds", SECONDS)
def test_the_history_of_a_repository_is_recorded_and_compared(place, seconds):
    work = Repository(place)
    for path in (work.data / "HEAD", work.data / "index", *work.data.glob("objects/??/*")):
        path.chmod(0o644)
        set_time(path, seconds)
    work.history.begin()
    work.history.end()
    assert work.is_whole()
    work.close()


@pytest.mark.parametrize("seconds", SECONDS)
def test_the_signatures_of_files_can_be_saved_and_tell_times_apart(place, seconds):
    (place / "a").write_text("a")
    set_time(place / "a", seconds)
    opened = os.open(place, os.O_RDONLY)
    try:
        listed = list_entries(opened, 10)
    finally:
        os.close(opened)
    found = signature((place / "a").lstat())
    assert listed == {"a": found}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Signature) == found
    set_time(place / "a", seconds // 2)
    assert signature((place / "a").lstat()) != found


@pytest.mark.parametrize("seconds", SECONDS)
def test_a_file_is_known_by_its_identity(place, seconds):
    (place / "a").write_text("a")
    set_time(place / "a", seconds)
    identity = identity_of((place / "a").lstat())
    assert is_known_file((place / "a").lstat(), msgspec.msgpack.decode(msgspec.msgpack.encode(identity), type=Identity))
    set_time(place / "a", 1)
    assert not is_known_file((place / "a").lstat(), identity)
