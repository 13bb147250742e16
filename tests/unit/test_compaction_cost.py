"""The cost of a compaction on recorded runs: what the formula says is what the requests then cost.

`recorded_runs.json` has, for each run, a pair for each request: the tokens of its prompt, and how many of them a `snip`
before it would have freed. The runs are repairs of real bugs in open projects.
"""

import json
from pathlib import Path

import pytest

from bradawl.core.usage import Price, Usage, cost
from bradawl.shaping.compaction.limits import expected_requests, least_worth, saved_tokens

RUNS = json.loads(Path(__file__).with_name("recorded_runs.json").read_text())
CACHED = Price(input=5.0, output=25.0, cache_read=0.5, cache_write=6.25)
PLAIN = Price(input=5.0, output=25.0, cache_read=5.0, cache_write=5.0)


def paid(run: list[list[int]], price: Price, snipped_at: int | None = None) -> float:
    """US dollars for the prompts of a run, with a snip before one of its requests or without."""
    freed, total, before = 0, 0.0, 0
    for number, (tokens, may_free) in enumerate(run):
        if number == snipped_at:
            freed, before = may_free, 0  # nothing of the new prefix is in the cache
        prompt = tokens - freed
        read = min(before, prompt)
        price_of = cost(Usage(cache_read=read, cache_write=prompt - read), price)
        assert price_of is not None
        total, before = total + price_of, prompt
    return total


def places() -> list[tuple[int, int]]:
    """Runs and requests at which a snip would free something."""
    return [(r, n) for r, run in enumerate(RUNS) for n, (_, freed) in enumerate(run) if freed]


@pytest.mark.parametrize(("price", "has_cache"), [(CACHED, True), (PLAIN, False)])
def test_the_formula_is_what_the_requests_then_cost(price: Price, has_cache: bool) -> None:
    assert len(places()) > 20
    for place, number in places():
        run = RUNS[place]
        tokens, freed = run[number]
        # Without a snip, this request too would write what is new since the last one.
        new = tokens - run[number - 1][0]
        saved = saved_tokens(
            kept=tokens - freed, freed=freed, requests=len(run) - number, price=price, has_cache=has_cache
        )
        real = (paid(run, price) - paid(run, price, number)) / (price.input or 1) * 1e6
        written = new * ((price.cache_write or 0) - (price.cache_read or 0)) / (price.input or 1)
        assert real == pytest.approx(saved + written, rel=0.01, abs=20)


def test_a_snip_that_is_made_never_costs_much_and_saves_in_sum() -> None:
    kept, made, always = 0.0, 0.0, 0.0
    for run in RUNS:
        plain = paid(run, CACHED)
        due = [
            number
            for number, (tokens, freed) in enumerate(run)
            if freed > least_worth(tokens, expected_requests(number), CACHED, has_cache=True)
        ]
        first = next((number for number, (_, freed) in enumerate(run) if freed), None)
        kept += plain
        made += paid(run, CACHED, due[0]) if due else plain
        always += paid(run, CACHED, first)
        assert (paid(run, CACHED, due[0]) if due else plain) < plain * 1.35
    assert made <= always
    assert made < kept * 1.05


def test_without_a_cache_every_snip_saves() -> None:
    assert all(paid(RUNS[place], PLAIN, number) < paid(RUNS[place], PLAIN) for place, number in places())
