"""Sent messages are never encoded differently later; an unavoidable change opens a new prefix and is logged."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from scripted_agent import Probe, build, call
from wire_model import WireModel, messages_of

from bradawl.core.events import (
    AssistantReplied,
    Event,
    ModelChosen,
    PrefixOpened,
    ReplyWithdrawn,
    RequestSent,
    StateChanged,
)
from bradawl.core.tools import ToolSpec
from bradawl.core.usage import Price
from bradawl.folds.transcript import fold
from bradawl.providers.fallback import FallbackModel
from bradawl.testing.fakes import MemoryStore, RecordingEmit
from wire.codecs import FORMATS, Format

over_all_formats = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.api)


def steps(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Script of `count` replies: all but the last with thinking, text and one or two calls."""
    script: list[dict[str, Any]] = []
    for n in range(first, first + count - 1):
        calls = [call(f"c{n}")] if n % 3 else [call(f"c{n}"), call(f"d{n}", fails="no")]
        script.append({"thinking": f"step {n}", "text": f"I do {n}. é中", "tool_calls": calls})
    return [*script, {"text": "done", "usage": {"input": 10, "output": 2}}]


async def run(model: Any, prompts: list[str], session_id: str | None = None, **changes: Any) -> tuple[list[Event], str]:
    """Run the prompts in one session. Returns its events and its id."""
    agent, *_ = build([], model=model, **changes)
    emit = RecordingEmit()

    async with agent.open(session_id) as session:
        for prompt in prompts:
            await session.run(prompt, emit)
        session_id = session.id
    return list(emit.events), session_id


def opened(events: list[Event]) -> list[tuple[str, str]]:
    """Reason and first change of every prefix."""
    return [(e.reason, e.first_change) for e in events if isinstance(e, PrefixOpened)]


def assert_each_body_extends_the_previous_one(bodies: list[bytes]) -> None:
    sent = [messages_of(body) for body in bodies]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


@over_all_formats
async def test_two_hundred_steps_and_a_resume_keep_every_byte_of_what_was_sent(form: Format) -> None:
    store = MemoryStore()
    first = WireModel(steps(200), form.new)
    events, session_id = await run(first, ["go"], store=store)
    assert len(first.bodies) == 200 and opened(events) == [("start", "")]
    assert_each_body_extends_the_previous_one(first.bodies)

    second = WireModel(steps(3, first=200), form.new)
    events, _ = await run(second, ["on"], session_id, store=store)
    assert opened(events) == []
    assert_each_body_extends_the_previous_one([first.bodies[-1], *second.bodies])
    assert form.check(second.bodies[-1]) == []


@over_all_formats
async def test_the_logged_hash_equals_the_hash_of_the_conversation_encoded_again(form: Format) -> None:
    store = MemoryStore()
    model = WireModel(steps(20), form.new)
    events, session_id = await run(model, ["go"], store=store)
    hashes = [event.prefix_hash for event in events if isinstance(event, RequestSent)]
    assert len(set(hashes)) == len(hashes) == 20
    anew = form.new().encoder(model.scripted.prefixes[0], model.info, session_id)
    seen = []
    for message in fold(store.logs[session_id].entries).messages:
        anew.append(message)
        seen.append(anew.prefix_hash())
    assert [one for one in seen if one in set(hashes)] == hashes


async def test_a_log_marks_every_message_once() -> None:
    events, _ = await run(WireModel(steps(6), FORMATS[0].new), ["go", "again"])
    marks = [event.marks for event in events if isinstance(event, RequestSent)]
    assert [len(one) for one in marks[:3]] == [2, 2, 2], (
        "the first mark of a request covers everything before its messages"
    )
    assert all(event.prefix_hash.startswith(event.marks[-1]) for event in events if isinstance(event, RequestSent))


class Rewriting:
    """An encoder that encodes one message differently than before."""

    def __init__(self, encoder: Any, place: int) -> None:
        self._encoder, self._left = encoder, place

    def append(self, message: Any) -> None:
        self._left -= 1
        if self._left == 0:
            text = msgspec.json.decode(msgspec.json.encode(message).replace(b"I do", b"I did").replace(b"did", b"DID"))
            message = msgspec.convert(text, type(message))
        self._encoder.append(message)

    def body(self, params: Any) -> tuple[bytes, ...]:
        return self._encoder.body(params)

    def prefix_hash(self) -> str:
        return self._encoder.prefix_hash()


class RewritingCodec:
    """A codec that encodes one message differently than the codec it wraps."""

    def __init__(self, codec: Any, place: int) -> None:
        self._codec, self._place = codec, place
        self.api = codec.api

    def encoder(self, *given: Any) -> Rewriting:
        return Rewriting(self._codec.encoder(*given), self._place)


