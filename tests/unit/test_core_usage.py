"""`Usage` and `cost`: sums of tokens and money; an unknown amount never counts as zero."""

from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.usage import Price, Usage, add_costs, cost

TOKENS = st.integers(0, 10_000_000)
USAGES = st.builds(
    Usage,
    input=TOKENS,
    output=TOKENS,
    cache_read=TOKENS,
    cache_write=TOKENS,
    reasoning=TOKENS,
    source=st.sampled_from(["reported", "estimated"]),
)
RATES = st.none() | st.floats(0, 1000)
PRICES = st.builds(Price, input=RATES, output=RATES, cache_read=RATES, cache_write=RATES)
COSTS = st.none() | st.floats(0, 1e6)


def test_each_bucket_is_priced_by_its_own_rate_per_million():
    usage = Usage(input=1_000_000, output=500_000, cache_read=2_000_000, cache_write=100_000, reasoning=400_000)
    assert cost(usage, Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)) == 3.0 + 7.5 + 0.6 + 0.375


def test_prompt_tokens_include_cached_and_written_tokens():
    assert Usage(input=1, output=100, cache_read=20, cache_write=300, reasoning=50).prompt == 321


def test_without_a_price_the_cost_is_unknown_even_for_nothing():
    assert cost(Usage(), None) is None


def test_a_price_of_zero_is_known():
    assert cost(Usage(input=5, output=5), Price(input=0.0, output=0.0)) == 0.0


def test_a_bucket_that_was_not_used_needs_no_rate():
    assert cost(Usage(input=1_000_000), Price(input=2.0)) == 2.0


@given(USAGES, PRICES)
def test_a_cost_is_unknown_exactly_when_a_used_bucket_has_no_rate(usage: Usage, price: Price):
    pairs = [(usage.input, price.input), (usage.output, price.output)]
    pairs += [(usage.cache_read, price.cache_read), (usage.cache_write, price.cache_write)]
    is_unknown = any(tokens and rate is None for tokens, rate in pairs)
    assert (cost(usage, price) is None) == is_unknown


@given(USAGES, USAGES, USAGES)
def test_addition_is_commutative_and_associative_and_has_a_zero(first: Usage, second: Usage, third: Usage):
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first + Usage() == first


@given(USAGES, USAGES)
def test_one_estimate_makes_the_sum_an_estimate(first: Usage, second: Usage):
    assert ((first + second).source == "reported") == (first.source == second.source == "reported")
    assert (first + second).prompt == first.prompt + second.prompt


@given(COSTS, COSTS)
def test_a_sum_of_costs_is_unknown_when_either_is(first: float | None, second: float | None):
    total = add_costs(first, second)
    assert (total is None) == (first is None or second is None)
