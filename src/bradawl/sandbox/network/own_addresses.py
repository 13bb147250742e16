"""Says whether an address belongs to a network interface of this machine."""

import errno
import socket
from ipaddress import IPv6Address, ip_address
from typing import Final

_NOBODYS: Final = {socket.AF_INET: "240.0.0.1", socket.AF_INET6: "100::1"}
"""Addresses that no machine has: reserved, and RFC 6666."""
_ANY_PORT: Final = 9
_LACKS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


def is_own_address(address: str) -> bool:
    """Whether connections to an address would end at this machine. Sends nothing.

    Raises `OSError` if that can't be determined for lack of memory or files.
    """
    parsed = ip_address(address.partition("%")[0])
    address = str((parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None) or parsed)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if not _can_bind(family, address):
        return False
    # With `ip_nonlocal_bind`, programs can bind every address.
    return not _can_bind(family, _NOBODYS[family]) or _is_reached_from_itself(family, address)


def _can_bind(family: socket.AddressFamily, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as made:
            made.bind((address, 0))
    except OSError as error:
        if error.errno in _LACKS:
            raise
        return False
    return True


def _is_reached_from_itself(family: socket.AddressFamily, address: str) -> bool:
    """Whether the address itself would be the source of what is sent there."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as made:
            made.connect((address, _ANY_PORT))
            return made.getsockname()[0] == address
    except OSError as error:
        if error.errno in _LACKS:
            raise
        return False
