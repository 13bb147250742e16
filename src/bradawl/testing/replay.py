"""A test server that replays recorded responses byte for byte, with their packet boundaries.

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
    """One recorded response."""

    data: bytes = b""
    """The body, sent in chunks."""
    split_at: tuple[int, ...] = ()
    """Offsets into the body at which it is flushed."""
    then: Literal["eof", "reset", "silence"] = "eof"
    """After the last byte: the regular end of the response, a connection reset, or nothing."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = EVENT_STREAM
    is_framed: bool = True
    """False: the body ends with the connection instead of being chunked."""

    def pieces(self) -> list[bytes]:
        """The body, split at `split_at`."""
        edges = [0, *sorted(place for place in self.split_at if 0 < place < len(self.data)), len(self.data)]
        return [self.data[start:end] for start, end in itertools.pairwise(edges) if end > start]


class Received(msgspec.Struct, frozen=True):
    """One received request."""

    method: str
    path: str
    """With its query."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


Recordings = Iterable[Recording] | Callable[[Received], Recording]
"""Responses in order, or a function of the request."""


class ReplayServer(LoopbackServer):
    """Answers every request with the next recording, and with a 500 after the last; use as `async with`."""

    def __init__(self, recordings: Recordings) -> None:
        self._answer = recordings if callable(recordings) else None
        self._left = iter(() if callable(recordings) else recordings)
        super().__init__(answering(self._handle, self._refuse))
        self.requests: list[Received] = []
        """The requests in order of arrival."""

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
                await asyncio.sleep(0)  # a client in the same loop can read the piece before the next
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
