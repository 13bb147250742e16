"""`ReplayServer` sends recorded responses byte for byte."""

import asyncio

import pytest

from bradawl.testing.replay import Recording, ReplayServer

GET = b"GET /here?q=1 HTTP/1.1\r\ncontent-length: 2\r\nX-A: b\r\n\r\n{}"


async def connect(server):
    return await asyncio.open_connection("127.0.0.1", int(server.base_url.rpartition(":")[2]))


async def read_one(reader):
    """A response: its head, its chunks, and how the connection ended."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"chunked" not in head:
        return head, [await reader.read(1000)], "eof"
    chunks = []
    try:
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            chunks.append((await reader.readexactly(size + 2))[:-2])
    except ConnectionResetError:
        return head, chunks, "reset"
    await reader.readexactly(2)
    return head, chunks, "eof"


async def test_responses_come_in_order_in_their_pieces_and_requests_are_recorded():
    recordings = [Recording(b"abcdef", (2, 3, 99)), Recording(status=529), Recording(b"abc", (1,), "reset")]
    async with ReplayServer([*recordings, Recording(b"abc", then="silence")]) as server:
        reader, writer = await connect(server)
        seen = []
        for _ in recordings:
            writer.write(GET)
            seen.append(await read_one(reader))
        reader, writer = await connect(server)
        writer.write(GET)
        await reader.readuntil(b"abc\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
    assert await reader.read() == b"", "silence lasts until the server ends"
    writer.close()
    (head, *good), (odd, *nothing), (_, *broken) = seen
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"text/event-stream" in head
    assert odd.startswith(b"HTTP/1.1 529 ")
    assert (good, nothing, broken) == ([[b"ab", b"c", b"def"], "eof"], [[], "eof"], [[b"a", b"bc"], "reset"])
    assert server.connections == 2
    seen = {(one.method, one.path, one.headers["x-a"], one.body) for one in server.requests}
    assert seen == {("GET", "/here?q=1", "b", b"{}")} and len(server.requests) == 4


@pytest.mark.parametrize(
    ("recordings", "status", "body"),
    [
        ([Recording(b"abc", is_framed=False)], b"200", b"abc"),
        ([], b"500", b"nothing more was recorded"),
        (lambda request: Recording(request.path.encode(), is_framed=False), b"200", b"/here?q=1"),
    ],
    ids=["without framing", "past the end", "by a function"],
)
async def test_responses_without_framing_past_the_end_and_by_a_function(recordings, status, body):
    async with ReplayServer(recordings) as server:
        reader, writer = await connect(server)
        writer.write(GET)
        head, (got,), _ = await read_one(reader)
        writer.close()
    assert head.startswith(b"HTTP/1.1 " + status) and body in got
