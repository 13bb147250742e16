"""The settings for compaction."""

import pytest

from bradawl.app.settings.compaction_values import compaction_limits, parse_kept_results, parse_percents
from bradawl.app.settings.load import load_settings
from bradawl.core.errors import SettingsError
from bradawl.core.usage import Price
from bradawl.shaping.compaction.limits import CompactionLimits, expected_requests, least_worth, reserved_output
from bradawl.shaping.compaction.limits import saved_tokens as saved


@pytest.mark.parametrize("value", ["50,70,90", " 50%, 70% ,90%", [50, 70, 90]])
def test_the_thresholds_are_three_rising_percentages(value):
    assert parse_percents(value, "compact_at") == (50, 70, 90)


@pytest.mark.parametrize(
    "value", ["", "50", "50,70", "70,50,90", "0,70,90", "50,70,101", "a,b,c", 50, True, [1, 2, True]]
)
def test_other_thresholds_are_refused(value):
    with pytest.raises(SettingsError, match=r"^--compact-at is three rising percentages from 1 to 100"):
        parse_percents(value, "--compact-at")


@pytest.mark.parametrize(("value", "number"), [("0", 0), (5, 5), ("12", 12)])
def test_the_number_of_results_to_keep_may_be_zero(value, number):
    assert parse_kept_results(value, "x") == number


@pytest.mark.parametrize("value", ["-1", -1, "", "many", True, 1.5, None])
def test_another_number_of_results_is_refused(value):
    with pytest.raises(SettingsError, match="a whole number of at least 0"):
        parse_kept_results(value, "keep_tool_results")


def test_the_settings_become_limits(tmp_path):
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "k", "BRADAWL_MODEL": "openai/m"}
    variables = {"BRADAWL_AUTO_COMPACT": "false", "BRADAWL_COMPACT_AT": "40,60,80", "BRADAWL_KEEP_TOOL_RESULTS": "3"}
    limits = compaction_limits(load_settings({}, environ | variables, str(tmp_path), tmp_path / "managed.toml"))
    assert limits == CompactionLimits(is_on=False, snip=0.4, summarise=0.6, collapse=0.8, keep_results=3)
    assert compaction_limits(load_settings({}, environ, str(tmp_path), tmp_path / "managed.toml")) == CompactionLimits()


@pytest.mark.parametrize("wrong", [{"snip": 0.0}, {"snip": 0.8}, {"collapse": 1.1}, {"keep_results": -2}])
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(SettingsError):
        CompactionLimits(**wrong)


def test_each_tier_begins_at_its_share():
    limits = CompactionLimits()
    assert [limits.tier(share) for share in (0.0, 0.49, 0.5, 0.69, 0.7, 0.9, 1.4)] == [
        *(None, None, "snip", "snip", "summarise", "collapse", "collapse")
    ]
    assert [limits.next_tier(share)[0] for share in (0.1, 0.55, 0.75, 0.95)] == [
        *("snip", "summarise", "collapse", "collapse")
    ]


def test_the_reserve_is_what_requests_ask_for_up_to_half_of_the_window():
    assert reserved_output(200_000, None, None) == 25_000
    assert reserved_output(1_000_000, None, 64_000) == 32_000
    assert reserved_output(200_000, None, 8_192) == 8_192
    assert reserved_output(200_000, 30_000, 8_192) == 30_000
    assert reserved_output(8_000, 30_000, None) == 4_000


OPUS = Price(input=5.0, output=25.0, cache_read=0.5, cache_write=6.25)


def test_a_compaction_saves_what_it_frees_and_costs_a_new_entry_of_the_cache():
    # 40,000 of 100,000 tokens freed: each later request reads 40,000 less, and 60,000 are written once.
    assert saved(kept=60_000, freed=40_000, requests=20, price=OPUS, has_cache=True) == pytest.approx(11_000)
    assert saved(kept=60_000, freed=40_000, requests=3, price=OPUS, has_cache=True) == pytest.approx(-57_000)
    assert saved(kept=60_000, freed=40_000, requests=3, price=None, has_cache=False) == 120_000


@pytest.mark.parametrize("requests", [3, 10, 50])
def test_from_the_least_worth_on_a_compaction_saves(requests):
    least = least_worth(100_000, requests, OPUS, has_cache=True)
    assert saved(kept=100_000 - least - 1, freed=least + 1, requests=requests, price=OPUS, has_cache=True) > 0
    assert saved(kept=100_000 - least + 1, freed=least - 1, requests=requests, price=OPUS, has_cache=True) < 0
    assert least_worth(100_000, requests, OPUS, has_cache=False) == 0


def test_a_turn_is_expected_to_go_on_for_as_long_as_it_has_lasted():
    assert [expected_requests(made) for made in (0, 3, 20, 400)] == [3, 3, 20, 50]
