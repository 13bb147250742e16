"""Requests to the network proxy: what is accepted, and what is sent on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.sandbox.network.destinations import BadDestination, Destination
from bradawl.sandbox.network.requests import (
    LONGEST_HEAD,
    BadMessage,
    ChunkedBody,
    forwarded_head,
    parse_request,
    response_head,
)

HOST = "Host: example.org"


def head(first: str, *lines: str) -> bytes:
    return "\r\n".join((first, *lines, "", "")).encode("latin-1")


def get(*lines: str, target: str = "http://example.org/a?b=1", method: str = "GET") -> bytes:
    return head(f"{method} {target} HTTP/1.1", *(lines or (HOST,)))


def sent(data: bytes, **options) -> str:
    return forwarded_head(parse_request(data), **options).decode("latin-1")


def test_connect_names_its_destination():
    found = parse_request(head("CONNECT Example.org:443 HTTP/1.1", "Host: example.org:443", "User-Agent: x"))
    assert found.is_tunnel and found.destination == Destination("example.org", 443)
    for lines in ((), (HOST,)):
        assert parse_request(head("CONNECT example.org:443 HTTP/1.0", *lines)).destination.port == 443


def test_a_plain_request_is_sent_on_in_origin_form():
    assert sent(get(HOST, "Accept: */*", "Proxy-Connection: keep-alive", "Connection: X-Own, close", "x-own: 1")) == (
        "GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\naccept: */*\r\nConnection: close\r\n\r\n"
    )
    assert sent(get("Host: example.org:8080", target="http://example.org:8080")).startswith(
        "GET / HTTP/1.1\r\nHost: example.org:8080\r\n"
    )
    assert sent(get(target="HTTP://EXAMPLE.org?q")).startswith("GET /?q HTTP/1.1\r\nHost: example.org\r\n")
    assert sent(get(target="http://example.org", method="OPTIONS")).startswith("OPTIONS * HTTP/1.1\r\n")


def test_the_programs_own_words_to_the_proxy_are_not_sent_on():
    text = sent(get(HOST, "Proxy-Authorization: Basic eA==", "Upgrade: websocket", "TE: trailers", "Keep-Alive: 5"))
    assert text == "GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"


def test_another_proxy_gets_the_absolute_url():
    text = sent(get(), through_proxy=True, authorization="Basic eA==")
    assert text.startswith("GET http://example.org/a?b=1 HTTP/1.1\r\nHost: example.org\r\n")
    assert "Proxy-Authorization: Basic eA==\r\n" in text


def test_bodies_keep_their_length_or_encoding():
    found = parse_request(get(HOST, "Content-Length: 12", method="POST"))
    assert (found.length, found.is_chunked) == (12, False)
    assert "content-length: 12\r\n" in forwarded_head(found).decode()
    found = parse_request(get(HOST, "Transfer-Encoding: Chunked", method="POST"))
    assert (found.length, found.is_chunked) == (0, True)
    assert forwarded_head(found).decode().count("Transfer-Encoding: chunked\r\n") == 1


SMUGGLED = {
    "two lengths": (HOST, "Content-Length: 5", "Content-Length: 6"),
    "the same length twice": (HOST, "Content-Length: 5", "Content-Length: 5"),
    "a list of lengths": (HOST, "Content-Length: 5, 5"),
    "a signed length": (HOST, "Content-Length: +5"),
    "a hexadecimal length": (HOST, "Content-Length: 0x5"),
    "a length in other digits": (HOST, "Content-Length: \xb2"),
    "an empty length": (HOST, "Content-Length:"),
    "a huge length": (HOST, "Content-Length: " + "9" * 40),
    "a length and an encoding": (HOST, "Content-Length: 5", "Transfer-Encoding: chunked"),
    "two encodings": (HOST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "a list of encodings": (HOST, "Transfer-Encoding: gzip, chunked"),
    "an unknown encoding": (HOST, "Transfer-Encoding: identity"),
    "an encoding with a tab": (HOST, "Transfer-Encoding: \x0bchunked"),
    "a hidden encoding": (HOST, "Transfer-Encoding : chunked"),
    "a folded field": (HOST, "X: a", " Transfer-Encoding: chunked"),
    "a folded first field": (" X: a", HOST),
    "a line break in a value": (HOST, "X: a\nTransfer-Encoding: chunked"),
    "a return in a value": (HOST, "X: a\rb"),
    "a NUL": (HOST, "X: a\0b"),
    "a field without a colon": (HOST, "X"),
    "a field without a name": (HOST, ": a"),
    "a name with a blank": (HOST, "X Y: a"),
    "two hosts": (HOST, HOST),
    "another host": ("Host: evil.example",),
    "another port": ("Host: example.org:81",),
    "a host with a path": ("Host: example.org/x",),
    "an empty host": ("Host:",),
    "no host": ("Accept: */*",),
    "a nominated length": (HOST, "Connection: content-length", "Content-Length: 5"),
    "a nominated host": (HOST, "Connection: close, Host"),
    "a nominated encoding": (HOST, "Connection: Transfer-Encoding", "Transfer-Encoding: chunked"),
}


@pytest.mark.parametrize("lines", SMUGGLED.values(), ids=SMUGGLED)
def test_what_has_more_than_one_reading_is_refused(lines):
    with pytest.raises(BadMessage):
        parse_request(get(*lines, method="POST"))


@pytest.mark.parametrize(
    "first",
    [
        "GET / HTTP/1.1",
        "GET example.org/ HTTP/1.1",
        "GET https://example.org/ HTTP/1.1",
        "GET //example.org/ HTTP/1.1",
        "GET ftp://example.org/ HTTP/1.1",
        "GET http://example.org/#x HTTP/1.1",
        "GET http://example.org\\@x/ HTTP/1.1",
        "GET  http://example.org/ HTTP/1.1",
        "GET http://example.org/ HTTP/1.1 ",
        "GET http://example.org/ HTTP/2.0",
        "GET http://example.org/ http/1.1",
        "GET http://example.org/",
        " GET http://example.org/ HTTP/1.1",
        "",
        "GET http://example.org/a b HTTP/1.1",
        "GET http://example.org/\xe4 HTTP/1.1",
        "G\0T http://example.org/ HTTP/1.1",
        "\x16\x03\x01",
        "SSH-2.0-OpenSSH_9",
        f"{'G' * 33} http://example.org/ HTTP/1.1",
    ],
)  # fmt: skip - many short values in each line
def test_other_request_lines_are_refused(first):
    with pytest.raises(BadMessage):
        parse_request(head(first, HOST))


@pytest.mark.parametrize(
    "target", ["http://me:x@example.org/", "http://127.0.0.1/", "http:///", "http://a b/", "http://[::1]/"]
)
def test_other_targets_are_refused(target):
    with pytest.raises((BadDestination, BadMessage)):
        parse_request(head(f"GET {target} HTTP/1.0"))


def test_connect_with_a_body_or_another_host_is_refused():
    for line in ("Content-Length: 1", "Transfer-Encoding: chunked", "Host: evil.example:443", "Host: example.org:80"):
        with pytest.raises(BadMessage):
            parse_request(head("CONNECT example.org:443 HTTP/1.1", line))


@pytest.mark.parametrize("method", ["TRACE", "trace", "Trace", "TRACK"])
def test_a_request_for_an_echo_is_refused_because_it_would_show_the_password_of_the_users_own_proxy(method):
    with pytest.raises(BadMessage, match="its answer repeats the request"):
        parse_request(get(HOST, "Max-Forwards: 0", method=method))


def test_sizes_are_limited():
    with pytest.raises(BadMessage, match="too long"):
        parse_request(get(HOST, f"X: {'a' * LONGEST_HEAD}"))
    with pytest.raises(BadMessage, match="too many"):
        parse_request(get(HOST, *(f"X-{n}: a" for n in range(300))))
    with pytest.raises(BadMessage, match="incomplete"):
        parse_request(b"GET http://example.org/ HTTP/1.1\r\n")


@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_no_other_error(data):
    for each in (data, data + b"\r\n\r\n", b"GET http://example.org/ HTTP/1.1\r\n" + data + b"\r\n\r\n"):
        try:
            request = parse_request(each)
        except (BadMessage, BadDestination):
            continue
        out = forwarded_head(request)
        assert out.count(b"\r\n\r\n") == 1 and out.endswith(b"\r\n\r\n") and b"\0" not in out
        again = parse_request(out.replace(b"GET /", b"GET http://example.org/", 1))
        assert (again.length, again.is_chunked) == (request.length, request.is_chunked)


# ------------------------------------------------------------------ answers


def test_the_head_of_an_answer_ends_the_connection():
    given_head = head(
        "HTTP/1.1 200 OK", "Connection: keep-alive, X-Own", "X-Own: 1", "Keep-Alive: 5", "Content-Length: 3"
    )
    assert response_head(given_head) == (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nConnection: close\r\n\r\n", 200)
    assert response_head(head("HTTP/1.1 100 Continue")) == (b"HTTP/1.1 100 Continue\r\n\r\n", 100)
    for bad in ("HTTP/1.1 101 Switching", "HTTP/2 200", "ICY 200 OK", "HTTP/1.1 20", "HTTP/1.1 200\0"):
        with pytest.raises(BadMessage):
            response_head(head(bad))


# ------------------------------------------------------------------ chunks


def encoded(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in (*chunks, b""))


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.integers(1, 7), st.binary(max_size=10))
def test_a_chunked_body_ends_where_it_ends_however_it_arrives(chunks, piece, behind):
    whole = encoded(*chunks)
    body, taken = ChunkedBody(), 0
    data = whole + behind
    for at in range(0, len(data), piece):
        assert not body.has_ended or at >= len(whole)
        taken += body.feed(data[at : at + piece])
    assert body.has_ended and taken == len(whole)


@pytest.mark.parametrize(
    "data",
    [
        b"5;ext=1\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\n0\n\n",
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"0\r\nTrailer: x\r\n\r\n",
        b"-1\r\n",
        b"0x5\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"\r\n",
        b"g\r\n",
        b"1" * 18,
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
    ],
)  # fmt: skip - many short values in each line
def test_chunks_that_have_more_than_one_reading_are_refused(data):
    with pytest.raises(BadMessage):
        ChunkedBody().feed(data)


def test_the_body_is_not_ended_before_its_last_line():
    body = ChunkedBody()
    assert body.feed(b"5\r\nhello\r\n0\r\n") == 13 and not body.has_ended
    assert body.feed(b"\r\nGET http://evil.example/") == 2 and body.has_ended


def test_a_tunnel_to_port_80_is_refused_because_its_requests_would_not_be_checked():
    with pytest.raises(BadMessage, match="port 80"):
        parse_request(b"CONNECT granted.example:80 HTTP/1.1\r\nHost: granted.example:80\r\n\r\n")
