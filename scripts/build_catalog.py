"""Writes src/bradawl/providers/catalog.json and the table of prices its test compares with.

For development only. The two sources are installed into a temporary environment and are not needed afterwards:

    python3 -m venv /tmp/catalog && /tmp/catalog/bin/pip install genai-prices litellm
    /tmp/catalog/bin/python scripts/build_catalog.py --date 2026-11-21

Prices and most context windows come from genai-prices; output limits, the other windows, the smallest cached
prefix and capabilities come from litellm's table. Where both have a window, the smaller one is used. A price that
depends on the hour of the day is left out. With the same versions and date the output is identical.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, NamedTuple

from genai_prices import Usage, data
from genai_prices.types import MatchLogic, ModelInfo, Provider, TieredPrices

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "src" / "bradawl" / "providers" / "catalog.json"
SAMPLES = ROOT / "tests" / "unit" / "price_samples.json"
LIMIT_BYTES = 150_000
SAMPLE_COUNT = 200
SEED = 20260721


class Vendor(NamedTuple):
    """A provider of bradawl, and its names in the sources."""

    name: str
    url: str
    """The prices apply below this URL only: other paths may be subscriptions, other hosts resellers."""
    priced_as: str
    limits_as: str
    prefix: str
    """Prefix of its model names in litellm's table."""


VENDORS = (
    Vendor("openai", "https://api.openai.com/", "openai", "openai", ""),
    Vendor("anthropic", "https://api.anthropic.com/", "anthropic", "anthropic", ""),
    Vendor("openrouter", "https://openrouter.ai/api/", "openrouter", "openrouter", "openrouter/"),
    Vendor("deepseek", "https://api.deepseek.com/", "deepseek", "deepseek", "deepseek/"),
    Vendor("moonshot", "https://api.moonshot.ai/", "moonshotai", "moonshot", "moonshot/"),
    Vendor("zai", "https://api.z.ai/api/paas/", "zai", "zai", "zai/"),
    Vendor("dashscope", "https://dashscope-intl.aliyuncs.com/", "", "dashscope", "dashscope/"),
    Vendor("mistral", "https://api.mistral.ai/", "mistral", "mistral", "mistral/"),
    Vendor("xai", "https://api.x.ai/", "x-ai", "xai", "xai/"),
    Vendor("groq", "https://api.groq.com/", "groq", "groq", "groq/"),
    Vendor("gemini", "https://generativelanguage.googleapis.com/", "google", "gemini", "gemini/"),
    Vendor("cerebras", "https://api.cerebras.ai/", "cerebras", "cerebras", "cerebras/"),
    Vendor("fireworks", "https://api.fireworks.ai/", "fireworks", "fireworks_ai", "fireworks_ai/"),
    Vendor("together", "https://api.together.xyz/", "together", "together_ai", "together_ai/"),
)
BUCKETS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
# Prices of units that bradawl never sends or receives: sound, video, searches by the server.
IRRELEVANT = re.compile(r".*(audio|video|searches|document|cache_write_1h|text_messages|mchars).*")
SAME_AS = {"input_image_mtok": "input_mtok", "cache_image_read_mtok": "cache_read_mtok"}
SAME_AS |= {"output_reasoning_mtok": "output_mtok", "input_text_mtok": "input_mtok", "output_text_mtok": "output_mtok"}
NOT_FOR_TEXT = re.compile(
    r"embed|tts|whisper|transcri|moderation|rerank|realtime|dall-e|imagen?|veo|lyria|audio|voice|ocr|guard|flux|sora"
    r"|stable-diffusion|babbage|davinci|-live|robotics|wan\d|happyhorse|kling|banana|vox(tral)?-mini|bert|bge|m2-",
    re.IGNORECASE,
)
CAPABILITIES = {
    "r": "supports_reasoning",
    "i": "supports_vision",
    "t": "supports_function_calling",
    "s": "supports_response_schema",
}
Row = list[Any]


