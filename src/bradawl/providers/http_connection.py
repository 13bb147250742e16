"""One connection that speaks HTTP/1.1 by h11's rules, and the compression of what comes over it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import h11

from bradawl.providers.http_rules import Target, encoded_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bradawl.core.ports import HttpRequest

_HEAD_LIMIT_BYTES = 100 * 1024
_BUFFER_LIMIT_BYTES = 256 * 1024
_UNPACKED_LIMIT_BYTES = 64 * 1024


class Connection(asyncio.Protocol):
    """One connection. It keeps what came, so that an early answer outlives a failure to send the rest."""

    def __init__(self) -> None:
        self._rules = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_LIMIT_BYTES)
        self._received = bytearray()
        self._is_reused = self._was_heard = self._has_ended = self._is_paused = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop, as the next three are: it can be used from now on."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came; of those nobody reads only so many are taken."""
        self._was_heard = True
        self._received += data
        if len(self._received) > _BUFFER_LIMIT_BYTES:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> None:
        """The server sends no more."""
        self._has_ended = True
        self._wake_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over; what had come can still be read."""
        self._has_ended = True
        self._error = exc
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def was_stale(self) -> bool:
        """The server had closed it while nothing was asked: it has not answered, and won't."""
        return self._is_reused and self._has_ended and not self._was_heard

    async def ask(self, request: HttpRequest, target: Target) -> h11.Response:
        """Send the request and wait for the head of its answer. The body goes out while that comes in."""
        head = h11.Request(method=request.method, target=target.path, headers=_head_of(request, target))
        sent = [self._rules.send(head), *(self._rules.send(h11.Data(data=piece)) for piece in request.body)]
        self._rules.send(h11.EndOfMessage())
        self._was_heard = False
        self._transport.writelines(cast("list[bytes]", sent))
        while not isinstance(event := await self._event(request.idle_timeout_s), h11.Response):
            pass  # 1xx: the answer is still to come
        return event

    async def body(self, idle_timeout_s: float) -> bytes:
        """The next piece; empty at the end."""
        if self._rules.their_state is not h11.SEND_BODY:
            return b""
        event = await self._event(idle_timeout_s)
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _event(self, idle_timeout_s: float) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while (event := self._rules.next_event()) is h11.NEED_DATA:
            self._rules.receive_data(await self._read(idle_timeout_s))
        return event

    async def _read(self, idle_timeout_s: float) -> bytes:
        """What has come since last time; empty when no more will."""
        while not self._received and not self._has_ended:
            unsent = self._transport.get_write_buffer_size()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(idle_timeout_s):
                    await self._waiter
            except TimeoutError:
                # Bytes that went out are life too: a long request on a slow line is answered late.
                if self._transport.get_write_buffer_size() >= unsent:
                    raise
        if not self._received and self._error is not None:
            raise self._error
        if not self._was_heard:
            raise ConnectionResetError("the server closed it without an answer")
        data = bytes(self._received)
        self._received.clear()
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def finish(self, keep_alive_s: float) -> bool:
        """End the exchange. True if the connection is kept for another; else it is closed."""
        rules = self._rules
        try:
            if self._received:
                rules.receive_data(bytes(self._received))
            self._received.clear()
            while isinstance(rules.next_event(), h11.Data):
                pass
        except h11.ProtocolError:
            return self.close()
        is_whole = rules.our_state is rules.their_state is h11.DONE and not rules.trailing_data[0]
        if not is_whole or self._has_ended or self._transport.get_write_buffer_size():
            return self.close()
        rules.start_next_cycle()
        self._is_reused = True
        self._expiry = asyncio.get_running_loop().call_later(keep_alive_s, self.close)
        return True

    def wake_up(self) -> bool:
        """Take it up again after `finish`. False, and it is closed, if its server had enough of it."""
        if self._expiry is not None:
            self._expiry.cancel()
        if self._received or self._has_ended or self._transport.is_closing():
            return self.close()
        return True

    def close(self) -> bool:
        """Close it at once, whatever is still on its way; gives back False."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._transport.abort()
        return False


class BrokenPacking(Exception):
    """A body is not compressed as its headers say."""


class Unpack:
    """One content coding, undone bit by bit: a small body never becomes one large piece."""

    def __init__(self, coding: str) -> None:
        import zlib

        self._zlib = zlib
        self._engine = zlib.decompressobj(31) if coding == "gzip" else None
        self._begun = b""

    def feed(self, packed: Iterable[bytes]) -> Iterator[bytes]:
        """What the pieces hold, never more than 64 KiB at once. Raises `BrokenPacking`."""
        for piece in packed:
            self._begun += piece if self._engine is None else b""
            if self._engine is None and len(self._begun) > 1:
                # `deflate` means zlib, but some servers leave its two bytes of header out.
                has_header = self._begun[0] & 15 == 8 and int.from_bytes(self._begun[:2], "big") % 31 == 0
                self._engine = self._zlib.decompressobj(15 if has_header else -15)
                piece = self._begun
            try:
                while (
                    self._engine
                    and not self._engine.eof
                    and (data := self._engine.decompress(piece, _UNPACKED_LIMIT_BYTES))
                ):
                    yield data
                    piece = self._engine.unconsumed_tail
            except self._zlib.error as error:
                raise BrokenPacking from error


def codings(header: str) -> list[str]:
    """Those to undo, the last one first; what nobody asked for is left as it is."""
    names = [name.strip().lower() for name in header.split(",")]
    return [name for name in reversed(names) if name in ("gzip", "deflate")]


def _head_of(request: HttpRequest, target: Target) -> list[tuple[bytes, bytes]]:
    given = encoded_headers(request)
    own = [(b"host", target.authority.encode()), (b"accept", b"*/*"), (b"accept-encoding", b"gzip, deflate")]
    if request.body or request.method == "POST":
        own.append((b"content-length", b"%d" % sum(map(len, request.body))))
    names = {name for name, _ in given}
    return [pair for pair in own if pair[0] not in names] + given
