"""The default `Http` adapter, on asyncio and h11: direct, keep-alive connections, cheap to import."""

from __future__ import annotations

import asyncio
import functools
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, cast

import h11

from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import HttpResponse
from bradawl.providers import http_rules
from bradawl.providers.decompression import DecompressionError, Decompressor
from bradawl.providers.http_dialing import Addresses, dial
from bradawl.providers.http_rules import MOST_REDIRECTS, Target, system_trust

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterator

_HEAD_LIMIT_BYTES = 100 * 1024
_UNREAD_LIMIT_BYTES = 256 * 1024


class DirectHttp:
    """Sends requests without a proxy; TLS uses the system's certificates. Bound to one event loop.

    `ssl_context` makes another TLS context, called at the first https request. A connection idle for `keep_alive_s`
    is closed. With `addresses` it connects only to the addresses that function gives for a host. `redirects` is the
    highest number of redirects to follow.
    """

    def __init__(
        self,
        ssl_context: Callable[[], ssl.SSLContext] = system_trust,
        keep_alive_s: float = 60.0,
        *,
        addresses: Addresses | None = None,
        redirects: int = MOST_REDIRECTS,
    ) -> None:
        self._context = functools.cache(ssl_context)
        self._keep_alive_s = keep_alive_s
        self._addresses = addresses
        self._redirects = redirects
        self._kept: dict[tuple[bool, str, int], list[_Connection]] = {}

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send a request; leaving the context ends the exchange at once. Raises `HttpError`."""
        response = await http_rules.follow(request, self._response, self._give_back, self._redirects)
        try:
            yield response
        finally:
            await self._give_back(response)

    async def aclose(self) -> None:
        """Close kept connections; safe to call twice."""
        kept, self._kept = self._kept, {}
        for connection in [each for of_origin in kept.values() for each in of_origin]:
            connection.close()
        # A transport closes its socket in the next iteration of the loop.
        await asyncio.sleep(0)

    async def _response(self, request: HttpRequest) -> _Response:
        target = http_rules.target_of(request.url)
        of_origin = self._kept.get(target.origin, [])
        while of_origin:
            if (kept := of_origin.pop()).wake_up():
                try:
                    return await _asked(kept, request, target)
                except HttpError:
                    if not kept.was_stale:
                        raise
                    break
        return await _asked(await self._connect(target, request.connect_timeout_s), request, target)

    async def _give_back(self, response: _Response) -> None:
        if response.connection.finish(self._keep_alive_s):
            self._kept.setdefault(response.target.origin, []).append(response.connection)

    async def _connect(self, target: Target, timeout_s: float) -> _Connection:
        tls = self._context() if target.is_tls else None
        return await dial(_Connection, target, tls, timeout_s, self._addresses)


class _Response:
    """A response whose body is still arriving, and the iterator over that body."""

    def __init__(self, head: h11.Response, connection: _Connection, target: Target, idle_timeout_s: float) -> None:
        self.status: int = head.status_code
        self.headers = http_rules.decoded_headers(head.headers)
        self.connection = connection
        self.target = target
        self._idle_timeout_s = idle_timeout_s
        self._decompressor = Decompressor(self.headers.get("content-encoding", ""))
        self._ready: Iterator[bytes] = iter(())

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    __aiter__ = chunks

    async def __anext__(self) -> bytes:
        # Not an async generator: the loop closes an abandoned one only later.
        with _translated(self.target.host):
            while not (piece := next(self._ready, b"")):
                data = await self.connection.body(self._idle_timeout_s)
                if not data:
                    raise StopAsyncIteration
                self._ready = self._decompressor.feed(data)
            return piece


class _Connection(asyncio.Protocol):
    """One connection. It buffers received bytes, so that an early response survives a failure to send the request."""

    def __init__(self) -> None:
        self._rules = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_LIMIT_BYTES)
        self._unread = 0
        self._has_news = asyncio.Event()
        self._was_heard = self._is_reused = False
        self._end: Exception | None = None
        """The reason for the end of the received bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._was_heard = True
        self._rules.receive_data(data)
        self._unread += len(data)
        if self._unread > _UNREAD_LIMIT_BYTES:
            self._transport.pause_reading()
        self._has_news.set()

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._was_heard:  # only an orderly close may end a body
            self._rules.receive_data(b"")
        self._end = self._end or exc or ConnectionResetError("the server closed it without an answer")
        self._has_news.set()

    @property
    def was_stale(self) -> bool:
        """True if the server had closed the reused connection; no byte of a response has come."""
        return self._is_reused and self._end is not None and not self._was_heard

    async def ask(self, request: HttpRequest, target: Target) -> h11.Response:
        """Send the request and wait for the head of the response; the body is sent concurrently."""
        headers = http_rules.request_headers(request, target)
        sent = [self._rules.send(h11.Request(method=request.method, target=target.path, headers=headers))]
        sent += [self._rules.send(h11.Data(data=piece)) for piece in request.body]
        self._rules.send(h11.EndOfMessage())
        self._was_heard = False
        self._transport.writelines(cast("list[bytes]", sent))
        while not isinstance(event := await self._event(request.idle_timeout_s), h11.Response):
            pass  # 1xx: the final response follows
        return event

    async def body(self, idle_timeout_s: float) -> bytes:
        """The next bytes of the body; empty at its end."""
        is_there_more = self._rules.their_state is h11.SEND_BODY
        event = await self._event(idle_timeout_s) if is_there_more else None
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _event(self, idle_timeout_s: float) -> object:
        while (event := self._rules.next_event()) is h11.NEED_DATA:
            if self._end is not None:
                raise self._end
            self._unread = 0
            self._transport.resume_reading()
            self._has_news.clear()
            await self._news(idle_timeout_s)
        return event

    async def _news(self, idle_timeout_s: float) -> None:
        while not self._has_news.is_set():
            unsent = self._transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(idle_timeout_s):
                    await self._has_news.wait()
            except TimeoutError:
                # Sent bytes also count as activity: a large request on a slow link is answered late.
                if self._transport.get_write_buffer_size() >= unsent:
                    raise

    def finish(self, keep_alive_s: float) -> bool:
        """End the exchange. True if the connection can be reused; otherwise it is closed."""
        rules = self._rules
        try:
            while isinstance(rules.next_event(), h11.Data):
                pass
        except h11.ProtocolError:
            return self.close()
        is_whole = rules.our_state is rules.their_state is h11.DONE and not rules.trailing_data[0]
        if not is_whole or self._end is not None or self._transport.get_write_buffer_size():
            return self.close()
        rules.start_next_cycle()
        self._is_reused, self._unread = True, 0
        self._transport.resume_reading()
        self._expiry = asyncio.get_running_loop().call_later(keep_alive_s, self.close)
        return True

    def wake_up(self) -> bool:
        """Prepare the connection for another request. False, and it is closed, if the server has closed it."""
        self._expiry.cancel()
        return not (self._rules.trailing_data[0] or self._end or self._transport.is_closing()) or self.close()

    def close(self) -> bool:
        """Abort the connection; always False."""
        self._transport.abort()
        return False


async def _asked(connection: _Connection, request: HttpRequest, target: Target) -> _Response:
    try:
        with _translated(target.host):
            return _Response(await connection.ask(request, target), connection, target, request.idle_timeout_s)
    except BaseException:
        connection.close()
        raise


@contextmanager
def _translated(place: str) -> Iterator[None]:
    """Translates exceptions of an exchange to `HttpError`."""
    try:
        yield
    except TimeoutError as error:
        raise HttpError("timeout", f"{place} was silent for too long.") from error
    except h11.LocalProtocolError as error:
        raise HttpError("connection", f"The request to {place} breaks the rules of HTTP.") from error
    except DecompressionError as error:
        raise HttpError("connection", f"The answer of {place} is compressed in a broken way.") from error
    except (h11.RemoteProtocolError, OSError) as error:
        raise HttpError(
            "connection", http_rules.sentence(f"The connection to {place} broke: {http_rules.reason_of(error)}")
        ) from error
