"""What a compaction keeps of 50 long sessions with planted facts, beside the algorithm of CoreCoder.

The sessions were written without knowledge of how a compaction selects. `FACTS=all` also prints the table.
"""

import os

import pytest
from compacted_sessions import OpenedSession
from corecoder_context import compacted as by_corecoder
from corecoder_context import one_result_each
from fact_measures import Measure, missing, table, tokens, visible_text
from planted_sessions import KINDS, planted_session
from scripted_agent import assert_valid

from bradawl.core.messages import text_of
from bradawl.shaping.compaction.limits import Tier

SESSIONS = 50
SAMPLE = range(0, SESSIONS, 4)
NOTES = "Goal and state: see the requests. Everything else is in the file that is named above this summary."


async def measured(tier: Tier, seeds: range) -> tuple[Measure, list[tuple[float, float]]]:
    """All sessions together, and the shares of facts kept and tokens freed of each."""
    all_sessions, each = Measure(), []
    for seed in seeds:
        planted = planted_session(seed)
        opened = OpenedSession(planted)
        before = tokens(opened.messages)
        event = await opened.compact(tier)
        assert event is not None, f"session {seed} was not compacted"
        assert_valid(opened.messages)
        all_sessions.add(before, opened.messages, planted.facts)
        gone = missing(opened.messages, planted.facts)
        assert not [fact for fact in gone if fact.is_pinned], f"session {seed}: a pinned fact is gone"
        each.append((1 - len(gone) / len(planted.facts), 1 - tokens(opened.messages) / before))
    return all_sessions, each


def kept(measure: Measure) -> float:
    """Share of the facts of all kinds."""
    found, total = (sum(measure.counts[kind][place] for kind in KINDS) for place in (0, 1))
    return found / total


async def test_without_a_model_four_fifths_of_the_facts_stay_and_two_fifths_of_the_tokens_go() -> None:
    measure, each = await measured("summarise", range(SESSIONS))
    corecoder = Measure()
    for seed in range(SESSIONS):
        planted = planted_session(seed)
        before = OpenedSession(planted).messages
        corecoder.add(tokens(before), by_corecoder(one_result_each(before), planted.window), planted.facts)
    if os.environ.get("FACTS") == "all":
        print(table({"bradawl, summary without a model": measure, "CoreCoder": corecoder}))
    assert kept(measure) >= 0.9 and min(share for share, _ in each) >= 0.8
    assert measure.freed >= 0.5 and min(freed for _, freed in each) >= 0.4
    assert measure.share("pinned") == 1.0
    assert kept(measure) > kept(corecoder) and measure.freed > corecoder.freed


@pytest.mark.parametrize(("tier", "share", "freed"), [("snip", 0.85, 0.3), ("collapse", 0.8, 0.6)])
async def test_the_other_tiers_keep_all_pins_and_most_facts(tier: Tier, share: float, freed: float) -> None:
    measure, _ = await measured(tier, SAMPLE)
    assert measure.share("pinned") == 1.0
    assert kept(measure) >= share and measure.freed >= freed


async def test_the_request_for_a_summary_holds_every_fact_of_the_old_part() -> None:
    for seed in SAMPLE:
        planted = planted_session(seed)
        opened = OpenedSession(planted, [{"text": NOTES}])
        opened.room = opened.room.of_any_size(4 * planted.window)  # the whole old part fits
        event = await opened.compactor.compact("summarise", opened.room, is_asked=True)
        assert event is not None and NOTES in event.summary
        (request,) = opened.model.requests
        text = text_of(request[0].parts) + "\0" + visible_text(opened.messages)
        assert not [fact for fact in planted.facts if fact.text not in text], f"session {seed}"


async def test_a_request_for_a_summary_that_does_not_fit_is_shortened_by_what_says_least() -> None:
    for seed in SAMPLE:
        planted = planted_session(seed)
        opened = OpenedSession(planted, [{"text": NOTES}])
        assert await opened.compact("summarise") is not None
        (request,) = opened.model.requests
        assert tokens(request) <= opened.room.usable
        text = text_of(request[0].parts) + "\0" + visible_text(opened.messages)
        found = sum(fact.text in text for fact in planted.facts)
        assert found >= 0.9 * len(planted.facts), f"session {seed}: {found} of {len(planted.facts)}"


async def test_compacted_again_and_again_the_pins_stay() -> None:
    for seed in SAMPLE:
        planted = planted_session(seed)
        opened = OpenedSession(planted)
        for _ in range(4):
            await opened.compact("summarise")
            await opened.compact("collapse")
        gone = missing(opened.messages, planted.facts)
        assert not [fact for fact in gone if fact.is_pinned], f"session {seed}"
