"""A server on this machine: it accepts connections and hands them on, one request after the other."""

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
"""Takes one request and answers it; gives false when the connection is to end."""
Handler = Callable[[RequestHead, bytes, asyncio.StreamWriter], Awaitable[bool]]
"""Answers one request that has been read; gives false when the connection is to end."""
Refuse = Callable[[str, asyncio.StreamWriter], Awaitable[object]]
"""Answers what is not HTTP, with the reason."""

_PATIENCE_S = 5.0


class LoopbackServer:
    """Hands each request to `serve`; plain, or with TLS if there is a context. Use as `async with`.

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
        """`buffer_bytes` bounds the head of a request, and half of what is taken in before anybody reads it."""
        self._serve = serve
        self._buffer_bytes = buffer_bytes
        self._host = host
        self._tls = tls
        self.port = port
        """Once entered, the one it listens on."""
        self.url = ""
        """`http://<host>:<port>`, once entered; https with TLS."""
        self.closing = asyncio.Event()
        """Set when the context is left; a handler that waits should look at it."""
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
            # A connection that was just accepted needs a few rounds of the loop until it is one of ours;
            # one that is not when the server closes would be lost with its socket open.
            await asyncio.sleep(0)
        server.close()
        for writer in self._open:
            writer.transport.abort()
        await self.idle()
        await server.wait_closed()

    def narrow(self, unread_bytes: int) -> None:
        """Later connections take in about so many bytes that nobody has read yet, as a slow line does."""
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
            # With no buffer of ours every drained byte is the kernel's, so a cut falls where it should.
            # With TLS a writer that waits for an empty buffer may wait for ever.
            writer.transport.set_write_buffer_limits(0)
        try:
            with contextlib.suppress(OSError, EOFError, BadRequest):
                while not self.closing.is_set() and await self._serve(reader, writer):
                    pass
        finally:
            # A client that has gone would let the orderly end of TLS wait.
            writer.transport.abort() if writer.transport.is_closing() else writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._open.discard(writer)
            if not self._open:
                self._is_idle.set()


def answering(handler: Handler, refuse: Refuse) -> Serve:
    """Reads whole requests for `handler`; what can't be read `refuse` answers."""

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
    """End a connection with a TCP reset instead of an orderly close; what was sent before still arrives."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
