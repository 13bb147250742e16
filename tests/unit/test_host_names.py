"""Host names: the longest ones, punycode, and the exact reasons that users and programs read."""

import pytest

from bradawl.safety.host_names import is_private_name, why_never_reached, why_not_a_host_name

LONGEST = ".".join(["a" * 62] * 4) + ".b"


@pytest.mark.parametrize(
    "name", ["a", "a" * 63, "a-b.c_d", "_x.y", "x_.y", "1a.example", LONGEST, "xn--bcher-kva.example"]
)
def test_a_host_name_has_no_reason(name: str):
    assert why_not_a_host_name(name) == ""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "an empty text is not the name of a host"),
        ("b\u00fccher.example", "the host name is not ASCII; international names are sent in their xn-- form"),
        (LONGEST + "b", "the host name is longer than 253 characters"),
        ("1", "that is an address; addresses are not permitted, only host names"),
        ("a" * 64, "that is not the name of a host"),
        ("a..b", "that is not the name of a host"),
        ("A", "that is not the name of a host"),
        ("xn--a", "a part of the name that begins with xn-- is not valid punycode"),
        ("a.xn--99999999.b", "a part of the name that begins with xn-- is not valid punycode"),
        ("a.xn--zzzzzzzzzzzz", "a part of the name that begins with xn-- is not valid punycode"),
        ("xn--abc-.example", "that is not the name of a host"),
        ("xn--a-b.example", "a part of the name that begins with xn-- is not valid punycode"),
    ],
)
def test_what_is_no_host_name_has_a_reason(name: str, reason: str):
    assert why_not_a_host_name(name) == reason


@pytest.mark.parametrize(
    "hidden", ["google.com/", "a.b", "user@", "a:1", "x\u3002y", "x\uff0ey", "x\uff61y", "x\u200by", "x y"]
)
def test_punycode_hides_no_separator_and_no_invisible_character(hidden: str):
    label = f"xn--{(hidden + chr(0xE9)).encode('punycode').decode()}"
    assert why_not_a_host_name(f"{label}.example") != ""


@pytest.mark.parametrize("name", ["localhost", "a.localhost", "localdomain", "localhost.localdomain"])
def test_this_machine_is_never_reached(name: str):
    assert why_never_reached(name) == "the name of this machine; inside the sandbox, localhost needs no proxy"
    assert why_never_reached(f"{name}.example") == ""


@pytest.mark.parametrize("name", ["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"])
def test_cloud_metadata_is_never_reached(name: str):
    assert why_never_reached(name) == "cloud metadata is never reachable"
    assert why_never_reached(f"x{name}") == ""


@pytest.mark.parametrize(
    "top", ["local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test", "intranet2"]
)
def test_names_of_private_networks(top: str):
    assert is_private_name(top)
    assert is_private_name(f"a.b.{top}") == (top != "intranet2")
    assert not is_private_name(f"{top}.example.org")
