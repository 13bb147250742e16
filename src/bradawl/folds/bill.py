"""What a session cost by model, as a fold over its log: requests, tokens, US dollars, and what the cache saved."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from bradawl.core.events import AssistantReplied, Compacted, Envelope, PrefixOpened, PromptSubmitted, ReplyWithdrawn
from bradawl.core.usage import Price, Usage, add_costs, cost

PriceOf = Callable[[str, str], Price | None]
"""The price of a model, by provider and model; None if it is unknown."""
Work = Literal["conversation", "sub-agents", "compaction"]
_MAIN = "main"


class BillLine(msgspec.Struct, frozen=True):
    """The requests of one model for one kind of work."""

    provider: str
    """Empty where the log does not name the model: for summaries."""
    model: str
    work: Work
    requests: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    """US dollars; None if that of a request is unknown."""
    saved: float | None = 0.0
    """US dollars less than without a cache, negative if it was more so far; None if the price is unknown."""


class Total(msgspec.Struct, frozen=True):
    """A sum of requests."""

    requests: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    unpriced: int = 0
    """Requests whose cost is unknown."""
    known_cost: float = 0.0
    """The cost of all others."""


class Bill(msgspec.Struct, frozen=True):
    """The whole session, and its last turn with its sub-agents."""

    lines: tuple[BillLine, ...] = ()
    total: Total = Total()
    last_turn: Total = Total()


def bill_of(entries: Iterable[Envelope], price_of: PriceOf) -> Bill:
    """The bill of a session, from all entries of its log: what was taken back or withdrawn is paid all the same."""
    lines: dict[tuple[str, str, Work], BillLine] = {}
    models: dict[str, tuple[str, str]] = {}
    total = last_turn = Total()
    for entry in entries:
        match entry.event:
            case PrefixOpened(provider=provider, model=model):
                models[entry.agent] = provider, model
            case PromptSubmitted() if entry.agent == _MAIN:
                last_turn = Total()
            case (
                AssistantReplied(usage=usage, cost=paid)
                | ReplyWithdrawn(usage=usage, cost=paid)
                | Compacted(usage=usage, cost=paid)
            ):
                if usage is None and not isinstance(entry.event, AssistantReplied):
                    continue
                key = _key(entry, models)
                lines[key] = _with(lines.get(key) or BillLine(*key), usage, paid, price_of)
                total, last_turn = _plus(total, usage, paid), _plus(last_turn, usage, paid)
            case _:
                pass
    return Bill(tuple(lines.values()), total, last_turn)


def _key(entry: Envelope, models: Mapping[str, tuple[str, str]]) -> tuple[str, str, Work]:
    if isinstance(entry.event, Compacted):
        return "", "", "compaction"
    return *models.get(entry.agent, ("", "")), "conversation" if entry.agent == _MAIN else "sub-agents"


def _with(line: BillLine, usage: Usage | None, paid: float | None, price_of: PriceOf) -> BillLine:
    saved = saved_by_cache(usage, paid, price_of(line.provider, line.model))
    return msgspec.structs.replace(
        line,
        requests=line.requests + 1,
        usage=line.usage + (usage or Usage(source="estimated")),
        cost=add_costs(line.cost, None if usage is None else paid),
        saved=add_costs(line.saved, saved),
    )


def saved_by_cache(usage: Usage | None, paid: float | None, price: Price | None) -> float | None:
    """US dollars that a request would have cost more without a cache; None if that is unknown."""
    if usage is None or not (usage.cache_read or usage.cache_write):
        return 0.0
    without = msgspec.structs.replace(usage, input=usage.prompt, cache_read=0, cache_write=0)
    full = cost(without, price)
    return None if full is None or paid is None else full - paid


def _plus(total: Total, usage: Usage | None, paid: float | None) -> Total:
    is_known = usage is not None and paid is not None
    return Total(
        total.requests + 1,
        total.usage + (usage or Usage(source="estimated")),
        add_costs(total.cost, paid if is_known else None),
        total.unpriced + (not is_known),
        total.known_cost + (paid if usage is not None and paid is not None else 0.0),
    )
