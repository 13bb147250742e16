"""The HTTP adapters: behaviour of both, of the direct one alone, and the context size that local servers report."""

import asyncio
import gzip
import json
import ssl
import time
import zlib
from pathlib import Path

import httpx2
import pytest
import trustme

from bradawl.core.http import HttpError, HttpRequest
from bradawl.providers import local_servers
from bradawl.providers.failures import ConnectionRefused
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http, _translated
from bradawl.providers.http_rules import target_of
from bradawl.providers.local_servers import running_context
from bradawl.testing.http_conformance import BROKEN, RESPONSES, HttpSetup, fetch, post, respond
from bradawl.testing.raw_server import RawServer

ADAPTERS = pytest.mark.parametrize("make", [DirectHttp, Httpx2Http], ids=["direct", "httpx2"])
SAMPLES = sorted((Path(__file__).parents[1] / "wire" / "samples").glob("*.sse"))


async def drive(answer, use, make=DirectHttp, tls=None):
    """Run `use(http, server)` against a server, and close everything."""
    async with RawServer(answer, tls) as server:
        http = make()
        try:
            return await use(http, server)
        finally:
            await http.aclose()


async def ok(exchange):
    await exchange.body()
    await exchange.answer(b"ok")


async def failing(http, request):
    with pytest.raises(HttpError) as caught:
        await fetch(http, request)
    return caught.value


# ------------------------------------------------------------------ both adapters


@pytest.mark.parametrize("name", RESPONSES)
async def test_both_adapters_read_the_same_from_every_framing(name):
    raw, _ = RESPONSES[name]

    async def go(make):
        return await respond(HttpSetup(make), raw, 11 if len(raw) < 2000 else 5000)

    assert (await go(DirectHttp)) == (await go(Httpx2Http))


@pytest.mark.parametrize("packing", ["plain", "gzip", "deflate", "raw deflate"])
async def test_both_adapters_deliver_the_bytes_of_recorded_streams(packing):
    pack = {
        "plain": bytes,
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "raw deflate": lambda data: zlib.compress(data)[2:-4],
    }
    coding = "" if packing == "plain" else f"content-encoding: {packing.removeprefix('raw ')}"
    recorded = {path.name: path.read_bytes() for path in SAMPLES}

    async def answer(exchange):
        await exchange.body()
        data = pack[packing](recorded[exchange.path[1:]])
        await exchange.answer(data, "200 OK", "content-type: text/event-stream", *([coding] if coding else []))

    async def use(http, server):
        return {name: await fetch(http, post(f"{server.url}/{name}", b"{}")) for name in recorded}

    direct, other = await drive(answer, use, DirectHttp), await drive(answer, use, Httpx2Http)
    assert direct == other
    assert {name: body for name, (_, _, body) in direct.items()} == recorded


@pytest.mark.parametrize("name", BROKEN)
async def test_both_adapters_fail_with_the_same_kind(name):
    async def go(make):
        with pytest.raises(HttpError) as caught:
            await respond(HttpSetup(make), BROKEN[name], 4000)
        return caught.value.kind, type(caught.value)

    assert (await go(DirectHttp)) == (await go(Httpx2Http))


@ADAPTERS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_connection_has_its_own_error(make, host):
    async with RawServer(ok) as server:
        pass
    http = make()
    with pytest.raises(ConnectionRefused, match=f"^{host} refused the connection.$"):
        await fetch(http, post(f"http://{host}:{server.port}/"))
    await http.aclose()


@ADAPTERS
async def test_an_unknown_host_is_an_error_in_one_sentence(make):
    http = make()
    error = await failing(http, post("http://unknown.example/v1"))
    await http.aclose()
    assert error.kind == "connection"
    assert not isinstance(error, ConnectionRefused)
    assert str(error).startswith("unknown.example can't be reached: ")
    assert "Errno" not in str(error)


