"""The model of a running conversation is changed between turns, in every pair of wire formats, and stays changed."""

import asyncio
from typing import Any

import pytest
from compacting_agent import AnsweringModel
from scripted_agent import build, call, only
from scripted_subagents import TwoScripts, task
from wire_model import WireModel

from bradawl.core.errors import SessionError
from bradawl.core.events import (
    AgentSpawned,
    AssistantReplied,
    Compacted,
    EffortChosen,
    Event,
    ModelChosen,
    NameSet,
    PrefixOpened,
    RequestParams,
    RequestSent,
    SessionOpened,
    StateChanged,
)
from bradawl.core.messages import Image, Text
from bradawl.testing.fakes import MemoryStore, RecordingEmit
from bradawl.testing.script import Script, script_from
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.agent import AgentTool
from wire.codecs import FORMATS, Format

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
WORK: list[dict[str, Any]] = [
    {"thinking": "the secret thought", "text": "I look.", "tool_calls": [call("a"), call("b", fails="no")]},
    {"thinking": "a second thought", "text": "Seen."},
]
pairs = pytest.mark.parametrize(
    ("first", "second"), [(a, b) for a in FORMATS for b in FORMATS], ids=lambda form: form.api
)


def model_of(form: Format, script: list[dict[str, Any]], name: str) -> WireModel:
    return WireModel(script, form.new, model=name)


def scripted(name: str, script: list[dict[str, Any]]) -> ScriptedModel:
    return ScriptedModel(Script(script_from(script).entries, name))


def named(model: ScriptedModel | WireModel | AnsweringModel | TwoScripts) -> ModelChosen:
    origin = model.info.origin
    return ModelChosen(origin.provider, origin.model, by_user=True)


def opened(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.reason, event.model) for event in only(events, PrefixOpened)]


def chosen(events: list[Event]) -> list[object]:
    return [event.state for event in only(events, StateChanged) if isinstance(event.state, ModelChosen | EffortChosen)]


@pairs
async def test_the_conversation_goes_on_with_another_model_and_back_in_all_formats(first: Format, second: Format):
    one = model_of(first, [*WORK, {"text": "Back again."}], "one")
    other = model_of(second, [{"thinking": "another mind", "tool_calls": [call("c")]}, {"text": "So."}], "other")
    agent, *_ = build([], model=one)
    emit = RecordingEmit()

    async with agent.open() as session:
        session.show_with(emit)
        await session.run((Text("look at this"), Image("image/png", PNG)), emit)
        assert await session.change_model(other)
        await session.run("go on", emit)
        assert await session.change_model(one)
        await session.run("and now?", emit)
    assert opened(emit.events) == [("start", "one"), ("model", "other"), ("model", "one")]
    assert chosen(emit.events) == [named(other), named(one)]
    for form, model in ((first, one), (second, other)):
        assert [form.check(body) for body in model.bodies] == [[] for _ in model.bodies]
    taken_over, back = other.bodies[0], one.bodies[-1]
    assert b"secret thought" not in taken_over and b"another mind" not in back
    for text in (b"look at this", b"I look.", b"did a", b"Seen.", b"go on"):
        assert text in taken_over, text
    assert b"iVBOR" in taken_over, "the image is sent to the new model"
    assert b"did c" in back and b"So." in back
    assert [len(model.sessions) for model in (one, other)] == [2, 1]


@pairs
async def test_a_resumed_session_can_continue_with_the_chosen_model_and_its_cache(first: Format, second: Format):
    store = MemoryStore()
    agent, *_ = build([], model=model_of(first, WORK, "one"), store=store)
    async with agent.open() as session:
        await session.run("look")
        await session.change_model(model_of(second, [{"text": "So."}], "other"))
        await session.run("go on")
    again, *_ = build([], model=model_of(first, [], "one"), store=store)
    other, emit = model_of(second, [{"text": "Still here."}], "other"), RecordingEmit()
    async with again.open(session.id) as session:
        assert session.state.choices.model == named(other)
        await session.change_model(other, is_choice=False)
        assert (await session.run("on", emit)).text == "Still here."
    assert opened(emit.events) == [] and chosen(emit.events) == []
    assert second.check(other.bodies[0]) == []


async def test_a_crash_between_the_choice_and_its_prefix_leaves_the_choice():
    store = MemoryStore()
    agent, *_ = build([{"text": "One."}], store=store)
    async with agent.open() as session:
        await session.run("look")
        await session.change_model(scripted("two", [{"text": "Two."}]))
    entries = store.logs[session.id].entries
    place = next(i for i, each in enumerate(entries) if isinstance(each.event, StateChanged))
    del entries[place + 1 :]  # as if the program had been killed there
    again, *_ = build([], store=store)
    emit = RecordingEmit()
    async with again.open(session.id) as session:
        assert session.state.choices.model == ModelChosen("scripted", "two", by_user=True)
        await session.change_model(scripted("two", [{"text": "Three."}]), is_choice=False)
        assert (await session.run("on", emit)).text == "Three."
    assert opened(emit.events) == [("model", "two")]


