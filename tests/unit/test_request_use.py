"""What requests read from the cache: new prefixes, misses, rewinds, sub-agents, and models without a report."""

from typing import Any

import pytest
from session_histories import BROKEN, OPENED, envelopes, prompt

from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    Envelope,
    Event,
    HeadMoved,
    PrefixOpened,
    ReplyWithdrawn,
    RequestSent,
)
from bradawl.core.messages import Assistant, Origin, Text
from bradawl.core.usage import Price, Usage
from bradawl.folds.request_use import NewPrefix, SessionUse, Spending, extra_cost, session_use

PRICE = Price(input=2.0, output=10.0, cache_read=0.2, cache_write=2.5)
START = PrefixOpened("s", "t", "openai", "gpt")


def request(step: int) -> RequestSent:
    return RequestSent(step, "hash")


def reply(step: int, usage: Usage | None, cost: float | None = 0.01) -> AssistantReplied:
    message = Assistant((Text("Done."),), Origin("openai_chat", "openai", "gpt"))
    return AssistantReplied(step, message, "end_turn", usage=usage, cost=cost)


def step(number: int, **usage: Any) -> list[Event]:
    return [request(number), reply(number, Usage(**usage))]


def opened(reason: Any, change: str = "") -> PrefixOpened:
    return PrefixOpened("s", "t", "openai", "gpt", reason, change)


def fold(events: list[Event], price: Price | None = PRICE) -> SessionUse:
    return session_use(envelopes(events), lambda provider, model: price if model == "gpt" else None)


def begin(*usages: dict[str, int]) -> list[Event]:
    """A session with one turn."""
    steps = [event for number, usage in enumerate(usages, 1) for event in step(number, **usage)]
    return [OPENED, START, prompt("go"), *steps]


WRITES = {"input": 500, "cache_write": 9_500, "output": 100}
READS = {"input": 20, "cache_read": 10_000, "cache_write": 280, "output": 50}


def test_a_session_without_a_request_has_no_requests() -> None:
    assert session_use((), lambda *_: None) == SessionUse()
    assert fold([OPENED, START, prompt("go"), request(1)]).requests == ()


def test_requests_are_named_like_the_steps_of_rewind() -> None:
    turns = [*begin(WRITES, READS), prompt("more"), *step(3, **READS), request(4), request(4), reply(4, Usage(**READS))]
    assert [each.step for each in fold(turns).requests] == ["1", "1.2", "2", "2.2"]


def test_a_request_that_reads_what_the_one_before_had_misses_nothing() -> None:
    first, second = fold(begin(WRITES, READS)).requests
    assert (first.shared, first.missed) == (0, 0)
    assert (second.shared, second.missed, second.extra_cost) == (10_000, 0, 0.0)
    assert not second.is_miss


@pytest.mark.parametrize("reason", ["model", "compaction", "tools", "changed", "rewound"])
def test_a_new_prefix_costs_what_a_hit_would_have_saved(reason: str) -> None:
    events = [*begin(WRITES), opened(reason, "message 3"), *step(2, input=1_000, cache_write=10_000, output=10)]
    use = fold(events).requests[1]
    assert use.new_prefixes == (NewPrefix(reason, "message 3"),)
    assert use.missed == 10_000
    assert use.extra_cost == pytest.approx(10_000 * (2.5 - 0.2) / 1e6)
    assert use.is_miss


def test_a_miss_without_a_new_prefix_has_the_pause_before_it() -> None:
    entries = envelopes([*begin(WRITES), *step(2, input=10_300, output=10)])
    times = {3: 1_000, 4: 2_000, 5: 602_000, 6: 603_000}
    late = [Envelope(each.seq, each.parent, times.get(each.seq, 0), each.agent, each.event) for each in entries]
    use = session_use(late, lambda *_: PRICE).requests[1]
    assert (use.new_prefixes, use.missed, use.pause_s, use.is_miss) == ((), 10_000, 600.0, True)
    assert use.extra_cost == pytest.approx(10_000 * (2.0 - 0.2) / 1e6)


def test_what_is_due_to_the_size_of_cached_blocks_is_no_miss() -> None:
    use = fold(begin(WRITES, {"input": 800, "cache_read": 9_500, "output": 1})).requests[1]
    assert (use.missed, use.is_miss) == (500, False)


def test_only_what_both_prompts_have_can_be_missed() -> None:
    shorter = fold([*begin(WRITES), opened("compaction"), *step(2, input=2_000, output=10)]).requests[1]
    assert (shorter.shared, shorter.missed) == (2_000, 2_000)


def test_a_model_that_reports_no_cache_has_no_misses() -> None:
    use = fold(begin({"input": 5_000, "output": 1}, {"input": 6_000, "output": 1}))
    assert use.caching_models == frozenset()
    assert [(each.shared, each.missed, each.extra_cost) for each in use.requests] == [(0, 0, None), (5_000, 0, None)]