# ------------------------------------------------------------------ TLS


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def presented(authority, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusted(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def ca_file(authority, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


@pytest.fixture(params=["direct", "httpx2"])
def make_trusting(request, authority, ca_file):
    makers = {"direct": lambda: DirectHttp(lambda: trusted(authority)), "httpx2": lambda: Httpx2Http(ca_file=ca_file)}
    return makers[request.param]


async def test_a_certificate_for_another_host_is_refused(make_trusting, authority):
    async def use(http, server):
        return await failing(http, post(server.url, b"{}")), len(server.seen)

    error, seen = await drive(ok, use, make_trusting, presented(authority, "elsewhere.example"))
    assert (error.kind, seen) == ("connection", 0)
    assert "127.0.0.1" in str(error)
    assert "certificate" in str(error)
    assert "_ssl.c" not in str(error)


@ADAPTERS
async def test_a_certificate_of_an_unknown_authority_is_refused(make, authority):
    async def use(http, server):
        return await failing(http, post(server.url, b"{}")), len(server.seen)

    error, seen = await drive(ok, use, make, presented(authority, "127.0.0.1"))
    assert (error.kind, seen) == ("connection", 0)
    assert "certificate" in str(error)


async def test_a_server_without_tls_is_an_error_for_https(make_trusting):
    async def complain(reader, writer):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        http = make_trusting()
        error = await failing(http, post(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", b"{}"))
        await http.aclose()
    assert error.kind == "connection"
    assert str(error).startswith("127.0.0.1 can't be reached: ")
    assert "SSL" not in str(error).replace("SSLError", "")


async def test_the_tls_context_is_created_once_and_only_when_needed(authority):
    made = []

    def make_context():
        made.append(1)
        return trusted(authority)

    async def use(http, server):
        return [(await fetch(http, post(server.url, b"{}")))[2] for _ in range(2)]

    assert await drive(ok, use, lambda: DirectHttp(make_context)) == [b"ok", b"ok"]
    assert made == []

    async def close_each_time(exchange):
        await ok(exchange)
        exchange.hang_up()

    assert await drive(close_each_time, use, lambda: DirectHttp(make_context), presented(authority, "127.0.0.1"))
    assert made == [1]


async def test_an_unreachable_proxy_is_named_without_its_password():
    proxy = "http://someone:hush@127.0.0.1:9"
    http = Httpx2Http(proxy=proxy)
    error = await failing(http, HttpRequest("POST", "https://models.example/v1", (), (b"{}",)))
    assert str(error) == "models.example (by way of the proxy 127.0.0.1) refused the connection."


async def test_a_missing_ca_file_is_named():
    http = Httpx2Http(ca_file="/nowhere/ca.pem")
    with pytest.raises(HttpError, match=r"/nowhere/ca\.pem"):
        await fetch(http, post("https://127.0.0.1:1/"))
    await http.aclose()


# ------------------------------------------------------------------ kept connections of the direct adapter


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_dead_kept_connection_is_replaced_and_the_request_sent_again(method):
    async def answer(exchange):
        await exchange.body()
        if len(server_of[0].seen) == 2:
            return exchange.reset()  # the server closed the idle connection just as the request was sent
        return await exchange.answer(b"ok")

    server_of = []

    async def use(http, server):
        server_of.append(server)
        bodies = [(await fetch(http, HttpRequest(method, server.url, ())))[2] for _ in range(2)]
        return bodies, server.connections, len(server.seen)

    assert await drive(answer, use) == ([b"ok", b"ok"], 2, 3)


async def test_a_new_connection_that_breaks_is_not_retried():
    async def answer(exchange):
        await exchange.body()
        exchange.reset()

    async def use(http, server):
        await failing(http, post(server.url, b"{}"))
        return len(server.seen)

    assert await drive(answer, use) == 1


@pytest.mark.parametrize("sent", [b"H", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"])
async def test_a_request_with_at_least_one_byte_of_reply_is_never_sent_again(sent):
    async def answer(exchange):
        await exchange.body()
        if exchange.path == "/first":
            return await exchange.answer(b"ok")
        await exchange.send(sent)
        return exchange.reset()

    async def use(http, server):
        await fetch(http, post(f"{server.url}/first"))
        await failing(http, post(f"{server.url}/second", b"{}"))
        return server.connections, len(server.seen)

    assert await drive(answer, use) == (1, 2)


async def test_silence_on_a_kept_connection_is_not_retried():
    async def answer(exchange):
        await exchange.body()
        await (exchange.answer(b"ok") if exchange.path == "/first" else exchange.until_client_closed())

    async def use(http, server):
        await fetch(http, post(f"{server.url}/first"))
        error = await failing(http, post(f"{server.url}/second", b"{}", idle_timeout_s=0.05))
        return error.kind, len(server.seen)

    assert await drive(answer, use) == ("timeout", 2)


async def test_an_idle_connection_is_closed_after_its_keep_alive_time():
    async def use(http, server):
        await fetch(http, post(server.url))
        await server.idle()
        return (await fetch(http, post(server.url)))[2], server.connections

    assert await drive(ok, use, lambda: DirectHttp(keep_alive_s=0.05)) == (b"ok", 2)


async def test_bytes_sent_without_a_request_are_never_read_as_a_response():
    async def answer(exchange):
        await exchange.body()
        await exchange.answer(b"mine")
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")

    async def use(http, server):
        return [(await fetch(http, post(server.url)))[2] for _ in range(3)], server.connections

    bodies, connections = await drive(answer, use)
    assert bodies == [b"mine"] * 3
    assert connections == 3


async def test_origins_never_share_a_connection():
    async with RawServer(ok) as one, RawServer(ok) as other:
        http = DirectHttp()
        for url in (one.url, other.url, f"http://localhost:{one.port}", one.url):
            await fetch(http, post(url))
        await http.aclose()
        assert (one.connections, other.connections) == (2, 1)


@ADAPTERS
async def test_a_body_that_expands_a_thousandfold_is_delivered_in_small_pieces(make):
    async def answer(exchange):
        await exchange.answer(gzip.compress(bytes(20_000_000)), "200 OK", "content-encoding: gzip")

    async def use(http, server):
        async with http.stream(post(server.url)) as response:
            sizes = [len(chunk) async for chunk in response.chunks()]
        return sum(sizes), max(sizes)

    total, largest = await drive(answer, use, make)
    assert total == 20_000_000
    assert largest <= 64 * 1024


async def test_the_adapter_does_not_buffer_for_a_reader_that_pauses():
    written = []

    async def answer(exchange):
        await exchange.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        for _ in range(400):
            await exchange.send(bytes(100_000))
            written.append(100_000)
        exchange.hang_up()

    async def use(http, server):
        async with http.stream(post(server.url)) as response:
            chunks = response.chunks()
            first = len(await anext(chunks))
            waited = -1
            while waited != len(written):  # until the server can write no more
                waited = len(written)
                await asyncio.sleep(0.05)
            held = sum(written)
            return held, first + sum([len(chunk) async for chunk in chunks])

    held, total = await drive(answer, use)
    assert total == 40_000_000
    assert held < 20_000_000  # the size of the system's own buffers, with some room


async def test_an_unread_long_response_does_not_break_the_next_request():
    long = bytes(500_000)

    async def answer(exchange):
        await exchange.body()
        await exchange.answer(long if exchange.path == "/long" else b"ok")
        has_gone.set()

    has_gone = asyncio.Event()

    async def use(http, server):
        async with http.stream(post(f"{server.url}/long")):
            await asyncio.wait_for(has_gone.wait(), 5)
            await asyncio.sleep(0.05)  # the rest stays in the system's buffers
        return [(await fetch(http, post(server.url, idle_timeout_s=1.0)))[2] for _ in range(2)]

    assert await drive(answer, use) == [b"ok", b"ok"]


async def test_a_slow_upload_is_no_timeout():
    silence_s = 0.4

    async def answer(exchange):
        await exchange.slowly(chunk_bytes=100_000, pause_s=0.01)
        await exchange.answer(b"ok")

    async def use(http, server):
        server.narrow(16_384)
        return (await fetch(http, post(server.url, bytes(8_000_000), idle_timeout_s=silence_s)))[2]

    before = time.monotonic()
    assert await drive(answer, use) == b"ok"
    assert time.monotonic() - before > silence_s


# ------------------------------------------------------------------ URLs


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://Host.Example", (False, "host.example", 80, "/", "host.example")),
        ("HTTPS://host:443/v1#part", (True, "host", 443, "/v1", "host")),
        ("https://host:80?q=1", (True, "host", 80, "/?q=1", "host:80")),
        ("http://[::1]:8080/x y", (False, "::1", 8080, "/x%20y", "[::1]:8080")),
        (
            "http://bücher.example/ü?ü%20",
            (False, "xn--bcher-kva.example", 80, "/%C3%BC?%C3%BC%20", "xn--bcher-kva.example"),
        ),
    ],
)
def test_a_url_is_split_into_its_parts(url, parts):
    target = target_of(url)
    assert (target.is_tls, target.host, target.port, target.path, target.authority) == parts


# ------------------------------------------------------------------ local servers


def local_server(answers):
    async def answer(exchange):
        found = answers.get(exchange.path.partition("?")[0])
        if found == "hang":
            await exchange.until_client_closed()
        elif found is None:
            await exchange.answer(b"", "404 Not Found")
        else:
            await exchange.answer(found if isinstance(found, bytes) else json.dumps(found).encode())

    return answer


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"/v1/models": {"data": [{"id": "x", "max_model_len": 1}, {"id": "m", "max_model_len": 4096}]}}, 4096),
        ({"/props": {"default_generation_settings": {"n_ctx": 8192}}}, 8192),
        (
            {"/api/v1/models": {"models": [{"key": "m", "loaded_instances": [{"config": {"context_length": 512}}]}]}},
            512,
        ),
        ({"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 1024, "max_context_length": 9}]}}, 1024),
        ({"/api/ps": {"models": [{"name": "m:latest", "context_length": 2048}]}}, 2048),
        ({"/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 9}}]}}, None),
        ({"/v1/models": b"not json", "/props": b"[]", "/api/ps": {"models": [None, 3]}}, None),
        ({"/v1/models": "hang", "/api/ps": {"models": [{"name": "m:latest", "context_length": 7}]}}, 7),
        ({}, None),
    ],
)
async def test_the_context_size_is_read_from_the_apis_of_all_known_servers(answers, expected, monkeypatch):
    async def use(http, server):
        return await running_context(http, server.url + "/v1", "m")

    monkeypatch.setattr(local_servers, "_LIMIT_S", 30.0)
    monkeypatch.setattr(local_servers, "_ANSWER_S", 1.0)
    assert await drive(local_server(answers), use) == expected


async def test_servers_on_other_machines_are_not_queried():
    async def use(http, server):
        return await running_context(http, "https://api.example.com/v1", "m"), server.seen

    assert await drive(local_server({}), use) == (None, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Errno -2] Name or service not known", "host can't be reached: Name or service not known."),
        ("All connection attempts failed.", "host can't be reached: All connection attempts failed."),
        ("", "host can't be reached."),
    ],
)
def test_an_unreachable_host_is_an_error_without_the_systems_error_number(text, message):
    with pytest.raises(HttpError) as caught, _translated("host"):
        raise httpx2.ConnectError(text)
    assert str(caught.value) == message
