"""Opens TCP and TLS connections for the direct HTTP adapter, by DNS or only to addresses that a function permits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from bradawl.core.http import HttpError
from bradawl.providers.failures import ConnectionRefused
from bradawl.providers.hosts import is_loopback_host
from bradawl.providers.http_rules import Target, reason_of, sentence

if TYPE_CHECKING:
    import ssl

Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the permitted addresses for a host and port. Raises `HttpError` and `OSError`."""

_NEXT_ADDRESS_AFTER_S = 0.25  # RFC 8305: the delay before the next address is tried in parallel

P = TypeVar("P", bound=asyncio.BaseProtocol)


async def dial(
    make: Callable[[], P], target: Target, tls: ssl.SSLContext | None, timeout_s: float, addresses: Addresses | None
) -> P:
    """A connection to the first address of the target that accepts one. Raises `HttpError`."""
    try:
        async with asyncio.timeout(timeout_s):
            if addresses is None:
                return await _to_any(make, target, tls)
            return await _to_one_of(await addresses(target.host, target.port), make, target, tls, timeout_s)
    except TimeoutError as error:
        raise HttpError("timeout", f"{target.host} could not be reached in time.") from error
    except (OSError, UnicodeError) as error:
        raise _unreachable(error, target.host) from error


async def _to_any(make: Callable[[], P], target: Target, tls: ssl.SSLContext | None) -> P:
    has_one_address = ":" in target.host or target.host.replace(".", "").isdecimal()
    delay_s = None if has_one_address else _NEXT_ADDRESS_AFTER_S
    open_to = asyncio.get_running_loop().create_connection
    return (await open_to(make, target.host, target.port, ssl=tls, happy_eyeballs_delay=delay_s))[1]


async def _to_one_of(
    addresses: Sequence[str], make: Callable[[], P], target: Target, tls: ssl.SSLContext | None, timeout_s: float
) -> P:
    """Connects to the first address that accepts; the certificate is checked against the host name."""
    open_to = asyncio.get_running_loop().create_connection
    name = target.host if tls is not None else None
    failure: OSError = OSError("it has no address")
    for address in addresses:
        try:
            async with asyncio.timeout(timeout_s / len(addresses)):
                return (await open_to(make, address, target.port, ssl=tls, server_hostname=name))[1]
        except OSError as error:  # TimeoutError is an OSError too
            failure = error
    raise failure


def _unreachable(error: Exception, place: str) -> HttpError:
    # If several addresses refuse (localhost has two), asyncio raises one OSError without errno.
    is_crowd = type(error) is OSError and error.errno is None and is_loopback_host(place)
    if is_crowd or isinstance(error, ConnectionRefusedError):
        return ConnectionRefused(f"{place} refused the connection.")
    return HttpError("connection", sentence(f"{place} can't be reached: {reason_of(error)}"))
