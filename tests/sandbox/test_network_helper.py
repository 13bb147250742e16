"""The program that opens listeners inside network namespaces, as root and as an unprivileged user."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bubblewrap_programs import bubblewrap_programs
from bwrap import needs_bwrap
from landlock_programs import SYSTEM_PYTHON, USERS

from bradawl.sandbox.network import listeners

pytestmark = needs_bwrap

HELPER = Path(listeners.__file__).with_name("listener_helper.py").read_text("utf-8")


class Helper:
    """The program, and the socket that controls it."""

    def __init__(self, user: str, as_user: dict[str, Any]) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        python = SYSTEM_PYTHON if user == "nobody" else sys.executable
        argv = (python, "-I", "-S", "-c", HELPER, str(theirs.fileno()), str(listeners.PORT))
        self.program = subprocess.Popen(argv, env={}, pass_fds=(theirs.fileno(),), **as_user)
        theirs.close()

    def ask(self, pid: int) -> tuple[str, list[int]]:
        ours, theirs = socket.socketpair()
        socket.send_fds(self.control, [b"%d" % pid], [theirs.fileno()])
        theirs.close()
        with ours:
            ours.settimeout(10)
            said, descriptors, _, _ = socket.recv_fds(ours, 512, 1)
        return said.decode(), list(descriptors)

    def close(self) -> None:
        self.control.close()
        assert self.program.wait(10) == 0


@contextmanager
def blocked(program: str, line: str, as_user: dict[str, Any], *options: str) -> Iterator[tuple[int, int]]:
    """A program in bubblewrap that waits: the PID of its init, and the descriptor that lets it start."""
    (info, info_sink), (block, release) = os.pipe(), os.pipe()
    setup = ("--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", *options)
    argv = (program, *setup, "--info-fd", str(info_sink), "--block-fd", str(block), "--", "/bin/bash", "-c", line)
    started = subprocess.Popen(argv, pass_fds=(info_sink, block), env={}, **as_user)
    os.close(info_sink)
    os.close(block)
    said = b""
    while not said.rstrip().endswith(b"}") and (more := os.read(info, 4_096)):
        said += more
    os.close(info)
    try:
        yield json.loads(said)["child-pid"], release
    finally:
        assert started.wait(10) == 0


@pytest.fixture(params=USERS)
def user(request):
    return request.param


@pytest.fixture
def programs(user):
    with bubblewrap_programs(user) as made:
        yield made


@pytest.fixture
def helper(user, programs):
    made = Helper(user, programs.as_user)
    yield made
    made.close()


@pytest.mark.parametrize("options", [(), ("--disable-userns",)], ids=["", "disable-userns"])
def test_the_listener_is_there_before_the_program_and_reaches_only_it(programs, helper, options):
    line = f"exec 3<>/dev/tcp/127.0.0.1/{listeners.PORT}; read -r text <&3; [[ $text == hello ]]"
    with blocked(programs.program, line, programs.as_user, *options) as (pid, release):
        said, descriptors = helper.ask(pid)
        assert (said, len(descriptors)) == ("ok", 1)
        with socket.socket(fileno=descriptors[0]) as listener:
            assert listener.getsockname() == ("127.0.0.1", listeners.PORT)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", listeners.PORT), 5)
            os.close(release)
            listener.settimeout(10)
            accepted, _ = listener.accept()
            accepted.sendall(b"hello\n")
            accepted.close()


def test_no_listener_is_opened_outside_of_a_namespace(helper):
    said, descriptors = helper.ask(os.getpid())
    assert descriptors == [] and ("no network namespace of its own" in said or "denied" in said)


def test_a_process_that_has_ended_is_an_error_and_the_helper_goes_on(programs, helper):
    with subprocess.Popen(("/bin/true",)) as ended:
        pid = ended.pid
    assert helper.ask(pid) == ("No such file or directory", [])
    with blocked(programs.program, "true", programs.as_user) as (pid, release):
        said, descriptors = helper.ask(pid)
        assert said == "ok"
        os.close(descriptors[0])
        os.close(release)
