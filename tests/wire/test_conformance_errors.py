"""Points 76 to 92 of the conformance list: failures, retries, cancellation, secrets, and moving between providers."""

import asyncio
import json
import math
import re
import time
from contextlib import aclosing, suppress

import pytest

from bradawl.app.settings.load import load_settings
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.proxy import proxy_for
from bradawl.core.deltas import ReplyEnded, RetryScheduled, StreamFailed, TextDelta, ThinkingDelta
from bradawl.core.errors import Failure
from bradawl.core.events import AssistantReplied, ReplyWithdrawn
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.messages import Assistant, Text, ToolCall
from bradawl.core.retry import BASE_S, CAP_S, RetryBudget, next_delay
from bradawl.providers.codec import Endpoint
from bradawl.providers.debug_log import DebugLog
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.testing.fakes import FakeClock
from bradawl.testing.replay import Recording, ReplayServer
from patience import no_wait
from scenario.scripted_agent import build, call, results
from wire.exchange import ADAPTERS, model_at
from wire.exchange import ask as exchange
from wire.points import APIS, CHAT, answers_to, ask, body_of, chat_stream, error_event, sample, text_of, text_stream
from wire.points import wire as format_of

JSON = (("content-type", "application/json"),)
PATIENT = RetryBudget(attempts=6, deadline_s=600)


