"""The replay server plays what was recorded, byte for byte."""

import asyncio
import socket

import pytest

from bradawl.testing.replay import Recording, ReplayServer


def played(*recordings, requests=None):
    """What one connection receives, one list of reads per request."""

    async def go():
        async with ReplayServer(recordings) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.base_url.rpartition(":")[2]))
            received = []
            try:
                for number in range(requests or len(recordings)):
                    writer.write(b"POST /p/%d?q=1 HTTP/1.1\r\ncontent-length: 2\r\nX-A: b\r\n\r\n{}" % number)
                    received.append(await read_one(reader))
            finally:
                writer.close()
        return received, server

    return asyncio.run(go())


async def read_one(reader):
    """A response: its head, its chunks, and whether the connection broke."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"chunked" not in head:
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length" in line), 0)
        return head, [await reader.readexactly(length)], "eof"
    chunks = []
    try:
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            chunks.append((await reader.readexactly(size + 2))[:-2])
    except ConnectionResetError:
        return head, chunks, "reset"
    await reader.readexactly(2)
    return head, chunks, "eof"


def test_a_body_is_flushed_where_it_was_cut():
    ((head, chunks, end), second), server = played(Recording(b"abcdef", (2, 3, 99)), Recording(b"", status=529))
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"text/event-stream" in head
    assert (chunks, end) == ([b"ab", b"c", b"def"], "eof")
    assert second[0].startswith(b"HTTP/1.1 529 ") and second[1] == []
    assert server.connections == 1
    assert [(one.method, one.path, one.headers["x-a"], one.body) for one in server.requests] == [
        ("POST", f"/p/{number}?q=1", "b", b"{}") for number in range(2)
    ]


def test_a_reset_comes_behind_the_last_byte():
    async def go():
        async with ReplayServer([Recording(b"abc", (1,), "reset")]) as server:
            port = int(server.base_url.rpartition(":")[2])
            return await asyncio.to_thread(read_until_reset, port)

    data = asyncio.run(go())
    assert data.endswith(b"\r\n2\r\nbc\r\n")


def read_until_reset(port):
    """Everything that came before the connection was reset."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        data = b""
        with pytest.raises(ConnectionResetError):
            while piece := sock.recv(65536):
                data += piece
    return data


def test_a_body_without_framing_ends_with_the_connection():
    async def go():
        async with ReplayServer([Recording(b"abc", is_framed=False)]) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.base_url.rpartition(":")[2]))
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            data = await reader.read()
            writer.close()
            return data

    head, _, body = asyncio.run(go()).partition(b"\r\n\r\n")
    assert b"chunked" not in head and body == b"abc"


def test_past_the_last_recording_there_is_an_error():
    (_, (head, (body,), _)), _ = played(Recording(b"x"), requests=2)
    assert head.startswith(b"HTTP/1.1 500 ") and b"nothing more was recorded" in body


def test_the_answer_may_depend_on_the_request():
    async def go():
        async with ReplayServer(lambda request: Recording(request.path.encode())) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.base_url.rpartition(":")[2]))
            writer.write(b"GET /here HTTP/1.1\r\n\r\n")
            answer = await read_one(reader)
            writer.close()
            return answer

    assert asyncio.run(go())[1] == [b"/here"]


def test_silence_lasts_until_the_server_ends():
    async def go():
        async with ReplayServer([Recording(b"abc", then="silence")]) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.base_url.rpartition(":")[2]))
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"abc\r\n")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
        rest = await reader.read()
        writer.close()
        return rest

    assert asyncio.run(go()) == b""
