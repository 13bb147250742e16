"""`WireServer` over HTTP: replies in the Chat Completions format, faults, refused requests, and as a program."""

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from bradawl.testing.server import WireServer, main, serve_in_thread
from patience import no_wait

PROMPT = {"role": "user", "content": "fix it"}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


def body_of(*messages, **more):
    return {"model": "m", "messages": list(messages or (PROMPT,)), **more}


@contextlib.contextmanager
def connect(server):
    """A keep-alive connection."""
    port = urlsplit(server.base_url).port
    assert port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def post(connection, body, path="/v1/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, data, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response, response.read()


def ask(server, body):
    with connect(server) as connection:
        return post(connection, body)


def events_of(data):
    lines = [block.removeprefix("data: ") for block in data.decode().split("\n\n") if block]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def deltas_of(data):
    return [choice["delta"] for event in events_of(data) for choice in event["choices"]]


# ---------------------------------------------------------------- replies


def test_a_streamed_reply_has_the_form_of_openais(wire_server):
    """Fields that real servers send and no client needs; other fields are in `test_testing_formats.py`."""
    entry = {"text": "Both.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a/rather/long/path.py"}}]}
    entry["usage"] = {"input": 10, "cache_read": 5, "cache_write": 2, "output": 7, "reasoning": 3}
    server = wire_server([entry] * 2)
    response, data = ask(server, body_of(**STREAM))
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    *events, last = events_of(data)
    assert {(event["id"], event["object"], event["model"]) for event in [*events, last]} == {
        ("chatcmpl-1", "chat.completion.chunk", "m")
    }
    assert deltas_of(data)[0] == {"role": "assistant", "content": "", "refusal": None}
    calls = [call for delta in deltas_of(data) for call in delta.get("tool_calls", ())]
    opened = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": ""}}
    assert calls[0] == opened and len(calls) > 3
    assert all(event["usage"] is None for event in events)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 24)
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 5, "cache_write_tokens": 2}
    _, data = ask(server, body_of(stream=True))
    assert not any("usage" in event for event in events_of(data)), "it was not asked for"


