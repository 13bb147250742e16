"""When a conversation is compacted, and how much of it may stay: shares of the window, and what a new prefix costs."""

from typing import Final, Literal

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.usage import Price

Tier = Literal["snip", "summarise", "collapse"]
_MOST_RESERVED: Final = 32_000
_EXPECTED: Final = (3, 50)
_READ, _WRITE = 0.1, 1.25
"""Prices of cached tokens in relation to the others, where they are unknown."""


class CompactionLimits(msgspec.Struct, frozen=True):
    """When a conversation is compacted. Raises `SettingsError`."""

    is_on: bool = True
    """False: only when the user asks for it."""
    snip: float = 0.5
    """Share of the usable window from which long results are shortened; `summarise` and `collapse` likewise."""
    summarise: float = 0.7
    collapse: float = 0.9
    keep_results: int | None = None
    """Keep the last so many results and shorten all others, also while there is room; None keeps all."""

    def __post_init__(self) -> None:
        if not 0 < self.snip <= self.summarise <= self.collapse <= 1:
            raise SettingsError("The thresholds of the compaction must rise, from above 0 to 1 at most.")
        if self.keep_results is not None and self.keep_results < 0:
            raise SettingsError(f"The number of results to keep is 0 or more, not {self.keep_results}.")

    def tier(self, share: float) -> Tier | None:
        """The tier for a conversation that takes this share of the usable window."""
        if share >= self.collapse:
            return "collapse"
        if share >= self.summarise:
            return "summarise"
        return "snip" if share >= self.snip else None

    def next_tier(self, share: float) -> tuple[Tier, float]:
        """The tier that comes next for such a conversation, and the share from which it is due."""
        if share < self.snip:
            return "snip", self.snip
        return ("summarise", self.summarise) if share < self.summarise else ("collapse", self.collapse)


class Room(msgspec.Struct, frozen=True):
    """Tokens, as they are estimated, that the parts of a compacted conversation may take."""

    window: int
    usable: int
    """The window without the reserved output."""
    opening: int
    """System prompt and tools."""

    @classmethod
    def of_any_size(cls, tokens: int) -> "Room":
        """The room of a window that this conversation would fill."""
        return cls(tokens, tokens, 0)

    @property
    def pins(self) -> int:
        """All pins together."""
        return int(self.window * 0.15)

    @property
    def recent(self) -> int:
        """The latest steps, word for word."""
        return max(500, (self.usable - self.opening) // 8)

    @property
    def restored(self) -> int:
        """Files that were read last."""
        return max(0, (self.usable - self.opening) // 10)

    @property
    def least_freed(self) -> int:
        """A `snip` that frees less is not made."""
        return self.usable // 8

    @property
    def least_summarised(self) -> int:
        """A summary that frees less is not made: the latest steps are what fills the window."""
        return self.usable // 6

    @property
    def after_snip(self) -> int:
        """A `snip` shortens results until the messages take no more."""
        return max(0, int(self.usable * 0.38) - self.opening)

    @property
    def unanswered(self) -> int:
        """The last reply and its results, in an emergency."""
        return max(500, int((self.usable - self.opening) * 0.45))


def expected_requests(made: int) -> int:
    """Requests that a turn is taken to make yet: as many as it has made, within limits."""
    fewest, most = _EXPECTED
    return min(most, max(fewest, made))


def reserved_output(window: int, asked: int | None, most: int | None) -> int:
    """Tokens of the window that the reply needs: what requests ask for, or a share that replies rarely exceed."""
    if asked is not None:
        return min(asked, window // 2)
    return min(_MOST_RESERVED, window // 8, most or _MOST_RESERVED)


def saved_tokens(*, kept: int, freed: int, requests: int, price: Price | None, has_cache: bool) -> float:
    """What a compaction saves over the next requests, in uncached input tokens; negative if it costs more.

    Without it each request reads `kept + freed` tokens from the cache. With it the first one writes `kept` tokens to
    the cache, and the others read them:

        saved = requests * freed * read - kept * (write - read)

    `read` and `write` are prices in relation to that of other input. Without a cache both are 1, so that every token
    that is freed is saved each time.
    """
    read, write = _cache_prices(price, has_cache=has_cache)
    return requests * freed * read - kept * (write - read)


def least_worth(tokens: int, requests: int, price: Price | None, *, has_cache: bool) -> int:
    """The fewest of `tokens` that a compaction must free to save anything: where `saved_tokens` is 0."""
    read, write = _cache_prices(price, has_cache=has_cache)
    return round(tokens * (write - read) / (requests * read + write - read)) if write > read else 0


def _cache_prices(price: Price | None, *, has_cache: bool) -> tuple[float, float]:
    if not has_cache:
        return 1.0, 1.0
    if price is None or not price.input:
        return _READ, _WRITE
    read = _READ if price.cache_read is None else price.cache_read / price.input
    return read, _WRITE if price.cache_write is None else (price.cache_write or price.input) / price.input
