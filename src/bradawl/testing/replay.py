"""A server on loopback that plays recorded responses byte for byte, cut where they were cut.

async with ReplayServer([Recording(path.read_bytes(), then="reset")]) as server:
    ...  # a model whose base URL is server.base_url
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from bradawl.testing.http1 import Answer, RequestHead, response_head
from bradawl.testing.loopback import LoopbackServer, answering, reset
from bradawl.testing.script import Faults

EVENT_STREAM = (("content-type", "text/event-stream"),)


class Recording(msgspec.Struct, frozen=True):
    """One response as it goes over the wire."""

    data: bytes = b""
    """The body, sent in chunks."""
    split_at: tuple[int, ...] = ()
    """Where the body is flushed on its way, as offsets into it."""
    then: Literal["eof", "reset", "silence"] = "eof"
    """What comes behind the last byte: the end of a good response, a connection reset, or nothing at all."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = EVENT_STREAM
    is_framed: bool = True
    """False: the body ends with the connection instead of being chunked."""

    def pieces(self) -> list[bytes]:
        """The body cut at its flush points."""
        edges = [0, *sorted(place for place in self.split_at if 0 < place < len(self.data)), len(self.data)]
        return [self.data[start:end] for start, end in itertools.pairwise(edges) if end > start]


class Received(msgspec.Struct, frozen=True):
    """One request as it came."""

    method: str
    path: str
    """With its query."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


Recordings = Iterable[Recording] | Callable[[Received], Recording]
"""Answers in order, or one that depends on the request."""


class ReplayServer(LoopbackServer):
    """Answers every request with the next recording; use as `async with`. Past the last one the answer is a 500."""

    def __init__(self, recordings: Recordings) -> None:
        self._answer = recordings if callable(recordings) else None
        self._left = iter(() if callable(recordings) else recordings)
        super().__init__(answering(self._handle, self._refuse))
        self.requests: list[Received] = []
        """In the order they came."""

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:<port>`, once entered."""
        return self.url

    async def _handle(self, head: RequestHead, body: bytes, writer: asyncio.StreamWriter) -> bool:
        received = Received(head.method, head.path, head.headers, body)
        self.requests.append(received)
        recording = self._answer(received) if self._answer is not None else next(self._left, None)
        if recording is None:
            return await Answer(writer, Faults()).whole(500, b'{"error":{"message":"nothing more was recorded"}}')
        return await self._play(recording, writer)

    async def _refuse(self, reason: str, writer: asyncio.StreamWriter) -> None:
        await Answer(writer, Faults()).whole(400, msgspec.json.encode({"error": {"message": reason}}))

    async def _play(self, recording: Recording, writer: asyncio.StreamWriter) -> bool:
        is_chunked = recording.is_framed and recording.status not in (204, 304)
        framing = (("transfer-encoding", "chunked"),) if is_chunked else ()
        writer.write(response_head(recording.status, (*recording.headers, *framing)))
        for piece in recording.pieces():
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            await writer.drain()
            for _ in range(2):
                await asyncio.sleep(0)  # a client in the same loop reads the piece before the next one comes
        if recording.then == "silence":
            await writer.drain()
            await self.closing.wait()
            return False
        if recording.then == "reset":
            await writer.drain()
            reset(writer)
            return False
        writer.write(b"0\r\n\r\n" if is_chunked else b"")
        await writer.drain()
        return is_chunked or recording.status in (204, 304)
