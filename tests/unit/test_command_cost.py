"""`/cost` adds up what each model was asked and cost; unknown prices are said to be unknown."""

import json

import pytest
from command_world import CommandWorld

from bradawl.app.commands.cost import cost_lines
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    Compacted,
    Envelope,
    Event,
    HeadMoved,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    SessionOpened,
)
from bradawl.core.messages import Assistant, Origin, Text
from bradawl.core.usage import Price, Usage
from bradawl.folds.bill import bill_of, saved_by_cache

PRICE = Price(input=10.0, output=20.0, cache_read=1.0, cache_write=12.5)
REPLY = Assistant((Text("x"),), Origin("openai_chat", "p", "m"))


def entries(*events: Event | tuple[str, Event]) -> list[Envelope]:
    found = [event if isinstance(event, tuple) else ("main", event) for event in events]
    return [Envelope(seq, seq - 1 if seq else None, 1, agent, event) for seq, (agent, event) in enumerate(found)]


def replied(usage: Usage | None, cost: float | None) -> AssistantReplied:
    return AssistantReplied(1, REPLY, "end_turn", usage=usage, cost=cost)


def opened(model: str) -> PrefixOpened:
    return PrefixOpened("r", "r", "p", model)


SESSION = entries(
    SessionOpened(1, "/p", "/p"),
    opened("one"),
    PromptSubmitted((Text("a"),)),
    replied(Usage(1_000_000, 100, 0, 0, 40), 10.002),
    replied(Usage(0, 100, 1_000_000), 1.002),
    ReplyWithdrawn(3, Failure("server", "x"), Usage(10, 1), 0.5),
    Compacted("summarise", 4, usage=Usage(500, 50), cost=0.25),
    HeadMoved(2, "talk"),
    opened("two"),
    PromptSubmitted((Text("b"),)),
    AgentSpawned("agent-1", "c", "explore", "look"),
    ("agent-1", opened("small")),
    ("agent-1", replied(Usage(5, 5), 0.125)),
    AgentEnded("agent-1", "completed", Usage(5, 5), 0.125),
    replied(Usage(7, 7), None),
)


def test_the_bill_has_each_model_and_kind_of_work_once_and_counts_what_was_taken_back():
    bill = bill_of(SESSION, lambda _, model: PRICE if model == "one" else None)
    assert [(each.model, each.work, each.requests, each.cost) for each in bill.lines] == [
        ("one", "conversation", 3, pytest.approx(11.504)),
        ("", "compaction", 1, 0.25),
        ("small", "sub-agents", 1, 0.125),
        ("two", "conversation", 1, None),
    ]
    assert bill.lines[0].usage == Usage(1_000_010, 201, 1_000_000, 0, 40)
    assert bill.lines[0].saved == pytest.approx(9.0)
    assert (bill.total.requests, bill.total.cost, bill.total.unpriced) == (6, None, 1)
    assert bill.total.known_cost == pytest.approx(11.879)
    assert (bill.last_turn.requests, bill.last_turn.known_cost) == (2, 0.125)


def test_the_text_fits_forty_columns_and_says_what_is_unknown():
    bill = bill_of(SESSION, lambda _, model: PRICE if model == "one" else None)
    lines = cost_lines(bill)
    assert max(map(len, lines)) <= 40
    assert lines[:9] == [
        "p/one",
        "  requests                 3",
        "  input                 1.0M",
        "  cache read            1.0M",
        "  output                 201",
        "  thinking                40",
        "  cost                $11.50",
        "  cache saved          $9.00",
        "",
    ]
    assert "p/small, sub-agents" in lines and "summaries of compactions" in lines
    assert lines[-2:] == ["  session            unknown", "    $11.88 and 1 of unknown price"]


@pytest.mark.parametrize(
    ("usage", "saved"),
    [
        (Usage(100, 5), 0.0),
        (Usage(0, 0, 1_000_000), 9.0),
        (Usage(0, 0, 0, 1_000_000), -2.5),
        (None, 0.0),
    ],
)
def test_a_cache_saves_what_it_reads_and_costs_what_it_writes(usage, saved):
    from bradawl.core.usage import cost

    paid = None if usage is None else cost(usage, PRICE)
    assert saved_by_cache(usage, paid, PRICE) == pytest.approx(saved)
    assert usage is None or saved_by_cache(Usage(1, 1, 1), None, None) is None


async def test_cost_in_a_conversation_names_the_model_and_tokens_is_the_same(tmp_path):
    world = CommandWorld(tmp_path)
    world.script = [{"text": "x", "usage": {"input": 10, "output": 2}}]
    async with world.conversation() as talk:
        assert await talk.type("/cost") == "No request was made yet."
        await talk.prompt("a")
        text = await talk.type("/cost")
        assert text.startswith("scripted/script\n  requests                 1\n") and "unknown" in text
        assert text == await talk.type("/tokens")
        data = json.loads(await talk.type("/cost json"))
        fork = (await talk.run("/fork")).session
    assert (data["total"]["requests"], data["lines"][0]["usage"]["input"]) == (1, 10)
    async with world.conversation(fork) as forked:
        assert (await forked.type("/cost")).endswith("requests are counted here, too.")
