"""Proxy settings: the variable that applies to a request, and hosts that are reached directly."""

import pytest

from bradawl.app.settings.proxy import is_exempt, proxy_for
from bradawl.core.errors import SettingsError

URL = "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        (URL, {}, None),
        (URL, {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        (URL, {"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:1"}, "http://low:1"),
        (URL, {"HTTP_PROXY": "http://p:1"}, None),
        ("http://api.example.com/v1", {"HTTP_PROXY": "p:1"}, "http://p:1"),
        (URL, {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        (URL, {"ALL_PROXY": "http://all:1", "HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        (URL, {"HTTPS_PROXY": "  "}, None),
        (URL, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, None),
        ("http://127.0.0.1:8/v1", {"ALL_PROXY": "http://p:1"}, None),
        ("http://localhost:8/v1", {"ALL_PROXY": "http://p:1"}, None),
        ("http://[::1]:8/v1", {"ALL_PROXY": "http://p:1"}, None),
    ],
)
def test_the_proxy_follows_from_scheme_and_host(url, environ, proxy):
    assert proxy_for(url, environ) == proxy


def test_a_configured_proxy_wins_over_variables_but_not_over_no_proxy():
    assert proxy_for(URL, {"HTTPS_PROXY": "http://p:1"}, "http://mine:2", "BRADAWL_PROXY") == "http://mine:2"
    assert proxy_for(URL, {"NO_PROXY": "*"}, "http://mine:2", "BRADAWL_PROXY") is None


@pytest.mark.parametrize("text", ["socks5://p:1", "http://", "http://p:port", "http://[::1"])
def test_an_invalid_proxy_is_an_error_that_names_its_variable(text):
    with pytest.raises(SettingsError, match="HTTPS_PROXY"):
        proxy_for(URL, {"HTTPS_PROXY": text})


@pytest.mark.parametrize(
    "text",
    [
        "http://me:hunter2/x@p:1",
        "http://me:hunter2#x@p:1",
        "http://me:123#hunter2@p:1",
        "http://me:hunter2?x@p:1",
        "me:hunter2/x@p:1",
        "http://me:hunter2@p\u2100:1",
        "http://me:hunter2@[p:1",
        "http://me:hunter2@p:port",
        "http://me:hunter2@p q:1",
        "socks5://me:hunter2@p:1",
        "hunter2://me@p:1",
    ],
)
def test_an_error_about_a_proxy_shows_no_part_of_its_password(text):
    with pytest.raises(SettingsError, match="HTTPS_PROXY") as caught:
        proxy_for(URL, {"HTTPS_PROXY": text})
    assert "hunter2" not in str(caught.value)


def test_an_error_about_a_proxy_says_how_to_write_a_password():
    with pytest.raises(SettingsError, match="write %23 for #, %2F for / and %3F for"):
        proxy_for(URL, {"HTTPS_PROXY": "http://me:a#b@p:1"})


@pytest.mark.parametrize(
    ("url", "no_proxy", "exempt"),
    [
        (URL, "", False),
        (URL, "*", True),
        (URL, "api.example.com", True),
        (URL, "example.com", True),
        (URL, ".example.com", True),
        (URL, "*.example.com", True),
        (URL, "a.b, EXAMPLE.com", True),
        (URL, "ample.com", False),
        (URL, "example.com:443", True),
        (URL, "example.com:80", False),
        ("http://10.1.2.3/v1", "10.0.0.0/8", True),
        ("http://11.1.2.3/v1", "10.0.0.0/8", False),
        (URL, "10.0.0.0/8", False),
        ("http://10.1.2.3:8080/v1", "10.1.2.3", True),
        ("http://[fd00::1]:80/v1", "[fd00::1]", True),
        ("http://[fd00::1]:80/v1", "fd00::1", True),
        (URL, ",, ,", False),
    ],
)
def test_no_proxy_matches_hosts_domains_and_networks(url, no_proxy, exempt):
    assert is_exempt(url, no_proxy) is exempt
