"""A test server whose handler writes the raw bytes of its responses; plain or with TLS."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

from bradawl.testing.http1 import RequestHead, read_body, read_head
from bradawl.testing.loopback import LoopbackServer, reset


class ServerExchange:
    """One request at the server, and the writer of its response."""

    def __init__(self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.head = head
        self.path = head.path
        self.keeps = True
        """Whether the connection is kept afterwards."""
        self._reader = reader
        self._writer = writer
        self._body: bytes | None = None

    async def body(self) -> bytes:
        """The request's body."""
        if self._body is None:
            self._body = await read_body(self._reader, self.head.headers)
        return self._body

    async def slowly(self, chunk_bytes: int, pause_s: float) -> None:
        """Read the request's body in chunks, with pauses between them."""
        left = int(self.header("content-length") or 0)
        while left > 0:
            left -= len(await self._reader.readexactly(min(chunk_bytes, left)))
            await asyncio.sleep(pause_s)
        self._body = b""

    def header(self, name: str) -> str:
        """A header's value; empty if there is none."""
        return self.head.headers.get(name, "")

    async def send(self, *pieces: bytes) -> None:
        """Write each piece as a packet of its own."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(0)

    async def answer(self, body: bytes = b"", status: str = "200 OK", *headers: str) -> None:
        """Write a complete response with its length."""
        lines = (f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers)
        await self.send("\r\n".join((*lines, "", "")).encode() + body)

    def hang_up(self) -> None:
        """Close the connection after this exchange."""
        self.keeps = False

    def reset(self) -> None:
        """Reset the connection at once."""
        self.keeps = False
        reset(self._writer)

    async def until_client_closed(self) -> None:
        """Wait until the client closes the connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._reader.read(65536):
                pass
        self.keeps = False


Answer = Callable[[ServerExchange], Awaitable[None]]


class RawServer(LoopbackServer):
    """Calls `answer` for every request once its headers have been read; `answer` writes the response."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        super().__init__(self._one, host=host, tls=tls, buffer_bytes=1 << 16)
        self._answer = answer
        self.seen: list[ServerExchange] = []

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await read_head(reader)
        if head is None:
            return False
        exchange = ServerExchange(head, reader, writer)
        self.seen.append(exchange)
        await self._answer(exchange)
        if exchange.keeps:
            await exchange.body()
        return exchange.keeps