def main() -> None:
    """Write both files, or exit with the reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--date", type=date.fromisoformat, required=True, help="prices in force on this day, UTC")
    day: date = parser.parse_args().date
    table = distribution("litellm").locate_file("litellm/model_prices_and_context_window_backup.json")
    limits: dict[str, dict[str, Any]] = json.loads(Path(str(table)).read_text("utf-8"))
    vendors: dict[str, Any] = {vendor.name: _vendor(vendor, limits, day) for vendor in VENDORS}
    catalog = {
        "date": day.isoformat(),
        "sources": {name: version(name) for name in ("genai-prices", "litellm")},
        "urls": {vendor.url: vendor.name for vendor in VENDORS},
        "vendors": vendors,
    }
    text = json.dumps(catalog, separators=(",", ":"), ensure_ascii=True) + "\n"
    if len(text) > LIMIT_BYTES:
        sys.exit(f"the catalog has {len(text)} bytes, more than {LIMIT_BYTES}: reduce it")
    CATALOG.write_text(text, encoding="ascii")
    samples = _samples(vendors, day)
    lines = ",\n".join(json.dumps(sample) for sample in samples)
    SAMPLES.write_text(f'{{"date": "{day}", "samples": [\n{lines}\n]}}\n', encoding="ascii")
    counts = {name: len(vendor["models"]) for name, vendor in vendors.items()}
    sys.stdout.write(f"{len(text)} bytes, {sum(counts.values())} models: {counts}\n")


# ------------------------------------------------------------------ one vendor


def _vendor(vendor: Vendor, limits: dict[str, dict[str, Any]], day: date) -> dict[str, Any]:
    known = _limits_of(vendor, limits, day)
    models: dict[str, Row] = {}
    aliases: dict[str, str] = {}
    seller = _seller(vendor.priced_as)
    for model in seller.models if seller else ():
        names = [name for name in _names(model) if seller.find_model(name) is model and _is_wanted(name, vendor)]
        if not names or (vendor.name == "openrouter" and model.context_window is None):
            continue  # removed models of OpenRouter have prices, but no window
        main = model.id if model.id in names else names[0]
        if main not in known and _is_retired(vendor, main, limits, day):
            continue
        price, tiers, is_hourly = _price(model, day)
        notes = ("d" if _takes_dates(seller, model, main) else "") + ("h" if is_hourly else "")
        for name in names:
            limit = known.get(name)
            if name == main or (limit and limit != known.get(main)):
                own = limit or next((known[other] for other in names if other in known), {})
                models[name] = _row(model.context_window, own, price, tiers, notes)
            else:
                aliases[name] = main
    for name, limit in known.items():
        if name not in models and name not in aliases:
            model = seller.find_model(name) if seller else None
            price, tiers, is_hourly = _price(model, day) if model else (None, [], False)
            models[name] = _row(model and model.context_window, limit, price, tiers, "h" if is_hourly else "")
    return {"models": dict(sorted(models.items())), "aliases": dict(sorted(aliases.items()))}


def _seller(name: str) -> Provider | None:
    return next((provider for provider in data.providers if provider.id == name), None)


def _names(model: ModelInfo) -> list[str]:
    names = [model.id] if model.is_match(model.id) else []
    names += [clause.equals for clause in _leaves(model.match) if hasattr(clause, "equals")]
    return list(dict.fromkeys(names))


def _leaves(clause: MatchLogic) -> Iterator[MatchLogic]:
    below = getattr(clause, "or_", None)
    if below is None:
        yield clause
    for each in below or ():
        yield from _leaves(each)


def _is_wanted(name: str, vendor: Vendor) -> bool:
    """False for variants after a colon, which are routed and billed differently, except free ones."""
    if name.startswith(("~", "ft:")) or ".ft-" in name or NOT_FOR_TEXT.search(name):
        return False
    if vendor.name == "gemini" and not name.startswith(("gemini", "gemma")):
        return False  # models of other vendors are at another endpoint of Google
    return vendor.name != "openrouter" or ":" not in name or name.endswith(":free")


def _takes_dates(seller: Provider, model: ModelInfo, main: str) -> bool:
    """True if the source matches this model's name with an unknown date appended."""
    return any(seller.find_model(f"{main}-{day}") is model for day in ("20991231", "2099-12-31"))


def _row(window: int | None, limit: dict[str, Any], price: Row | None, tiers: list[Row], notes: str) -> Row:
    windows = [tokens for tokens in (window, limit.get("window")) if tokens]
    row: Row = [
        min(windows) if windows else None,
        limit.get("max_output"),
        price,
        tiers or None,
        limit.get("capabilities"),
        notes or None,
        limit.get("cache_minimum"),
    ]
    while row and row[-1] is None:
        row.pop()
    return row


# ------------------------------------------------------------------ limits


def _limits_of(vendor: Vendor, limits: dict[str, dict[str, Any]], day: date) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, entry in limits.items():
        if entry.get("litellm_provider") != vendor.limits_as or entry.get("mode") not in ("chat", "responses"):
            continue
        name = key.removeprefix(vendor.prefix)
        if _is_wanted(name, vendor) and not _is_over(entry, day):
            found[name] = _limit(entry)
    return found


def _limit(entry: dict[str, Any]) -> dict[str, Any]:
    letters = "".join(letter for letter, flag in CAPABILITIES.items() if entry.get(flag))
    limit = {
        "window": _tokens(entry.get("max_input_tokens")),
        "max_output": _tokens(entry.get("max_output_tokens")),
        "capabilities": letters,
        "cache_minimum": _tokens(entry.get("prompt_cache_min_tokens")),
    }
    return {name: value for name, value in limit.items() if value is not None}