def test_whether_a_cache_is_reported_is_known_by_model() -> None:
    other = PrefixOpened("s", "t", "local", "small", "model")
    use = fold([*begin(WRITES, READS), other, *step(3, input=9_000, output=1)])
    assert use.caching_models == {("openai", "gpt")}
    assert (use.requests[2].provider, use.requests[2].model, use.requests[2].missed) == ("local", "small", 0)


def test_without_a_price_the_extra_cost_is_unknown() -> None:
    use = fold([*begin(WRITES), *step(2, input=11_000, output=1)], price=None).requests[1]
    assert (use.missed, use.extra_cost) == (10_000, None)
    assert extra_cost(Usage(input=100), 50, Price(input=1.0)) is None


def test_a_price_tier_applies_to_the_extra_cost() -> None:
    from bradawl.core.usage import PriceTier

    price = Price(input=1.0, cache_read=0.1, tiers=(PriceTier(100, input=2.0, cache_read=0.2),))
    assert extra_cost(Usage(input=1_000), 1_000, price) == pytest.approx(1_000 * 1.8 / 1e6)


@pytest.mark.parametrize("usage", [None, Usage(9_000, 10, source="estimated")])
def test_a_request_without_a_report_leaves_the_new_prefix_to_the_next_one(usage: Usage | None) -> None:
    events = [*begin(WRITES), opened("tools", "tools"), request(2), reply(2, usage, None), *step(3, **WRITES)]
    first, unknown, next_one = fold(events).requests
    assert (unknown.usage, unknown.missed, unknown.extra_cost) == (usage, 0, None)
    assert (next_one.new_prefixes, next_one.missed) == ((NewPrefix("tools", "tools"),), 10_000)
    assert fold(events).total.usage.source == "estimated"
    assert fold(events).total.cost is None
    assert not first.is_taken_back


def test_a_withdrawn_reply_is_a_request_that_was_paid_for() -> None:
    void = ReplyWithdrawn(1, BROKEN, Usage(**WRITES), 0.02)
    events = [OPENED, START, prompt("go"), request(1), void, *step(1, **READS)]
    use = fold(events)
    assert [each.is_withdrawn for each in use.requests] == [True, False]
    assert [each.step for each in use.requests] == ["1", "1"]
    assert use.total.cost == pytest.approx(0.03)
    assert use.requests[1].shared == 10_000
    assert len(fold([*events, ReplyWithdrawn(2, BROKEN)]).requests) == 2, "one that was never answered costs nothing"


def test_taken_back_requests_are_paid_for_and_the_next_one_is_compared_with_its_own_branch() -> None:
    events = [*begin(WRITES), prompt("more"), *step(2, input=20_000, cache_read=10_000, output=1)]
    back = envelopes([*events, HeadMoved(4, "talk"), opened("rewound"), prompt("other"), *step(3, **READS)])
    assert isinstance(back[8].event, HeadMoved)
    use = session_use(back, lambda *_: PRICE)
    assert [each.is_taken_back for each in use.requests] == [False, True, False]
    assert (use.requests[2].shared, use.requests[2].missed) == (10_000, 0)
    assert use.taken_back == Spending(1, Usage(input=20_000, cache_read=10_000, output=1), 0.01)
    assert use.total.requests == 3
    assert use.requests[2].step == "3"


def test_taking_back_files_alone_takes_no_request_back() -> None:
    events = [*begin(WRITES), HeadMoved(1, "code"), prompt("more"), *step(2, **READS)]
    use = fold(events)
    assert not any(each.is_taken_back for each in use.requests)
    assert use.requests[1].shared == 10_000


def test_sub_agents_are_summed_up_and_are_no_requests_of_the_window() -> None:
    main = envelopes([*begin(WRITES), AgentSpawned("explore-1", "c", "explore", "look")])
    inner = envelopes([START, prompt("look"), *step(1, input=3_000, output=20), *step(2, **READS)], "explore-1", 6)
    end = Envelope(12, 5, 0, "main", AgentEnded("explore-1", "completed", Usage(input=1), 0.5))
    use = session_use((*main, *inner, end), lambda *_: PRICE)
    assert len(use.requests) == 1
    assert use.sub_agent_count == 1
    assert (use.sub_agents.requests, use.sub_agents.cost) == (2, pytest.approx(0.02))
    assert use.sub_agents.usage == Usage(**READS) + Usage(input=3_000, output=20)
    assert use.last_reply == Usage(**WRITES)


@pytest.mark.parametrize("usage", [None, Usage(5, 5, source="estimated")])
def test_the_last_reply_counts_only_if_it_was_reported(usage: Usage | None) -> None:
    assert fold([*begin(WRITES), request(2), reply(2, usage)]).last_reply is None
