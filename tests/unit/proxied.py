"""The network proxy in front of a server on loopback, for tests of its connections."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bradawl.core.effects import Effects
from bradawl.sandbox.network.dialing import Dialer
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.proxy import Proxy, ProxyLimits

ADDRESS = "93.184.215.14"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = b"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n"
CONNECT = b"CONNECT a.example:443 HTTP/1.1\r\n\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Origin:
    """A server on loopback that runs `serve` for each connection, in a thread."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.port = self._listener.getsockname()[1]
        self.received: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._run, args=(accepted,))
            thread.start()
            self._threads.append(thread)

    def _run(self, accepted: socket.socket) -> None:
        with accepted:
            accepted.settimeout(20)
            try:
                self._serve(accepted)
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for each in self._threads:
            each.join(5)


def head_of(connected: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n") and (more := connected.recv(1)):
        data += more
    return data


def answering(connected: socket.socket) -> None:
    head_of(connected)
    connected.sendall(ANSWER)


def echoing(connected: socket.socket) -> None:
    while data := connected.recv(65_536):
        connected.sendall(data)
    connected.sendall(b"the end")


class Proxied:
    """A proxy whose listener is `port`, and the hosts its one command may reach."""

    def __init__(self, port: int, permissions: HostPermissions) -> None:
        self.port, self.permissions = port, permissions
        self.asked: list[str] = []

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 20)

    def say(self, data: bytes) -> bytes:
        """Send bytes and read to the end."""
        with self.connect() as made:
            made.sendall(data)
            return all_of(made)


def all_of(connected: socket.socket) -> bytes:
    data = b""
    while more := connected.recv(65_536):
        data += more
    return data


class Agent:
    """The agent's event loop, in a thread: starts the proxy and answers with `permit`."""

    def __init__(self, dialer: Dialer, limits: ProxyLimits | None, permit: Callable[[Effects], object] | None) -> None:
        self._proxy = Proxy(dialer, limits)
        self._permit = permit
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._is_ready.wait(10)

    async def _judge(self, effects: Effects) -> None:
        self.made.asked += effects.hosts
        if self._permit is not None:
            await asyncio.sleep(0)
            self._permit(effects)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        permissions = HostPermissions(self._judge, whole_network=False)
        listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.made = Proxied(listener.getsockname()[1], permissions)
        served = self._proxy.serve(listener, permissions)
        self._is_ready.set()
        await permissions.wait_answering(self._ended, 60)
        served.close()
        permissions.close()
        self._proxy.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set_result, None)
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextmanager
def proxied(
    serve: Callable[[socket.socket], None] = answering,
    permit: Callable[[Effects], object] | None = None,
    limits: ProxyLimits | None = None,
    **options: object,
) -> Iterator[Proxied]:
    """A proxy in front of a server, to which every address leads."""
    origin = Origin(serve)

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return (ADDRESS,)

    async def connect(address: str, port: int) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", origin.port))
        return made

    agent = Agent(Dialer(**{"resolve": resolve, "connect": connect, **options}), limits, permit)
    try:
        yield agent.made
    finally:
        agent.close()
        origin.close()
