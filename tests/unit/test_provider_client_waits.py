"""Deadlines and retry budgets of the client, and the cool-downs that sessions at one host share."""

import asyncio

import pytest
from scripted_client import (
    BASE_URL,
    ONCE,
    STREAM,
    ask,
    bad,
    chunk,
    failure_in,
    good,
    is_answered,
    model_of,
    retries_in,
    run_in_virtual_time,
    sse,
)

from bradawl.core.deltas import RetryScheduled, TextDelta
from bradawl.core.errors import Failure
from bradawl.core.messages import Text, User
from bradawl.core.ports import Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.cooldown import CoolDown, CoolDowns, pause_s
from bradawl.providers.deadlines import Deadlines, deadlines_for
from bradawl.providers.hosts import is_loopback
from bradawl.testing.fakes import FakeClock, FakeIds, Reply, ScriptedHttp

SHORT_DEADLINES = Deadlines(connect_s=0.02, first_byte_s=0.1, idle_s=0.06, content_s=0.3)
ORIGIN = "https://api.demo.example:443"


class PacedHttp:
    """One stream whose pieces arrive at an interval; then it stays silent."""

    def __init__(self, pieces, pause_s, headers_after_s=0.0):
        self._pieces, self._pause_s, self._headers_after_s = pieces, pause_s, headers_after_s
        self.status, self.headers = 200, dict(STREAM)
        self.open = 0
        self.requests = []

    def stream(self, request):
        self.requests.append(request)
        return self

    async def __aenter__(self):
        await asyncio.sleep(self._headers_after_s)
        self.open += 1
        return self

    async def __aexit__(self, *_):
        self.open -= 1

    async def chunks(self):
        for piece in self._pieces:
            await asyncio.sleep(self._pause_s)
            yield piece
        await asyncio.sleep(3600)


def read(http, deadlines=SHORT_DEADLINES):
    deltas = run_in_virtual_time(ask(model_of(http, deadlines=deadlines), budget=ONCE))
    assert http.open == 0
    return deltas


# ------------------------------------------------------------------ deadlines


def test_a_server_that_never_answers_is_a_timeout_after_the_time_for_the_first_byte():
    http = PacedHttp([], 0, headers_after_s=30)
    failure = failure_in(read(http))
    assert (failure.kind, failure.retryable) == ("timeout", True)
    assert "sent nothing for 0.1 s" in failure.message


def test_headers_do_not_count_as_the_first_byte():
    assert "sent nothing for 0.1 s" in failure_in(read(PacedHttp([], 0))).message


def test_the_first_byte_may_take_longer_than_later_ones():
    patient = Deadlines(first_byte_s=5, idle_s=0.05)
    http = PacedHttp([sse(chunk("Hel"))], 0.15)
    deltas = read(http, patient)
    assert TextDelta(0, "Hel") in deltas
    assert "silent for 0.05 s" in failure_in(deltas).message


def test_silence_after_content_is_a_retryable_timeout_that_the_client_does_not_retry():
    deltas = read(PacedHttp([sse(chunk("Hel"))], 0.01))
    failure = failure_in(deltas)
    assert (failure.kind, failure.retryable, retries_in(deltas)) == ("timeout", True, [])
    assert "api.demo.example was silent for 0.06 s" in failure.message


@pytest.mark.parametrize("life", [b": keep-alive\n\n", b"event: ping\ndata: {}\n\n", b"\n", b":"])
def test_any_byte_restarts_the_idle_deadline(life):
    pieces = [sse(chunk("Hel")), *[life] * 10, b"\n\n" + sse(chunk("lo", "stop")) + b"data: [DONE]\n\n"]
    deltas = read(PacedHttp(pieces, 0.02))
    assert is_answered(deltas)


def test_the_wait_for_content_is_limited_even_if_other_bytes_arrive():
    deltas = read(PacedHttp([sse(chunk("Hel")), *[b": keep-alive\n\n"] * 1000], 0.01))
    failure = failure_in(deltas)
    assert failure.kind == "timeout"
    assert "sent nothing of the reply for 0.3 s" in failure.message


def test_slow_content_is_no_timeout():
    pieces = [sse(chunk(letter)) for letter in "abcdefghijkl"] + [sse(chunk("", "stop")) + b"data: [DONE]\n\n"]
    assert is_answered(read(PacedHttp(pieces, 0.03), Deadlines(first_byte_s=1, idle_s=0.2, content_s=0.1)))


