"""The user's own proxy behind the network proxy of commands."""

from base64 import b64decode

import pytest

from bradawl.app.build.command_proxy import upstream_for
from bradawl.sandbox.network.destinations import Destination
from bradawl.sandbox.network.dialing import Unreachable, Upstream

SECURE, PLAIN = Destination("a.example", 443), Destination("a.example", 80)


def test_without_a_proxy_connections_are_direct():
    assert upstream_for(SECURE, {}) is None
    assert upstream_for(SECURE, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}) is None


def test_the_variables_and_the_setting_name_the_proxy():
    environment = {"HTTPS_PROXY": "http://secure:1", "http_proxy": "http://plain"}
    assert upstream_for(SECURE, environment) == Upstream("secure", 1)
    assert upstream_for(PLAIN, environment) == Upstream("plain", 80)
    assert upstream_for(PLAIN, environment, "https://chosen") == Upstream("chosen", 443, is_tls=True)


def test_certificates_of_the_settings_are_for_proxies_with_tls():
    assert upstream_for(SECURE, {}, "https://chosen", "/ca.pem") == Upstream(
        "chosen", 443, is_tls=True, ca_file="/ca.pem"
    )
    assert upstream_for(SECURE, {}, "http://chosen", "/ca.pem") == Upstream("chosen", 80)


def test_a_password_is_sent_to_the_proxy_alone():
    found = upstream_for(SECURE, {"ALL_PROXY": "http://me:p%40ss@corp:3128"})
    assert found is not None and found.authorization.startswith("Basic ")
    assert b64decode(found.authorization.removeprefix("Basic ")) == b"me:p@ss"


def test_an_unusable_proxy_is_named_when_a_command_connects():
    for value in ("socks5://p:1", "http://"):
        with pytest.raises(Unreachable, match="ALL_PROXY"):
            upstream_for(SECURE, {"ALL_PROXY": value})
