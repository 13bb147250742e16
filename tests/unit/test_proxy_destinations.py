"""Where the network proxy may connect: names, ports and addresses."""

import asyncio
import errno
import socket
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.sandbox.network.destinations import (
    BadDestination,
    Destination,
    Refusal,
    parse_authority,
    parse_destination,
)
from bradawl.sandbox.network.dialing import Dialer, RefusedDestination, Unreachable
from bradawl.sandbox.network.own_addresses import is_own_address

PUBLIC = "93.184.215.14"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("example.org:443", "example.org", 443),
        ("EXAMPLE.org.:443", "example.org", 443),
        ("xn--bcher-kva.example:80", "xn--bcher-kva.example", 80),
        ("a_b.example:8443", "a_b.example", 8443),
        ("intranet:443", "intranet", 443),
        ("3com.example:443", "3com.example", 443),
    ],
)
def test_a_name_has_one_form(text, host, port):
    assert parse_authority(text) == Destination(host, port)


LITERALS = (
    "127.0.0.1",
    "127.1",
    "0",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "1.2.3.4",
    "0X7F.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[fe80::1%25eth0]",
    "::1",
    "169.254.169.254",
    "169.254.169.254.",
    "1.2.3",
    "0x",
    "example.0x7f",
    "fe80::1%eth0",
    "fe80::1%a%b",
)  # fmt: skip - many short values in each line


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("port", [80, 443, 8080])
def test_addresses_in_every_notation_are_refused(literal, port):
    with pytest.raises(BadDestination, match="addresses are not permitted"):
        parse_authority(f"{literal}:{port}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":443",
        ".:443",
        "a..b:443",
        ".a:443",
        "-a.example:443",
        "a-.example:443",
        "a b:443",
        "a\0b:443",
        "a/b.example:443",
        "a#.example:443",
        "a?b:443",
        "a\\b:443",
        "a%2eb.example:443",
        "a,b:443",
        f"{'a' * 64}.b:443",
        f"{'a.' * 127}b:443",
        "b\u00fccher.example:443",
        "a\u3002example:443",
        "xn--:443",
        "xn--a.example:443",
        "xn--\x7f:443",
        "*.example:443",
        "example.org",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:000443",
        "example.org:4 43",
        "example.org:+443",
        "example.org:0x50",
        "example.org:\u0664\u0664",
        "me@example.org:443",
        "example.org:443@evil.example:443",
        "me:secret@example.org:443",
        "localhost:80",
        "a.localhost:80",
        "x.localdomain:80",
        "metadata.google.internal:80",
        "example.org:443:443",
        "a\r\nHost: b:443",
    ],
)  # fmt: skip - many short values in each line
def test_what_is_no_plain_name_is_refused(text):
    with pytest.raises(BadDestination) as caught:
        parse_authority(text)
    assert caught.value.named.isprintable() and str(caught.value)


@given(st.text(max_size=80), st.integers(-5, 70_000))
def test_an_accepted_name_is_plain_and_is_no_address(text, port):
    try:
        found = parse_destination(text, port)
    except BadDestination:
        return
    assert set(found.host) <= set(string.ascii_lowercase + string.digits + "-_.") and 0 < found.port < 65_536
    with pytest.raises(OSError, match="illegal IP"):
        socket.inet_aton(found.host)
    assert parse_destination(found.host, found.port) == found


@given(st.from_regex(r"\A[0-9a-fxA-FX.]{1,20}\Z"))
def test_what_the_c_library_reads_as_an_address_is_refused(text):
    try:
        socket.inet_aton(text)
    except OSError:
        return
    with pytest.raises(BadDestination):
        parse_destination(text, 443)


# ------------------------------------------------------------------ addresses


class Net:
    """A resolver with prepared answers, and connections that only record where they go."""

    def __init__(
        self, *answers: tuple[str, ...], refusing: tuple[str, ...] = (), hanging: tuple[str, ...] = ()
    ) -> None:
        self.answers = list(answers)
        self.refusing, self.hanging = refusing, hanging
        self.dialed: list[tuple[str, int]] = []
        self.made: list[socket.socket] = []

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        if not self.answers:
            raise OSError("no such name")
        return self.answers.pop(0)

    async def connect(self, address: str, port: int) -> socket.socket:
        self.dialed.append((address, port))
        if address in self.refusing:
            raise ConnectionRefusedError(111, "Connection refused")
        if address in self.hanging:
            await asyncio.sleep(60)
        self.made.append(socket.socket())
        return self.made[-1]

    def dial(self, host: str = "example.org", port: int = 443, **options: object) -> list[tuple[str, int]]:
        async def dial() -> None:
            dialer = Dialer(resolve=self.resolve, connect=self.connect, **options)
            dialer.check_name(Destination(host, port))
            (await dialer.dial(Destination(host, port))).close()

        asyncio.run(dial())
        assert all(each.fileno() < 0 for each in self.made), "only one connection is kept"
        return self.dialed


