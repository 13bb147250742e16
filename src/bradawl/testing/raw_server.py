"""A server whose handler writes the bytes of its answers itself, right or wrong; plain or with TLS."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable

_PATIENCE_S = 5.0


class Exchange:
    """One request as a server sees it, and the way back."""

    def __init__(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.head = head
        """First line and headers, in lower case but for the first line."""
        self.path = head.split(" ", 2)[1]
        self.keeps = True
        """Whether the connection goes on afterwards."""
        self._reader = reader
        self._writer = writer
        self._body: bytes | None = None

    async def body(self) -> bytes:
        """The request's body."""
        if self._body is None:
            length = self.header("content-length")
            self._body = await self._reader.readexactly(int(length)) if length else b""
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
        lines = [line.partition(":")[2].strip() for line in self.head.split("\r\n") if line.startswith(f"{name}:")]
        return ", ".join(lines)

    async def send(self, *pieces: bytes) -> None:
        """Write, and let each piece go out by itself."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(0)

    async def answer(self, body: bytes = b"", status: str = "200 OK", *headers: str) -> None:
        """A whole response of known length."""
        lines = (f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers)
        await self.send("\r\n".join((*lines, "", "")).encode() + body)

    def hang_up(self) -> None:
        """The connection ends after this exchange."""
        self.keeps = False

    def reset(self) -> None:
        """The connection breaks at once, as when a machine goes away."""
        self.keeps = False
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def until_gone(self) -> None:
        """Wait for the client to hang up."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._reader.read(65536):
                pass
        self.keeps = False


Answer = Callable[[Exchange], Awaitable[None]]


class RawServer:
    """Hands every request to `answer`, which writes what it likes; counts connections."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._answer = answer
        self._tls = tls
        self._host = host
        self.connections = 0
        """Accepted so far."""
        self.seen: list[Exchange] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def __aenter__(self) -> "RawServer":
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls, backlog=200)
        self.port = int(self._server.sockets[0].getsockname()[1])
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http{'s' if self._tls else ''}://{host}:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        await self.idle()

    def narrow(self, unread_bytes: int) -> None:
        """Later connections take in about so many bytes that nobody has read yet, as a slow line does."""
        self._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, unread_bytes)

    async def idle(self) -> None:
        """Wait until no connection is open. Raises `AssertionError` if one stays."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._is_idle.wait()
        except TimeoutError as error:
            raise AssertionError("every connection that is no longer needed is closed") from error

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        self._is_idle.clear()
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while await self._one(reader, writer):
                pass
        writer.transport.abort() if writer.transport.is_closing() else writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        self._open.discard(writer)
        if not self._open:
            self._is_idle.set()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, _, rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
        exchange = Exchange(f"{first}\r\n{rest.lower()}", reader, writer)
        self.seen.append(exchange)
        await self._answer(exchange)
        if exchange.keeps:
            await exchange.body()
        return exchange.keeps
