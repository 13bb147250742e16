"""Parses the host and port of a connection, and says which destinations are never permitted. Pure."""

import re
from typing import Final

import msgspec

STANDARD_PORTS: Final = (80, 443)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LONGEST_NAME: Final = 253
_ENCODED: Final = "xn--"
_OF_THIS_MACHINE: Final = frozenset({"localhost", "localdomain"})
_METADATA: Final = frozenset({"metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"})
_OF_NETWORKS: Final = frozenset({"local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test"})
"""Top-level names that private networks use. A proxy of the user's may resolve them, so that no address is checked."""
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
    """A connection that the proxy refused."""

    host: str
    port: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.host}:{self.port}" if self.port else self.host
        return f"the network proxy refused {where}: {self.reason}"


class BadDestination(ValueError):
    """A destination that is malformed or never permitted; its text is the reason."""

    def __init__(self, named: str, reason: str) -> None:
        super().__init__(reason)
        self.named = _NOT_SHOWN.sub("?", named[:_SHOWN])
        """The destination as the program named it, shortened, and without characters that could end a remark."""


def parse_destination(host: str, port: int) -> Destination:
    """The destination for a host as a program named it. Raises `BadDestination`."""
    name = host.lower().removesuffix(".")
    if not 0 < port < 65_536:
        raise BadDestination(host, "the port is not a number from 1 to 65535")
    if reason := _why_not_a_name(name):
        raise BadDestination(host, reason)
    return Destination(name, port)


def parse_authority(text: str, default_port: int = 0) -> Destination:
    """The destination named by `host:port`, or by `host` alone if there is a default port. Raises `BadDestination`."""
    if "@" in text:
        raise BadDestination(text.rpartition("@")[2], "a user name or password before the host is not permitted")
    if text.startswith("[") or text.count(":") > 1:
        raise BadDestination(text, _LITERAL)
    host, colon, port = text.partition(":")
    if colon and not _PORT.fullmatch(port):
        raise BadDestination(text, "the port is not a number from 1 to 65535")
    if not colon and not default_port:
        raise BadDestination(text, "the port is missing")
    return parse_destination(host, int(port) if colon else default_port)


_LITERAL: Final = "addresses are not permitted, only host names"


def _why_not_a_name(name: str) -> str:
    """Why a text in lower case is not a permitted host name; empty if it is one."""
    if not name.isascii():
        return "the host name is not ASCII; international names are sent in their xn-- form"
    if ":" in name or "[" in name or "%" in name:
        return _LITERAL
    labels = name.split(".")
    # Resolvers read 127.1, 0x7f000001 and 2130706433 as addresses.
    if _NUMBER.fullmatch(labels[-1]):
        return _LITERAL
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        return "that is not a host name"
    if not all(_is_decodable(label) for label in labels if label.startswith(_ENCODED)):
        return "that is not a host name: a label that begins with xn-- can't be decoded"
    if labels[-1] in _OF_THIS_MACHINE:
        return "the name of this machine; inside the sandbox, localhost needs no proxy"
    return "cloud metadata is never reachable" if name in _METADATA else ""


def _is_decodable(label: str) -> bool:
    """Whether a label in its ASCII form stands for letters that need it."""
    try:
        decoded = label[len(_ENCODED) :].encode().decode("punycode")
    except (UnicodeError, ValueError, OverflowError):
        return False
    return not decoded.isascii() and decoded.isprintable() and not set(decoded) & set("./:@\u3002\uff0e\uff61")


def is_private_name(host: str) -> bool:
    """Whether only private networks know such a name: it has one label, or a top-level name that is not public."""
    return "." not in host or host.rpartition(".")[2] in _OF_NETWORKS
