"""An HTTP/1.1 server on 127.0.0.1 whose answers come from one handler."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType

from bradawl.testing.http1 import BadRequest, RequestHead, read_body, read_head

Handler = Callable[[RequestHead, bytes, asyncio.StreamWriter], Awaitable[bool]]
"""Answers one request; gives false when the connection is to end."""
Refuse = Callable[[str, asyncio.StreamWriter], Awaitable[object]]
"""Answers what is not HTTP, with the reason."""


class LoopbackServer:
    """Accepts connections and hands each request to `handler`; use as `async with`.

    Leaving the context ends every exchange at once. Raises `OSError` on entering if the port is taken.
    """

    def __init__(self, handler: Handler, refuse: Refuse, *, port: int = 0) -> None:
        self._handler = handler
        self._refuse = refuse
        self.port = port
        """Once entered, the one it listens on."""
        self._server: asyncio.Server | None = None
        self.closing = asyncio.Event()
        """Set when the context is left; a handler that waits should look at it."""
        self._open: set[asyncio.StreamWriter] = set()
        self._ended = asyncio.Event()
        self.connections = 0
        """Connections accepted so far."""

    async def __aenter__(self) -> "LoopbackServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 20, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
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
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until_idle(), 5)
        await server.wait_closed()

    async def _until_idle(self) -> None:
        while self._open:
            self._ended.clear()
            await self._ended.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        # With no buffer of ours every drained byte is the kernel's, so a cut falls where it should.
        writer.transport.set_write_buffer_limits(0)
        try:
            if self.closing.is_set():
                return
            with contextlib.suppress(OSError, EOFError, BadRequest):
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._open.discard(writer)
            self._ended.set()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; false when the connection is to end."""
        try:
            head = await read_head(reader)
            if head is None:
                return False
            if head.headers.get("expect", "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await read_body(reader, head.headers)
        except BadRequest as error:
            await self._refuse(str(error), writer)
            return False
        is_whole = await self._handler(head, body, writer)
        return is_whole and head.keeps_alive


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with a TCP reset instead of an orderly close; what was sent before still arrives."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