@pytest.mark.parametrize(("place", "said"), [(2, "message 2 (reply)"), (3, "message 3 (results)")])
@over_all_formats
async def test_a_resume_that_encodes_a_message_differently_logs_which_one(form: Format, place: int, said: str) -> None:
    store = MemoryStore()
    _, session_id = await run(WireModel(steps(5), form.new), ["go"], store=store)
    other = WireModel(steps(2, first=9), lambda: RewritingCodec(form.new(), place))
    events, _ = await run(other, ["on"], session_id, store=store)
    assert opened(events) == [("changed", said)]
    same = WireModel(steps(2, first=20), lambda: RewritingCodec(form.new(), place))
    events, _ = await run(same, ["on"], session_id, store=store)
    assert opened(events) == [], "compared with the last request nothing changed"


async def test_other_tools_open_a_new_prefix_with_that_reason() -> None:
    store = MemoryStore()
    _, session_id = await run(WireModel(steps(3), FORMATS[0].new), ["go"], store=store)

    class Renamed(Probe):
        spec = ToolSpec("probe2")

    events, _ = await run(
        WireModel(steps(1), FORMATS[0].new), ["on"], session_id, store=store, tools=(Probe(), Renamed())
    )
    assert opened(events) == [("tools", "tools")]


async def test_after_the_loss_of_the_system_prompt_only_a_different_one_opens_a_prefix() -> None:
    store = MemoryStore()
    events, session_id = await run(WireModel(steps(3), FORMATS[0].new), ["go"], store=store)
    prefix = next(event for event in events if isinstance(event, PrefixOpened))
    store.blobs._blobs.pop(prefix.system_ref)
    events, _ = await run(WireModel(steps(1), FORMATS[0].new), ["on"], session_id, store=store)
    assert opened(events) == []

    async def another() -> str:
        return "You are another."

    store.blobs._blobs.pop(prefix.system_ref)
    events, _ = await run(WireModel(steps(1), FORMATS[0].new), ["on"], session_id, store=store, system_prompt=another)
    assert opened(events) == [("changed", "system")]


async def test_an_encoding_change_in_the_middle_of_a_session_opens_a_new_prefix() -> None:
    model = WireModel(steps(4), FORMATS[0].new)
    agent, *_ = build([], model=model)
    emit = RecordingEmit()

    async with agent.open() as session:
        await session.run("go", emit)
        conversation = model.sessions[0]
        conversation.encoder = Rewriting(conversation.encoder, 0)
        conversation.encoder.prefix_hash = lambda: "0" * 64
        await session.run("more", emit)
    assert opened(list(emit.events)) == [("start", ""), ("changed", "the encoding of what was already sent")]


# ------------------------------------------------------------------ another model


def fallback(**spare: Any) -> tuple[FallbackModel, WireModel]:
    """A model that is overloaded from its second request on, with a fallback that uses another wire format."""
    overloaded = {"faults": {"status": 529}, "text": "Overloaded"}
    first = WireModel([steps(2)[0], *[overloaded] * 9], FORMATS[0].new, price=Price(1.0, 1.0))
    answer = [{"text": "by me", "usage": {"input": 1_000_000, "output": 0}}]
    second = WireModel(answer * 3, FORMATS[-1].new, model="spare", **spare)
    return FallbackModel((first, second)), second


async def test_a_fallback_is_logged_as_the_chosen_model_and_billed_at_its_own_price() -> None:
    model, spare = fallback(price=Price(3.0, 3.0))
    events, _ = await run(model, ["go"])
    assert opened(events) == [("start", ""), ("model", "")]
    place = events.index(StateChanged(ModelChosen("demo", "spare")))
    withdrawn = [e for e in events[:place] if isinstance(e, ReplyWithdrawn)][-1]
    assert "spare" in str(withdrawn.failure)
    assert isinstance(events[place + 1], PrefixOpened) and isinstance(events[place + 2], RequestSent)
    last = [e for e in events if isinstance(e, AssistantReplied)][-1]
    assert (last.message.origin.model, last.cost) == ("spare", 3.0)
    assert FORMATS[-1].check(spare.bodies[-1]) == []


async def test_the_fallbacks_prefix_is_stable_and_a_resume_returns_to_the_users_model() -> None:
    store = MemoryStore()
    model, spare = fallback()
    events, session_id = await run(model, ["go", "on"], store=store)
    assert [reason for reason, _ in opened(events)] == ["start", "model"]
    assert_each_body_extends_the_previous_one(spare.bodies)
    again = WireModel(steps(1), FORMATS[0].new)
    events, _ = await run(again, ["back"], session_id, store=store)
    assert opened(events) == [("model", "")]
    assert StateChanged(ModelChosen("demo", "demo-model")) in events
    assert FORMATS[0].check(again.bodies[-1]) == []
