"""Created, deleted and replaced paths are reported, with inotify and without."""

import os
import struct
from pathlib import Path

import pytest
from covers_world import FaultyInotify, no_inotify, replace

from bradawl.sandbox.filesystem.inotify import Inotify
from bradawl.sandbox.running_covers.cover_watch import PathWatch

IN_CREATE = 0x100
pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/mnt").exists(), reason="needs Linux")


def test_only_wanted_names_are_reported(tmp_path):
    watch = PathWatch()
    (tmp_path / "sub").mkdir()
    watch.want([f"{tmp_path}/sub/a", f"{tmp_path}/b"], [str(tmp_path)], forgets=True)
    assert watch.changed() == set()
    for name in ("sub/a", "sub/other", "other"):
        (tmp_path / name).touch()
    assert watch.changed() == {f"{tmp_path}/sub/a"}
    (tmp_path / "sub/a").write_text("in place")
    assert watch.changed() == set()
    replace(tmp_path / "sub/a")
    assert watch.changed() == {f"{tmp_path}/sub/a"}
    for name in ("sub/a", "sub/other"):
        (tmp_path / name).unlink()
    (tmp_path / "sub").rmdir()
    assert watch.changed() == {f"{tmp_path}/sub/a", f"{tmp_path}/sub"}
    watch.close()


def test_entries_of_a_replaced_folder_are_reported(tmp_path):
    watch = PathWatch()
    (tmp_path / "a/b").mkdir(parents=True)
    watch.want([f"{tmp_path}/a/b/c"], [str(tmp_path)], forgets=True)
    for _ in range(3):
        (tmp_path / "a").rename(tmp_path / f"old-{os.urandom(4).hex()}")
        (tmp_path / "a").mkdir()
        watch.watch_again(watch.changed())
        (tmp_path / "a/b").mkdir()
        watch.watch_again(watch.changed())
        (tmp_path / "a/b/c").touch()
        assert watch.changed() == {f"{tmp_path}/a/b/c"}
    watch.close()


def test_a_name_that_is_not_utf_8_is_reported(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    watch = PathWatch()
    watch.want([path], [str(tmp_path)], forgets=True)
    Path(path).touch()
    assert watch.changed() == {path}
    watch.close()


class EndlessInotify(Inotify):
    """As if programs made events faster than they are read."""

    def _read(self) -> bytes:
        return struct.pack("iIII", 1, IN_CREATE, 0, 16) + b"other".ljust(16, b"\0")


def test_events_without_end_are_not_read_for_ever(tmp_path):
    watch = PathWatch(EndlessInotify)
    watch.want([f"{tmp_path}/a"], [str(tmp_path)], forgets=True)
    assert watch.changed() == {f"{tmp_path}/a"}
    watch.close()


def test_forgotten_paths_are_not_reported(tmp_path):
    watch = PathWatch()
    (tmp_path / "sub").mkdir()
    watch.want([f"{tmp_path}/sub/a"], (), forgets=True)
    watch.want([f"{tmp_path}/b"], (), forgets=True)
    (tmp_path / "sub/a").touch()
    (tmp_path / "b").touch()
    assert watch.changed() == {f"{tmp_path}/b"}
    watch.close()


@pytest.mark.parametrize("make", [no_inotify, lambda: FaultyInotify(watches=1)], ids=["EMFILE", "ENOSPC"])
def test_without_watches_paths_are_compared(tmp_path, make):
    watch = PathWatch(make)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").touch()
    paths = [f"{tmp_path}/sub/a", f"{tmp_path}/b", f"{tmp_path}/sub/gone"]
    watch.want(paths, [str(tmp_path)], forgets=True)
    assert watch.fileno() == -1
    assert watch.changed() == set()
    replace(tmp_path / "sub/a")
    (tmp_path / "b").touch()
    assert watch.changed() == {f"{tmp_path}/sub/a", f"{tmp_path}/b"}
    assert watch.changed() == set()
    (tmp_path / "b").unlink()
    assert watch.changed() == {f"{tmp_path}/b"}
    watch.close()


def test_a_file_that_reuses_an_inode_counts_as_changed(tmp_path):
    watch = PathWatch(no_inotify)
    path = tmp_path / "a"
    path.touch()
    watch.want([str(path)], (), forgets=True)
    for _ in range(5):
        path.unlink()
        path.touch()
        os.utime(path, ns=(0, os.urandom(1)[0]))
        assert watch.changed() == {str(path)}
    watch.close()


def test_after_an_overflow_every_path_counts_as_changed(tmp_path):
    watch = PathWatch(lambda: FaultyInotify(overflows=True))
    watch.want([f"{tmp_path}/a", f"{tmp_path}/b"], (), forgets=True)
    assert watch.changed() == set()
    (tmp_path / "x").touch()
    assert watch.changed() == {f"{tmp_path}/a", f"{tmp_path}/b"}
    watch.close()


def test_two_names_of_one_folder_are_both_reported(tmp_path):
    watch = PathWatch()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    both = [f"{tmp_path}/real/a", f"{tmp_path}/link/b"]
    watch.want(both, (), forgets=True)
    for name in "ab":
        (tmp_path / "real" / name).touch()
    assert watch.changed() == set(both)
    watch.want(both[:1], (), forgets=True)
    replace(tmp_path / "real/a")
    assert watch.changed() == {both[0]}
    watch.close()


def test_a_change_is_not_lost_when_the_same_path_is_wanted_before_the_comparison(tmp_path):
    watch = PathWatch(no_inotify)
    for name in "ab":
        (tmp_path / name).touch()
    watch.want([f"{tmp_path}/a"], (), forgets=True)
    replace(tmp_path / "a")
    watch.want([f"{tmp_path}/a", f"{tmp_path}/b"], (), forgets=False)
    watch.watch_again([f"{tmp_path}/a"])
    assert watch.changed() == {f"{tmp_path}/a"}


def test_events_that_wait_when_watches_run_out_are_not_lost(tmp_path):
    class Limited(FaultyInotify):
        events = Inotify.events

    watch = PathWatch(lambda: Limited(watches=1))
    (tmp_path / "sub").mkdir()
    watch.want([f"{tmp_path}/a"], (), forgets=True)
    (tmp_path / "a").touch()
    watch.want([f"{tmp_path}/sub/b"], (), forgets=False)
    assert watch.fileno() == -1
    assert watch.changed() == {f"{tmp_path}/a"}
    assert watch.changed() == set()
    watch.close()
