"""Files and folders that processes have open, and files with further hard links, are found."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from covers_world import replace

from bradawl.sandbox.running_covers.linked_files import LinkedFiles, linked_files
from bradawl.sandbox.running_covers.opened_files import OpenedFile, opened_files, sends_descriptors

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/mnt").exists(), reason="needs Linux")

HOLDS = {
    "reads": ("exec 5< {path}; echo; sleep 60", False),
    "writes": ("exec 5>> {path}; echo; sleep 60", True),
}


@pytest.mark.parametrize("how", HOLDS)
def test_open_files_are_found(tmp_path, how):
    path = tmp_path / ".env"
    path.touch()
    line, is_writable = HOLDS[how]
    with subprocess.Popen(["/bin/sh", "-c", line.format(path=path)], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        found = opened_files([program.pid], os.getpid(), [str(tmp_path)]).files
        assert OpenedFile(str(path), is_writable) in found
        assert opened_files([program.pid], os.getpid(), [str(tmp_path / "other")]).files == frozenset()
        replace(path)
        assert opened_files([program.pid], os.getpid(), [str(path)]).files == frozenset()
        program.kill()


def test_folders_that_a_process_can_write_in_are_found(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    line = f"exec 5< {tmp_path}/a; cd {tmp_path}/a/b; echo; sleep 60"
    with subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        found = opened_files([program.pid], os.getpid(), [str(tmp_path / "a")]).files
        assert found == {OpenedFile(str(tmp_path / each), is_writable=True) for each in ("a", "a/b")}
        (tmp_path / "a").rename(tmp_path / "old")
        (tmp_path / "a/b").mkdir(parents=True)
        assert opened_files([program.pid], os.getpid(), [str(tmp_path / "a")]).files == frozenset()
        program.kill()


def test_descriptors_that_are_being_sent_are_found(tmp_path):
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "a").open("w") as file:
        assert not sends_descriptors([os.getpid()], os.getpid())
        socket.send_fds(ours, [b"x"], [file.fileno()])
        assert sends_descriptors([os.getpid()], os.getpid())
        os.close(socket.recv_fds(theirs, 1, 1)[1][0])
        assert not sends_descriptors([os.getpid()], os.getpid())


def test_linked_files_are_compared_while_they_are_linked(tmp_path):
    path = tmp_path / "a"
    path.write_text("a")
    os.link(path, tmp_path / "b")
    files = LinkedFiles()
    files.add([str(path)])
    assert files.changed() == ()
    (tmp_path / "b").write_text("EVIL")
    assert files.changed() == (str(path),)
    assert files.changed() == ()
    (tmp_path / "b").unlink()
    path.write_text("mine")
    assert files.changed() == ()
    assert linked_files([str(tmp_path)]) == ()


def test_mapped_files_are_found(tmp_path):
    import mmap

    path = tmp_path / "a"
    path.write_bytes(b"x" * 4_096)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4_096)
    with mapped:
        assert opened_files([os.getpid()], os.getpid(), [str(path)]).files == {OpenedFile(str(path), is_writable=True)}


def test_processes_that_have_ended_are_left_out(tmp_path):
    with subprocess.Popen(["/bin/true"]) as program:
        program.wait()
    assert opened_files([program.pid], os.getpid(), [str(tmp_path)]).files == frozenset()


def test_files_of_a_thread_with_descriptors_of_its_own_are_found(tmp_path):
    path = tmp_path / "a"
    path.touch()
    unshares = f"""
import ctypes, threading, time
def act():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    held = open({str(path)!r}, "a")
    print(flush=True)
    time.sleep(60)
threading.Thread(target=act).start()
"""
    with subprocess.Popen([sys.executable, "-c", unshares], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        found = opened_files([program.pid], os.getpid(), [str(path)])
        assert found == ({OpenedFile(str(path), is_writable=True)}, True)
        program.kill()


def test_a_program_that_does_not_show_what_it_has_open_makes_the_answer_incomplete(tmp_path):
    pid = os.fork()
    if pid == 0:
        os._exit(_answers_without_rights(str(tmp_path)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _answers_without_rights(below: str) -> int:
    """0 if the answer is right for a process of a plain user."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)
        ctypes.CDLL(None).prctl(4, 1)
    ready, ended = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
        os.write(ready[1], b"x")
        os.close(ended[1])
        os.read(ended[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    running = opened_files([pid], os.getpid(), [below])
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    as_zombie = opened_files([pid], os.getpid(), [below])
    os.waitpid(pid, 0)
    gone = opened_files([pid], os.getpid(), [below])
    return 0 if (running, as_zombie, gone) == ((set(), False), (set(), True), (set(), True)) else 1