async def test_a_model_chosen_before_the_first_prompt_is_in_the_log_and_begins_the_first_prefix():
    two, emit = scripted("two", [{"text": "Two."}]), RecordingEmit()
    agent, unused, _ = build([{"text": "One."}])
    async with agent.open() as session:
        assert await session.change_model(scripted("between", []))
        assert await session.change_model(two)
        session.model.choose_effort("high")
        assert (await session.run("go", emit)).text == "Two."
    assert isinstance(emit.events[0], SessionOpened)
    assert chosen(emit.events) == [named(two), EffortChosen("high")]
    assert opened(emit.events) == [("start", "two")] and not unused.requests


async def test_sub_agents_that_start_later_use_the_chosen_model():
    old = TwoScripts([{"text": "Old."}], [{"text": "never"}])
    new = TwoScripts([{"tool_calls": [task("t")]}, {"text": "Done."}], [{"text": "found"}])
    agent, *_ = build([], model=old, tools=(AgentTool(),))
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("a", emit)
        await session.change_model(new)
        session.model.choose_effort("low")
        await session.run("b", emit)
    assert len(only(emit.events, AgentSpawned)) == 1
    assert len(new.sub.requests) == 1 and old.sub.requests == []
    assert {event.params.effort for event in only(emit.events, RequestSent)[1:]} == {"low"}


async def test_a_compaction_is_written_by_the_chosen_model_for_its_window():
    long = " ".join(f"fact {n} is worth keeping" for n in range(200))
    old = AnsweringModel(lambda _: {"text": long}, window=1_000_000, name="old")
    new = AnsweringModel(lambda _: {"text": "Short."}, window=15_000, name="new")
    agent, *_ = build([], model=old)
    emit = RecordingEmit()
    async with agent.open() as session:
        for number in range(8):
            await session.run(f"tell me all about {number}", emit)
        assert only(emit.events, Compacted) == []
        await session.change_model(new)
        await session.run("and now?", emit)
    assert [event.tier for event in only(emit.events, Compacted)] == ["summarise"]
    assert len(new.summaries) == 1 and old.summaries == []


async def test_a_model_is_not_changed_during_a_turn_nor_in_a_closed_session():
    agent, _, probe = build([{"tool_calls": [call("a")]}, {"text": "Done."}])
    gate = probe.gate("a")
    async with agent.open() as session, asyncio.TaskGroup() as group:
        turn = group.create_task(session.run("go"))
        await probe.has_started("a").wait()
        with pytest.raises(SessionError, match="A turn is running"):
            await session.change_model(ScriptedModel([]))
        gate.set()
    assert turn.result().text == "Done."
    with pytest.raises(SessionError, match="closed"):
        await session.change_model(ScriptedModel([]))


class Unopenable(ScriptedModel):
    """A model that can't begin a conversation."""

    def open(self, prefix: Any, session_id: str = "") -> Any:
        raise SessionError("It is not there.")


async def test_a_model_that_can_not_begin_leaves_the_one_before():
    agent, *_ = build([{"text": "One."}, {"text": "Still one."}])
    emit = RecordingEmit()
    async with agent.open() as session:
        session.show_with(emit)
        await session.run("a", emit)
        with pytest.raises(SessionError, match="It is not there"):
            await session.change_model(Unopenable(Script((), "broken")))
        assert (await session.run("b", emit)).text == "Still one."
        assert session.state.choices.model == named(agent.model)


async def test_going_back_in_the_conversation_takes_back_no_choice_of_the_user():
    store = MemoryStore()
    agent, *_ = build([{"text": "One."}], store=store)
    two = scripted("two", [{"text": "Two."}, {"text": "Three."}])
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("a", emit)
        before = session.conversation.last_seq
        await session.change_model(two)
        session.model.choose_effort("high")
        session.conversation.record(StateChanged(NameSet("parser")))
        await session.run("b", emit)
        await session.rewind(before, "talk")
        assert (session.state.choices.model, session.state.choices.effort) == (named(two), "high")
        await session.run("c", emit)
    replies = [event.model for event in only(emit.events, AssistantReplied)]
    assert replies[1:] == [replies[1]] * 2 and replies[0] != replies[1]
    again, *_ = build([], store=store)
    async with again.open(session.id) as session:
        choices = session.state.choices
    assert (choices.model, choices.effort, choices.name) == (named(two), "high", "parser")


async def test_the_default_effort_comes_back_and_the_last_choice_counts():
    agent, *_ = build([{"text": "x"}] * 3, params=RequestParams(effort="medium"))
    emit = RecordingEmit()
    async with agent.open() as session:
        for effort in ("high", None, "low"):
            session.model.choose_effort(effort)
            await session.run("go", emit)
    assert [event.params.effort for event in only(emit.events, RequestSent)] == ["high", "medium", "low"]
