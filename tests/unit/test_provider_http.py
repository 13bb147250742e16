"""The HTTP adapter against a raw server on this machine."""

import asyncio
import gzip
import json
import time

import httpx2
import pytest

from bradawl.core.ports import HttpError, HttpRequest
from bradawl.providers.failures import ConnectionRefused
from bradawl.providers.http_httpx2 import Httpx2Http, _translated
from bradawl.providers.local import running_context


class RawServer:
    """Hands each request to `answer(writer, head, body)` and counts connections."""

    def __init__(self, answer):
        self._answer = answer
        self.connections = 0
        self.seen = []
        self.hung_up = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = [line for line in head.split("\r\n") if line.startswith("content-length:")]
                body = await reader.readexactly(int(length[0].split(":")[1])) if length else b""
                self.seen.append((head, body))
                if await self._answer(writer, head, body) == "close":
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.hung_up.set()
            writer.close()


def fixed(body, status="200 OK", **headers):
    async def answer(writer, _head, _body):
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", *lines])
        writer.write(head.encode() + b"\r\n\r\n" + body)

    return answer


async def chunked(writer, *pieces, end=True):
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n")
    for piece in pieces:
        writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        await writer.drain()
    if end:
        writer.write(b"0\r\n\r\n")


def post(url, body=(b"{", b"}"), **fields):
    return HttpRequest("POST", url, (("content-type", "application/json"),), body, **fields)


async def fetch(http, request):
    async with http.stream(request) as response:
        return response.status, dict(response.headers), b"".join([chunk async for chunk in response.chunks()])


def drive(answer, use):
    """Run `use(http, server)` against a server, and close everything."""

    async def go():
        async with RawServer(answer) as server:
            http = Httpx2Http()
            try:
                return await use(http, server)
            finally:
                await http.aclose()
                await http.aclose()

    return asyncio.run(go())


def test_a_request_carries_its_body_whole_with_its_length():
    async def use(http, server):
        status, headers, body = await fetch(http, post(server.url + "/v1/x", (b"ab", b"", b"cd")))
        return status, headers["x-thing"], body, server.seen[0]

    status, thing, body, (head, sent) = drive(fixed(b"hello", X_Thing="Yes"), use)
    assert (status, thing, body, sent) == (200, "Yes", b"hello", b"abcd")
    assert "content-length: 4" in head
    assert "transfer-encoding" not in head


def test_one_connection_serves_request_after_request():
    async def answer(writer, _head, _body):
        await chunked(writer, b"data: 1\n\n")

    async def use(http, server):
        for _ in range(20):
            assert (await fetch(http, post(server.url)))[2] == b"data: 1\n\n"
        return server.connections

    assert drive(answer, use) == 1


def test_pieces_arrive_as_they_are_sent():
    go_on = asyncio.Event()

    async def answer(writer, _head, _body):
        await chunked(writer, b"first", end=False)
        await go_on.wait()
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")

    async def use(http, server):
        async with http.stream(post(server.url)) as response:
            chunks = response.chunks()
            seen = [await anext(chunks)]
            go_on.set()
            return seen + [chunk async for chunk in chunks]

    assert drive(answer, use) == [b"first", b"second"]


def test_compressed_bodies_are_unpacked():
    packed = gzip.compress(b"data: packed\n\n")

    async def use(http, server):
        return (await fetch(http, post(server.url)))[2]

    assert drive(fixed(packed, Content_Encoding="gzip"), use) == b"data: packed\n\n"


@pytest.mark.parametrize("status", ["404 Not Found", "307 Temporary Redirect", "204 No Content", "529 Overloaded"])
def test_every_status_comes_back_as_it_is(status):
    async def use(http, server):
        return (await fetch(http, post(server.url)))[0], len(server.seen)

    assert drive(fixed(b"", status, Location="/elsewhere"), use) == (int(status[:3]), 1)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"what is this?\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope",
    ],
)
def test_an_exchange_that_breaks_is_an_error_of_ours(broken):
    async def answer(writer, _head, _body):
        writer.write(broken)
        return "close"

    async def use(http, server):
        with pytest.raises(HttpError) as caught:
            await fetch(http, post(server.url))
        return caught.value

    error = drive(answer, use)
    assert error.kind == "connection"
    assert not isinstance(error, ConnectionRefused)
    assert "127.0.0.1" in str(error)


