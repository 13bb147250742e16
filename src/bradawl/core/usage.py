"""Token counts and their cost. An unknown price gives an unknown cost, never zero."""

from typing import Literal

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one or more requests. Buckets are disjoint: the prompt is input + cache_read + cache_write."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    """Contained in `output`."""
    source: Literal["reported", "estimated"] = "reported"

    @property
    def prompt(self) -> int:
        """All tokens sent, cached or not."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        """The sum; it is estimated if either is."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            source="reported" if self.source == other.source == "reported" else "estimated",
        )


class PriceTier(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rates for requests whose prompt has more than `above` tokens."""

    above: int
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """US dollars per million tokens; None if unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    tiers: tuple[PriceTier, ...] = ()
    """Sorted by `above`; the last one that applies replaces the rates here."""


def cost(usage: Usage, price: Price | None) -> float | None:
    """US dollars for one request; None if a bucket with tokens has no known price."""
    if price is None:
        return None
    rates: Price | PriceTier = price
    for tier in price.tiers:
        if usage.prompt > tier.above:
            rates = tier
    buckets = (
        (usage.input, rates.input),
        (usage.output, rates.output),
        (usage.cache_read, rates.cache_read),
        (usage.cache_write, rates.cache_write),
    )
    total = 0.0
    for tokens, rate in buckets:
        if tokens == 0:
            continue
        if rate is None:
            return None
        total += tokens * rate / 1_000_000
    return total


def add_costs(first: float | None, second: float | None) -> float | None:
    """The sum of two costs; unknown if either is."""
    return None if first is None or second is None else first + second
