"""`ScriptedModel` streams the replies of a script and records the requests."""

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
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
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
    """Records the requested times, and sleeps until `go` is set."""

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


async def replies(script, times=1, **options):
    """The deltas of `times` requests of one session, and the model."""
    model = ScriptedModel(script, **options)
    session = model.open(PREFIX)
    return [await ask(session) for _ in range(times)], model


def reply_of(deltas):
    assembler = Assembler(Origin("scripted", "scripted", "script"))
    for delta in deltas:
        assembler.feed(delta)
    return assembler


async def test_a_reply_streams_thinking_text_calls_and_usage_in_order():
    call = {"name": "bash", "arguments": {"command": "python3 main.py"}}
    [deltas], _ = await replies(
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
async def test_raw_arguments_are_unchanged_and_have_a_status(raw, stop, status):
    [deltas], _ = await replies([{"tool_calls": [{"name": "t", "arguments": raw}], "stop": stop}])
    [closed] = [delta.part for delta in deltas if isinstance(delta, PartClosed)]
    assert closed == ToolCall("call_1", "t", raw, status)


async def test_a_refusal_is_a_refusal_part():
    [deltas], _ = await replies([{"text": "I can't.", "stop": "refusal"}])
    assert reply_of(deltas).reply().parts == (Refusal("I can't."),)
    assert deltas[-1].stop == "refusal"


async def test_an_error_stop_is_a_retryable_failure_after_the_text():
    [deltas], _ = await replies([{"text": "so far", "stop": "error"}])
    assert isinstance(deltas[-1], StreamFailed) and deltas[-1].failure.retryable
    reply = reply_of(deltas).reply()
    assert (reply.parts, reply.complete) == ((Text("so far"),), False)


ENTRY = {"thinking": "häm", "text": "wörd two", "tool_calls": [{"name": "t", "arguments": '{"a":"ü"}'}]}
SIZE = len('hämwörd two{"a":"ü"}'.encode())


async def test_a_cut_reply_has_exactly_the_given_bytes_and_no_open_call():
    for limit in range(SIZE + 1):
        [deltas], _ = await replies([ENTRY | {"faults": {"cut_at_byte": limit}}])
        assert isinstance(deltas[-1], StreamFailed)
        assert (deltas[-1].failure.kind, deltas[-1].failure.retryable) == ("connection", True)
        assert not any(isinstance(delta, ReplyEnded) for delta in deltas)
        shown = "".join(
            delta.arguments if isinstance(delta, CallDelta) else delta.text
            for delta in deltas
            if isinstance(delta, CallDelta | TextDelta | ThinkingDelta)
        )
        assert limit - 1 <= len(shown.encode()) <= limit
        assert not any(isinstance(part, ToolCall) for part in reply_of(deltas).reply().parts)
    [deltas], _ = await replies([ENTRY | {"faults": {"cut_at_byte": SIZE + 1}}])
    assert isinstance(deltas[-1], ReplyEnded)


async def test_a_delay_waits_on_the_clock_before_the_first_delta_and_can_be_cancelled():
    clock = ManualClock()
    session = ScriptedModel([{"text": "x", "faults": {"delay_ms": 250}}, {"text": "y"}], clock=clock).open(PREFIX)
    task = asyncio.ensure_future(ask(session))
    await clock.asleep.wait()
    assert clock.slept == [0.25]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert TextDelta(0, "y") in await ask(session)


async def test_sessions_share_one_position_in_the_script_by_default():
    async def texts(**options):
        model = ScriptedModel([{"text": "one"}, {"text": "two"}], **options)
        first, second = model.open(PREFIX), model.open(PREFIX)
        deltas = [*await ask(first), *await ask(second)]
        return [delta.text for delta in deltas if isinstance(delta, TextDelta)]

    assert (await texts()) == ["one", "two"]
    assert (await texts(per_session=True)) == ["one", "one"]


def test_the_prefix_hash_depends_on_prefix_and_messages():
    model = ScriptedModel([])
    first, second, other = model.open(PREFIX), model.open(PREFIX), model.open(Prefix("be long", ()))
    assert first.prefix_hash() == second.prefix_hash() != other.prefix_hash()
    before = first.prefix_hash()
    first.append(PROMPT)
    assert first.prefix_hash() != before
    second.append(msgspec.convert(msgspec.to_builtins(PROMPT), User))
    assert first.prefix_hash() == second.prefix_hash()


async def test_other_tasks_run_while_a_reply_arrives():
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
    assert seen[-1] > seen[0]


async def test_requests_are_recorded_as_they_were():
    half = User((Text("half \ud83d"),))
    model = ScriptedModel([{}, {}])
    session = model.open(PREFIX)
    await ask(session)
    deltas = await ask(session, half)
    assert isinstance(deltas[-1], ReplyEnded), "half a character is answered like any other text"
    assert (model.requests, model.params) == ([(PROMPT,), (PROMPT, half)], [RequestParams()] * 2)
    assert model.prefixes == [PREFIX]
