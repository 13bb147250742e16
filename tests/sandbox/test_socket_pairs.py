"""Programs in the sandbox can't turn a pair of sockets into one that reaches other programs' sockets."""

import socket

import pytest
from bwrap import needs_bwrap
from sandboxed_session import sandboxed_session

pytestmark = needs_bwrap
SEND = """
import socket
left, right = socket.socketpair(socket.AF_UNIX, socket.{kind})
left.connect(b"")
left.sendto(b"out", "host.sock")
"""


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_RAW"])
def test_a_pair_of_datagram_sockets_reaches_no_socket_of_the_host(tmp_path, kind):
    with sandboxed_session(tmp_path) as session, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as host:
        host.bind(str(session.root / "host.sock"))
        host.settimeout(0.2)
        session.write("send.py", SEND.format(kind=kind))
        assert "PermissionError" in session.out("python3 send.py")
        with pytest.raises(TimeoutError):
            host.recv(10)


def test_pairs_of_stream_sockets_work(tmp_path):
    line = "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'"
    with sandboxed_session(tmp_path) as session:
        assert "b'x'" in session.out(line)
