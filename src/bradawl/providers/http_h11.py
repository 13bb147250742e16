"""The `Http` port on asyncio and h11: straight to the server, on kept connections, with little to import."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import h11

from bradawl.core.ports import HttpError, HttpRequest, HttpResponse
from bradawl.providers.compat import is_loopback_host
from bradawl.providers.failures import ConnectionRefused
from bradawl.providers.http_connection import BrokenPacking, Connection, Unpack, codings
from bradawl.providers.http_rules import MOST_REDIRECTS, Target, redirected, sentence, target_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

_KEEP_ALIVE_S = 60.0
_NEXT_ADDRESS_AFTER_S = 0.25
"""How long one address of a host may take before the next is tried beside it (RFC 8305)."""


class DirectHttp:
    """Sends requests without a proxy, trusting whom the system trusts. Lives in one event loop.

    `ssl_context` makes another context for https, when it is first needed. A connection that has
    served nothing for `keep_alive_s` is closed.
    """

    def __init__(
        self, ssl_context: Callable[[], ssl.SSLContext] | None = None, keep_alive_s: float = _KEEP_ALIVE_S
    ) -> None:
        self._make_context = ssl_context or _system_trust
        self._context: ssl.SSLContext | None = None
        self._keep_alive_s = keep_alive_s
        self._kept: dict[tuple[bool, str, int], list[Connection]] = {}

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Open one exchange; leaving the context ends it at once. Raises `HttpError`."""
        response = await self._response(request)
        for _ in range(MOST_REDIRECTS):
            onward = redirected(request, response.status, response.headers.get("location"))
            if onward is None:
                break
            self._give_back(response)
            request = onward
            response = await self._response(request)
        try:
            yield response
        finally:
            self._give_back(response)

    async def aclose(self) -> None:
        """Close kept connections; safe to call twice."""
        kept, self._kept = self._kept, {}
        for connection in [each for of_origin in kept.values() for each in of_origin]:
            connection.close()
        # A transport closes its socket in the loop's next round.
        await asyncio.sleep(0)

    async def _response(self, request: HttpRequest) -> DirectResponse:
        target = target_of(request.url)
        if kept := self._take_kept(target):
            try:
                return await _asked(kept, request, target)
            except HttpError:
                if not kept.was_stale:
                    raise
        return await _asked(await self._connect(target, request.connect_timeout_s), request, target)

    def _take_kept(self, target: Target) -> Connection | None:
        of_origin = self._kept.get(target.origin, [])
        while of_origin:
            connection = of_origin.pop()
            if connection.wake_up():
                return connection
        return None

    def _give_back(self, response: DirectResponse) -> None:
        if response.connection.finish(self._keep_alive_s):
            self._kept.setdefault(response.target.origin, []).append(response.connection)

    async def _connect(self, target: Target, timeout_s: float) -> Connection:
        if target.is_tls and self._context is None:
            self._context = self._make_context()
        has_one_address = ":" in target.host or target.host.replace(".", "").isdecimal()
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection,
                    target.host,
                    target.port,
                    ssl=self._context if target.is_tls else None,
                    happy_eyeballs_delay=None if has_one_address else _NEXT_ADDRESS_AFTER_S,
                )
        except TimeoutError as error:
            raise HttpError("timeout", f"{target.host} could not be reached in time.") from error
        except (OSError, UnicodeError) as error:
            raise _unreachable(error, target.host) from error
        return connection


class DirectResponse:
    """A response whose body is still arriving."""

    def __init__(self, head: h11.Response, connection: Connection, request: HttpRequest, target: Target) -> None:
        self.status: int = head.status_code
        self.headers: Mapping[str, str] = _as_text(head)
        self.connection = connection
        self.target = target
        self._idle_timeout_s = request.idle_timeout_s
        self._unpack = [Unpack(name) for name in codings(self.headers.get("content-encoding", ""))]
        self._ready: Iterator[bytes] = iter(())

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, decompressed. Raises `HttpError`."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        # No async generator: one that is left half-way is closed by the loop, some time later.
        with _translated(self.target.host):
            while not (piece := next(self._ready, b"")):
                data = await self.connection.body(self._idle_timeout_s)
                if not data:
                    raise StopAsyncIteration
                self._ready = iter((data,))
                for unpack in self._unpack:
                    self._ready = unpack.feed(self._ready)
            return piece


def _as_text(head: h11.Response) -> dict[str, str]:
    """Headers by name, in UTF-8 where they are; values of one name are joined, as RFC 9110 has it."""
    headers: dict[str, str] = {}
    for raw_name, raw in head.headers:
        name, value = raw_name.decode("latin-1"), raw.decode("utf-8", "surrogateescape")
        value = value if value.isascii() or value.isprintable() else raw.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _asked(connection: Connection, request: HttpRequest, target: Target) -> DirectResponse:
    try:
        with _translated(target.host):
            return DirectResponse(await connection.ask(request, target), connection, request, target)
    except BaseException:
        connection.close()
        raise


@contextmanager
def _translated(place: str) -> Iterator[None]:
    """Turns what breaks an exchange into the port's error."""
    try:
        yield
    except TimeoutError as error:
        raise HttpError("timeout", f"{place} was silent for too long.") from error
    except h11.LocalProtocolError as error:
        raise HttpError("connection", f"The request to {place} breaks the rules of HTTP.") from error
    except BrokenPacking as error:
        raise HttpError("connection", f"The answer of {place} is compressed in a broken way.") from error
    except (h11.RemoteProtocolError, OSError) as error:
        raise HttpError("connection", sentence(f"The connection to {place} broke: {_reason(error)}")) from error


def _unreachable(error: Exception, place: str) -> HttpError:
    # The addresses of one name that refuse (localhost has two) come as one OSError without a number.
    is_crowd = type(error) is OSError and error.errno is None and is_loopback_host(place)
    if is_crowd or isinstance(error, ConnectionRefusedError):
        return ConnectionRefused(f"{place} refused the connection.")
    return HttpError("connection", sentence(f"{place} can't be reached: {_reason(error)}"))


def _reason(error: Exception) -> str:
    is_systems_own = isinstance(error, ConnectionError) or type(error) is OSError
    if is_systems_own and isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # asyncio's text says only which call failed
    return str(error) or type(error).__name__


def _system_trust() -> ssl.SSLContext:
    import ssl

    import truststore

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    return context
