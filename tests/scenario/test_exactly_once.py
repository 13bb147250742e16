"""Each requested effect happens once and is reported once, after whichever byte the server closes the connection.

The model of these tests requests every effect of its plan that the conversation does not report as done.
"""

import asyncio
from contextlib import asynccontextmanager
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_agent import build

from bradawl.core.events import AssistantReplied, CallPrepared, ToolFinished, ToolStarted
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import ModelInfo
from bradawl.core.retry import RetryBudget
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.protocols import protocol_named
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore
from bradawl.testing.script import Entry, ScriptedCall, ScriptedUsage
from bradawl.testing.wire_format import WireRequest
from bradawl.testing.wire_formats import format_of
from wire.codecs import FORMATS, Format

URL = "https://host.example/v1"
WIRES = pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.api)

READ = {"reads": ["/r"]}
WRITE = {"writes": ["/w"]}
OTHER_WRITE = {"writes": ["/v"]}
UNKNOWN = {"unknown": True}
PLANS = {
    "reads": [READ, READ],
    "a write among reads": [READ, WRITE, READ],
    "writes to two places": [WRITE, OTHER_WRITE],
    "what can not be told": [READ, UNKNOWN, WRITE],
}


class Response:
    """A response body that yields to the event loop between its chunks, so that calls can start, run and end."""

    status = 200
    headers = MappingProxyType({"content-type": "text/event-stream"})

    def __init__(self, pieces: list[bytes], *, is_cut: bool, turns: int) -> None:
        self._pieces, self._is_cut, self._turns = pieces, is_cut, turns

    async def chunks(self):
        for piece in self._pieces:
            for _ in range(self._turns):
                await asyncio.sleep(0)
            yield piece
        for _ in range(self._turns if self._is_cut else 0):
            await asyncio.sleep(0)
        if self._is_cut:
            raise HttpError("connection", "the connection broke")


class ForgetfulModel:
    """A server whose first replies end after the given numbers of bytes."""

    def __init__(self, wire: Format, plan: list[dict], cuts: list[int], piece: int, turns: int) -> None:
        self.wire, self.cuts, self.piece, self.turns = wire, cuts, piece, turns
        self.plan = {f"n{number}": effects for number, effects in enumerate(plan)}
        self.format = format_of(protocol_named(wire.api))
        self.bodies: list[bytes] = []
        self.longest = 0

    @asynccontextmanager
    async def stream(self, request: HttpRequest):
        body = b"".join(request.body)
        self.bodies.append(body)
        number = len(self.bodies)
        open_names = [name for name in self.plan if f"did {name}".encode() not in body]
        calls = tuple(
            ScriptedCall("probe", {"name": name, **self.plan[name]}, f"call_{number}_{name}") for name in open_names
        )
        entry = Entry(text="Working." if calls else "Done.", thinking="Let me see.", tool_calls=calls, usage=USAGE)
        data = b"".join(self.format.events(entry, number, WireRequest("m", "", True)))
        self.longest = max(self.longest, len(data))
        cut = self.cuts[number - 1] if number <= len(self.cuts) else len(data)
        pieces = [data[at : min(at + self.piece, cut)] for at in range(0, min(cut, len(data)), self.piece)]
        yield Response(pieces, is_cut=cut < len(data), turns=self.turns)

    async def aclose(self) -> None:
        pass


USAGE = ScriptedUsage(input=5, output=5)


async def play(wire: Format, plan: list[dict], cuts: list[int], piece: int = 40, turns: int = 3):
    server = ForgetfulModel(wire, plan, cuts, piece, turns)
    clock = FakeClock(is_eager=True)
    target = ModelEndpoint(wire.new(base_url=URL), Endpoint("demo", URL, wire.origin.model))
    model = HttpModel(target, server, clock, FakeIds(), ModelInfo(wire.origin))
    store = MemoryStore()
    budget = RetryBudget(attempts=20, deadline_s=1e9)
    agent, _, probe = build([], model=model, clock=clock, store=store, retry=budget)
    result = await agent.run("go")
    entries = store.open(result.session_id).entries
    return server, probe, result, [entry.event for entry in entries]


def assert_exactly_once(server: ForgetfulModel, probe, result, events) -> None:
    assert result.reason == "completed", result
    for name, effects in server.plan.items():
        is_free = set(effects) == {"reads"}
        assert probe.log.count(f"-{name}") == 1, probe.log
        assert probe.log.count(f"+{name}") == 1 or is_free, probe.log
        assert server.bodies[-1].count(f"did {name}".encode()) == 1
    started = [event.call_id for event in events if isinstance(event, ToolStarted)]
    finished = [event.call_id for event in events if isinstance(event, ToolFinished)]
    prepared = [event.call_id for event in events if isinstance(event, CallPrepared)]
    assert len(finished) == len(set(finished)) and set(started) <= set(prepared)
    kept = [
        call.id
        for event in events
        if isinstance(event, AssistantReplied)
        for call in event.message.parts[1:]
        if hasattr(call, "raw_arguments")
    ]
    assert len(kept) == len(set(kept))
    for body in server.bodies:
        assert server.wire.check(body) == []


@WIRES
@pytest.mark.slow
@pytest.mark.timeout(240)  # hundreds of turns, which take more than a minute on a busy machine
@pytest.mark.parametrize("part", range(4))
async def test_after_a_cut_at_any_byte_every_effect_happens_once(wire: Format, part: int):
    whole = await play(wire, [WRITE, READ], [])
    assert_exactly_once(*whole)
    for size in range(part, whole[0].longest, 4):
        assert_exactly_once(*await play(wire, [WRITE, READ], [size]))


@WIRES
@pytest.mark.slow
@pytest.mark.timeout(240)  # hundreds of turns, which take more than a minute on a busy machine
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
async def test_after_a_cut_at_any_byte_every_effect_of_a_longer_plan_happens_once(wire: Format, plan: list[dict]):
    for size in range(0, (await play(wire, plan, []))[0].longest, 29):
        assert_exactly_once(*await play(wire, plan, [size]))


EFFECTS = st.sampled_from([READ, WRITE, OTHER_WRITE, UNKNOWN])


@WIRES
@pytest.mark.slow
@pytest.mark.timeout(240)  # hundreds of turns, which take more than a minute on a busy machine
@given(
    plan=st.lists(EFFECTS, min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 2_500), max_size=4),
    piece=st.sampled_from([1, 13, 200, 100_000]),
    turns=st.sampled_from([0, 1, 2, 5, 20]),
)
async def test_after_any_number_of_cuts_every_effect_happens_once(wire: Format, plan, cuts, piece, turns):
    assert_exactly_once(*await play(wire, plan, cuts, piece, turns))
