"""The network of a session's sandboxed commands: owns the proxy and the program that opens listeners."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bradawl.core.permissions import Grant
from bradawl.core.ports import Permit
from bradawl.sandbox.backend import Program, ProgramNetwork
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.listeners import ListenerOpener, ListenerRequest

if TYPE_CHECKING:
    from bradawl.sandbox.network.proxy import Proxy, ServedListener

_NO_LISTENER: Final = "the command ran without network: the sandbox could not open its proxy ({})"


def is_proxied(program: Program, grant: Grant) -> bool:
    """Whether a program gets a listener: it may reach the network, or be asked about, and is no mere search."""
    return grant.network or (program.permit is not None and bool(grant.writable))


def _default_proxy() -> "Proxy":
    from bradawl.sandbox.network.dialing import Dialer
    from bradawl.sandbox.network.proxy import Proxy  # most commands make no connection

    return Proxy(Dialer())


class SessionNetwork:
    """Gives sandboxed commands a listener in their network namespace. Its owner calls `close()`."""

    def __init__(self, make_proxy: "Callable[[], Proxy] | None" = None) -> None:
        """`make_proxy` is called for the first connection. Nothing is started before the first command."""
        self._opener = ListenerOpener()
        self._make_proxy = make_proxy or _default_proxy
        self._proxy: Proxy | None = None

    def proxy(self) -> "Proxy":
        """The proxy of the session."""
        if self._proxy is None:
            self._proxy = self._make_proxy()
        return self._proxy

    def command(self, permit: Permit | None, block_fd: int, *, whole_network: bool) -> "CommandNetwork":
        """The network of one command. Owns `block_fd`, which keeps the program from starting until it is closed.

        Needs a running event loop.
        """
        permissions = HostPermissions(permit, whole_network=whole_network)
        with contextlib.suppress(OSError):  # `open` tries again, and reports it
            self._opener.start()  # ready when the sandbox is
        return CommandNetwork(self._opener, self.proxy, permissions, block_fd)

    def supervised_command(
        self, permit: Permit | None, connections: socket.socket, *, whole_network: bool
    ) -> ProgramNetwork:
        """The network of one command whose supervisor sends its connections; owns the socket from which they come.

        Needs a running event loop.
        """
        permissions = HostPermissions(permit, whole_network=whole_network)
        made = CommandNetwork(self._opener, self.proxy, permissions, -1)
        made.take_connections(connections)
        return made

    def close(self) -> None:
        """End all connections and the program that opens listeners. Safe to call twice."""
        if self._proxy is not None:
            self._proxy.close()
        self._opener.close()


class UnusedNetwork(SessionNetwork):
    """A network for probes, which have no event loop: connections are opened and never served."""

    def supervised_command(
        self, permit: Permit | None, connections: socket.socket, *, whole_network: bool
    ) -> ProgramNetwork:
        """See `SessionNetwork.supervised_command`."""
        return _UnusedConnections(connections)


class _UnusedConnections:
    """`ProgramNetwork` of a probe: holds the socket of the connections."""

    def __init__(self, connections: socket.socket) -> None:
        self._connections = connections

    def open(self, pid: int) -> None:
        """See `ProgramNetwork`."""

    async def wait_answering(self, ended: asyncio.Future[None], timeout_s: float) -> None:
        """See `ProgramNetwork`."""

    def notes(self) -> tuple[str, ...]:
        """See `ProgramNetwork`."""
        return ()

    def close(self) -> None:
        """See `ProgramNetwork`."""
        self._connections.close()


class CommandNetwork:
    """`ProgramNetwork` of one command."""

    def __init__(
        self, opener: ListenerOpener, proxy: "Callable[[], Proxy]", permissions: HostPermissions, block_fd: int
    ) -> None:
        self._opener = opener
        self._proxy = proxy
        self._permissions = permissions
        self._block_fd = block_fd
        self._loop = asyncio.get_running_loop()
        self._request: ListenerRequest | None = None
        self._listener: socket.socket | None = None
        self._served: ServedListener | None = None
        self._problem = ""

    def open(self, pid: int) -> None:
        """See `ProgramNetwork`."""
        if self._block_fd < 0:  # a supervisor opens connections
            return
        try:
            self._request = self._opener.request(pid, self._take)
        except OSError as error:
            self._take(None, error.strerror or str(error))

    def _take(self, listener: socket.socket | None, problem: str) -> None:
        self._request = None
        if self._block_fd < 0:  # closed meanwhile
            if listener is not None:
                listener.close()
            return
        self._listener, self._problem = listener, problem
        if listener is not None:
            self._loop.add_reader(listener.fileno(), self._serve)
        self._release()

    def take_connections(self, connections: socket.socket) -> None:
        """Take connected sockets from a supervisor, which sends each with one byte. Owns the socket."""
        connections.setblocking(False)
        self._listener = connections
        self._loop.add_reader(connections.fileno(), self._serve)

    def _serve(self) -> None:
        """Hand the listener to the proxy when the first connection arrives: most commands make none."""
        listener, self._listener = self._listener, None
        if listener is not None:
            self._loop.remove_reader(listener.fileno())
            if listener.family == socket.AF_UNIX and not _has_data(listener):
                listener.close()
                return
            self._served = self._proxy().serve(listener, self._permissions)

    def _release(self) -> None:
        """Let the program start."""
        if self._block_fd >= 0:
            os.close(self._block_fd)  # the launcher waits for a byte or the end of the file
            self._block_fd = -1

    async def wait_answering(self, ended: asyncio.Future[None], timeout_s: float) -> None:
        """See `ProgramNetwork`."""
        await self._permissions.wait_answering(ended, timeout_s)

    def notes(self) -> tuple[str, ...]:
        """See `ProgramNetwork`."""
        return (*((_NO_LISTENER.format(self._problem),) if self._problem else ()), *self._permissions.notes())

    def close(self) -> None:
        """End the listener and its connections. Safe to call twice."""
        if self._request is not None:
            self._request.cancel()
            self._request = None
        self._release()
        listener, self._listener = self._listener, None
        if listener is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(listener.fileno())
            listener.close()
        if self._served is not None:
            self._served.close()
        self._permissions.close()


def _has_data(connections: socket.socket) -> bool:
    """Whether there is a byte to read, rather than the end."""
    try:
        return bool(connections.recv(1, socket.MSG_PEEK))
    except OSError:
        return False
