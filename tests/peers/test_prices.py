"""The catalog compared with genai-prices: every priced model, with random usages and at the edge of each tier."""

import json
import random
from datetime import UTC, date, datetime, time
from importlib.metadata import version
from pathlib import Path

import pytest
from genai_prices import Usage as PeerUsage
from genai_prices import data

from bradawl.core.usage import Usage, cost
from bradawl.providers import catalog as module
from bradawl.providers.catalog import Catalog

CATALOG = Catalog()
NOON = datetime.combine(date.fromisoformat(CATALOG.source.date), time(12), UTC)
NAMES = {"moonshot": "moonshotai", "xai": "x-ai", "gemini": "google"}
VENDORS = sorted(json.loads(Path(module.__file__).with_name("catalog.json").read_bytes())["vendors"])
SAMPLES = json.loads((Path(__file__).parent.parent / "unit" / "price_samples.json").read_text())["samples"]


def peer_price(vendor, model, usage):
    name = NAMES.get(vendor, vendor)
    seller = next(provider for provider in data.providers if provider.id == name)
    asked = PeerUsage(
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    found = seller.find_model(model)
    return float(found.calc_price(asked, seller, genai_request_timestamp=NOON).total_price)


def usages(price, draw):
    edges = [tier.above + step for tier in price.tiers for step in (-1, 0, 1)]
    for prompt in (*edges, *(draw.randrange(10 ** draw.randrange(1, 7)) for _ in range(4))):
        read = draw.randint(0, prompt)
        write = draw.randint(0, prompt - read)
        yield Usage(prompt - read - write, draw.randrange(100_000), read, write)


def test_the_catalog_was_made_from_the_installed_version():
    assert CATALOG.source.versions["genai-prices"] == version("genai-prices"), "run scripts/build_catalog.py again"


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_priced_model_costs_what_genai_prices_says(vendor):
    draw = random.Random(vendor)  # noqa: S311 - the same usages each time, and nothing secret
    compared = 0
    for model in CATALOG.names(vendor):
        price = CATALOG.look_up(vendor, model).price
        for usage in () if price is None else usages(price, draw):
            assert cost(usage, price) == pytest.approx(peer_price(vendor, model, usage), rel=1e-12, abs=1e-15), model
            compared += 1
    # genai-prices has no provider for this vendor's models, so none of them has a price.
    assert compared == 0 if vendor == "dashscope" else compared > 10


def test_the_price_samples_of_the_unit_tests_are_those_of_genai_prices():
    for vendor, model, plain, output, read, write, dollars in SAMPLES:
        assert peer_price(vendor, model, Usage(plain, output, read, write)) == float(dollars)