def test_silence_is_a_timeout_and_any_byte_is_life():
    async def answer(writer, head, _body):
        if "/silent" in head:
            await asyncio.sleep(5)
            return "close"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
        for _ in range(5):
            writer.write(b":")
            await asyncio.sleep(0.1)
        return None

    async def use(http, server):
        assert (await fetch(http, post(server.url + "/slow", idle_timeout_s=0.3)))[2] == b":::::"
        with pytest.raises(HttpError) as caught:
            await fetch(http, post(server.url + "/silent", idle_timeout_s=0.2))
        return caught.value.kind

    assert drive(answer, use) == "timeout"


def test_nobody_listening_is_told_apart():
    async def go():
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        http = Httpx2Http()
        with pytest.raises(ConnectionRefused):
            await fetch(http, post(f"http://127.0.0.1:{port}/"))
        await http.aclose()

    asyncio.run(go())


@pytest.mark.parametrize("url", ["nonsense", "http://[", "ftp://127.0.0.1/", "http://127.0.0.1:99999/"])
def test_a_url_that_is_none_is_an_error_of_ours(url):
    async def go():
        http = Httpx2Http()
        with pytest.raises(HttpError):
            await fetch(http, post(url))
        await http.aclose()

    asyncio.run(go())


def test_a_header_that_cannot_be_sent_is_not_shown():
    async def use(http, server):
        request = HttpRequest("POST", server.url, (("authorization", "Bearer hush\nhush"),), (b"{}",))
        with pytest.raises(HttpError) as caught:
            await fetch(http, request)
        return str(caught.value)

    assert "hush" not in drive(fixed(b""), use)


def test_a_missing_ca_file_is_named():
    async def go():
        http = Httpx2Http(ca_file="/nowhere/ca.pem")
        with pytest.raises(HttpError, match=r"/nowhere/ca\.pem"):
            await fetch(http, post("https://127.0.0.1:1/"))
        await http.aclose()

    asyncio.run(go())


def test_cancelling_closes_the_connection_at_once():
    async def use(http, server):
        started = asyncio.Event()

        async def read():
            async with http.stream(post(server.url)) as response:
                async for _ in response.chunks():
                    started.set()

        task = asyncio.ensure_future(read())
        await started.wait()
        before = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - before

    assert drive(_until_hang_up, use) < 0.2


async def _until_hang_up(writer, _head, _body):
    """Streams until nobody listens any more."""
    await chunked(writer, b"data: 1\n\n", end=False)
    while not writer.is_closing():
        writer.write(b"1\r\n:\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)
    return "close"


def test_leaving_early_ends_the_exchange_and_the_next_one_works():
    async def answer(writer, head, body):
        return await (_until_hang_up(writer, head, body) if "/endless" in head else fixed(b"ok")(writer, head, body))

    async def use(http, server):
        async with http.stream(post(server.url + "/endless")) as response:
            await anext(response.chunks())
        await asyncio.wait_for(server.hung_up.wait(), 2)
        return (await fetch(http, post(server.url)))[2]

    assert drive(answer, use) == b"ok"


def test_streams_of_one_adapter_do_not_mix():
    async def answer(writer, _head, body):
        await chunked(writer, *[body] * 20)

    async def use(http, server):
        names = [f"stream{number}".encode() for number in range(20)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch(http, post(server.url, (name,)))) for name in names]
        return [task.result()[2] == name * 20 for task, name in zip(tasks, names, strict=True)]

    assert all(drive(answer, use))


# ------------------------------------------------------------------ local servers


def local_server(answers):
    async def answer(writer, head, _body):
        path = head.split()[1].partition("?")[0]
        found = answers.get(path)
        if found == "hang":
            await asyncio.sleep(3)
            return "close"
        if found is None:
            return await fixed(b"", "404 Not Found")(writer, head, b"")
        return await fixed(found if isinstance(found, bytes) else json.dumps(found).encode())(writer, head, b"")

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
def test_the_running_context_is_asked_for_in_every_dialect(answers, expected):
    async def use(http, server):
        before = time.monotonic()
        found = await running_context(http, server.url + "/v1", "m")
        return found, time.monotonic() - before

    found, seconds = drive(local_server(answers), use)
    assert found == expected
    assert seconds < 2


def test_servers_elsewhere_are_not_asked():
    async def use(http, server):
        return await running_context(http, "https://api.example.com/v1", "m"), server.seen

    assert drive(local_server({}), use) == (None, [])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("[Errno -2] Name or service not known", "host can't be reached: Name or service not known."),
        ("All connection attempts failed.", "host can't be reached: All connection attempts failed."),
        ("", "host can't be reached."),
    ],
)
def test_a_host_that_can_not_be_reached_is_told_in_a_sentence_without_the_systems_number(said, told):
    with pytest.raises(HttpError) as caught, _translated("host"):
        raise httpx2.ConnectError(said)
    assert str(caught.value) == told