def error_of(api, status, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return format_of(api).new().error_of(status, {name.replace("_", "-"): text for name, text in headers.items()}, data)


def refusal(status, message="no", *, headers=(), **fields):
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error", **fields}})
    return Recording(body.encode(), status=status, headers=(*JSON, *headers))


async def served(api, recordings, *, budget=PATIENT, key="", debug_log=None):
    """The deltas of one step, the requests, and the clock."""
    clock = FakeClock(is_eager=True)

    async with ReplayServer(recordings) as server, aclosing(ADAPTERS["direct"]()) as http:
        model = model_at(format_of(api), server.base_url, http, clock=clock, key=key, debug_log=debug_log)
        return await exchange(model, budget=budget), server.requests, clock


def failure_in(deltas):
    assert isinstance(deltas[-1], StreamFailed)
    return deltas[-1].failure


# ------------------------------------------------------------------ 76 to 82: what failed, and when to ask again

ENVELOPES = [
    (404, {"error": {"message": "no such model", "type": "invalid_request_error", "code": "model_not_found"}}),
    (404, {"object": "error", "message": "no such model", "type": "NotFoundError", "code": 404}),
    (404, {"error": "no such model", "code": "not-found"}),
    (404, [{"error": {"code": 404, "message": "no such model", "status": "NOT_FOUND"}}]),
    (422, {"detail": [{"loc": ["body", "model"], "msg": "no such model", "type": "value_error"}]}),
    (404, {"detail": "no such model"}),
    (404, {"message": "no such model"}),
    (404, {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}),
    (400, {"code": "InvalidParameter", "message": "no such model", "request_id": "r-1"}),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("status", "body"), ENVELOPES)
def test_76_every_envelope_is_classified(api, status, body):
    failure = error_of(api, status, body)
    assert (failure.kind, failure.status, failure.retryable) == ("invalid_request", status, False)
    assert "no such model" in failure.message
    assert error_of(api, 500, b"<html><h1>Bad</h1></html>", content_type="text/html").kind == "server"
    assert error_of(api, 500, b"").retryable


OVERFLOWS = [
    {"message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."},
    {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"},
    {"message": "prompt is too long: 213462 tokens > 200000 maximum", "type": "invalid_request_error"},
    {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"},
    {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
    {"message": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."},
    {"message": "Please reduce the length of the messages or completion.", "code": "context_length_exceeded"},
    {"message": "Your request exceeded model token limit: 262144 (requested: 300000)"},
    {
        "message": "Prompt contains 40000 tokens and 0 draft tokens, "
        "too large for model with 32768 maximum context length"
    },
    {"message": "Range of input length should be [1, 129024]"},
    {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"},
    {"message": "Trying to keep the first 15857 tokens when context the overflows."},
    {"message": "Current length is 9000 while limit is 8192"},
    {"message": "Input tokens exceed the configured limit of 272000 tokens."},
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("error", OVERFLOWS)
def test_77_a_full_context_is_told_apart_and_tokens_per_minute_are_not_it(api, error):
    failure = error_of(api, 400, {"error": error})
    assert (failure.kind, failure.retryable) == ("context_overflow", False)
    groq = {"message": "Request too large: Limit 6000, Requested 9000 (TPM)", "type": "tokens"}
    limited = error_of(api, 413, {"error": {**groq, "code": "rate_limit_exceeded"}})
    assert (limited.kind, limited.retryable) == ("rate_limit", True)
    long = {"message": "Invalid 'user': string too long", "code": "string_above_max_length"}
    assert error_of(api, 400, {"error": long}).kind == "invalid_request"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("code", ["insufficient_quota", "exceeded_current_quota_error", "1113"])
async def test_78_an_exhausted_quota_is_not_retried(api, code):
    deltas, requests, clock = await served(api, [refusal(429, "You exceeded your current quota.", code=code)] * 3)
    assert failure_in(deltas).kind == "quota"
    assert len(requests) == 1 and not clock.slept
    assert error_of(api, 429, {"error": {"message": "slow", "code": "rate_limit_exceeded"}}).kind == "rate_limit"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.25"}, 0.25),
        ({"retry_after_ms": "1500", "retry_after": "99"}, 1.5),
        ({"retry_after": "Mon, 21 Sep 2026 14:13:40 GMT", "date": "Mon, 21 Sep 2026 14:13:20 GMT"}, 20.0),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "NaN"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "1e300"}, 1e300),
        ({"retry_after": "later"}, None),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_79_the_requested_delay_in_every_spelling(api, headers, seconds):
    failure = error_of(api, 429, {"error": {"message": "slow down"}}, **headers)
    assert failure.retry_after_s == seconds
    delay = next_delay(failure, 1, RetryBudget(), elapsed_s=0, draw=0.5)
    assert delay is None if seconds == 1e300 else delay is not None and math.isfinite(delay) and delay >= 0


@pytest.mark.parametrize("api", APIS)
async def test_80_a_requested_delay_beyond_the_cap_fails_at_once_and_is_reported(api):
    wait = refusal(429, "Slow down.", headers=(("retry-after", "1800"),))
    budget = RetryBudget(longest_wait_s=60)
    deltas, requests, clock = await served(api, [wait] * 3, budget=budget)
    assert len(requests) == 1 and not clock.slept
    assert re.search(r"1,?800 ?s|30 ?min", str(failure_in(deltas))), str(failure_in(deltas))


@pytest.mark.parametrize("api", APIS)
async def test_81_the_deadline_includes_the_waiting_time(api):
    wait = refusal(503, "Busy.", headers=(("retry-after", "4"),))
    deltas, requests, clock = await served(api, [wait] * 9, budget=RetryBudget(attempts=9, deadline_s=15))
    assert failure_in(deltas).kind == "overloaded"
    assert 2 <= len(requests) <= 4 and 4 <= sum(clock.slept) <= 15


def test_82_the_jitter_is_full_and_bounded():
    failure = Failure("server", "x", retryable=True)
    draws = [step / 200 for step in range(200)]
    budget = RetryBudget(attempts=99, deadline_s=1e9)
    for attempt in range(1, 40):
        delays = [next_delay(failure, attempt, budget, elapsed_s=0, draw=draw) for draw in draws]
        top = min(CAP_S, BASE_S * 2 ** (attempt - 1))
        assert min(delays) == 0 and max(delays) <= top and max(delays) > 0.99 * top
        assert sum(delays) / len(delays) == pytest.approx(top / 2, rel=0.02)


# ------------------------------------------------------------------ 83, 84: time


class WaitingClock:
    """A clock that signals when a task starts to sleep, and then really sleeps."""

    def __init__(self):
        self.is_waiting = asyncio.Event()

    def now_ms(self):
        return int(time.time() * 1000)

    def monotonic(self):
        return time.monotonic()

    async def sleep(self, seconds):
        self.is_waiting.set()
        await asyncio.sleep(seconds)


async def cancel(task):
    with no_wait():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert task.cancelled()


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("phase", ["sleep", "connect", "stream"])
async def test_83_cancelling_closes_the_socket_at_once(adapter, api, phase):
    gone, came = asyncio.Event(), asyncio.Event()
    clock, writers = WaitingClock(), []

    async def serve(reader, writer):
        writers.append(writer)
        # For `connect` the client starts TLS and gets no answer, for `stream` it gets half an event.
        await reader.read(1)
        if phase == "stream":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {")
        if phase == "sleep":
            writer.write(b"HTTP/1.1 429 Slow\r\nretry-after: 60\r\ncontent-length: 2\r\n\r\n{}")
        came.set()
        with suppress(OSError):
            while await reader.read(65536):
                pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    scheme = "https" if phase == "connect" else "http"
    try:
        async with aclosing(ADAPTERS[adapter]()) as http:
            model = model_at(format_of(api), f"{scheme}://127.0.0.1:{port}", http, clock=clock)
            task = asyncio.ensure_future(exchange(model, budget=PATIENT))
            await asyncio.wait_for((clock.is_waiting if phase == "sleep" else came).wait(), 10)
            await cancel(task)
            if phase != "sleep":  # a connection that served its answer may be kept
                await asyncio.wait_for(gone.wait(), 0.2)
        await asyncio.wait_for(gone.wait(), 5)
        assert task.cancelled()
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await server.wait_closed()


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_84_comments_keep_a_stream_alive_and_silence_does_not(adapter):
    async def go(*, talks):
        ended = asyncio.Event()

        async def serve(reader, writer):
            with suppress(OSError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                for _ in range(12 if talks else 0):
                    writer.write(b": keep-alive\n\n")
                    await asyncio.sleep(0.05)
                if talks:
                    writer.write(chat_stream("still here"))
                    await writer.drain()
                else:
                    await reader.read()
            writer.close()
            ended.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat/completions"
        body = b""
        try:
            async with aclosing(ADAPTERS[adapter]()) as http:
                request = HttpRequest("POST", url, (), (b"{}",), idle_timeout_s=0.25)
                async with http.stream(request) as response:
                    async for chunk in response.chunks():
                        body += chunk
        finally:
            await asyncio.wait_for(ended.wait(), 5)
            server.close()
            await server.wait_closed()
        return body

    assert (await go(talks=True)).endswith(b"data: [DONE]\n\n"), "0.6 s of comments with 0.25 s of patience"
    with pytest.raises(HttpError) as caught:
        await go(talks=False)
    assert caught.value.kind == "timeout"


# ------------------------------------------------------------------ 85 to 88: retries


@pytest.mark.parametrize("api", APIS)
async def test_85_an_error_before_any_content_is_retried_without_shown_text(api):
    deltas, requests, _ = await served(api, [Recording(error_event(api)), Recording(text_stream(api, "second try"))])
    assert [delta.failure.kind for delta in deltas if isinstance(delta, RetryScheduled)] == ["overloaded"]
    retried = next(place for place, delta in enumerate(deltas) if isinstance(delta, RetryScheduled))
    assert not [delta for delta in deltas[:retried] if isinstance(delta, TextDelta | ThinkingDelta)]
    assert text_of([delta for delta in deltas if not isinstance(delta, RetryScheduled)]) == "second try"
    assert len(requests) == 2 and requests[0].body == requests[1].body


async def turn(script):
    """A turn of the real agent: its result, messages, events in order, and the tool's log."""
    agent, model, probe = build(script)

    async with agent.open() as session:
        result = await session.run("go")
        events = [entry.event for entry in session.log.entries]
        return result, session.transcript.messages, events, model, probe


async def test_85_shown_text_is_withdrawn_before_the_retry():
    _, _, events, model, _ = await turn([{"text": "one two three", "faults": {"cut_at_byte": 6}}, {"text": "whole"}])
    kinds = [type(event) for event in events if isinstance(event, ReplyWithdrawn | AssistantReplied)]
    assert kinds == [ReplyWithdrawn, AssistantReplied] and len(model.requests) == 2


async def test_86_only_closed_calls_run_and_each_result_appears_once():
    reply = {"tool_calls": [call("closed", writes=["/p"]), call("open", writes=["/q" * 60])]}
    result, messages, events, _, probe = await turn([{**reply, "faults": {"cut_at_byte": 60}}, {"text": "went on"}])
    assert result.reason == "completed" and probe.log == ["+closed", "-closed"]
    assert results(messages) == ["did closed"]
    replied = [event for event in events if isinstance(event, AssistantReplied)]
    assert [event.cut for event in replied] == [True, False]
    calls = [
        part.id
        for message in messages
        if isinstance(message, Assistant)
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    assert calls == ["id_closed"]


@pytest.mark.parametrize("api", APIS)
async def test_87_an_empty_reply_is_retried_at_most_twice(api):
    empty = sample(45)[0] if api == "openai_chat" else text_stream(api, "")
    deltas, requests, _ = await served(api, [Recording(empty)] * 6)
    assert failure_in(deltas).kind == "server" and len(requests) == 3
    deltas, requests, _ = await served(api, [Recording(empty), Recording(text_stream(api, "there"))])
    assert isinstance(deltas[-1], ReplyEnded) and len(requests) == 2


async def test_88_a_field_the_server_does_not_know_is_left_out_permanently():
    unknown = refusal(400, "Unsupported parameter: 'stream_options' is not supported.", param="stream_options")
    good = Recording(chat_stream("fine"))

    clock = FakeClock(is_eager=True)
    async with (
        ReplayServer([unknown, good, good, unknown, unknown]) as server,
        aclosing(ADAPTERS["direct"]()) as http,
    ):
        model = model_at(CHAT, server.base_url, http, clock=clock)
        first, second, third = [await exchange(model, budget=PATIENT) for _ in range(3)]
        sent = ["stream_options" in json.loads(one.body) for one in server.requests]
    assert text_of([delta for delta in first if not isinstance(delta, RetryScheduled)]) == text_of(second) == "fine"
    assert failure_in(third).kind == "invalid_request", "a refusal of a field that was not sent is not retried"
    assert sent == [True, False, False, False]


# ------------------------------------------------------------------ 89, 90: secrets and surroundings

KEY = "sk-planted-5ecret-0123456789"


@pytest.mark.parametrize("api", APIS)
async def test_89_the_key_is_in_no_failure_no_repr_and_no_log(api, tmp_path):
    log = DebugLog(tmp_path)
    for message in (f"Incorrect API key provided: {KEY}.", f"header Authorization: Bearer {KEY} is wrong"):
        deltas, requests, _ = await served(
            api, [refusal(401, message, code="invalid_api_key")] * 2, key=KEY, debug_log=log
        )
        failure = failure_in(deltas)
        assert KEY in " ".join(requests[0].headers.values())
        assert failure.kind == "auth" and "DEMO_API_KEY" in str(failure)
        assert KEY not in repr(deltas) + str(failure) + failure.message
    lines = [path.read_text() for path in tmp_path.iterdir()]
    assert lines and "401" in lines[0] and not [line for line in lines if KEY in line or KEY[-10:] in line]
    endpoint = Endpoint("demo", "https://h/v1", "m", KEY, headers=(("x-extra", KEY),))
    url, headers = format_of(api).new().target(endpoint)
    shown = [endpoint, HttpRequest("POST", url, headers), ModelSettings("demo", "m", "https://h/v1", api_key=KEY)]
    assert KEY not in repr(shown) and KEY not in url


async def test_90_proxies_and_certificates_of_the_environment_are_honoured(tmp_path):
    url = "https://api.openai.com/v1"
    assert proxy_for(url, {"HTTPS_PROXY": "http://proxy.example:3128"}) == "http://proxy.example:3128"
    assert proxy_for(url, {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "openai.com"}) is None
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificates")
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-x", "SSL_CERT_FILE": str(bundle)}
    environ["HTTPS_PROXY"] = "http://proxy.example:3128"
    chosen = load_settings({"model": "openai/gpt-5.5", "headless": True}, environ, str(tmp_path)).model
    assert (chosen.ca_file, chosen.proxy) == (str(bundle), "http://proxy.example:3128")

    async with ReplayServer([Recording(chat_stream("by proxy"))]) as proxy:
        async with aclosing(Httpx2Http(proxy=proxy.base_url)) as http:
            deltas = await exchange(model_at(CHAT, "http://models.example/v1", http))
        requests = proxy.requests
    assert text_of(deltas) == "by proxy"
    assert requests[0].path == "http://models.example/v1/chat/completions"


# ------------------------------------------------------------------ 91, 92


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("api", APIS)
async def test_91_streams_of_one_client_do_not_mix(adapter, api):
    count = 25

    def answer(request):
        number = int(re.search(rb"number (\d+)", request.body)[1])
        data = text_stream(api, f"reply {number} " * 20)
        return Recording(data, split_at=tuple(range(1 + number, len(data), 97)))

    async with ReplayServer(answer) as server, aclosing(ADAPTERS[adapter]()) as http:
        model = model_at(format_of(api), server.base_url, http)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(exchange(model, (ask(f"number {n}"),))) for n in range(count)]
        assert [text_of(task.result()) for task in tasks] == [f"reply {number} " * 20 for number in range(count)]


IDS = [
    "call_abcDEF123456",
    "functions.ls:0",
    "toolu_01ABCdef",
    "fc_" + "a" * 70,
    "chatcmpl-tool-0f8fad5bd9cb469fa16570867728950e",
    "aB3dE6gH9",
    "call 1|fc_2",
]
PLACES = {
    "openai_chat": "https://api.mistral.ai/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic_messages": "https://api.anthropic.com",
}
LEGAL = {
    "openai_chat": r"[A-Za-z0-9]{9}",
    "openai_responses": r".{1,64}",
    "anthropic_messages": r"[a-zA-Z0-9_-]{1,64}",
}


def pairs_in(api, request):
    """Ids of the calls and ids of the results, as sent."""
    if api == "openai_responses":
        items = request["input"]
        called = [item["call_id"] for item in items if item.get("type") == "function_call"]
        return called, [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    messages = request["messages"]
    if api == "openai_chat":
        called = [entry["id"] for message in messages for entry in message.get("tool_calls") or ()]
        return called, [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    blocks = [block for message in messages for block in message["content"]]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return called, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


@pytest.mark.parametrize("target", APIS)
@pytest.mark.parametrize("source", APIS)
def test_92_a_conversation_moves_between_providers_with_its_results_paired(source, target):
    messages = [ask()]
    for places in ([0, 1], [2, 3, 4], [5, 6]):
        parts = [ToolCall(IDS[place], "read_file", '{"path":"a"}') for place in places]
        reply = Assistant((Text("Looking."), *parts), format_of(source).origin)
        messages += [reply, answers_to(reply)]
    body = body_of(target, *messages, ask("Go on."), base_url=PLACES[target])
    assert format_of(target).check(body) == []
    called, answered = pairs_in(target, json.loads(body))
    assert called == answered and len(set(called)) == len(IDS)
    assert all(re.fullmatch(LEGAL[target], one) for one in called)
    again = body_of(target, *messages, ask("Go on."), base_url=PLACES[target])
    assert again == body, "an id is rewritten the same way each time"
    if target == "openai_responses":
        items = json.loads(body)["input"]
        assert all(len(item.get("id", "")) <= 64 for item in items)
