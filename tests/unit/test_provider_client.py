"""`HttpModel` sends requests, decodes replies and retries failures; here with single HTTP exchanges."""

import asyncio
import json
from contextlib import aclosing, asynccontextmanager

import pytest
from scripted_client import KEY, ask, chunk, failure_in, model_of, retries_in

from bradawl.core.deltas import PartClosed, ReplyEnded, TextDelta
from bradawl.core.events import RequestParams
from bradawl.core.http import HttpError
from bradawl.core.messages import Origin, Text, User
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.failures import ConnectionRefused
from bradawl.providers.messages.codec import AnthropicMessages
from bradawl.testing.fakes import FakeClock, FakeIds

EVENTS = {"content-type": "text/event-stream"}


def events(*values, done=True):
    lines = [f"data: {json.dumps(value)}\n\n".encode() for value in values]
    return [*lines, b"data: [DONE]\n\n"] if done else lines


GOOD = events(chunk("Hello"), chunk("", "stop"))


class FakeResponse:
    """A response whose chunks are bytes, exceptions to raise, or events to wait for; counts the unread ones."""

    def __init__(self, status, headers, chunks):
        self.status, self.headers, self._chunks = status, headers, chunks
        self.unread = len(chunks)

    async def chunks(self):
        for piece in self._chunks:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            self.unread -= 1
            yield piece


