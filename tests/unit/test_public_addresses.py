"""Which addresses belong to a host of the public internet: at the edges of networks, and compared with `ipaddress`."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.safety.public_addresses import PRIVATE, why_not_public_address

THIS = "an address of this machine"
CLOUD = "an address of a cloud's own services"
RESERVED = "a reserved address"
EDGES = (
    ("0.0.0.0/8", THIS, False, True),
    ("10.0.0.0/8", PRIVATE, True, True),
    ("100.64.0.0/10", "an address within a provider's network", True, True),
    ("127.0.0.0/8", THIS, True, True),
    ("168.63.129.16/32", CLOUD, True, True),
    ("169.254.0.0/16", "a link-local address, where clouds keep their metadata", True, True),
    ("172.16.0.0/12", PRIVATE, True, True),
    ("192.0.0.0/24", RESERVED, True, True),
    ("192.0.2.0/24", RESERVED, True, True),
    ("192.88.99.0/24", RESERVED, True, True),
    ("192.168.0.0/16", PRIVATE, True, True),
    ("198.18.0.0/15", RESERVED, True, True),
    ("198.51.100.0/24", RESERVED, True, True),
    ("203.0.113.0/24", RESERVED, True, True),
    ("224.0.0.0/4", "a multicast address", True, False),
    ("240.0.0.0/4", RESERVED, False, False),
    ("2001::/23", RESERVED, True, True),
    ("2001:db8::/32", RESERVED, True, True),
    ("3fff::/20", RESERVED, True, True),
    ("fc00::/7", PRIVATE, False, False),
    ("fd00:ec2::/32", CLOUD, False, False),
    ("fd20:ce::/32", CLOUD, False, False),
    ("fd00:42::42/128", CLOUD, False, False),
    ("fd00:c1::a9fe:a9fe/128", CLOUD, False, False),
    ("fd00:a9fe:a9fe::1/128", CLOUD, False, False),
    ("fd00:100::100:200/128", CLOUD, False, False),
    ("fe80::/10", "a link-local address", False, False),
    ("ff00::/8", "a multicast address", False, False),
    ("::/127", THIS, False, False),
)
"""Network, kind, and whether the addresses right before and behind it are public."""


@pytest.mark.parametrize(("network", "kind", "is_public_before", "is_public_behind"), EDGES)
def test_a_network_that_is_not_public_is_so_up_to_its_edges(network, kind, is_public_before, is_public_behind):
    addresses = ip_network(network)
    first, last = addresses[0], addresses[-1]
    assert {why_not_public_address(str(each)) for each in (first, last)} == {kind}
    for is_public, other in ((is_public_before, int(first) - 1), (is_public_behind, int(last) + 1)):
        if 0 <= other < 2**addresses.max_prefixlen:
            found = why_not_public_address(str(type(first)(other)))
            assert found != kind
            assert (found == "") == is_public


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "223.255.255.255", "2000::", "2606:2800:21f:cb07::1", "3ffe:ffff::1"]
)
def test_a_public_address_has_no_reason(address):
    assert why_not_public_address(address) == ""


@pytest.mark.parametrize("address", ["1fff:ffff::1", "4000::", "::2", "100::1", "5f00::1", "fec0::1", "64:ff9b:1::1"])
def test_only_assigned_networks_of_ipv6_are_public(address):
    assert why_not_public_address(address) == RESERVED


@given(st.integers(0, 2**32 - 1))
def test_an_address_within_one_of_ipv6_is_judged_by_itself(number):
    inner = IPv4Address(number)
    expected = why_not_public_address(str(inner))
    for prefix, bits, rest in (("::ffff:0:0", 0, 0), ("64:ff9b::", 0, 0), ("2002::", 80, 1), ("2002::", 80, 2**80 - 1)):
        outer = int(IPv6Address(prefix)) + (number << bits) + (rest if bits else 0)
        assert why_not_public_address(str(IPv6Address(outer))) == expected


@given(st.integers(0, 2**32 - 1).map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_an_address_that_pythons_library_calls_private_is_not_public(address):
    is_public = why_not_public_address(str(address)) == ""
    holds_another = isinstance(address, IPv6Address) and (address.ipv4_mapped or address.sixtofour)
    if not holds_another and (address.is_private or address.is_multicast or address.is_reserved or address.is_loopback):
        assert not is_public


def test_a_zone_is_not_part_of_an_address():
    assert why_not_public_address("fe80::1%eth0") == "a link-local address"
    assert why_not_public_address("2606::1%1%2") == ""
    for text in ("", "%eth0", "example.org", "1.2.3", "1.2.3.4.5", "[::1]"):
        with pytest.raises(ValueError, match="does not appear to be"):
            why_not_public_address(text)
    assert ip_address("::1") in ip_network("::/127")