NEVER = (
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "100.64.0.1",
    "168.63.129.16",
    "224.0.0.1",
    "255.255.255.255",
    "192.0.0.192",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
)  # fmt: skip - many short values in each line
PRIVATE = ("10.0.0.1", "172.16.9.9", "192.168.1.1", "fd12:3456::1", "::ffff:10.0.0.1")


@pytest.mark.parametrize("address", NEVER + PRIVATE)
def test_a_name_with_such_an_address_is_refused(address):
    for answer in ((address,), (PUBLIC, address), (address, PUBLIC)):
        net = Net(answer)
        with pytest.raises(RefusedDestination, match="it is at"):
            net.dial()
        assert net.dialed == []


@pytest.mark.parametrize("address", PRIVATE)
def test_a_named_host_may_be_private(address):
    for named, port in (("git.corp", 443), ("git.corp:8443", 8443)):
        assert Net((address,)).dial("git.corp", port, private_hosts=lambda named=named: {named}) == [(address, port)]
    with pytest.raises(RefusedDestination):
        Net((address,)).dial("other.example", private_hosts=lambda: {"example", "git.corp"})


@pytest.mark.parametrize("address", NEVER)
def test_naming_a_host_does_not_open_this_machine_or_metadata(address):
    with pytest.raises(RefusedDestination):
        Net((address,)).dial(private_hosts=lambda: {"example.org"})


def test_an_address_of_an_own_interface_is_private_however_public_it_is():
    for answer in ((PUBLIC,), ("1.1.1.1", PUBLIC)):
        net = Net(answer)
        with pytest.raises(RefusedDestination, match="own network interfaces; `network` in the settings must name"):
            net.dial(is_own=lambda address: address == PUBLIC)
        assert net.dialed == []
    named = {"is_own": lambda _: True, "private_hosts": lambda: {"example.org"}}
    assert Net((PUBLIC,)).dial(**named) == [(PUBLIC, 443)]
    with pytest.raises(RefusedDestination, match="an address of this machine"):
        Net(("127.0.0.1",)).dial(**named)


def test_an_address_that_can_not_be_checked_is_not_dialed():
    def lacking(_: str) -> bool:
        raise OSError(errno.EMFILE, "Too many open files")

    net = Net((PUBLIC,))
    with pytest.raises(Unreachable, match="Too many open files"):
        net.dial(is_own=lacking)
    assert net.dialed == []


def test_the_addresses_of_interfaces_are_known():
    own = [
        address for address in ("127.0.0.1", "127.3.2.1", "::1", PUBLIC, "::ffff:1.1.1.1") if is_own_address(address)
    ]
    assert own[:2] == ["127.0.0.1", "127.3.2.1"] and set(own) <= {"127.0.0.1", "127.3.2.1", "::1"}


@pytest.mark.parametrize("name", ["intranet", "git.corp", "nas.local", "x.internal", "1.168.192.in-addr.arpa"])
def test_names_of_private_networks_are_refused_before_they_are_resolved(name):
    net = Net((PUBLIC,))
    with pytest.raises(RefusedDestination, match="private network"):
        net.dial(name)
    assert net.answers, "a lookup could tell another network something"


def test_the_checked_address_is_dialed_and_the_name_resolved_once():
    net = Net((PUBLIC,), ("127.0.0.1",))
    assert net.dial() == [(PUBLIC, 443)] and net.answers == [("127.0.0.1",)]


def test_the_next_address_is_tried_when_one_fails_or_does_not_answer():
    v6 = "2606:2800:21f:cb07::1"
    assert Net((v6, PUBLIC), refusing=(v6,)).dial() == [(v6, 443), (PUBLIC, 443)]
    assert Net((v6, PUBLIC), hanging=(v6,)).dial() == [(v6, 443), (PUBLIC, 443)]
    assert Net(("1.1.1.1", "1.0.0.1", v6), refusing=("1.1.1.1", v6)).dial() == [
        ("1.1.1.1", 443),
        (v6, 443),
        ("1.0.0.1", 443),
    ]


