"""`ScriptedModel` streams the replies of a script and records the requests."""

import asyncio
import contextlib

import msgspec

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


def test_the_prefix_hash_depends_on_prefix_and_messages():
    model = ScriptedModel([])
    first, second, other = model.open(PREFIX), model.open(PREFIX), model.open(Prefix("be long", ()))
    assert first.prefix_hash() == second.prefix_hash() != other.prefix_hash()
    before = first.prefix_hash()
    first.append(PROMPT)
    assert first.prefix_hash() != before
    second.append(msgspec.convert(msgspec.to_builtins(PROMPT), User))
    assert first.prefix_hash() == second.prefix_hash()
    first.append(User((Text("half a surrogate pair \ud83d"),)))
    assert first.prefix_hash() != second.prefix_hash()
