"""The base of the test servers: accepts connections on loopback and passes on each request."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from bradawl.testing.http1 import BadRequest, RequestHead, read_body, read_head

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
"""Reads one request and answers it; returns false to close the connection."""
Handler = Callable[[RequestHead, bytes, asyncio.StreamWriter], Awaitable[bool]]
"""Answers one request that has been read; returns false to close the connection."""
Refuse = Callable[[str, asyncio.StreamWriter], Awaitable[object]]
"""Answers invalid HTTP, with the reason."""

_PATIENCE_S = 5.0


class LoopbackServer:
    """Passes each request to `serve`; with TLS if there is a context. Use as `async with`.

    Leaving the context ends every exchange at once. Raises `OSError` on entering if the port is taken.
    """

    def __init__(
        self,
        serve: Serve,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        buffer_bytes: int = 1 << 20,
    ) -> None:
        """`buffer_bytes` limits the head of a request, and half of the bytes buffered before they are read."""
        self._serve = serve
        self._buffer_bytes = buffer_bytes
        self._host = host
        self._tls = tls
        self.port = port
        """The port it listens on, once entered."""
        self.url = ""
        """`http://<host>:<port>`, once entered; https with TLS."""
        self.closing = asyncio.Event()
        """Set when the context is left; handlers that wait should also wait for it."""
        self.connections = 0
        """Connections accepted so far."""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, self._host, self.port, limit=self._buffer_bytes, backlog=1024, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http{'s' if self._tls else ''}://{host}:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        self.closing.set()
        for listener in server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        for _ in range(4):
            # A connection that was just accepted needs a few iterations of the loop until it is in `_open`;
            # otherwise its socket would stay open after the server has closed.
            await asyncio.sleep(0)
        server.close()
        for writer in self._open:
            writer.transport.abort()
        await self.idle()
        await server.wait_closed()

    def narrow(self, unread_bytes: int) -> None:
        """Limit the receive buffer of later connections to about this size, to simulate a slow link."""
        if self._server is not None:
            self._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, unread_bytes)

    async def idle(self) -> None:
        """Wait until no connection is open. Raises `AssertionError` if one stays."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._is_idle.wait()
        except TimeoutError as error:
            raise AssertionError("every connection that is no longer needed is closed") from error

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        self._is_idle.clear()
        if self._tls is None:
            # Without a buffer every drained byte is in the kernel, so a cut happens at the exact byte.
            # With TLS, waiting for an empty buffer may never end.
            writer.transport.set_write_buffer_limits(0)
        try:
            with contextlib.suppress(OSError, EOFError, BadRequest):
                while not self.closing.is_set() and await self._serve(reader, writer):
                    pass
        finally:
            # With a client that has closed, the TLS shutdown would wait.
            writer.transport.abort() if writer.transport.is_closing() else writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._open.discard(writer)
            if not self._open:
                self._is_idle.set()


def answering(handler: Handler, refuse: Refuse) -> Serve:
    """A `Serve` that reads complete requests for `handler`; `refuse` answers invalid ones."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            head = await read_head(reader)
            if head is None:
                return False
            if head.headers.get("expect", "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await read_body(reader, head.headers)
        except BadRequest as error:
            await refuse(str(error), writer)
            return False
        is_whole = await handler(head, body, writer)
        return is_whole and head.keeps_alive

    return serve


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a TCP reset; bytes sent before still arrive."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
