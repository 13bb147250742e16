"""Fixtures of the sandbox tests: sandboxed sessions, and resources outside that programs must not reach."""

import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from bwrap import HAS_BWRAP
from landlock_programs import SandboxedPrograms, need_landlock
from sandboxed_session import sandboxed_session

from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.landlock import LandlockBackend, why_unavailable


class Outside:
    """Resources outside the sandbox: sockets, a terminal, a process. `variables` tells programs where they are."""

    def __init__(self, made: SandboxedPrograms) -> None:
        self.made = made
        (made.home / "linked").symlink_to(".ssh/id_ed25519")
        self.tcp, self.udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix, self.abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.unix.bind(str(made.outside / "socket"))
        (made.outside / "socket").chmod(0o777)
        name = f"bradawl-test-{os.getpid()}"
        self.abstract.bind(f"\0{name}")
        for listening in (self.unix, self.abstract):
            listening.listen()
        self.terminal = os.openpty()
        self.agent = subprocess.Popen(["/bin/sleep", "60"], env={"KEY": "secret"}, cwd="/", **made.as_user)
        self.env = {
            "OUT": str(made.outside),
            "AGENT": str(self.agent.pid),
            "TCP": str(self.tcp.getsockname()[1]),
            "UDP": str(self.udp.getsockname()[1]),
            "ABSTRACT": name,
            "TTY": os.ttyname(self.terminal[1]),
        }

    def close(self) -> None:
        self.agent.kill()
        self.agent.wait()
        for each in (self.tcp, self.udp, self.unix, self.abstract):
            each.close()
        for each in self.terminal:
            os.close(each)


@pytest.fixture
def made(tmp_path):
    """A session in bubblewrap. Modules that test other sandboxes or users define their own `made`."""
    with sandboxed_session(tmp_path) as here:
        yield here


@pytest.fixture
def layout(tmp_path) -> SandboxLayout:
    """An empty workspace beside an empty home."""
    for name in ("ws", "home"):
        (tmp_path / name).mkdir()
    place = os.path.realpath(tmp_path)
    return SandboxLayout((f"{place}/ws",), f"{place}/home", scratch=f"{place}/scratch", state=f"{place}/state")


@pytest.fixture
def place():
    """A folder below the home folder, which a sandbox shows unchanged."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="bradawl-test-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def outside(made):
    built = Outside(made)
    yield built
    built.close()


@pytest.fixture(params=["bubblewrap", "landlock", "bare"])
def backend(request):
    """The sandbox of `either_way`; `bare` means none."""
    return request.param


@pytest.fixture
def either_way(backend, tmp_path):
    """A session with each kind of sandbox, and with none."""
    with sandboxed_session(tmp_path) as here:
        if backend == "bubblewrap" and not HAS_BWRAP:
            pytest.skip("bubblewrap does not work here")
        if backend == "landlock":
            need_landlock()
            if why := why_unavailable(here.layout):
                pytest.skip(why)
            here.backend.close()
            Path(here.layout.scratch).mkdir()
            here.backend = LandlockBackend(here.layout)
        if backend == "bare":
            here.grant = Grant(outside_sandbox=True)
        yield here