def test_a_finished_reply_is_complete_although_the_server_keeps_the_stream_open():
    assert is_answered(read(PacedHttp([sse(chunk("Hi", "stop"))], 0.01)))


@pytest.mark.parametrize(("gap_s", "is_enough"), [(110, True), (130, False)])
def test_by_default_a_server_may_be_silent_for_two_minutes(gap_s, is_enough):
    pieces = [b": hello\n\n", sse(chunk("Hel")), sse(chunk("lo", "stop")) + b"data: [DONE]\n\n"]
    assert is_answered(read(PacedHttp(pieces, gap_s), None)) is is_enough


def test_an_error_body_without_an_end_is_a_timeout():
    http = PacedHttp([b'{"error":'], 0.01)
    http.status = 500
    assert failure_in(read(http)).kind == "timeout"


async def test_the_adapter_gets_the_longest_wait_and_the_time_to_connect():
    http = ScriptedHttp([good()])
    await ask(model_of(http, deadlines=Deadlines(connect_s=3, first_byte_s=7, idle_s=5)))
    assert (http.requests[0].connect_timeout_s, http.requests[0].idle_timeout_s) == (3, 7)


@pytest.mark.parametrize("base_url", ["http://localhost:11434/v1", "http://127.0.0.1:1/v1", BASE_URL])
def test_a_local_server_gets_time_to_load_its_model(base_url):
    deadlines = deadlines_for(base_url)
    assert deadlines.first_byte_s == (600 if is_loopback(base_url) else 300)
    assert 90 <= deadlines.idle_s <= deadlines.content_s


# ------------------------------------------------------------------ one host, many sessions


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_sessions_at_one_host_wait_together():
    clock, cool_downs = FakeClock(), CoolDowns()
    http = ScriptedHttp([bad(429, retry_after="8"), good(), good(), good()])
    model = model_of(http, clock=clock, cool_downs=cool_downs, ids=FakeIds((0.0, 0.25, 0.5, 0.75)))
    other = model_of(http, clock=clock, cool_downs=cool_downs, name="other", ids=FakeIds((1.0,)))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask(model))
        await settle()
        later = [group.create_task(ask(model)), group.create_task(ask(other))]
        await settle()
        assert len(http.requests) == 1
        clock.advance(7.9)
        await settle()
        assert len(http.requests) == 1
        clock.advance(0.2)
        await settle()
        assert len(http.requests) == 2
        clock.advance(2.0)
    waits = [retries_in(task.result()) for task in later]
    assert is_answered(first.result())
    assert all(is_answered(task.result()) for task in later)
    assert [wait.delay_s for one in waits for wait in one] == [8.5, 10.0]
    assert all("wait for this" in wait.failure.hint for one in waits for wait in one)
    assert [wait.attempt for one in waits for wait in one] == [0, 0]


async def test_a_backoff_delays_other_sessions_too():
    clock, cool_downs = FakeClock(), CoolDowns()
    http = ScriptedHttp([bad(503), good(), good()])
    model = model_of(http, clock=clock, cool_downs=cool_downs)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(model))
        await settle()
        second = group.create_task(ask(model))
        await settle()
        assert len(http.requests) == 1
        for _ in range(4):
            clock.advance(0.25)
            await settle()
    assert (len(http.requests), len(retries_in(second.result()))) == (3, 1)


@pytest.mark.parametrize("status", [500, 502, 408])
async def test_other_failures_do_not_delay_other_sessions(status):
    clock, cool_downs = FakeClock(), CoolDowns()
    http = ScriptedHttp([bad(status, retry_after="8"), good(), good()])
    model = model_of(http, clock=clock, cool_downs=cool_downs)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(model))
        await settle()
        second = group.create_task(ask(model))
        await settle()
        assert is_answered(second.result())
        clock.advance(10)


async def test_another_host_does_not_wait():
    clock, cool_downs = FakeClock(), CoolDowns()
    busy = model_of(ScriptedHttp([bad(529, retry_after="8"), good()]), clock=clock, cool_downs=cool_downs)
    base_url = "https://api.demo.example:8443/v1"
    free = model_of(ScriptedHttp([good()]), base_url=base_url, clock=clock, cool_downs=cool_downs)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(busy))
        await settle()
        assert is_answered(await ask(free))
        clock.advance(10)


