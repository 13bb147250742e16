"""A minimal HTTP/1.1 server side on asyncio streams: request parsing, responses and their faults."""

import asyncio
import http
from collections.abc import Iterable, Iterator

import msgspec

from bradawl.testing.script import Faults

LIMIT_BYTES = 256 * 1024 * 1024
"""Size limit of a request body."""


class BadRequest(Exception):
    """A request that is not valid HTTP/1.1 for this server."""


class RequestHead(msgspec.Struct):
    """The first line and the headers of a request."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case; values of one name are joined."""

    @property
    def keeps_alive(self) -> bool:
        """False if the client asked to close the connection."""
        return "close" not in self.headers.get("connection", "").lower()


async def read_head(reader: asyncio.StreamReader) -> RequestHead | None:
    """The head of the next request; None at the end of the connection. Raises `BadRequest`."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadRequest("the request broke off") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest("the request's head is too long") from error
    first, *lines = raw.decode("latin-1").strip().split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest("this server speaks HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return RequestHead(words[0], words[1], headers)


async def read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """The body of a request. Raises `BadRequest`, `EOFError` if the client left."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _read_chunks(reader)
    return await reader.readexactly(_length(headers.get("content-length", "0"), 10))


def _length(text: str, base: int) -> int:
    try:
        length = int(text, base)
    except ValueError as error:
        raise BadRequest(f"{text!r} is not a length") from error
    if not 0 <= length <= LIMIT_BYTES:
        raise BadRequest(f"a body of {length} bytes is not taken; the limit is {LIMIT_BYTES}")
    return length


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := _length((await _line(reader)).partition(b";")[0].decode("latin-1"), 16):
        if len(body) + size > LIMIT_BYTES:
            raise BadRequest(f"a body of more than {LIMIT_BYTES} bytes is not taken")
        body += await reader.readexactly(size)
        await _line(reader)
    while await _line(reader):
        pass
    return bytes(body)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readline()).strip()
    except ValueError as error:
        raise BadRequest("a line of the request is too long") from error


def response_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """The first line and the headers of a response, with the blank line."""
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = "Scripted"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


class Answer:
    """Writes one response, with its faults. The methods return whether the connection can be kept."""

    def __init__(self, writer: asyncio.StreamWriter, faults: Faults) -> None:
        self._writer = writer
        self._faults = faults
        self._left = faults.cut_at_byte
        self._keeps_alive = True

    async def whole(self, status: int, body: bytes) -> bool:
        """Write a document; 204 and 304 have none."""
        if status in (204, 304):
            body = b""
            self._head(status, ())
        else:
            self._head(status, (("content-type", "application/json"), ("content-length", str(len(body)))))
        return await self._send(body, is_chunked=False) and await self._end(b"")

    async def stream(self, events: Iterator[bytes]) -> bool:
        """Write server-sent events, each as soon as it is made."""
        self._head(200, (("content-type", "text/event-stream; charset=utf-8"), ("transfer-encoding", "chunked")))
        for event in events:
            if not await self._send(event, is_chunked=True):
                return False
        return await self._end(b"0\r\n\r\n")

    def _head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        chosen = {name.lower(): value for name, value in (*headers, *self._faults.headers.items())}
        self._keeps_alive = chosen.get("connection", "").lower() != "close"
        self._writer.write(response_head(status, chosen.items()))

    async def _send(self, data: bytes, *, is_chunked: bool) -> bool:
        size = self._faults.chunk_bytes or len(data) or 1
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            if self._left is not None:
                piece = piece[: self._left]
                self._left -= len(piece)
            if piece:
                self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
                await self._writer.drain()
                await asyncio.sleep(0)
            if self._left == 0:
                return await self._break()
        return True

    async def _end(self, data: bytes) -> bool:
        self._writer.write(data)
        await self._writer.drain()
        return self._keeps_alive

    async def _break(self) -> bool:
        await self._writer.drain()
        self._writer.transport.abort()
        return False
