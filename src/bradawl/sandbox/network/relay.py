"""Passes bytes between two connections, with backpressure, half-closing and a limit on idle time."""

import asyncio
import contextlib
import socket
import struct
from typing import Final

IDLE_LIMIT_S: Final = 600.0
"""Seconds without a byte in either direction after which a connection ends: slow servers prepare downloads so long."""
PIECE: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)  # linger for no time
_OPEN_HALF_LIMIT_S: Final = 120.0
"""The same once one direction has ended."""


class Stream:
    """One connection. Its owner calls `close()`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        return await self.reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        """Send bytes; waits while the other side is slow."""
        self.writer.write(data)
        await self.writer.drain()

    def end_writing(self) -> None:
        """Tell the other side that nothing more comes."""
        with contextlib.suppress(OSError, RuntimeError):
            if self.writer.can_write_eof():
                self.writer.write_eof()

    def close(self) -> None:
        """Close the connection; what has been written is still sent."""
        self.writer.close()

    async def finish(self, limit_s: float) -> None:
        """Close the connection and wait until what has been written is sent. It is reset if the other side does not
        take that in `limit_s` seconds.
        """
        self.close()
        try:
            async with asyncio.timeout(limit_s):
                await self.writer.wait_closed()
        except OSError:
            self.abort()

    def discard(self) -> None:
        """Close the connection at once; what has not been sent yet is lost."""
        if self.writer.transport.get_write_buffer_size() or self.writer.get_extra_info("ssl_object"):
            self.abort()
        else:
            self.close()

    def abort(self) -> None:
        """Reset the connection: an ordinary end would look like the end of the data."""
        with contextlib.suppress(OSError):
            connected: socket.socket = self.writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()


class Relay:
    """Passes bytes between two streams in both directions until both have ended."""

    def __init__(self, client: Stream, server: Stream, idle_limit_s: float = IDLE_LIMIT_S) -> None:
        self._client = client
        self._server = server
        self._idle_limit_s = idle_limit_s
        self._is_active = False

    async def run(self) -> bool:
        """True when both directions have ended; false if one has failed, or nothing has arrived for the time limit."""
        async with asyncio.TaskGroup() as group:
            pending = {
                group.create_task(self._pass(self._client, self._server)),
                group.create_task(self._pass(self._server, self._client)),
            }
            is_whole = True
            while pending and is_whole:
                limit_s = self._idle_limit_s if len(pending) > 1 else min(self._idle_limit_s, _OPEN_HALF_LIMIT_S)
                self._is_active = False
                done, pending = await asyncio.wait(pending, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
                is_whole = all(task.result() for task in done) and bool(done or self._is_active)
            for task in pending:
                task.cancel()
        return is_whole

    async def _pass(self, source: Stream, sink: Stream) -> bool:
        """Pass bytes in one direction to its end; false if a connection failed."""
        try:
            while data := await source.read():
                self._is_active = True
                await sink.write(data)
                self._is_active = True
        except OSError:
            return False
        sink.end_writing()
        return True
