"""Allows only public addresses, and connects only to the addresses that were checked."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.http import HttpError
from bradawl.safety.public_addresses import why_not_public_address
from bradawl.sandbox.network.own_addresses import is_own_address

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host name and port to addresses. Raises `OSError` if there are none."""

IsOwn = Callable[[str], bool]
"""Whether connections to an address would end at this machine. Raises `OSError` if that can't be determined."""

_OWN: Final = "an address of this machine's own network interfaces"
"""Services that listen on all interfaces are there, too."""
_NAME: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
_OF_NETWORKS: Final = frozenset(
    {"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test"}
)
_LONGEST_URL: Final = 8_000
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class WebUrl(msgspec.Struct, frozen=True):
    """An http or https URL with an unambiguous host."""

    scheme: str
    host: str
    """In lower case and ASCII; IPv6 without brackets, IPv4 always as four numbers."""
    port: int
    path: str
    """With the query; begins with a slash."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def parse_url(text: str) -> WebUrl:
    """The parts of a URL; its fragment is dropped. Raises `ToolError`, which shows no password."""
    text = text.strip()
    if not text.isprintable() or len(text) > _LONGEST_URL:
        raise ToolError(
            "url holds a line break or another control character, or is longer than 8,000; give a plain URL"
        )
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if scheme not in _DEFAULT_PORTS or not separator:
        raise ToolError(_not_of_the_web(text, scheme if separator else ""))
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise ToolError("url holds a user name or a password; web_fetch sends none: leave it out")
    host, port = _host_and_port(authority)
    if not host:
        raise ToolError(f"{scheme}://{authority[:200]} names no host; give a URL as https://example.com/page")
    path = rest[len(authority) :].partition("#")[0]
    return WebUrl(scheme, host, port or _DEFAULT_PORTS[scheme], path if path.startswith("/") else f"/{path}")


def _host_and_port(authority: str) -> tuple[str, int]:
    """Host and port on which all URL parsers agree; port 0 for none, empty host for an invalid one."""
    try:
        parts = urlsplit(f"//{authority}")
        host, port = _plain_host(parts.hostname or ""), parts.port
    except ValueError:
        return "", 0
    is_plain = "\\" not in authority and port != 0
    return (host if is_plain else ""), port or 0


def _not_of_the_web(text: str, scheme: str) -> str:
    if scheme == "file":
        return "web_fetch fetches http and https; use read_file for files"
    if scheme:
        return f"web_fetch fetches http and https, not {scheme[:20]}"
    return f"{text[:200]!r} is not a whole URL; give it with its scheme, as https://example.com/page"


def _plain_host(host: str) -> str:
    """The host on which all URL parsers agree; empty for an invalid one."""
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return ""
    host = host.lower()
    if ":" in host:
        return str(IPv6Address(host)) if _is_ipv6(host) else ""
    if not _NAME.fullmatch(host) or len(host) > 254:
        return ""
    if not _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return host
    try:
        # Resolvers read 127.1, 0x7f000001 and 2130706433 as 127.0.0.1.
        return str(IPv4Address(socket.inet_aton(host.rstrip("."))))
    except OSError:
        return ""


def _is_ipv6(host: str) -> bool:
    try:
        return "%" not in host and ip_address(host).version == 6
    except ValueError:
        return False


def why_not_public(host: str, is_own: IsOwn = is_own_address) -> str:
    """Why a host may not be fetched from, by its name or address; empty if it may. A name can still resolve to an
    address that is not public: `PublicAddresses` refuses it.
    """
    try:
        return _why_not_public(host, is_own)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        if "." not in host.rstrip(".") or last in _OF_NETWORKS:
            return "the name of this machine or of one in a private network"
        return ""


def _why_not_public(address: str, is_own: IsOwn) -> str:
    """As `why_not_public_address`, also for the addresses of this machine."""
    if what := why_not_public_address(address):
        return what
    try:
        return _OWN if is_own(address) else ""
    except OSError as error:
        return f"an address that could not be checked ({error.strerror})"


class PublicAddresses:
    """Resolves names for an adapter of `Http` that then connects to these addresses only. A name can't resolve to one
    address when it is checked and to another when it is used.
    """

    def __init__(self, resolve: Resolve | None = None, is_own: IsOwn = is_own_address) -> None:
        self._resolve = resolve or system_addresses
        self._is_own = is_own

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host. Raises `HttpError` if one of them is not public, `OSError` if there are none."""
        found = await self._resolve(host, port)
        for address in found:
            if what := _why_not_public(address, self._is_own):
                where = "" if address == host else f"is at {address}, "
                raise HttpError("connection", f"{host} {where or 'is '}{what}: only public web addresses are fetched.")
        return found


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Addresses from the system's resolver, in its order. Raises `OSError`, and `UnicodeError` for an invalid name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))