def test_a_host_that_can_not_be_reached_is_an_error():
    with pytest.raises(Unreachable, match="Connection refused"):
        Net((PUBLIC, "1.1.1.1"), refusing=(PUBLIC, "1.1.1.1")).dial()
    with pytest.raises(Unreachable, match="could not be resolved"):
        Net().dial()
    with pytest.raises(Unreachable, match="could not be resolved"):
        Net(()).dial()


def test_the_systems_resolver_is_asked_without_blocking():
    async def dial() -> None:
        with pytest.raises(RefusedDestination, match="address of this machine"):
            await Dialer().dial(Destination("localhost", 80))

    asyncio.run(dial())


@pytest.mark.parametrize(
    ("text", "reason", "remark"),
    [
        ("granted.example:80:81", "there is more than one port", "refused 'granted.example:80:81': "),
        ("granted.example:0", "the port 0 is not a number from 1 to 65535", "refused 'granted.example': "),
        ("granted.example:65616", "the port 65616 is not a number", "refused 'granted.example': "),
        ("granted.example:4x3", "the port '4x3' is not a number", "refused 'granted.example:4x3': "),
        ("granted.example:", "an empty port is not a number", "refused 'granted.example:': "),
        ("granted%2eexample:443", "that is not the name of a host", "refused 'granted%2eexample': "),
        ("http://granted.example:443", "that is a URL", "refused 'http:??granted.example:443': "),
        (":443", "an empty text is not the name of a host", "refused a connection: "),
        ("a]b:443", "that is not the name of a host", "refused 'a?b': "),
        ("localhost:443", "the name of this machine", "refused localhost: "),
    ],
)
def test_a_refusal_names_what_is_wrong_and_quotes_what_is_malformed(text, reason, remark):
    with pytest.raises(BadDestination) as refused:
        parse_authority(text)
    assert reason in str(refused.value)
    assert str(Refusal(refused.value.named, 0, "why")) == f"the network proxy {remark}why"


@pytest.mark.parametrize(
    ("text", "reason", "named"),
    [
        ("https://a.org:443", "that is a URL, and only its host and port can be named", "'https:??a.org:443'"),
        ("me@a.org:443", "a user name or password before the host is not permitted", "'a.org:443'"),
        ("me:secret@x@a.org:443", "a user name or password before the host is not permitted", "'a.org:443'"),
        ("a.org:443:80", "there is more than one port", "'a.org:443:80'"),
        ("a.org", "the port is missing", "'a.org'"),
        ("x" * 101, "the port is missing", f"'{'x' * 100}'"),
    ],
)
def test_a_malformed_destination_has_one_reason_and_repeats_no_password(text, reason, named):
    with pytest.raises(BadDestination) as refused:
        parse_authority(text)
    assert (str(refused.value), refused.value.named, refused.value.is_host) == (reason, named, False)


def test_a_port_that_is_given_counts_and_the_default_is_used_otherwise():
    assert parse_authority("a.org", 443) == Destination("a.org", 443)
    assert parse_authority("a.org:1", 443) == parse_destination("a.org", 1) == Destination("a.org", 1)
    assert parse_authority("a.org:65535") == Destination("a.org", 65_535)


def test_a_host_that_is_never_reached_is_named_in_its_one_form():
    with pytest.raises(BadDestination) as refused:
        parse_destination("LocalHost.", 80)
    assert (refused.value.named, refused.value.is_host) == ("localhost", True)


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (Refusal("a.org", 8443, "why"), "the network proxy refused a.org:8443: why"),
        (Refusal("a.org", 443, "why", is_failure=True), "a.org:443 can't be reached: why"),
        (Refusal("a.org", 0, "why"), "the network proxy refused a.org: why"),
        (Refusal("", 0, "why", is_failure=True), "a connection can't be reached: why"),
    ],
)
def test_a_refusal_says_what_was_refused(refusal, text):
    assert str(refusal) == text


def test_a_destination_shows_its_port_unless_it_is_a_standard_one():
    assert [Destination("a.org", port).label for port in (80, 443, 81)] == ["a.org", "a.org", "a.org:81"]


def test_a_refusal_repeats_no_characters_that_could_end_its_remark():
    with pytest.raises(BadDestination) as refused:
        parse_authority("].ignore[system <b>\n:443")
    assert "ignore" in refused.value.named
    assert not set(refused.value.named) & set("[]<>\n ")
