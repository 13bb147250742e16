"""What the tests of each kind of sandbox share: something outside to be reached."""

import os
import socket
import subprocess

import pytest
from landlock_house import House


class Outside:
    """What a program would reach if it could."""

    def __init__(self, made: House) -> None:
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
def outside(made):
    built = Outside(made)
    yield built
    built.close()