def _tokens(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def _is_over(entry: dict[str, Any], day: date) -> bool:
    text = entry.get("deprecation_date") or ""
    try:
        return date.fromisoformat(text) < day
    except ValueError:
        return False


def _is_retired(vendor: Vendor, name: str, limits: dict[str, dict[str, Any]], day: date) -> bool:
    entry = limits.get(vendor.prefix + name, {})
    return entry.get("litellm_provider") == vendor.limits_as and _is_over(entry, day)


# ------------------------------------------------------------------ prices


def _price(model: ModelInfo, day: date) -> tuple[Row | None, list[Row], bool]:
    """Base rates and tiers in US dollars per million tokens, and whether they depend on the hour."""
    start = datetime.combine(day, time(), UTC)
    prices = [model.get_prices(start + timedelta(minutes=30 * half)) for half in range(48)]
    if any(price != prices[0] for price in prices):
        return None, [], True
    rates = {name: rate for name, rate in vars(prices[0]).items() if rate is not None}
    if model.id.endswith(":free") and not rates:
        return [0, 0, 0, 0], [], False
    if not _is_plain(rates):
        return None, [], False
    # A bucket without a price of its own is billed as input.
    rates.setdefault("cache_read_mtok", rates["input_mtok"])
    rates.setdefault("cache_write_mtok", rates["input_mtok"])
    base = [_rate_at(rates[name], 0) for name in BUCKETS]
    starts = sorted({tier.start for name in BUCKETS for tier in getattr(rates[name], "tiers", ())})
    tiers = [[above, *(_rate_at(rates[name], above + 1) for name in BUCKETS)] for above in starts]
    return base, tiers, False


def _is_plain(rates: dict[str, Any]) -> bool:
    """True if input and output text have prices and nothing that bradawl sends is billed differently."""
    if "input_mtok" not in rates or "output_mtok" not in rates:
        return False
    others = [name for name in rates if name not in BUCKETS and not IRRELEVANT.fullmatch(name)]
    return all(name in SAME_AS and rates[name] == rates.get(SAME_AS[name]) for name in others)


def _rate_at(rate: Decimal | TieredPrices, tokens: int) -> float | int:
    if not isinstance(rate, Decimal):
        rate = next((tier.price for tier in reversed(rate.tiers) if tokens > tier.start), rate.base)
    return int(rate) if rate == int(rate) else float(rate)


# ------------------------------------------------------------------ price samples for the test


def _samples(vendors: dict[str, Any], day: date) -> list[Row]:
    """Random usages of random models, priced by genai-prices: vendor, model, buckets, US dollars."""
    draw = random.Random(SEED)  # noqa: S311 - the table must be the same each time
    noon = datetime.combine(day, time(12), UTC)
    samples: list[Row] = []
    while len(samples) < SAMPLE_COUNT:
        vendor = draw.choice([vendor for vendor in VENDORS if vendor.priced_as])
        models = vendors[vendor.name]["models"]
        priced = [name for name, row in models.items() if len(row) > 2 and row[2]]
        name = draw.choice(priced)
        buckets = _buckets(draw, [tier[0] for tier in (models[name][3] if len(models[name]) > 3 else None) or ()])
        total = _asked(_seller(vendor.priced_as), name, buckets, noon)
        samples.append([vendor.name, name, *buckets, str(total)])
    return samples


def _buckets(draw: random.Random, starts: list[int]) -> tuple[int, int, int, int]:
    """Tokens of input, output, cache read and cache write; half of the samples at the edge of a tier."""
    prompt = draw.choice(starts) + draw.choice((-1, 0, 1)) if starts and draw.random() < 0.5 else None
    prompt = draw.randrange(0, 10 ** draw.randrange(1, 7)) if prompt is None else prompt
    read = draw.choice((0, draw.randint(0, prompt)))
    write = draw.choice((0, draw.randint(0, prompt - read)))
    return prompt - read - write, draw.randrange(0, 10 ** draw.randrange(1, 6)), read, write


def _asked(seller: Provider | None, name: str, buckets: tuple[int, int, int, int], at: datetime) -> Decimal:
    plain, output, read, write = buckets
    usage = Usage(
        input_tokens=plain + read + write, output_tokens=output, cache_read_tokens=read, cache_write_tokens=write
    )
    model = seller.find_model(name) if seller else None
    if seller is None or model is None:
        sys.exit(f"genai-prices does not know {name} any more")
    return model.calc_price(usage, seller, genai_request_timestamp=at).total_price


if __name__ == "__main__":
    main()
