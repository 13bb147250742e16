"""The user's own proxy behind the network proxy of commands."""

import socket
import ssl

import pytest
import trustme
from proxied import ANSWER, CONNECT, ESTABLISHED, GET, head_of, proxied

from bradawl.sandbox.network.destinations import Destination
from bradawl.sandbox.network.dialing import Unreachable, Upstream


def test_a_failed_tls_connection_to_the_users_own_proxy_is_an_error():
    def no_tls(connected: socket.socket) -> None:
        connected.recv(100)
        connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with proxied(no_tls, upstream=lambda _: Upstream("proxy.corp", 3128, is_tls=True)) as made:
        assert b"a.example:443 can't be reached: the user's own proxy: " in made.say(CONNECT)


def upstream(_: Destination) -> Upstream:
    return Upstream("proxy.corp", 3128, "Basic eA==")


def test_a_proxy_with_tls_is_trusted_by_the_certificates_of_the_settings(tmp_path):
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("proxy.corp").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def proxy(connected: socket.socket) -> None:
        with context.wrap_socket(connected, server_side=True) as wrapped:
            head_of(wrapped)
            wrapped.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
            wrapped.unwrap()

    def by_tls(ca_file: str) -> Upstream:
        return Upstream("proxy.corp", 3128, is_tls=True, ca_file=ca_file)

    with proxied(proxy, upstream=lambda _: by_tls(str(tmp_path / "ca.pem"))) as made, made.connect() as one:
        one.sendall(CONNECT)
        assert head_of(one) + one.recv(5) == ESTABLISHED + b"hello"
    for ca_file, why in (("", "certificate"), (str(tmp_path / "none.pem"), "No such file")):
        with proxied(proxy, upstream=lambda _, ca_file=ca_file: by_tls(ca_file)) as made:
            assert made.say(CONNECT).startswith(b"HTTP/1.1 502 ")
            (note,) = made.permissions.notes()
            assert "can't be reached: the user's own proxy: " in note and why in note


def test_a_tunnel_is_asked_of_the_users_own_proxy():
    received: list[bytes] = []

    def proxy(connected: socket.socket) -> None:
        received.append(head_of(connected))
        connected.sendall(b"HTTP/1.1 200 OK\r\nProxy-Agent: x\r\n\r\nhello")

    with proxied(proxy, upstream=upstream) as made:
        assert made.say(CONNECT) == ESTABLISHED + b"hello"
        assert made.asked == ["a.example"], "the rules on names still hold"
    assert received == [
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic eA==\r\n\r\n"
    ]


def test_a_plain_request_is_sent_to_the_users_own_proxy():
    received: list[bytes] = []

    def proxy(connected: socket.socket) -> None:
        received.append(head_of(connected))
        connected.sendall(ANSWER)

    with proxied(proxy, upstream=upstream) as made:
        assert made.say(GET).endswith(b"ok")
    assert received[0].startswith(b"GET http://a.example/x HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic eA==\r\n" in received[0]


@pytest.mark.parametrize("request_", [CONNECT, GET], ids=["tunnel", "plain"])
def test_a_refusal_of_the_users_own_proxy_is_an_error(request_):
    def proxy(connected: socket.socket) -> None:
        head_of(connected)
        connected.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\n\r\n")

    with proxied(proxy, upstream=upstream) as made:
        answer = made.say(request_)
        (note,) = made.permissions.notes()
    assert answer.startswith(b"HTTP/1.1 502 ") and b"realm" not in answer
    assert "can't be reached: the user's own proxy answered 407: the user name or password" in note


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_a_tunnel_for_which_the_users_own_proxy_has_no_answer_names_that_proxy(answer):
    def proxy(connected: socket.socket) -> None:
        head_of(connected)
        connected.sendall(answer)

    with proxied(proxy, upstream=upstream) as made:
        assert made.say(CONNECT).startswith(b"HTTP/1.1 502 ")
        assert made.permissions.notes() == (
            "a.example:443 can't be reached: the user's own proxy sent no complete answer",
        )


def test_an_unusable_proxy_of_the_user_is_an_error():
    def unusable(_: Destination) -> Upstream:
        raise Unreachable("HTTPS_PROXY names no proxy host.")

    with proxied(upstream=unusable) as made:
        assert b"HTTPS_PROXY names no proxy host" in made.say(CONNECT)
