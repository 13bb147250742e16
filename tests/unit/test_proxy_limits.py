"""How many connections programs can have open at the network proxy, and with them files of the agent's process."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest
from proxied import ADDRESS, CONNECT, ESTABLISHED, GET, Origin, all_of, echoing, head_of

from bradawl.sandbox.network.dialing import Dialer
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.proxy import Proxy, ProxyLimits

SMALL = 4_096


async def everything_permitted() -> HostPermissions:
    return HostPermissions(None, whole_network=True)


class Command:
    """The listener of one command, whose sockets hold little."""

    def __init__(self, proxy: Proxy) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        self._address = listener.getsockname()
        self.permissions = asyncio.run(everything_permitted())
        self.served = proxy.serve(listener, self.permissions)

    def connect(self) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        made.settimeout(20)
        made.connect(self._address)
        return made

    def tunnel(self) -> socket.socket:
        made = self.connect()
        made.sendall(CONNECT)
        return made


@contextlib.contextmanager
def proxy_to(serve: Callable[[socket.socket], None], limits: ProxyLimits) -> Iterator[Proxy]:
    origin = Origin(serve)

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return (ADDRESS,)

    async def connect(address: str, port: int) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", origin.port))
        return made

    proxy = Proxy(Dialer(resolve=resolve, connect=connect), limits)
    try:
        yield proxy
    finally:
        proxy.close()
        origin.close()


def is_silent(connected: socket.socket) -> bool:
    connected.settimeout(0.3)
    try:
        return not connected.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        connected.settimeout(20)


# ------------------------------------------------------------------ connections


BODY = b"x" * 60_000
"""Less than what the proxy holds without waiting for the program, and more than the sockets hold."""


def sending_body(connected: socket.socket) -> None:
    head_of(connected)
    connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + BODY)


def tunneling_body(connected: socket.socket) -> None:
    connected.sendall(BODY)
    connected.shutdown(socket.SHUT_WR)
    all_of(connected)


@pytest.mark.parametrize("way", ["plain", "tunnel"])
def test_a_connection_counts_until_all_of_it_was_sent(way):
    is_plain = way == "plain"
    with proxy_to(sending_body if is_plain else tunneling_body, ProxyLimits(connections=1)) as proxy:
        command = Command(proxy)
        with command.connect() as unread, command.connect() as waiting:
            unread.sendall(GET if is_plain else CONNECT)
            if not is_plain:
                unread.shutdown(socket.SHUT_WR)
            assert unread.recv(1) == b"H"
            waiting.sendall(GET if is_plain else CONNECT)
            assert is_silent(waiting), "the proxy holds the rest of the first answer, and its two files"
            assert all_of(unread).endswith(BODY)
            assert waiting.recv(1) == b"H"


def test_a_program_that_reads_nothing_is_cut_off_after_the_limit():
    with proxy_to(sending_body, ProxyLimits(connections=1, idle_s=0.3)) as proxy:
        command = Command(proxy)
        with command.connect() as unread, command.connect() as waiting:
            unread.sendall(GET)
            assert unread.recv(1) == b"H"
            waiting.sendall(GET)
            assert waiting.recv(1) == b"H"
            with pytest.raises(ConnectionResetError):
                all_of(unread)


def test_the_commands_of_a_session_share_the_limit_and_each_can_connect():
    with proxy_to(echoing, ProxyLimits(connections=10)) as proxy, contextlib.ExitStack() as stack:
        greedy, other = Command(proxy), Command(proxy)
        for _ in range(10):
            assert head_of(stack.enter_context(greedy.tunnel())) == ESTABLISHED
        assert is_silent(stack.enter_context(greedy.tunnel()))
        few = [stack.enter_context(other.tunnel()) for _ in range(6)]
        assert [head_of(each) for each in few[:4]] == [ESTABLISHED] * 4
        assert is_silent(few[4]) and is_silent(few[5])
        greedy.served.close()
        assert [head_of(each) for each in few[4:]] == [ESTABLISHED] * 2
