import asyncio
import contextlib

import msgspec
import pytest

from bradawl.core.deltas import (
    CallDelta,
    PartClosed,
    ReplyEnded,
    ReplyStarted,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Note,
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import Prefix
from bradawl.core.retry import RetryBudget
from bradawl.core.usage import Usage
from bradawl.folds.assembler import Assembler
from bradawl.testing.scripted import ScriptedModel

PREFIX = Prefix("be brief", ())
PROMPT = User((Text("fix it"),))


class ManualClock:
    """Notes what was slept for, and sleeps only until it is told to go on."""

    def __init__(self):
        self.slept: list[float] = []
        self.asleep = asyncio.Event()
        self.go = asyncio.Event()

    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.asleep.set()
        await self.go.wait()


async def ask(session, message=PROMPT):
    session.append(message)
    return [delta async for delta in session.stream(RequestParams(), RetryBudget())]


def replies(script, times=1, **options):
    """The deltas of so many requests of one session, and the model."""

    async def run():
        model = ScriptedModel(script, **options)
        session = model.open(PREFIX)
        return [await ask(session) for _ in range(times)], model

    return asyncio.run(run())


def reply_of(deltas):
    assembler = Assembler(Origin("scripted", "scripted", "script"))
    for delta in deltas:
        assembler.feed(delta)
    return assembler


def test_a_reply_streams_thinking_text_calls_and_usage_in_order():
    call = {"name": "bash", "arguments": {"command": "python3 main.py"}}
    [deltas], _ = replies(
        [{"thinking": "hm, well", "text": "I run it.", "tool_calls": [call], "usage": {"input": 9, "output": 4}}]
    )
    kinds = [type(delta) for delta in deltas]
    assert [kind for n, kind in enumerate(kinds) if n == 0 or kinds[n - 1] is not kind] == [
        ReplyStarted,
        ThinkingDelta,
        PartClosed,
        TextDelta,
        PartClosed,
        CallDelta,
        PartClosed,
        UsageReported,
        ReplyEnded,
    ]
    assert sum(kind is TextDelta for kind in kinds) == 3
    assert sum(kind is CallDelta for kind in kinds) > 2
    assert deltas[-1] == ReplyEnded("tool_use", "tool_calls")
    result = reply_of(deltas)
    assert result.usage == Usage(9, 4)
    assert result.reply().parts == (
        Thinking("hm, well"),
        Text("I run it."),
        ToolCall("call_1", "bash", '{"command":"python3 main.py"}'),
    )


def test_without_usage_none_is_reported():
    [deltas], _ = replies([{"text": "x"}])
    assert not any(isinstance(delta, UsageReported) for delta in deltas)


@pytest.mark.parametrize(
    ("raw", "stop", "status"),
    [
        ("", None, "ok"),
        ('{"a": 1}', None, "ok"),
        ('{"a"', None, "malformed"),
        ('{"a"', "length", "truncated"),
        ("[]", None, "malformed"),
    ],
)
def test_raw_arguments_come_as_they_are_with_their_status(raw, stop, status):
    [deltas], _ = replies([{"tool_calls": [{"name": "t", "arguments": raw}], "stop": stop}])
    [closed] = [delta.part for delta in deltas if isinstance(delta, PartClosed)]
    assert closed == ToolCall("call_1", "t", raw, status)


def test_a_refusal_is_a_refusal_part():
    [deltas], _ = replies([{"text": "I can't.", "stop": "refusal"}])
    assert reply_of(deltas).reply().parts == (Refusal("I can't."),)
    assert deltas[-1].stop == "refusal"


def test_a_request_past_the_end_fails_and_is_kept():
    (_, second), model = replies([{"text": "x"}], times=2)
    [failed] = second
    assert isinstance(failed, StreamFailed)
    assert not failed.failure.retryable
    assert failed.failure.message == "script has 1 entry, and request 2 came"
    assert model.failures == [failed.failure.message]


def test_expect_looks_at_everything_after_the_last_reply():
    results = ToolResults(
        (ToolResult("a", "t", (Text("first"),)), ToolResult("b", "t", (Text("second"),))), (Note("n", "a note"),)
    )

    async def run():
        model = ScriptedModel([{"expect": word} for word in ("first", "second", "a note", "fix it")])
        for _ in range(4):
            session = model.open(PREFIX)
            session.append(PROMPT)
            session.append(Assistant((), model.info.origin))
            await ask(session, results)
        return model.failures

    [failure] = asyncio.run(run())
    assert "'fix it'" in failure
    assert "first\\nsecond\\na note" in failure


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "auth", False),
        (402, "quota", False),
        (408, "timeout", True),
        (429, "rate_limit", True),
        (500, "server", True),
        (503, "overloaded", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_is_a_failure_of_its_kind(status, kind, retryable):
    [[failed]], model = replies([{"text": "no luck", "faults": {"status": status, "headers": {"Retry-After": "3"}}}])
    failure = failed.failure
    assert (failure.kind, failure.retryable, failure.status) == (kind, retryable, status)
    assert (failure.message, failure.retry_after_s) == ("no luck", 3.0)
    assert model.failures == []


def test_an_error_stop_is_a_retryable_failure_after_the_text():
    [deltas], _ = replies([{"text": "so far", "stop": "error"}])
    assert isinstance(deltas[-1], StreamFailed)
    assert deltas[-1].failure.retryable
    assert reply_of(deltas).reply() == Assistant(
        (Text("so far"),), Origin("scripted", "scripted", "script"), complete=False, response_id="scripted-1"
    )


ENTRY = {"thinking": "häm", "text": "wörd two", "tool_calls": [{"name": "t", "arguments": '{"a":"ü"}'}]}
SIZE = len('hämwörd two{"a":"ü"}'.encode())


@pytest.mark.parametrize("limit", range(SIZE + 1))
def test_a_cut_reply_holds_so_many_bytes_and_only_closed_calls(limit):
    [deltas], _ = replies([ENTRY | {"faults": {"cut_at_byte": limit}}])
    assert isinstance(deltas[-1], StreamFailed)
    assert deltas[-1].failure.kind == "connection"
    assert deltas[-1].failure.retryable
    assert not any(isinstance(delta, ReplyEnded) for delta in deltas)
    shown = "".join(
        delta.arguments if isinstance(delta, CallDelta) else delta.text
        for delta in deltas
        if isinstance(delta, CallDelta | TextDelta | ThinkingDelta)
    )
    assert limit - 1 <= len(shown.encode()) <= limit
    assert not any(isinstance(part, ToolCall) for part in reply_of(deltas).reply().parts)


def test_a_cut_behind_the_end_cuts_nothing():
    [deltas], _ = replies([ENTRY | {"faults": {"cut_at_byte": SIZE + 1}}])
    assert isinstance(deltas[-1], ReplyEnded)


def test_a_delay_waits_on_the_clock_before_anything_comes_and_can_be_cancelled():
    async def run():
        clock = ManualClock()
        session = ScriptedModel([{"text": "x", "faults": {"delay_ms": 250}}, {"text": "y"}], clock=clock).open(PREFIX)
        task = asyncio.ensure_future(ask(session))
        await clock.asleep.wait()
        assert clock.slept == [0.25]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return await ask(session)

    assert TextDelta(0, "y") in asyncio.run(run())


def test_sessions_share_one_place_in_the_script_unless_told_otherwise():
    async def texts(**options):
        model = ScriptedModel([{"text": "one"}, {"text": "two"}], **options)
        first, second = model.open(PREFIX), model.open(PREFIX)
        deltas = [*await ask(first), *await ask(second)]
        return [delta.text for delta in deltas if isinstance(delta, TextDelta)]

    assert asyncio.run(texts()) == ["one", "two"]
    assert asyncio.run(texts(per_session=True)) == ["one", "one"]


def test_requests_are_recorded_as_they_were():
    _, model = replies([{}, {}], times=2)
    assert model.requests == [(PROMPT,), (PROMPT, PROMPT)]
    assert model.params == [RequestParams()] * 2
    assert model.prefixes == [PREFIX]


def test_the_prefix_hash_follows_prefix_and_messages():
    model = ScriptedModel([])
    first, second, other = model.open(PREFIX), model.open(PREFIX), model.open(Prefix("be long", ()))
    assert first.prefix_hash() == second.prefix_hash() != other.prefix_hash()
    before = first.prefix_hash()
    first.append(PROMPT)
    assert first.prefix_hash() != before
    second.append(msgspec.convert(msgspec.to_builtins(PROMPT), User))
    assert first.prefix_hash() == second.prefix_hash()


def test_other_tasks_run_while_a_reply_arrives():
    async def run():
        session = ScriptedModel([{"text": "a b c d"}]).open(PREFIX)
        session.append(PROMPT)
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(count())
        seen = [turns async for _ in session.stream(RequestParams(), RetryBudget())]
        task.cancel()
        return seen

    seen = asyncio.run(run())
    assert seen[-1] > seen[0]


def test_a_prompt_with_half_a_character_is_answered_like_any_other():
    async def story():
        return await ask(ScriptedModel([{"text": "Done."}]).open(PREFIX), User((Text("half \ud83d"),)))

    assert any(isinstance(delta, ReplyEnded) for delta in asyncio.run(story()))
