"""On a disk that is nearly full no bytecode is written: Python would keep what was cut."""

import marshal
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bradawl.app.bytecode import keep_no_cut_bytecode


@pytest.fixture
def disk(monkeypatch, tmp_path):
    """A function that sets the free bytes of the disk with the bytecode; other disks have enough."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))

    def has_free(size):
        at = {str(tmp_path): SimpleNamespace(f_bavail=size // 4096, f_frsize=4096)}
        monkeypatch.setattr(os, "statvfs", lambda path: at.get(path, SimpleNamespace(f_bavail=10**9, f_frsize=4096)))

    return has_free


@pytest.mark.parametrize(("free", "is_written"), [(0, False), (16 << 20, False), (64 << 20, True)])
def test_bytecode_is_written_while_there_is_space(disk, free, is_written):
    disk(free)
    keep_no_cut_bytecode()
    assert sys.dont_write_bytecode is not is_written


def test_a_disk_that_does_not_tell_changes_nothing(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", "/nowhere")
    keep_no_cut_bytecode()
    assert sys.dont_write_bytecode is False


def test_under_a_limit_on_the_size_of_files_no_module_of_ours_is_cut(tmp_path):
    kept = tmp_path / "kept"
    run = '"$0" -m bradawl --help; ulimit -f 8; exec "$0" -m bradawl doctor'
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPYCACHEPREFIX": str(kept)}
    subprocess.run(["bash", "-c", run, sys.executable], env=environ, capture_output=True, timeout=60, check=False)
    compiled = [path for path in kept.rglob("*.pyc") if "bradawl" in path.parts]
    assert compiled
    for path in compiled:
        marshal.loads(path.read_bytes()[16:])  # noqa: S302 - our own files; raises for one that was cut
