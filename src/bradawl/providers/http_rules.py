"""Rules shared by the `Http` adapters: URLs, request headers, TLS certificates, redirects, error texts."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from bradawl.core.http import HttpError, HttpRequest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Iterable, Mapping

MOST_REDIRECTS = 3
"""The default limit of redirects, as the `Http` port promises."""
_NOT_IN_HOSTS = frozenset(' \\"<>^`{|}@%')
_NOT_FOR_USERS = r"\[(?:Errno -?\d+|SSL(?:: \w+)?)\] ?| ?\(_ssl\.c:\d+\)"


class Target(msgspec.Struct, frozen=True):
    """A parsed URL. Requests with equal `origin` may share a connection."""

    is_tls: bool
    host: str
    """In lower case and ASCII, IPv6 without brackets."""
    port: int
    path: str
    """Path and query in ASCII; other characters are percent-encoded."""

    @property
    def origin(self) -> tuple[bool, str, int]:
        """Scheme, host and port."""
        return self.is_tls, self.host, self.port

    @property
    def authority(self) -> str:
        """Value of the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.is_tls) else f"{host}:{self.port}"


def _default_port(is_tls: bool) -> int:
    return 443 if is_tls else 80


def target_of(url: str) -> Target:
    """The parts of an http or https URL. Raises `HttpError` for any other, and for one with a user name."""
    scheme, _, rest = url.partition("://")
    end = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    authority, path = rest[:end], rest[end:].partition("#")[0]
    if "@" in authority:
        place = authority.rpartition("@")[2]
        raise HttpError("connection", f"The URL of {place} holds a user name or a password: give the key as a setting.")
    host, bracket, port = authority.rpartition("]") if authority.startswith("[") else ("", "", authority)
    name, _, digits = port.partition(":")
    host = host[1:] if bracket else name
    is_tls = scheme.lower() == "https"
    number = int(digits) if digits.isdecimal() and len(digits) < 6 else -1 if digits else _default_port(is_tls)
    is_url = scheme.lower() in ("http", "https") and bool(host) and 0 < number < 65_536 and not (bracket and name)
    if not is_url or not host.isprintable() or not _NOT_IN_HOSTS.isdisjoint(host):
        raise HttpError("connection", f"{url.partition('?')[0]!r} is not an http or https URL.")
    return Target(is_tls, _ascii_host(host.lower()), number, _sendable_path(path))


def _ascii_host(host: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise HttpError("connection", f"{host!r} is not the name of a host.") from error


def _sendable_path(path: str) -> str:
    path = path if path.startswith("/") else f"/{path}"
    if path.isascii() and path.isprintable() and " " not in path:
        return path
    from urllib.parse import quote

    return quote(path, safe="%/:=&?~+!$,;'@()*[]", errors="replace")


def request_headers(request: HttpRequest, target: Target) -> list[tuple[bytes, bytes]]:
    """All headers of a request as sent, names in lower case.

    Raises `HttpError`, without the value, for a value with line breaks or characters outside latin-1.
    """
    pairs: list[tuple[bytes, bytes]] = []
    for name, value in request.headers:
        if not (name and name.isascii() and name.isprintable() and _is_latin_1_line(value)):
            shown = repr(name) if name.isascii() and name.isprintable() else "with a broken name"
            text = f"The header {shown} of the request to {target.host} has characters"
            raise HttpError("connection", f"{text} that can't be sent, for example a line break.")
        pairs.append((name.lower().encode(), value.strip(" \t").encode("latin-1")))
    own = [(b"host", target.authority.encode()), (b"accept", b"*/*"), (b"accept-encoding", b"gzip, deflate")]
    if request.body or request.method == "POST":
        own.append((b"content-length", b"%d" % sum(map(len, request.body))))
    given = {name for name, _ in pairs}
    return [pair for pair in own if pair[0] not in given] + pairs


def _is_latin_1_line(value: str) -> bool:
    if value.isascii() and value.isprintable():
        return True
    return all(sign == "\t" or (" " <= sign <= "\xff" and sign != "\x7f") for sign in value)


def decoded_headers(raw_headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """A response's headers by name in lower case, decoded as UTF-8 where valid, else latin-1.

    Values of one name are joined as in RFC 9110.
    """
    headers: dict[str, str] = {}
    for raw_name, raw in raw_headers:
        name, value = raw_name.decode("latin-1").lower(), raw.decode("utf-8", "surrogateescape")
        value = value if value.isascii() or value.isprintable() else raw.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class _Answer(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


R = TypeVar("R", bound=_Answer)


async def follow(
    request: HttpRequest,
    send: Callable[[HttpRequest], Awaitable[R]],
    end: Callable[[R], Awaitable[None]],
    most: int = MOST_REDIRECTS,
) -> R:
    """The response to a request, after at most `most` redirects within its origin.

    The responses of followed redirects are closed.
    """
    response = await send(request)
    for _ in range(most):
        onward = _redirected(request, response.status, response.headers.get("location"))
        if onward is None:
            break
        await end(response)
        request = onward
        response = await send(request)
    return response


def _redirected(request: HttpRequest, status: int, location: str | None) -> HttpRequest | None:
    """The same request for the target of a 307 or 308 within its origin; None for all other responses.

    Other redirects would turn a POST into a GET, and another origin must not get the credentials.
    """
    if status not in (307, 308) or not location:
        return None
    from urllib.parse import urljoin

    try:
        url = urljoin(request.url, location)
        is_same_origin = target_of(url).origin == target_of(request.url).origin
    except (HttpError, ValueError):
        return None
    return msgspec.structs.replace(request, url=url) if is_same_origin else None


def system_trust() -> ssl.SSLContext:
    """A TLS context with the system's certificates."""
    import ssl

    import truststore

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    return context


def trust_in(ca_file: str) -> ssl.SSLContext:
    """A TLS context with only the certificates of a file. Raises `HttpError`."""
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise HttpError("connection", sentence(f"The CA file {ca_file} can't be used: {error}")) from error


def sentence(text: str) -> str:
    """An error text of the system or a library for the user: without error numbers, with a full stop."""
    return re.sub(_NOT_FOR_USERS, "", text).rstrip(" :.") + "."


def reason_of(error: Exception) -> str:
    """The reason of a broken exchange, from the system's or library's error text."""
    is_systems_own = isinstance(error, ConnectionError) or type(error) is OSError
    if is_systems_own and isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # asyncio's text only names the call that failed
    return str(error) or type(error).__name__
