"""Hints of failures: which provider failed, and what the user can do."""

import asyncio
import ssl

import pytest
import trustme

from bradawl.core.errors import Failure
from bradawl.core.http import HttpError, HttpRequest
from bradawl.providers.advice import KEY_COMMAND, advise, failure_of_exchange
from bradawl.providers.codec import Endpoint
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.testing.raw_server import RawServer

REMOTE = Endpoint("acme", "https://api.acme.example/v1", "m1", "sk-acme-0123456789abcdef", key_name="ACME_API_KEY")
LOCAL = Endpoint("acme", "http://127.0.0.1:8000/v1", "m1")


def hint_of(kind, endpoint=REMOTE, **fields):
    return advise(Failure(kind, "Oops", **fields), endpoint).hint


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("overloaded", {"status": 529, "retryable": True}, ("acme", "HTTP 529", "--fallback-model")),
        ("server", {"status": 500, "retryable": True}, ("acme", "HTTP 500", "--fallback-model")),
        ("server", {"retryable": True}, ("acme", "in its reply", "--fallback-model")),
        ("rate_limit", {"status": 429, "retryable": True}, ("acme", "HTTP 429", "--fallback-model")),
        ("rate_limit", {"status": 429, "retry_after_s": 7.0}, ("wait 7 s",)),
        ("timeout", {"retryable": True}, ("first_byte_s", "[providers.acme.compat]")),
        ("timeout", {"status": 504, "retryable": True}, ("HTTP 504", "--fallback-model")),
        ("invalid_request", {"status": 400}, ("acme", "HTTP 400", REMOTE.base_url, "--debug")),
        ("invalid_request", {"status": 404}, ("'m1'", REMOTE.base_url)),
        ("invalid_request", {"status": 405}, (REMOTE.base_url,)),
        ("content_filter", {"status": 400}, ("acme", "-m")),
        ("quota", {"status": 402}, ("acme", "-m")),
        ("context_overflow", {"status": 400}, ("new session",)),
        ("connection", {"retryable": True}, ("network", "proxy", "base URL")),
    ],
)
def test_every_hint_names_the_provider_and_a_remedy(kind, fields, words):
    hint = hint_of(kind, **fields)
    assert all(word in hint for word in words), hint
    assert hint.endswith(".")


def test_an_existing_hint_is_kept():
    assert hint_of("server", hint="Do this.") == "Do this."


def test_the_hint_names_the_source_of_the_key():
    command = Endpoint("acme", REMOTE.base_url, "m1", "k", key_name=KEY_COMMAND)
    assert hint_of("auth", status=401) == "Check the key in ACME_API_KEY."
    assert hint_of("auth", LOCAL, status=401) == "Set ACME_API_KEY to your key."
    assert hint_of("auth", command, status=401) == "Check what the api_key_command of acme prints."
    assert hint_of("auth", command) == ""


# ------------------------------------------------------------------ TLS, against real servers


async def failure_at(port, make):
    """The failure of an https request to that port."""
    http, url = make(), f"https://127.0.0.1:{port}/v1"
    try:
        async with http.stream(HttpRequest("POST", url, (), (b"{}",), 5.0, 5.0)):
            raise AssertionError("the request was sent before the TLS handshake")
    except HttpError as error:
        return failure_of_exchange(error, url)
    finally:
        await http.aclose()


async def failure_of(make, tls=None):
    """The failure of a request to a server with this TLS."""
    async with RawServer(lambda exchange: exchange.answer(), tls) as server:
        return await failure_at(server.port, make)


@pytest.mark.parametrize("make", [DirectHttp, Httpx2Http])
async def test_an_untrusted_certificate_is_not_retried_and_the_hint_names_the_settings(make):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    failure = await failure_of(make, tls)
    assert (failure.kind, failure.retryable) == ("connection", False)
    assert "SSL_CERT_FILE" in failure.hint and "`ca_file`" in failure.hint


async def test_a_ca_file_without_certificates_is_not_retried(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    failure = await failure_of(lambda: Httpx2Http(ca_file=str(tmp_path / "ca.pem")))
    assert (failure.kind, failure.retryable) == ("connection", False)
    assert "ca.pem" in failure.message and "PEM" in failure.hint


@pytest.mark.parametrize("make", [DirectHttp, Httpx2Http])
async def test_https_to_a_plain_server_says_so(make):
    async def complain(reader, writer):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        failure = await failure_at(server.sockets[0].getsockname()[1], make)
    assert (failure.retryable, "http://" in failure.hint) == (False, True)


def test_a_broken_connection_can_be_retried():
    failure = failure_of_exchange(HttpError("connection", "The connection broke."), REMOTE.base_url)
    assert (failure.retryable, failure.hint) == (True, "")