async def test_a_wait_for_others_can_be_cancelled():
    clock, cool_downs = FakeClock(), CoolDowns()
    cool_downs.begin(ORIGIN, Failure("overloaded", "busy", retryable=True, retry_after_s=60), 0.0, None)
    http = ScriptedHttp([good()])
    task = asyncio.ensure_future(ask(model_of(http, clock=clock, cool_downs=cool_downs)))
    await settle()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert http.requests == []


async def test_a_cool_down_longer_than_the_budget_is_ignored():
    cool_downs = CoolDowns()
    cool_downs.begin(ORIGIN, Failure("overloaded", "busy", retryable=True, retry_after_s=60), 0.0, None)
    http = ScriptedHttp([good()])
    deltas = await ask(model_of(http, cool_downs=cool_downs), budget=RetryBudget(deadline_s=50))
    assert is_answered(deltas)
    assert retries_in(deltas) == []


def test_a_cool_down_ends_and_only_a_longer_one_replaces_it():
    cool_downs = CoolDowns()
    busy = Failure("overloaded", "busy", retryable=True, retry_after_s=10)
    cool_downs.begin("o", busy, 0.0, None)
    cool_downs.begin("o", Failure("rate_limit", "slow", retryable=True), 1.0, 2.0)
    assert cool_downs.now("o", 2.0) == CoolDown(8.0, busy)
    assert cool_downs.now("other", 2.0) is None
    assert cool_downs.now("o", 10.0) is None


@pytest.mark.parametrize(
    "failure",
    [
        Failure("overloaded", "", retryable=False, retry_after_s=5),
        Failure("quota", "", retryable=True, retry_after_s=5),
        Failure("overloaded", "", retryable=True),
        Failure("rate_limit", "", retryable=True, retry_after_s=0),
        Failure("rate_limit", "", retryable=True, retry_after_s=float("nan")),
        Failure("rate_limit", "", retryable=True, retry_after_s=float("inf")),
        Failure("rate_limit", "", retryable=True, retry_after_s=-1),
    ],
    ids=str,
)
def test_some_failures_begin_no_cool_down(failure):
    cool_downs = CoolDowns()
    cool_downs.begin("o", failure, 0.0, None)
    assert cool_downs.now("o", 0.0) is None


def test_sessions_resume_at_different_times_after_a_cool_down():
    cool_down = CoolDown(8.0, Failure("overloaded", ""))
    pauses = [pause_s(cool_down, RetryBudget(), elapsed_s=0, draw=draw) for draw in (0.0, 0.5, 0.999)]
    assert pauses == [8.0, 9.0, pytest.approx(10, abs=0.01)]
    assert pause_s(cool_down, RetryBudget(longest_wait_s=7.9), elapsed_s=0, draw=0) is None
    assert pause_s(cool_down, RetryBudget(deadline_s=20), elapsed_s=12.1, draw=0) is None


# ------------------------------------------------------------------ budgets


async def test_a_requested_wait_beyond_the_budget_fails_at_once_and_names_the_wait():
    http = ScriptedHttp([bad(429, retry_after="7200")])
    deltas = await ask(model_of(http))
    assert "asks to wait 120 minutes" in str(failure_in(deltas))
    assert (retries_in(deltas), len(http.requests)) == ([], 1)


async def test_the_deadline_includes_the_time_of_requests_and_waits():
    clock = FakeClock(is_eager=True)

    def answer(_):
        clock.advance(20)
        return bad(503, retry_after="8")

    deltas = await ask(model_of(ScriptedHttp(answer), clock=clock), budget=RetryBudget(deadline_s=60))
    assert failure_in(deltas).kind == "overloaded"
    # 20 s + 9 s, then 49 s + 9 s would be in time, but behind the third request it is 78 s.
    assert [retry.delay_s for retry in retries_in(deltas)] == [9.0, 9.0]


