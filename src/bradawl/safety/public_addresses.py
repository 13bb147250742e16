"""Says of an address why it does not belong to a host of the public internet."""

from ipaddress import IPv4Address, ip_address, ip_network
from typing import Final

PRIVATE: Final = "a private address"
"""The kind of addresses that private networks use for their hosts."""

# https://www.iana.org/assignments/iana-ipv4-special-registry, as of November 2026; all that is not a host
# of the public internet. Not `ipaddress.is_global`, whose result differs between releases of Python.
_NOT_PUBLIC_V4: Final = (
    ("0.0.0.0/8", "an address of this machine"),
    ("127.0.0.0/8", "an address of this machine"),
    ("169.254.0.0/16", "a link-local address, where clouds keep their metadata"),
    ("168.63.129.16/32", "an address of a cloud's own services"),
    ("10.0.0.0/8", PRIVATE),
    ("172.16.0.0/12", PRIVATE),
    ("192.168.0.0/16", PRIVATE),
    ("100.64.0.0/10", "an address within a provider's network"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.0.2.0/24", "a reserved address"),
    ("192.88.99.0/24", "a reserved address"),
    ("198.18.0.0/15", "a reserved address"),
    ("198.51.100.0/24", "a reserved address"),
    ("203.0.113.0/24", "a reserved address"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
)
# https://www.iana.org/assignments/iana-ipv6-special-registry, the same day. Only 2000::/3 is assigned to hosts.
_NOT_PUBLIC_V6: Final = (
    ("::/127", "an address of this machine"),
    ("fe80::/10", "a link-local address"),
    ("fd00:ec2::/32", "an address of a cloud's own services"),
    ("fd20:ce::/32", "an address of a cloud's own services"),
    ("fd00:42::42/128", "an address of a cloud's own services"),  # Scaleway; then Oracle, Linode, Alibaba
    ("fd00:c1::a9fe:a9fe/128", "an address of a cloud's own services"),
    ("fd00:a9fe:a9fe::1/128", "an address of a cloud's own services"),
    ("fd00:100::100:200/128", "an address of a cloud's own services"),
    ("fc00::/7", PRIVATE),
    ("ff00::/8", "a multicast address"),
    ("2001::/23", "a reserved address"),
    ("2001:db8::/32", "a reserved address"),
    ("3fff::/20", "a reserved address"),
)
_PUBLIC_V6: Final = "2000::/3"
_HOLDS_V4: Final = (("::ffff:0:0/96", 0), ("64:ff9b::/96", 0), ("2002::/16", 80))
"""IPv6 networks whose addresses contain an IPv4 address, and the number of bits after that address."""


def why_not_public_address(address: str) -> str:
    """The kind of an address that is not public; empty for a public one. Raises `ValueError`."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return next((what for network, what in _NOT_PUBLIC_V4 if parsed in ip_network(network)), "")
    for network, bits in _HOLDS_V4:
        if parsed in ip_network(network):
            return why_not_public_address(str(IPv4Address(int(parsed) >> bits & 0xFFFF_FFFF)))
    kinds = (what for network, what in _NOT_PUBLIC_V6 if parsed in ip_network(network))
    return next(kinds, "" if parsed in ip_network(_PUBLIC_V6) else "a reserved address")
