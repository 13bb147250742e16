"""Parses the host and port of a connection, and says which destinations are never permitted. Pure."""

import re
from ipaddress import ip_address
from typing import Final

import msgspec

from bradawl.safety.host_names import IS_ADDRESS, why_never_reached, why_not_a_host_name

STANDARD_PORTS: Final = (80, 443)
_PORT: Final = re.compile(r"[0-9]{1,5}")
_SHOWN: Final = 100
_NOT_SHOWN: Final = re.compile(r"[^\w.:%-]", re.ASCII)


class Destination(msgspec.Struct, frozen=True):
    """Where a connection is to go: a host name, never an address, and a port."""

    host: str
    """In lower case and ASCII, without a final dot."""
    port: int

    @property
    def label(self) -> str:
        """The host; with the port unless that is 80 or 443."""
        return self.host if self.port in STANDARD_PORTS else f"{self.host}:{self.port}"


class Refusal(msgspec.Struct, frozen=True):
    """A connection that the proxy refused or, with `is_failure`, could not make."""

    host: str
    port: int
    reason: str
    is_failure: bool = False

    def __str__(self) -> str:
        where = f"{self.host}:{self.port}" if self.port else self.host or "a connection"
        if self.is_failure:
            return f"{where} can't be reached: {self.reason}"
        return f"the network proxy refused {where}: {self.reason}"


class BadDestination(ValueError):
    """A destination that is malformed or never permitted; its text is the reason."""

    def __init__(self, named: str, reason: str, *, is_host: bool = False) -> None:
        """`named` is what the program sent. `is_host`: a well-formed one, which is never permitted."""
        super().__init__(reason)
        self.is_host = is_host
        self.named = named if is_host else _quoted(named)
        """The destination as the program named it. One that is malformed is shortened, and quoted without characters
        that could end a remark; empty if there is none.
        """


def _quoted(named: str) -> str:
    shown = _NOT_SHOWN.sub("?", named[:_SHOWN])
    return f"'{shown}'" if shown else ""


def parse_destination(host: str, port: int) -> Destination:
    """The destination for a host as a program named it. Raises `BadDestination`."""
    name = host.lower().removesuffix(".")
    if not 0 < port < 65_536:
        raise BadDestination(host, f"the port {port} is not a number from 1 to 65535")
    if reason := why_not_a_host_name(name):
        raise BadDestination(host, reason)
    if reason := why_never_reached(name):
        raise BadDestination(name, reason, is_host=True)
    return Destination(name, port)


def parse_authority(text: str, default_port: int = 0) -> Destination:
    """The destination named by `host:port`, or by `host` alone if there is a default port. Raises `BadDestination`."""
    if "://" in text:
        raise BadDestination(text, "that is a URL, and only its host and port can be named")
    if "@" in text:
        raise BadDestination(text.rpartition("@")[2], "a user name or password before the host is not permitted")
    if text.startswith("[") or _is_address(text):
        raise BadDestination(text, IS_ADDRESS)
    host, colon, port = text.partition(":")
    if ":" in port:
        raise BadDestination(text, "there is more than one port")
    if colon and not _PORT.fullmatch(port):
        what = f"the port {_quoted(port)} is" if port else "an empty port is"
        raise BadDestination(text, f"{what} not a number from 1 to 65535")
    if not colon and not default_port:
        raise BadDestination(text, "the port is missing")
    return parse_destination(host, int(port) if colon else default_port)


def _is_address(text: str) -> bool:
    """Whether a text begins with an IPv6 address, perhaps with a zone and a port."""
    try:
        return ":" in text and ip_address(text.partition("%")[0]).version == 6
    except ValueError:
        return False