def test_without_stream_the_reply_is_one_document(wire_server):
    entry = {"thinking": "hm", "tool_calls": [{"name": "x", "arguments": "{oops"}], "usage": {"output": 2}}
    response, data = ask(wire_server([entry]), body_of())
    assert response.headers["content-type"] == "application/json"
    [choice] = json.loads(data)["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert choice["message"]["reasoning_content"] == "hm"
    call = {"id": "call_1", "type": "function", "function": {"name": "x", "arguments": "{oops"}}
    assert choice["message"]["tool_calls"] == [call]


def test_connections_serve_many_requests_and_share_the_script(wire_server):
    server = wire_server([{"text": f"<{n}>"} for n in range(51)])
    with connect(server) as connection:
        for n in range(50):
            assert f"<{n}>".encode() in post(connection, body_of(stream=bool(n % 2)))[1]
        assert b"<50>" in ask(server, body_of())[1]
    assert server.connections == 2
    assert len(server.requests) == len(server.headers) == 51
    assert server.requests[0] == body_of(stream=False)
    assert server.headers[0]["content-type"] == "application/json"


def test_models_are_listed_and_other_paths_are_not_found(wire_server):
    server = wire_server([])
    with connect(server) as connection:
        for path, status in (("/v1/models", 200), ("/v1/props", 404), ("/v1/chat/completions", 405)):
            connection.request("GET", path)
            response = connection.getresponse()
            document = json.loads(response.read())
            assert response.status == status
            assert document.get("data", [{}])[0].get("id") == ("scripted" if status == 200 else None)
    assert server.requests == []
    assert server.failures == []


# ---------------------------------------------------------------- faults


def test_a_status_is_answered_with_headers_and_an_error_document(wire_server):
    faults = {"status": 429, "headers": {"Retry-After": "2", "x-request-id": "r1"}}
    others = [{"faults": {"status": status}} for status in (599, 204, 304)]
    server = wire_server([{"text": "slow down", "faults": faults}, *others, {"text": "next"}])
    with connect(server) as connection:
        response, data = post(connection, body_of(**STREAM))
        assert (response.status, response.headers["retry-after"], response.headers["x-request-id"]) == (429, "2", "r1")
        error = {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}
        assert json.loads(data)["error"] == error
        assert post(connection, body_of())[0].status == 599
        for status in (204, 304):
            response, data = post(connection, body_of())
            assert (response.status, data) == (status, b"")
        assert b"next" in post(connection, body_of())[1]
    assert (server.connections, server.failures) == (1, [])


def raw_exchange(server, body):
    """All bytes that the server sends, read from a plain socket."""
    data = json.dumps(body).encode()
    address = urlsplit(server.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        sock.shutdown(socket.SHUT_WR)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    return got


def unchunked(raw):
    """The received body of a chunked response, and whether it is complete."""
    rest = raw.partition(b"\r\n\r\n")[2]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return body, True
        body, rest = body + rest[:length], rest[length + 2 :]
    return body, False


def whole_stream(entry):
    with serve_in_thread([entry]) as server:
        return ask(server, body_of(**STREAM))[1]


@pytest.mark.parametrize("chunk_bytes", [None, 1, 7])
def test_a_cut_stream_ends_after_exactly_the_given_bytes(wire_server, chunk_bytes):
    entry = {"text": "some wörds", "tool_calls": [{"id": "call_1", "name": "x", "arguments": {"a": "b"}}]}
    whole = whole_stream(entry)
    limits = [0, 1, 100, len(whole) - 1, len(whole), len(whole) + 1]
    server = wire_server([entry | {"faults": {"cut_at_byte": n, "chunk_bytes": chunk_bytes}} for n in limits])
    for number, limit in enumerate(limits, 1):
        raw = raw_exchange(server, body_of(**STREAM))
        body, has_ended = unchunked(raw)
        assert body.replace(b"chatcmpl-%d" % number, b"chatcmpl-1") == whole[:limit]
        assert has_ended == (limit > len(whole))
        sizes = {int(line, 16) for line in raw.partition(b"\r\n\r\n")[2].split(b"\r\n")[::2] if line}
        assert max(sizes, default=0) <= (chunk_bytes or len(whole))


def test_a_cut_document_is_incomplete(wire_server):
    server = wire_server([{"text": "long enough", "faults": {"cut_at_byte": 20}}])
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(server, body_of())
    assert len(caught.value.partial) == 20


# ---------------------------------------------------------------- refused requests


@pytest.mark.parametrize(
    "raw",
    [
        b"hello\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: many\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 2_000_000,
    ],
)
def test_bytes_that_are_not_http_get_a_400_and_the_server_continues(wire_server, raw):
    server = wire_server([{"text": "x"}])
    address = urlsplit(server.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as sock:
        with contextlib.suppress(ConnectionError):  # the server need not read a request that it refuses
            sock.sendall(raw)
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")
    assert ask(server, body_of())[0].status == 200


def test_chunked_requests_and_expect_continue_are_supported(wire_server):
    server = wire_server([{"text": "x"}])
    data = json.dumps(body_of()).encode()
    address = urlsplit(server.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n"
            b"connection: close\r\n\r\n"
        )
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"5;note=1\r\n%b\r\n%x\r\n%b\r\n0\r\ntrailer: 1\r\n\r\n" % (data[:5], len(data) - 5, data[5:]))
        assert sock.recv(100).startswith(b"HTTP/1.1 200 OK")
        while sock.recv(65536):
            pass
    assert server.requests == [body_of()]


# ---------------------------------------------------------------- ends of connections


def test_a_client_that_disconnects_does_not_disturb_the_server(wire_server):
    server = wire_server([{"text": "word " * 400, "faults": {"chunk_bytes": 1}}, {"text": "next"}])
    address = urlsplit(server.base_url)
    data = json.dumps(body_of(stream=True)).encode()
    with socket.create_connection((address.hostname, address.port), timeout=60) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        assert sock.recv(10)
    with socket.create_connection((address.hostname, address.port), timeout=60) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
    assert b"next" in ask(server, body_of())[1]


async def test_closing_the_server_ends_idle_waiting_and_incomplete_exchanges_at_once():
    began = time.monotonic()
    with no_wait():
        async with WireServer([{"faults": {"delay_ms": 60}}, {"faults": {"delay_ms": 60_000}}]) as server:
            assert (await asyncio.to_thread(ask, server, body_of()))[0].status == 200
            assert time.monotonic() - began >= 0.06, "a delayed reply comes late"
            address = urlsplit(server.base_url)
            opened = [await asyncio.open_connection(address.hostname, address.port) for _ in range(3)]
            data = json.dumps(body_of()).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(data)
            opened[1][1].write(head)
            opened[2][1].write(head + data)
            while len(server.requests) < 2:  # noqa: ASYNC110 - the server has no event for a request
                await asyncio.sleep(0)
        for _, writer in opened:
            writer.close()
        assert [await reader.read() for reader, _ in opened] == [b"", b"", b""]
    assert server.connections == 4


# ---------------------------------------------------------------- the program


@contextlib.contextmanager
def program(*arguments, stdin=subprocess.DEVNULL):
    process = subprocess.Popen(
        [sys.executable, "-m", "bradawl.testing.server", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, "stdin"])
def test_the_program_serves_until_a_signal_or_the_end_of_its_input(tmp_path, way):
    path = tmp_path / "script.json"
    path.write_text('[{"text": "hello"}]')
    arguments = (str(path), "--with-parent") if way == "stdin" else (str(path),)
    with program(*arguments, stdin=subprocess.PIPE) as process:
        base_url = process.stdout.readline().decode().strip()
        server = WireServer([])
        server.url = base_url.removesuffix("/v1")
        assert b"hello" in ask(server, body_of())[1]
        if way == "stdin":
            process.stdin.close()
        else:
            process.send_signal(way)
        assert process.wait(10) == 0
        assert process.stderr.read() == b""


def test_the_program_reports_an_invalid_script_or_port(capsys, tmp_path):
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_text('[{"txt": 1}]')
    good.write_text("[]")
    assert main([str(bad)]) == 2
    assert capsys.readouterr() == ("", f"error: {bad}: entry 1: Object contains unknown field `txt`\n")
    with serve_in_thread([]) as server:
        assert main([str(good), "--port", str(urlsplit(server.base_url).port)]) == 2
    assert "cannot serve on port" in capsys.readouterr().err