@pytest.mark.parametrize(("status", "should", "requests"), [(400, "true", 2), (503, "false", 1), (500, "nonsense", 2)])
async def test_a_header_on_retrying_is_obeyed(status, should, requests):
    http = ScriptedHttp([bad(status, x_should_retry=should), good()])
    deltas = await ask(model_of(http))
    assert (len(http.requests), is_answered(deltas)) == (requests, requests == 2)


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({"retry_after": "2.5"}, 2.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Tue, 01 Dec 2026 00:00:05 GMT", "date": "Tue, 01 Dec 2026 00:00:00 GMT"}, 5.0),
        ({"retry_after": "-1"}, 0.0),
        ({"retry_after": "nan"}, 0.0),
        ({"retry_after": "soon"}, 0.0),
        ({"retry_after": "-1", "x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "6s"}, 6.0),
        ({"anthropic_ratelimit_tokens_remaining": "0", "anthropic_ratelimit_tokens_reset": "2001-01-01T00:00:00Z"}, 0),
    ],
    ids=str,
)
async def test_every_header_that_asks_for_a_wait_is_understood(headers, delay_s):
    http = ScriptedHttp([bad(429, **headers), good()])
    deltas = await ask(model_of(http, ids=FakeIds((0.0,))))
    assert [retry.delay_s for retry in retries_in(deltas)] == [delay_s]


async def test_an_answer_without_a_body_is_retried_twice_like_an_empty_reply():
    http = ScriptedHttp([Reply(204)] * 3)
    deltas = await ask(model_of(http))
    failure = failure_in(deltas)
    assert (failure.kind, failure.retryable, len(http.requests)) == ("server", False, 3)
    assert "204 with an empty body" in failure.message


async def test_empty_replies_of_all_kinds_are_counted_together():
    empty = Reply(200, (b"data: [DONE]\n\n",), STREAM)
    http = ScriptedHttp([Reply(200, (), STREAM), empty, Reply(204)])
    assert failure_in(await ask(model_of(http))).kind == "server"
    assert len(http.requests) == 3


async def test_a_web_page_without_a_content_type_is_recognised():
    page = Reply(
        200, (b"  <!DOCTYPE html><html>\n<body><p>Log", b"in</p></body></html>"), (("content-type", "text/plain"),)
    )
    http = ScriptedHttp([page])
    failure = failure_in(await ask(model_of(http)))
    assert "web page" in failure.message
    assert (failure.retryable, len(http.requests)) == (False, 1)


async def test_an_oversized_event_is_a_failure_that_is_not_retried():
    flood = Reply(200, tuple([b"data: " + b"x" * 1_000_000] * 20), STREAM)
    http = ScriptedHttp([flood])
    failure = failure_in(await ask(model_of(http)))
    assert (failure.kind, failure.retryable, len(http.requests)) == ("server", False, 1)
    assert "larger than any honest one" in failure.message


async def test_the_same_bytes_are_sent_again_also_when_the_caller_asks_again():
    http = ScriptedHttp([bad(500), Reply(200, (sse(chunk("Hel")),), STREAM), good()])
    model = model_of(http)
    session = model.open(Prefix("S", ()))
    session.append(User((Text("Hi"),)))
    await ask(model, session=session)
    assert is_answered(await ask(model, session=session))
    first, second, third = [request.body for request in http.requests]
    assert first is second is third


async def test_a_refused_field_is_left_out_without_a_retry_notice_or_an_attempt():
    refusal = bad(400, "stream_options is not supported")
    http = ScriptedHttp([refusal, good()])
    deltas = await ask(model_of(http), budget=ONCE)
    assert is_answered(deltas)
    assert not any(isinstance(delta, RetryScheduled) for delta in deltas)


async def test_a_session_that_waited_leaves_out_fields_that_were_refused_to_another():
    refusal = bad(400, "stream_options is not supported")
    http = ScriptedHttp([bad(500), refusal, good(), refusal, good()])
    model = model_of(http, clock=(clock := FakeClock()))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(ask(model))
        await settle()
        assert is_answered(await ask(model))
        clock.advance(1)
        await settle()
    assert (is_answered(waiting.result()), len(http.requests)) == (True, 5)


async def test_an_invalid_request_is_not_repeated():
    http = ScriptedHttp([bad(400, "messages: bad")] * 2)
    assert failure_in(await ask(model_of(http))).kind == "invalid_request"
    assert len(http.requests) == 1


async def test_cancelling_at_any_await_leaves_no_stream_open():
    async def go(awaits):
        pause = asyncio.Event()
        http = ScriptedHttp([bad(503), Reply(200, (pause, *good().chunks), STREAM)])
        task = asyncio.ensure_future(ask(model_of(http)))
        for number in range(awaits):
            await asyncio.sleep(0)
            if number == 10:
                pause.set()
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert http.open == 0
        return isinstance(result, asyncio.CancelledError)

    cancelled = [(await go(awaits)) for awaits in range(30)]
    assert all(cancelled[:11])
    assert not cancelled[-1]
