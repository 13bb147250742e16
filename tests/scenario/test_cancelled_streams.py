"""Cancelling a request closes its socket in every phase of the request, without a wait. Real sockets on loopback."""

import asyncio
import json
import socket
from contextlib import aclosing, asynccontextmanager

import pytest

from bradawl.core.deltas import ReplyEnded, RetryScheduled, StreamFailed, TextDelta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin, Text, User
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.deadlines import Deadlines
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.workspace.machine import SystemClock, SystemIds
from patience import no_wait

ADAPTERS = pytest.mark.parametrize("adapter", [DirectHttp, Httpx2Http], ids=["direct", "httpx2"])
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(text: str, finish: str | None = None) -> bytes:
    value = {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}
    return framed(f"data: {json.dumps(value)}\n\n".encode())


def framed(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class Server:
    """Reads one request per connection, answers with `answer(writer)`, and records when the client disconnects."""

    def __init__(self, answer):
        self._answer = answer
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 22)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            self.asked.set()
            await self._answer(writer, json.loads(body))
            while await reader.read(65536):
                pass
            self.left.set()
        except (ConnectionError, EOFError):
            self.left.set()
        finally:
            writer.close()


def model_at(url, adapter, **deadlines):
    target = ModelEndpoint(OpenAIChat(url), Endpoint("demo", url, "m"), deadlines=Deadlines(**deadlines))
    return HttpModel(target, adapter(), SystemClock(), SystemIds(), ModelInfo(Origin("openai_chat", "demo", "m")))


def stream_of(model, text="Hi", budget=None):
    session = model.open(Prefix("", ()))
    session.append(User((Text(text),)))
    return session.stream(RequestParams(), budget or RetryBudget())


async def collect(stream, reached=None, kind=None):
    deltas = []
    async with aclosing(stream):
        async for delta in stream:
            deltas.append(delta)
            if kind is not None and isinstance(delta, kind):
                reached.set()
    return deltas


async def cancel(task: asyncio.Task, left: asyncio.Event | None = None) -> None:
    """Cancel the task, and wait until it has ended and its server has seen the connection close."""
    with no_wait():
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if left is not None:
            await left.wait()


async def silence(_writer, _body):
    pass


async def half_a_reply(writer, _body):
    writer.write(HEAD + event("Hel"))
    await writer.drain()


async def busy(writer, _body):
    writer.write(b"HTTP/1.1 503 Busy\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()


async def cancel_when(adapter, answer, kind=None, *, wants_left=True):
    async with Server(answer).running() as server:
        model = model_at(server.url, adapter)
        reached = asyncio.Event()
        task = asyncio.ensure_future(collect(stream_of(model), reached, kind))
        await (server.asked if kind is None else reached).wait()
        await asyncio.sleep(0.02)
        await cancel(task, server.left if wants_left else None)
        await model.aclose()


@ADAPTERS
async def test_cancelling_before_the_server_answers(adapter):
    await cancel_when(adapter, silence)


@ADAPTERS
async def test_cancelling_in_the_middle_of_a_reply(adapter):
    await cancel_when(adapter, half_a_reply, TextDelta)


@ADAPTERS
async def test_cancelling_while_waiting_for_a_retry(adapter):
    # The connection of the refused request may stay open for the next one. Only the wait has to end at once.
    await cancel_when(adapter, busy, RetryScheduled, wants_left=False)


@ADAPTERS
async def test_cancelling_while_connecting(adapter):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = []
    try:
        for _ in range(4):  # fills the queue of a server that accepts no connection
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
            waiting.append(one)
        model = model_at(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", adapter)
        task = asyncio.ensure_future(collect(stream_of(model)))
        await asyncio.sleep(0.05)
        assert not task.done()
        await cancel(task)
        await model.aclose()
    finally:
        for one in (*waiting, listener):
            one.close()


@ADAPTERS
async def test_closing_the_stream_early_closes_the_connection(adapter):
    async with Server(half_a_reply).running() as server:
        model = model_at(server.url, adapter)
        stream = stream_of(model)
        async for delta in stream:
            if isinstance(delta, TextDelta):
                break
        with no_wait():
            await stream.aclose()
            await server.left.wait()
        await model.aclose()


# ------------------------------------------------------------------ deadlines on real sockets


async def answered_with(adapter, answer, **deadlines):
    async with Server(answer).running() as server:
        model = model_at(server.url, adapter, **deadlines)
        deltas = await collect(stream_of(model, budget=RetryBudget(attempts=1)))
        await model.aclose()
        return deltas


@ADAPTERS
async def test_comments_keep_a_stream_alive(adapter):
    async def answer(writer, _body):
        writer.write(HEAD + event("Hel"))
        for _ in range(12):
            await asyncio.sleep(0.05)
            writer.write(framed(b": keep-alive\n\n"))
        writer.write(event("lo", "stop") + framed(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()

    deltas = await answered_with(adapter, answer, first_byte_s=5, idle_s=0.5)
    assert isinstance(deltas[-1], ReplyEnded)


@ADAPTERS
async def test_a_stream_without_bytes_times_out(adapter):
    deltas = await answered_with(adapter, half_a_reply, first_byte_s=5, idle_s=0.1)
    assert isinstance(deltas[-1], StreamFailed)
    assert (deltas[-1].failure.kind, deltas[-1].failure.retryable) == ("timeout", True)
    assert "silent for 0.1 s" in deltas[-1].failure.message


@ADAPTERS
async def test_headers_without_a_body_time_out_after_the_limit_for_the_first_byte(adapter):
    async def answer(writer, _body):
        writer.write(HEAD)
        await writer.drain()

    deltas = await answered_with(adapter, answer, connect_s=0.05, first_byte_s=0.1, idle_s=60)
    assert isinstance(deltas[-1], StreamFailed)
    assert "sent nothing for 0.1 s" in deltas[-1].failure.message


# ------------------------------------------------------------------ concurrent streams


@ADAPTERS
async def test_concurrent_streams_do_not_mix(adapter):
    async def answer(writer, body):
        word = body["messages"][-1]["content"]
        writer.write(HEAD)
        for number in range(20):
            writer.write(event(f"{word}.{number} "))
            await writer.drain()
            await asyncio.sleep(0.001)
        writer.write(event("", "stop") + framed(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()

    async def go():
        async with Server(answer).running() as server:
            model = model_at(server.url, adapter)
            async with asyncio.TaskGroup() as group:
                tasks = {f"w{n}": group.create_task(collect(stream_of(model, f"w{n}"))) for n in range(30)}
            await model.aclose()
        return {
            word: "".join(delta.text for delta in task.result() if isinstance(delta, TextDelta))
            for word, task in tasks.items()
        }

    for word, text in (await go()).items():
        assert text == "".join(f"{word}.{number} " for number in range(20))
