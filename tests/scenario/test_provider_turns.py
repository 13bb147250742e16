"""Turns over the real model client: which calls run and what is kept after broken streams and overload."""

import asyncio
import json

import pytest
from scripted_agent import assert_valid, build, results

from bradawl.core.deltas import RetryScheduled
from bradawl.core.events import AssistantReplied, Live, ModelChosen, PrefixOpened, ReplyWithdrawn, StateChanged
from bradawl.core.messages import Origin, text_of
from bradawl.core.ports import ModelInfo
from bradawl.core.usage import Price
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.cooldown import CoolDowns
from bradawl.providers.fallback import FallbackModel
from bradawl.testing.fakes import Cut, FakeClock, FakeIds, Reply, ScriptedHttp

STREAM = (("content-type", "text/event-stream"),)


def chunk(finish=None, **delta):
    return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index, name="", arguments=""):
    function = {"name": "probe", "arguments": arguments} if name else {"arguments": arguments}
    named = {"id": f"id_{name}", "type": "function"} if name else {}
    return chunk(tool_calls=[{"index": index, **named, "function": function}])


def reply(*events, end=(b"data: [DONE]\n\n",)):
    body = tuple(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    return Reply(200, (*body, *end), STREAM)


def broken(*events):
    return reply(*events, end=(Cut(),))


USAGE = {"choices": [], "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}
DONE = reply(chunk(content="Done."), chunk("stop"), USAGE)
BUSY = Reply(529, (b'{"error":{"message":"overloaded"}}',))


class ClientTurns:
    """An agent whose models are real model clients on scripted HTTP, and what its turns showed."""

    def __init__(self, *scripts):
        clock = FakeClock(is_eager=True)
        cool_downs = CoolDowns()
        self.https = [ScriptedHttp(script) for script in scripts]
        models = []
        for number, http in enumerate(self.https):
            url = f"https://host{number}.example/v1"
            origin = Origin("openai_chat", "demo", f"model{number}")
            info = ModelInfo(origin, price=Price(input=float(number + 1), output=1.0))
            target = ModelEndpoint(OpenAIChat(url), Endpoint("demo", url, origin.model))
            models.append(HttpModel(target, http, clock, FakeIds(), info, cool_downs))
        model = models[0] if len(models) == 1 else FallbackModel(models)
        self.agent, _, self.probe = build([], model=model, clock=clock)
        self.shown = []

    async def run(self, *prompts):
        async with self.agent.open() as session:
            done = [await session.run(prompt, self.shown.append) for prompt in prompts]
            assert_valid(session.transcript.messages)
            self.done, self.messages = done, list(session.transcript.messages)
        return self.done[-1]

    def events(self, kind):
        return [one.event for one in self.shown if not isinstance(one, Live) and isinstance(one.event, kind)]

    @property
    def retries(self):
        return [one.item for one in self.shown if isinstance(one, Live) and isinstance(one.item, RetryScheduled)]

    def sent(self, request, place=0):
        return json.loads(b"".join(self.https[place].requests[request].body))["messages"]


@pytest.mark.parametrize("failure", [BUSY, Cut(), broken(), reply({"error": {"message": "boom", "code": 500}}, end=())])
async def test_a_failure_before_any_text_is_retried_and_not_logged(failure):
    turns = ClientTurns([failure, DONE])
    assert (await turns.run("go")).text == "Done."
    assert (len(turns.retries), turns.events(ReplyWithdrawn)) == (1, [])


@pytest.mark.parametrize("break_off", [broken, lambda *events: reply(*events, {"error": {"message": "x"}}, end=())])
async def test_a_failure_after_shown_text_withdraws_the_text_before_the_retry(break_off):
    turns = ClientTurns([break_off(chunk(content="Hel")), DONE])
    assert (await turns.run("go")).text == "Done."
    assert len(turns.events(ReplyWithdrawn)) == 1
    assert [text_of(event.message.parts) for event in turns.events(AssistantReplied)] == ["Done."]
    assert turns.https[0].requests[0].body is turns.https[0].requests[1].body


@pytest.mark.parametrize(
    "events",
    [
        [call(0, "a", '{"name": "a", "wri')],
        [call(0, "a", '{"name": "a", "writes": ["/project/x"]}')],
        [call(0, "a", '{"name": "a"'), call(1, "b", '{"name": "b"')],
    ],
    ids=["open", "balanced but not closed", "two open"],
)
async def test_no_call_runs_if_the_stream_breaks_inside_the_calls(events):
    turns = ClientTurns([broken(*events), DONE])
    assert (await turns.run("go")).text == "Done."
    assert turns.probe.log == []
    assert len(turns.events(ReplyWithdrawn)) == 1


async def test_a_call_with_arguments_cut_by_the_length_limit_does_not_run():
    turns = ClientTurns([reply(call(0, "a", '{"name": "a", "wri'), chunk("length")), DONE])
    await turns.run("go")
    assert turns.probe.log == []


async def test_a_change_made_before_the_break_is_kept_and_not_requested_again():
    first = call(0, "a", '{"name": "a", "writes": ["/project/x"]}')
    gate = asyncio.Event()
    turns = ClientTurns([reply(first, call(1, "b", '{"name"'), end=(gate, Cut())), DONE])
    turns.probe.has_ended("a")

    async def open_gate():
        await turns.probe.has_ended("a").wait()
        gate.set()

    async with turns.agent.open() as session, asyncio.TaskGroup() as group:
        group.create_task(open_gate())
        result = await session.run("go", turns.shown.append)
        assert_valid(session.transcript.messages)
        said = results(session.transcript.messages)
    assert (result.text, turns.probe.log, said) == ("Done.", ["+a", "-a"], ["did a"])
    assert [event.cut for event in turns.events(AssistantReplied)] == [True, False]
    assert turns.events(ReplyWithdrawn) == []
    assert json.dumps(turns.sent(1)).count("did a") == 1


async def test_an_overloaded_model_is_replaced_for_the_rest_of_the_session_and_logged():
    turns = ClientTurns([BUSY] * 3, [DONE, DONE])
    result = await turns.run("go", "again")
    assert (result.text, result.reason) == ("Done.", "completed")
    assert [len(http.requests) for http in turns.https] == [3, 2]
    assert [event.state for event in turns.events(StateChanged)] == [ModelChosen("demo", "model1")]
    assert [(event.model, event.reason) for event in turns.events(PrefixOpened)] == [
        ("model0", "start"),
        ("model1", "model"),
    ]
    replies = turns.events(AssistantReplied)
    assert [event.message.origin.model for event in replies] == ["model1", "model1"]
    assert [event.cost for event in replies] == [2.0, 2.0]
    assert any("demo/model1 takes over" in str(retry.failure) for retry in turns.retries)
    assert [message["content"] for message in turns.sent(1, place=1)][-3:] == ["go", "Done.", "again"]


async def test_after_a_break_behind_a_change_the_fallback_continues_the_turn():
    first = call(0, "a", '{"name": "a", "writes": ["/project/x"]}')
    gate = asyncio.Event()
    overloaded = {"error": {"message": "overloaded", "code": 529}}
    cut = reply(first, call(1, "b", '{"name"'), end=(gate, f"data: {json.dumps(overloaded)}\n\n".encode()))
    turns = ClientTurns([BUSY, BUSY, cut], [DONE])

    async def open_gate():
        await turns.probe.has_ended("a").wait()
        gate.set()

    async with turns.agent.open() as session, asyncio.TaskGroup() as group:
        group.create_task(open_gate())
        assert (await session.run("go", turns.shown.append)).text == "Done."
    assert turns.probe.log == ["+a", "-a"]
    replies = [(event.message.origin.model, event.cut) for event in turns.events(AssistantReplied)]
    assert replies == [("model0", True), ("model1", False)]
    assert json.dumps(turns.sent(0, place=1)).count("did a") == 1
