"""A model server on loopback that sends the replies of `work`, and records when requests came and replies ended.

python benchmarks/model_server.py STEPS

Prints its port. When stdin ends it prints a JSON array, one `Exchange` for each request, and exits. It does not parse
bodies, so that its own time stays far below the measured times.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import cast

from work import replies

_NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer. Times are seconds of the system's monotonic clock, which all processes share."""

    connection: int
    is_step: bool
    """False if it is no request for a reply."""
    body_bytes: int
    first_byte_s: float
    last_byte_s: float
    answered_s: float
    """When the last byte of the answer was passed to the kernel."""


class Script:
    """The remaining replies and the exchanges so far, of all connections."""

    def __init__(self, count: int) -> None:
        self._replies = [b"%s%x\r\n%s\r\n0\r\n\r\n" % (_HEAD, len(stream), stream) for stream in replies(count)]
        self._next = 0
        self.exchanges: list[Exchange] = []
        self.connections = 0

    def next_reply(self) -> bytes:
        """The complete response to the next request; an error when the script has ended."""
        self._next += 1
        return self._replies[self._next - 1] if self._next <= len(self._replies) else _NOT_HERE


class Connection(asyncio.Protocol):
    """One keep-alive connection. A request is answered in one write as soon as it is complete."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._received = bytearray()
        self._first_byte_s = 0.0
        self._number = 0
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.WriteTransport, transport)
        self._script.connections += 1
        self._number = self._script.connections

    def data_received(self, data: bytes) -> None:
        """Add data to the request, and answer it if it is complete."""
        if not self._received:
            self._first_byte_s = time.monotonic()
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end])
        length = _content_length(head)
        if len(self._received) >= end + 4 + length:
            self._answer(head, length)
            self._received.clear()

    def _answer(self, head: bytes, length: int) -> None:
        last_byte_s = time.monotonic()
        is_step = head.startswith(b"POST ") and b"/chat/completions " in head.partition(b"\r\n")[0]
        answer = self._script.next_reply() if is_step else _NOT_HERE
        if self._transport is not None:
            self._transport.write(answer)
        exchange = Exchange(self._number, is_step, length, self._first_byte_s, last_byte_s, time.monotonic())
        self._script.exchanges.append(exchange)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def serve(count: int) -> None:
    """Answer requests until stdin ends."""
    script = Script(count)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    server = await loop.create_server(lambda: Connection(script), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended.wait()
    server.close()
    print(json.dumps([asdict(exchange) for exchange in script.exchanges]))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