class FakeHttp:
    """Answers requests with the given responses, in order."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.requests = []
        self.responses = []
        self.open_streams = 0
        self.is_closed = False

    @asynccontextmanager
    async def stream(self, request):
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        response = FakeResponse(*answer)
        self.responses.append(response)
        self.open_streams += 1
        try:
            yield response
        finally:
            self.open_streams -= 1

    async def aclose(self):
        self.is_closed = True


async def run(http, budget=None, **fields):
    """All deltas of one step."""
    return await ask(model_of(http, **fields), budget=budget)


async def test_a_reply_is_streamed_to_its_end():
    http = FakeHttp((200, EVENTS, GOOD))
    deltas = await run(http)
    assert TextDelta(0, "Hello") in deltas
    assert PartClosed(0, Text("Hello")) in deltas
    assert deltas[-1] == ReplyEnded("end_turn", "stop")
    request = http.requests[0]
    assert request.url == "https://api.demo.example/v1/chat/completions"
    assert json.loads(b"".join(request.body))["messages"][-1] == {"role": "user", "content": "Hi"}


async def test_the_response_is_read_to_its_end_and_closed_before_the_last_delta():
    http = FakeHttp((200, EVENTS, [*GOOD, b"\n"]))
    async with aclosing(model_of(http).open(Prefix("", ())).stream(RequestParams(), RetryBudget())) as deltas:
        at_end = [(http.open_streams, http.responses[0].unread) async for delta in deltas if type(delta) is ReplyEnded]
    assert at_end == [(0, 0)]


async def test_a_server_that_does_not_end_its_finished_response_is_not_waited_for():
    http = FakeHttp((200, EVENTS, [*GOOD, asyncio.Event()]))
    assert isinstance((await run(http))[-1], ReplyEnded)


async def test_closing_the_iterator_ends_the_exchange():
    http = FakeHttp((200, EVENTS, [GOOD[0], asyncio.Event()]))
    deltas = model_of(http).open(Prefix("", ())).stream(RequestParams(), RetryBudget())
    async for delta in deltas:
        if isinstance(delta, TextDelta):
            break
    await deltas.aclose()
    assert http.open_streams == 0


async def test_cancelling_ends_the_exchange():
    http = FakeHttp((200, EVENTS, [GOOD[0], asyncio.Event()]))
    shown = asyncio.Event()

    async def consume():
        async for delta in model_of(http).open(Prefix("", ())).stream(RequestParams(), RetryBudget()):
            if isinstance(delta, TextDelta):
                shown.set()

    task = asyncio.ensure_future(consume())
    await shown.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert http.open_streams == 0


@pytest.mark.parametrize(
    "bad",
    [
        (503, {}, [b"busy"]),
        (429, {"retry-after": "2"}, [b'{"error":{"message":"slow down"}}']),
        (200, EVENTS, events({"error": {"message": "overloaded", "code": 529}}, done=False)),
        (200, EVENTS, []),
        (200, EVENTS, [b"data: [DONE]\n\n"]),
        (200, {"content-type": "application/json"}, [b'{"choices":null}']),
        (200, EVENTS, [HttpError("connection", "reset")]),
        HttpError("timeout", "silent"),
        ConnectionRefused("refused"),
    ],
    ids=str,
)
async def test_a_failure_before_the_first_content_is_retried(bad):
    clock = FakeClock(is_eager=True)
    deltas = await run(FakeHttp(bad, (200, EVENTS, GOOD)), clock=clock)
    assert [delta.attempt for delta in retries_in(deltas)] == [1]
    assert clock.slept == [retries_in(deltas)[0].delay_s]
    assert isinstance(deltas[-1], ReplyEnded)


async def test_the_delay_is_what_the_server_asks_for():
    deltas = await run(FakeHttp((429, {"retry-after": "8"}, [b""]), (200, EVENTS, GOOD)))
    assert retries_in(deltas)[0].delay_s == 9.0


async def test_the_same_bytes_are_sent_again():
    http = FakeHttp((500, {}, [b""]), (200, EVENTS, GOOD))
    await run(http)
    assert http.requests[0].body == http.requests[1].body


@pytest.mark.parametrize(
    "end", [HttpError("connection", "reset"), b'data: {"error":{"message":"boom","code":500}}\n\n', b""]
)
async def test_nothing_is_retried_after_the_first_content(end):
    deltas = await run(FakeHttp((200, EVENTS, [*events(chunk("Hel"), done=False), end])))
    assert retries_in(deltas) == []
    assert failure_in(deltas).retryable is True


async def test_a_connection_that_breaks_after_the_finish_reason_loses_nothing():
    chunks = [*events(chunk("Hello", "stop"), done=False), HttpError("connection", "reset")]
    assert isinstance((await run(FakeHttp((200, EVENTS, chunks))))[-1], ReplyEnded)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request"), (401, "auth"), (402, "quota"), (404, "invalid_request")]
)
async def test_permanent_failures_are_not_retried(status, kind):
    http = FakeHttp((status, {}, [b'{"error":{"message":"no"}}']))
    failure = failure_in(await run(http))
    assert (failure.kind, failure.status, len(http.requests)) == (kind, status, 1)


async def test_attempts_are_bounded():
    http = FakeHttp(*[(500, {}, [b"x"])] * 3)
    assert failure_in(await run(http, RetryBudget(attempts=3))).kind == "server"
    assert len(http.requests) == 3


async def test_an_empty_reply_is_retried_twice_at_most():
    http = FakeHttp(*[(200, EVENTS, events({"choices": [{"delta": {}, "finish_reason": "stop"}]}))] * 3)
    failure = failure_in(await run(http))
    assert (failure.kind, len(http.requests)) == ("server", 3)


@pytest.mark.parametrize("finish", ["content_filter", "length"])
async def test_a_reply_that_is_empty_for_a_reason_is_a_reply(finish):
    chunks = events({"choices": [{"delta": {}, "finish_reason": finish}]})
    assert isinstance((await run(FakeHttp((200, EVENTS, chunks))))[-1], ReplyEnded)


async def test_a_refused_connection_to_this_machine_is_not_retried_and_has_a_hint():
    http = FakeHttp(ConnectionRefused("127.0.0.1 refused the connection."))
    failure = failure_in(await run(http, base_url="http://127.0.0.1:9/v1"))
    assert (failure.kind, failure.retryable) == ("connection", False)
    assert "running" in failure.hint


async def test_local_servers_may_take_longer_to_begin():
    near, far = FakeHttp((200, EVENTS, GOOD)), FakeHttp((200, EVENTS, GOOD))
    await run(near, base_url="http://localhost:1/v1")
    await run(far)
    assert near.requests[0].idle_timeout_s > far.requests[0].idle_timeout_s


async def test_a_json_document_instead_of_a_stream_is_a_reply():
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    deltas = await run(FakeHttp((200, {"content-type": "application/json"}, [json.dumps(body).encode()])))
    assert PartClosed(0, Text("Hi")) in deltas
    assert isinstance(deltas[-1], ReplyEnded)


async def test_a_stream_with_the_content_type_of_json_is_read_as_a_stream():
    deltas = await run(FakeHttp((200, {"content-type": "application/json"}, GOOD)))
    assert TextDelta(0, "Hello") in deltas
    assert isinstance(deltas[-1], ReplyEnded)


async def test_a_web_page_is_a_failure_with_a_hint_on_the_base_url():
    page = b"<html><body><h1>Welcome</h1></body></html>"
    failure = failure_in(await run(FakeHttp((200, {"content-type": "text/html; charset=utf-8"}, [page]))))
    assert (failure.kind, failure.retryable) == ("server", False)
    assert "Welcome" in failure.message
    assert "base URL" in failure.hint


@pytest.mark.parametrize("base_url", ["ftp://h/v1", "h/v1", "https://", "https://a b/v1", ""])
async def test_an_invalid_base_url_is_a_failure_without_a_request(base_url):
    http = FakeHttp()
    failure = failure_in(await run(http, base_url=base_url))
    assert (failure.kind, http.requests) == ("invalid_request", [])


@pytest.mark.parametrize("key", ["sk-abc\n", "sk-\u2013abc", "sk-\x00"])
async def test_a_key_that_cannot_be_a_header_is_a_failure_that_does_not_show_it(key):
    failure = failure_in(await run(FakeHttp(), key=key))
    assert failure.kind == "auth"
    assert "abc" not in str(failure)


async def test_the_key_is_in_no_failure():
    bodies = [
        (401, {}, [json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()]),
        HttpError("connection", f"can't reach https://user:{KEY}@host/"),
    ]
    for answer in bodies:
        deltas = await run(FakeHttp(answer), RetryBudget(attempts=1))
        assert KEY not in repr(deltas)


async def test_a_rejected_key_names_the_variable():
    failure = failure_in(await run(FakeHttp((401, {}, [b""]))))
    assert "DEMO_API_KEY" in failure.hint


async def test_an_unknown_model_is_a_failure_with_a_hint_on_choosing_one():
    failure = failure_in(await run(FakeHttp((404, {}, [b'{"error":{"message":"model not found"}}']))))
    assert "-m" in failure.hint


async def test_a_refused_field_is_left_out_and_the_request_sent_again():
    refusal = b'{"error":{"message":"stream_options is not supported"}}'
    http = FakeHttp((400, {}, [refusal]), (200, EVENTS, GOOD))
    assert isinstance((await run(http))[-1], ReplyEnded)
    assert ["stream_options" in json.loads(b"".join(r.body)) for r in http.requests] == [True, False]


async def test_a_refused_header_is_left_out_without_counting_as_an_attempt():
    refusal = {"error": {"type": "invalid_request_error", "message": "anthropic-beta is not supported"}}
    reply = (
        {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    )
    report = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in reply]
    http = FakeHttp((400, {}, [json.dumps(refusal).encode()]), (200, EVENTS, report))
    url, name = "https://api.anthropic.com/v1", "claude-sonnet-4-5"
    target = ModelEndpoint(AnthropicMessages(url), Endpoint("anthropic", url, name, "k"))
    info = ModelInfo(Origin("anthropic_messages", "anthropic", name))
    model = HttpModel(target, http, FakeClock(is_eager=True), FakeIds(), info)
    session = model.open(Prefix("", ()))
    session.append(User((Text("Hi"),)))
    deltas = [delta async for delta in session.stream(RequestParams(effort="high"), RetryBudget(attempts=1))]
    assert isinstance(deltas[-1], ReplyEnded)
    assert ["anthropic-beta" in dict(request.headers) for request in http.requests] == [True, False]


async def test_two_sessions_of_one_model_have_separate_messages():
    http = FakeHttp((200, EVENTS, GOOD), (200, EVENTS, GOOD))
    model = model_of(http)
    for name in ("one", "two"):
        session = model.open(Prefix("", ()))
        session.append(User((Text(name),)))
        assert len(session.prefix_hash()) == 64
        async for _ in session.stream(RequestParams(), RetryBudget()):
            pass
    await model.aclose()
    assert http.is_closed
    sent = [json.loads(b"".join(request.body))["messages"] for request in http.requests]
    assert sent == [[{"role": "user", "content": "one"}], [{"role": "user", "content": "two"}]]
