"""The catalog of models: costs agree with genai-prices, and missing data stays unknown."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.settings.providers import PROVIDERS
from bradawl.core.usage import Price, PriceTier, Usage, cost
from bradawl.providers import catalog as module
from bradawl.providers.catalog import Catalog

SAMPLES = json.loads(Path(__file__).with_name("price_samples.json").read_text())
FILE = Path(module.__file__).with_name("catalog.json")


@pytest.fixture(scope="module")
def catalog():
    return Catalog()


@pytest.mark.parametrize("sample", SAMPLES["samples"], ids=lambda sample: f"{sample[0]}-{sample[1]}")
def test_a_random_usage_costs_what_genai_prices_says(catalog, sample):
    vendor, model, plain, output, read, write, dollars = sample
    entry = catalog.look_up(vendor, model)
    total = cost(Usage(input=plain, output=output, cache_read=read, cache_write=write), entry.price)
    assert total == pytest.approx(float(dollars), rel=1e-12, abs=1e-15)


def test_the_200_samples_cover_price_tiers_and_every_kind_of_token(catalog):
    samples = SAMPLES["samples"]
    assert len(samples) == 200
    assert SAMPLES["date"] == catalog.source.date
    assert all(sum(1 for sample in samples if sample[column]) > 40 for column in (2, 3, 4, 5))
    assert sum(1 for vendor, model, *_ in samples if catalog.look_up(vendor, model).price.tiers) > 10


def test_the_catalog_file_is_small_and_names_its_sources(catalog):
    assert FILE.stat().st_size < 150_000
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", catalog.source.date)
    assert set(catalog.source.versions) == {"genai-prices", "litellm"}


def test_a_look_up_in_a_fresh_catalog_takes_less_than_two_milliseconds():
    def once():
        start = time.perf_counter()
        catalog = Catalog()
        assert catalog.look_up(catalog.vendor_at("https://openrouter.ai/api/v1"), "anthropic/claude-opus-5.5")
        return time.perf_counter() - start

    assert min(once() for _ in range(20)) < 0.002


def test_every_row_of_the_table_can_be_read(catalog):
    vendors = json.loads(FILE.read_bytes())["vendors"]
    assert set(vendors) <= set(PROVIDERS)
    entries = [catalog.look_up(vendor, name) for vendor in vendors for name in catalog.names(vendor)]
    assert len(entries) > 500
    for vendor, table in vendors.items():
        for alias, name in table["aliases"].items():
            assert catalog.look_up(vendor, alias).name == name
    for entry in entries:
        assert entry.context_window is None or entry.context_window > 0
        if entry.price:
            assert [tier.above for tier in entry.price.tiers] == sorted({tier.above for tier in entry.price.tiers})


def test_every_default_model_is_known_to_the_catalog(catalog):
    defaults = {name: known.default_model for name, known in PROVIDERS.items() if known.default_model}
    assert set(defaults) == {"openai", "anthropic", "deepseek"}
    assert [name for name, model in defaults.items() if catalog.look_up(name, model) is None] == []


def test_the_base_url_of_each_known_provider_belongs_to_its_vendor(catalog):
    vendors = json.loads(FILE.read_bytes())["vendors"]
    assert {name: catalog.vendor_at(PROVIDERS[name].base_url) for name in vendors} == {name: name for name in vendors}


@pytest.mark.parametrize(
    ("url", "vendor"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://api.openai.com", "openai"),
        ("HTTPS://API.OpenAI.com:443/v1", "openai"),
        ("https://api.openai.com.evil.example/v1", ""),
        ("https://api.openai.community/v1", ""),
        ("http://api.openai.com/v1", ""),
        ("https://api.openai.com:8443/v1", ""),
        ("https://eu.api.openai.com/v1", ""),
        ("https://api.z.ai/api/paas/v4", "zai"),
        ("https://api.z.ai/api/coding/paas/v4", ""),
        ("http://127.0.0.1:8000/v1", ""),
        ("https://gateway.example/https://api.openai.com/", ""),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_only_a_vendors_own_endpoint_has_its_prices(catalog, url, vendor):
    assert catalog.vendor_at(url) == vendor


@pytest.mark.parametrize(
    ("vendor", "model", "name"),
    [
        ("openai", "gpt-5.5", "gpt-5.5"),
        ("openai", "gpt-5.5-2026-04-23", "gpt-5.5"),
        ("openai", "gpt-5.5-20260423", "gpt-5.5"),
        ("openai", "gpt-5.6-sol-2031-01-02", "gpt-5.6-sol"),
        ("anthropic", "claude-opus-5-5", "claude-opus-5-5"),
        ("anthropic", "claude-opus-5-5-20310102", "claude-opus-5-5"),
        ("openrouter", "anthropic/claude-opus-5.5", "anthropic/claude-opus-5.5"),
        ("gemini", "models/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_model_is_found_by_its_other_names_too(catalog, vendor, model, name):
    assert catalog.look_up(vendor, model).name == name


@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("openai", "gpt-5.5-ultra"),
        ("openai", "gpt-5"[:-1]),
        ("openai", "gpt-4o-2031-01-02"),  # its snapshots had their own prices
        ("openai", "gpt-5.6-sol-2031-13-02"),
        ("openai", "GPT-5.5"),
        ("anthropic", "claude-opus-5-6"),
        ("anthropic", "claude-opus-5-5-20311399"),
        ("anthropic", "anthropic/claude-opus-5-5"),
        ("openrouter", "claude-opus-5.5"),
        ("openrouter", "anthropic/claude-opus-5.5:nitro"),
        ("openrouter", "openai/gpt-5.5:free"),
        ("openrouter", "openai/gpt-5.5:online"),
        ("no-such-vendor", "gpt-5.5"),
        ("", "gpt-5.5"),
        ("openai", ""),
    ],
)
def test_a_model_that_is_not_in_the_table_is_unknown(catalog, vendor, model):
    assert catalog.look_up(vendor, model) is None


@given(st.text(max_size=40))
def test_a_look_up_of_any_text_returns_an_entry_or_none(name):
    catalog = Catalog(b'{"date":"2026-01-01","sources":{},"urls":{},"vendors":{"v":{"models":{"m":[5]},"aliases":{}}}}')
    found = catalog.look_up("v", name)
    assert (found is not None) == (name.removeprefix("models/") == "m")


def test_a_price_that_depends_on_the_hour_is_unknown(catalog):
    entry = catalog.look_up("deepseek", "deepseek-flash")
    assert entry.is_hourly and entry.price is None
    assert entry.context_window == 1_000_000


def test_a_free_model_costs_nothing_rather_than_an_unknown_amount(catalog):
    free = [name for name in catalog.names("openrouter") if name.endswith(":free")]
    assert len(free) > 5
    assert {cost(Usage(1000, 1000, 10, 10), catalog.look_up("openrouter", name).price) for name in free} == {0.0}


def test_capabilities_are_unknown_where_no_source_lists_them(catalog):
    assert catalog.look_up("openai", "gpt-5.5").capabilities >= {"reasoning", "tools", "images"}
    assert catalog.look_up("openrouter", "anthropic/claude-opus-5.5").capabilities is None
    assert catalog.look_up("anthropic", "claude-sonnet-4-5").cache_minimum == 1024


def test_the_rates_of_a_tier_hold_for_the_whole_request():
    price = Price(1.0, 2.0, 0.1, 1.25, (PriceTier(100, 2.0, 4.0, 0.2, 2.5), PriceTier(1000, 10.0, 20.0, 1.0, 12.5)))
    per_token = [cost(Usage(input=prompt, output=1), price) * 1e6 for prompt in (100, 101, 1000, 1001)]
    assert per_token == pytest.approx([102.0, 206.0, 2004.0, 10030.0])


def test_cached_tokens_count_towards_a_tier():
    price = Price(1.0, 2.0, 0.1, tiers=(PriceTier(100, 2.0, 4.0, 0.2),))
    assert cost(Usage(input=1, cache_read=100), price) == pytest.approx((2.0 + 20.0) / 1e6)


def test_a_tier_without_a_rate_leaves_the_cost_unknown():
    assert cost(Usage(input=200, output=1), Price(1.0, 2.0, tiers=(PriceTier(100, input=2.0),))) is None
