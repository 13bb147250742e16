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

from bradawl.testing.script import ScriptError
from bradawl.testing.server import WireServer, main, serve_in_thread
from patience import is_within

PROMPT = {"role": "user", "content": "fix it"}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
CALLS = [
    {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}},
    {"id": "b", "type": "function", "function": {"name": "y", "arguments": "{}"}},
]


def body_of(*messages, **more):
    return {"model": "m", "messages": list(messages or (PROMPT,)), **more}


@contextlib.contextmanager
def connect(server):
    """A keep-alive connection."""
    port = urlsplit(server.base_url).port
    assert port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
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


def test_a_streamed_reply_looks_like_openai_sends_it(wire_server):
    entry = {
        "thinking": "let me see",
        "text": "I read both files.",
        "tool_calls": [
            {"name": "read_file", "arguments": {"file_path": "a/rather/long/path.py"}},
            {"name": "glob", "arguments": ""},
        ],
        "usage": {"input": 10, "cache_read": 5, "cache_write": 2, "output": 7, "reasoning": 3},
    }
    response, data = ask(wire_server([entry]), body_of(**STREAM))
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    events = events_of(data)
    assert {(event["id"], event["object"], event["model"]) for event in events} == {
        ("chatcmpl-1", "chat.completion.chunk", "m")
    }
    deltas = deltas_of(data)
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "let me see"
    assert "".join(delta.get("content", "") for delta in deltas) == "I read both files."
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    first = [call for call in calls if call["index"] == 0]
    assert first[0] == {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "read_file", "arguments": ""},
    }
    assert len(first) > 3
    assert json.loads("".join(call["function"]["arguments"] for call in first)) == {
        "file_path": "a/rather/long/path.py"
    }
    assert [call["id"] for call in calls if call["index"] == 1] == ["call_2"]
    assert [event["choices"][0]["finish_reason"] for event in events[:-1] if event["choices"][0]["finish_reason"]] == [
        "tool_calls"
    ]
    assert all(event["usage"] is None for event in events[:-1])
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == {
        "prompt_tokens": 17,
        "completion_tokens": 7,
        "total_tokens": 24,
        "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }


@pytest.mark.parametrize("body", [body_of(stream=True), body_of(**STREAM)])
def test_usage_is_streamed_only_if_asked_for_and_known(wire_server, body):
    server = wire_server([{"text": "x", "usage": {"input": 1} if "stream_options" not in body else None}])
    _, data = ask(server, body)
    assert not any(event.get("usage") for event in events_of(data))


def test_without_stream_the_reply_is_one_document(wire_server):
    entry = {"thinking": "hm", "tool_calls": [{"name": "x", "arguments": "{oops"}], "usage": {"output": 2}}
    response, data = ask(wire_server([entry]), body_of())
    assert response.headers["content-type"] == "application/json"
    reply = json.loads(data)
    [choice] = reply["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "x", "arguments": "{oops"}}],
    }
    assert reply["usage"]["total_tokens"] == 2


def test_one_connection_serves_many_requests(wire_server):
    server = wire_server([{"text": str(n)} for n in range(50)])
    with connect(server) as connection:
        for n in range(50):
            _, data = post(connection, body_of(stream=bool(n % 2)))
            assert str(n).encode() in data
    assert server.connections == 1
    assert len(server.requests) == len(server.headers) == 50
    assert server.requests[0] == body_of(stream=False)
    assert server.headers[0]["content-type"] == "application/json"


def test_parallel_connections_share_the_script(wire_server):
    server = wire_server([{"text": "one"}, {"text": "two"}])
    with connect(server) as first, connect(server) as second:
        assert b"one" in post(first, body_of())[1]
        assert b"two" in post(second, body_of())[1]
    assert server.connections == 2


def test_models_are_listed_and_other_places_are_not_there(wire_server):
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
    server = wire_server([{"text": "slow down", "faults": faults}, {"faults": {"status": 599}}, {"text": "ok"}])
    with connect(server) as connection:
        response, data = post(connection, body_of(**STREAM))
        assert (response.status, response.headers["retry-after"], response.headers["x-request-id"]) == (429, "2", "r1")
        assert json.loads(data)["error"] == {
            "message": "slow down",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit_exceeded",
        }
        assert post(connection, body_of())[0].status == 599
        assert post(connection, body_of())[0].status == 200
    assert server.connections == 1
    assert server.failures == []


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_leaves_the_connection_usable(wire_server, status):
    with connect(wire_server([{"faults": {"status": status}}, {"text": "next"}])) as connection:
        response, data = post(connection, body_of())
        assert (response.status, data) == (status, b"")
        assert b"next" in post(connection, body_of())[1]


def raw_exchange(server, body):
    """All bytes the server sends, from a bare socket."""
    data = json.dumps(body).encode()
    address = urlsplit(server.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        sock.shutdown(socket.SHUT_WR)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    return got


def unchunked(raw):
    """The body of a chunked response as far as it came, and whether its end came too."""
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
def test_a_cut_stream_ends_after_exactly_so_many_bytes(wire_server, chunk_bytes):
    entry = {"text": "some words", "tool_calls": [{"id": "call_1", "name": "x", "arguments": {"a": "b"}}]}
    whole = whole_stream(entry)
    limits = [0, 1, 100, len(whole) - 1, len(whole)]
    server = wire_server([entry | {"faults": {"cut_at_byte": n, "chunk_bytes": chunk_bytes}} for n in limits])
    for n in limits:
        body, has_ended = unchunked(raw_exchange(server, body_of(**STREAM)))
        assert body.replace(b"chatcmpl-%d" % (limits.index(n) + 1), b"chatcmpl-1") == whole[:n]
        assert not has_ended


def test_a_cut_behind_the_end_cuts_nothing(wire_server):
    entry = {"text": "x"}
    server = wire_server([entry | {"faults": {"cut_at_byte": len(whole_stream(entry)) + 1}}])
    assert ask(server, body_of(**STREAM))[1] == whole_stream(entry)


def test_a_cut_document_is_incomplete(wire_server):
    server = wire_server([{"text": "long enough", "faults": {"cut_at_byte": 20}}])
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(server, body_of())
    assert len(caught.value.partial) == 20


def test_pieces_have_the_size_asked_for(wire_server):
    entry = {"text": "wörds"}
    server = wire_server([entry | {"faults": {"chunk_bytes": 5}}])
    raw = raw_exchange(server, body_of(**STREAM))
    assert unchunked(raw) == (whole_stream(entry), True)
    sizes = {int(line, 16) for line in raw.partition(b"\r\n\r\n")[2].split(b"\r\n")[::2] if line}
    assert max(sizes) == 5


def test_a_delayed_answer_comes_late_but_does_not_hold_up_the_end():
    began = time.monotonic()
    with serve_in_thread([{"text": "x", "faults": {"delay_ms": 60}}, {"faults": {"delay_ms": 60_000}}]) as server:
        assert ask(server, body_of())[0].status == 200
        assert time.monotonic() - began >= 0.06
        with connect(server) as connection:
            connection.request("POST", "/v1/chat/completions", json.dumps(body_of()).encode())
    assert is_within(time.monotonic() - began, 10)


# ---------------------------------------------------------------- what is refused


def test_a_request_past_the_end_is_refused_and_kept(wire_server):
    server = wire_server([{"text": "x"}])
    ask(server, body_of())
    response, data = ask(server, body_of(**STREAM))
    assert response.status == 400
    assert json.loads(data)["error"]["message"] == "script has 1 entry, and request 2 came"
    assert server.failures == ["script has 1 entry, and request 2 came"]
    server.failures.clear()


def test_expect_looks_at_everything_after_the_last_reply(wire_server):
    server = wire_server([{"expect": "one"}, {"expect": "two"}, {"expect": "three"}, {"expect": "fix it"}])
    messages = (
        {"role": "system", "content": "be brief"},
        PROMPT,
        {"role": "assistant", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": [{"type": "text", "text": "three"}, {"type": "image_url", "image_url": {}}]},
    )
    for status in (200, 200, 200, 400):
        response, data = ask(server, body_of(*messages))
        assert response.status == status
    [failure] = server.failures
    assert "'fix it'" in failure
    assert "one\\ntwo\\nthree" in failure
    assert json.loads(data)["error"]["message"] == failure
    server.failures.clear()


ANSWER_A = {"role": "tool", "tool_call_id": "a", "content": "x"}
ANSWER_B = {"role": "tool", "tool_call_id": "b", "content": "x"}
REPLY = {"role": "assistant", "content": None, "tool_calls": CALLS}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "can't be read"),
        (b"\xff", "can't be read"),
        ({"messages": [PROMPT]}, "missing required field `model`"),
        ({"model": "m"}, "missing required field `messages`"),
        ({"model": "m", "messages": []}, "messages is empty"),
        (body_of({"role": "robot", "content": "x"}), "messages[0] has the unknown role 'robot'"),
        (body_of(PROMPT, REPLY), "no answer to a, b"),
        (body_of(PROMPT, REPLY, ANSWER_A), "no answer to b"),
        (body_of(PROMPT, REPLY, ANSWER_A, PROMPT, ANSWER_B), "no answer to b"),
        (body_of(PROMPT, REPLY, PROMPT), "no answer to a, b"),
        (body_of(PROMPT, REPLY, ANSWER_A, ANSWER_A), "messages[3] answers 'a'"),
        (body_of(PROMPT, ANSWER_A), "messages[1] answers 'a'"),
        (body_of(PROMPT, REPLY | {"tool_calls": [CALLS[0], CALLS[0]]}), "two calls with the same id"),
        (
            body_of(
                PROMPT, {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": {}}}]}
            ),
            "arguments",
        ),
        (body_of(tools=[{"type": "function", "function": {"name": "no spaces"}}]), "the tool name 'no spaces'"),
    ],
)
def test_a_request_a_real_server_would_refuse_is_refused_and_takes_no_entry(wire_server, body, said):
    server = wire_server([{"text": "still here"}])
    response, data = ask(server, body)
    assert response.status == 400
    message = json.loads(data)["error"]["message"]
    assert said in message
    assert server.failures == [message]
    server.failures.clear()
    assert b"still here" in ask(server, body_of(PROMPT, REPLY, ANSWER_B, ANSWER_A, PROMPT))[1]


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
def test_what_is_not_http_gets_a_400_and_the_server_goes_on(wire_server, raw):
    server = wire_server([{"text": "x"}])
    address = urlsplit(server.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
        with contextlib.suppress(ConnectionError):  # the server need not read what it refuses
            sock.sendall(raw)
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")
    assert ask(server, body_of())[0].status == 200


def test_chunked_requests_and_expect_continue_are_understood(wire_server):
    server = wire_server([{"text": "x"}])
    data = json.dumps(body_of()).encode()
    address = urlsplit(server.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
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


# ---------------------------------------------------------------- coming and going


def test_a_client_that_leaves_does_no_harm(wire_server):
    server = wire_server([{"text": "word " * 400, "faults": {"chunk_bytes": 1}}, {"text": "next"}])
    address = urlsplit(server.base_url)
    data = json.dumps(body_of(stream=True)).encode()
    with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        assert sock.recv(10)
    with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
    assert b"next" in ask(server, body_of())[1]


def test_leaving_ends_idle_waiting_and_half_sent_exchanges_at_once():
    async def run():
        async with WireServer([{"faults": {"delay_ms": 60_000}}]) as server:
            address = urlsplit(server.base_url)
            opened = [await asyncio.open_connection(address.hostname, address.port) for _ in range(3)]
            data = json.dumps(body_of()).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(data)
            opened[1][1].write(head)
            opened[2][1].write(head + data)
            while not server.requests:  # noqa: ASYNC110 - the server tells nobody when a request came
                await asyncio.sleep(0)
        for _, writer in opened:
            writer.close()
        return server, [await reader.read() for reader, _ in opened]

    began = time.monotonic()
    server, received = asyncio.run(run())
    assert received == [b"", b"", b""]
    assert is_within(time.monotonic() - began, 4)
    assert server.connections == 3


def test_a_taken_port_is_an_os_error():
    with serve_in_thread([]) as server:
        port = urlsplit(server.base_url).port

        async def again():
            async with WireServer([], port=port or 0):
                pass

        with pytest.raises(OSError):
            asyncio.run(again())


def test_a_wrong_script_is_refused_before_anything_is_served():
    with pytest.raises(ScriptError), serve_in_thread(b"{}"):
        pass


# ---------------------------------------------------------------- as a program


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
def test_the_program_serves_until_it_is_told_to_end(tmp_path, way):
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


def test_the_program_tells_what_is_wrong_with_its_script(capsys, tmp_path):
    path = tmp_path / "script.json"
    path.write_text('[{"txt": 1}]')
    assert main([str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"error: {path}: entry 1: Object contains unknown field `txt`\n"
    assert captured.out == ""


def test_the_program_tells_that_its_port_is_taken(capsys, tmp_path):
    path = tmp_path / "script.json"
    path.write_text("[]")
    with serve_in_thread([]) as server:
        assert main([str(path), "--port", str(urlsplit(server.base_url).port)]) == 2
    assert "cannot serve on port" in capsys.readouterr().err
