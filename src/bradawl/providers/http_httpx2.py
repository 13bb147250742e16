"""The `Http` adapter on httpx2, for proxies and custom certificates; imported and set up when first used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Protocol, cast

from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import HttpResponse
from bradawl.providers.decompression import DecompressionError, Decompressor
from bradawl.providers.failures import ConnectionRefused
from bradawl.providers.hosts import host_of, is_loopback
from bradawl.providers.http_rules import (
    MOST_REDIRECTS,
    decoded_headers,
    follow,
    reason_of,
    request_headers,
    sentence,
    system_trust,
    target_of,
    trust_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

_KEEP_ALIVE_S = 60.0
_MAX_CONNECTIONS = 1_000


class Httpx2Response:
    """A response whose body is still arriving."""

    def __init__(self, response: httpx2.Response, place: str) -> None:
        self._response = response
        self._place = place
        self._headers = decoded_headers(response.headers.raw)

    @property
    def status(self) -> int:
        """HTTP status code."""
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        return self._headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, decompressed. Raises `HttpError`."""
        # Not the library's decompressor: it takes the first packet for the zlib header, and has no size limit.
        with _translated(self._place):
            decompressor = Decompressor(self._headers.get("content-encoding", ""))
            async for packed in self._response.aiter_raw():
                for chunk in decompressor.feed(packed):
                    yield chunk

    async def aclose(self) -> None:
        """End the exchange."""
        await self._response.aclose()


class _Closable(Protocol):
    async def aclose(self) -> None: ...


class _Handshake:
    """The socket of a running TLS handshake: the library does not close it on cancellation."""

    def __init__(self) -> None:
        self._open: _Closable | None = None

    async def note(self, event: str, info: Mapping[str, object]) -> None:
        """Receives the library's trace events."""
        if event.endswith("connect_tcp.complete"):
            self._open = cast(_Closable, info["return_value"])
        elif event.endswith("start_tls.complete"):
            self._open = None

    async def aclose(self) -> None:
        """Closes the socket if the handshake did not finish."""
        if self._open is not None:
            await self._open.aclose()


class Httpx2Http:
    """Sends requests over keep-alive connections. Reads no environment variables.

    `proxy` is a URL; servers on this machine are reached without it. `ca_file` is a path to PEM certificates that
    replace the system's. `redirects` is the highest number of redirects to follow.
    """

    def __init__(
        self, proxy: str | None = None, ca_file: str | None = None, *, redirects: int = MOST_REDIRECTS
    ) -> None:
        self._proxy = proxy
        self._ca_file = ca_file
        self._redirects = redirects
        self._clients: dict[tuple[bool, bool], httpx2.AsyncClient] = {}
        """Keyed by (TLS, proxy): a TLS context takes 20 ms, which plain http saves."""

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send a request; leaving the context ends the exchange at once. Raises `HttpError`."""
        response = await follow(request, self._response, Httpx2Response.aclose, self._redirects)
        try:
            yield response
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close kept connections; safe to call twice."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    async def _response(self, request: HttpRequest) -> Httpx2Response:
        import httpx2

        target = target_of(request.url)
        place = self._place(request.url, target.host)
        timeout = httpx2.Timeout(request.idle_timeout_s, connect=request.connect_timeout_s, pool=None)
        with _translated(place):
            client = self._client_for(request.url)
            sent = client.build_request(
                request.method,
                request.url,
                headers=request_headers(request, target),
                content=b"".join(request.body) if request.body else None,
                timeout=timeout,
                extensions={"trace": (handshake := _Handshake()).note},
            )
            try:
                return Httpx2Response(await client.send(sent, stream=True), place)
            except asyncio.CancelledError:
                await handshake.aclose()
                raise

    def _proxy_for(self, url: str) -> str | None:
        return None if is_loopback(url) else self._proxy

    def _place(self, url: str, host: str) -> str:
        """The host for messages; with a proxy it names both, since either may have failed."""
        proxy = self._proxy_for(url)
        return host if proxy is None else f"{host} (by way of the proxy {host_of(proxy)})"

    def _client_for(self, url: str) -> httpx2.AsyncClient:
        proxy = self._proxy_for(url)
        key = (proxy is not None or not url.startswith("http://"), proxy is not None)
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _new_client(self._ca_file, proxy, needs_tls=key[0])
        return client


def _new_client(ca_file: str | None, proxy: str | None, *, needs_tls: bool) -> httpx2.AsyncClient:
    import ssl

    import httpx2

    if not needs_tls:
        verify: ssl.SSLContext | bool = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    elif ca_file is not None:
        verify = trust_in(ca_file)
    else:
        verify = system_trust()
    limits = httpx2.Limits(
        max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S
    )
    return httpx2.AsyncClient(verify=verify, proxy=proxy, trust_env=False, limits=limits, follow_redirects=False)


@contextmanager
def _translated(place: str) -> Iterator[None]:
    """Translates the library's errors to `HttpError`; callers never see the library."""
    import httpx2

    try:
        yield
    except DecompressionError as error:
        raise HttpError("connection", f"The answer of {place} is compressed in a broken way.") from error
    except httpx2.TimeoutException as error:
        raise HttpError("timeout", _timeout_text(error, place)) from error
    except httpx2.HTTPError as error:
        if _was_refused(error):
            raise ConnectionRefused(f"{place} refused the connection.") from error
        raise HttpError("connection", _connection_text(error, place)) from error
    except (httpx2.InvalidURL, httpx2.StreamError, ValueError, ImportError, OSError, ExceptionGroup) as error:
        # A port out of range comes as a group. ValueError also stands for headers and proxies
        # that can't be encoded; its text may hold a key.
        raise HttpError("connection", f"The request to {place} can't be sent ({type(error).__name__}).") from error


def _timeout_text(error: httpx2.TimeoutException, place: str) -> str:
    import httpx2

    if isinstance(error, httpx2.ConnectTimeout):
        return f"{place} could not be reached in time."
    return f"{place} was silent for too long."


def _connection_text(error: httpx2.HTTPError, place: str) -> str:
    import httpx2

    if isinstance(error, httpx2.LocalProtocolError):
        return f"The request to {place} breaks the rules of HTTP."
    if isinstance(error, httpx2.ConnectError):
        return sentence(f"{place} can't be reached: {error}")
    return sentence(f"The connection to {place} broke: {reason_of(error)}")


def _was_refused(error: BaseException | None) -> bool:
    """True if ECONNREFUSED is anywhere in the chain of causes."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        if isinstance(error, BaseExceptionGroup):
            return any(_was_refused(inner) for inner in error.exceptions)
        error = error.__cause__ or error.__context__
    return False
