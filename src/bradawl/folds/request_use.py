"""What each request of a session cost and read from the provider's cache, as a fold over the log."""

from collections.abc import Callable, Iterable

import msgspec

from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Envelope,
    HeadMoved,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestSent,
)
from bradawl.core.usage import Price, Usage, add_costs, cost
from bradawl.folds.transcript import branch

PriceOf = Callable[[str, str], Price | None]
"""The price of a model, by provider and model; None if it is unknown."""
_MAIN = "main"
_LEAST_MISSED, _LEAST_PART = 1_024, 0.1
"""Providers cache whole blocks, so a smaller difference is no miss."""


class NewPrefix(msgspec.Struct, frozen=True):
    """Why a request did not continue the one before."""

    reason: str
    """The reason of `PrefixOpened`."""
    first_change: str


class RequestUse(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the main agent that was answered, at least in part."""

    step: str
    """The name of its step as in `/rewind`, for example `3.2`."""
    at: int
    """When it was sent; Unix time in milliseconds, to be shown."""
    pause_s: float | None
    """Seconds since the reply before it; None for the first request of a conversation."""
    provider: str
    model: str
    usage: Usage | None
    """None if nothing is known of it."""
    cost: float | None
    is_withdrawn: bool
    """The reply is void and was asked for again."""
    is_taken_back: bool
    """The conversation was taken back to before it."""
    new_prefixes: tuple[NewPrefix, ...]
    """Prefixes opened since the request before, the first of the session included."""
    shared: int
    """Prompt tokens it has in common with an earlier request, if the prefix is the same."""
    missed: int = 0
    """Of these, the tokens that were not read from the cache; 0 if the model never reported a cache."""
    extra_cost: float | None = None
    """US dollars more than if they had been read from it; None if the price is unknown."""

    @property
    def is_miss(self) -> bool:
        """True if so many tokens were missed that it can't be due to the size of cached blocks."""
        return self.missed >= max(_LEAST_MISSED, self.shared * _LEAST_PART)


class Spending(msgspec.Struct, frozen=True):
    """The sum over some requests."""

    requests: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    """None if that of a request is unknown."""

    def plus(self, usage: Usage | None, cost: float | None) -> "Spending":
        """The sum with one more request."""
        if usage is None:
            return Spending(self.requests + 1, self.usage + Usage(source="estimated"), None)
        return Spending(self.requests + 1, self.usage + usage, add_costs(self.cost, cost))


class SessionUse(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a session."""

    requests: tuple[RequestUse, ...] = ()
    """Those of the main agent, in the order of the log."""
    caching_models: frozenset[tuple[str, str]] = frozenset()
    """Provider and name of the models that reported cached tokens, read or written."""
    last_reply: Usage | None = None
    """Tokens of the last reply of the conversation; None if there is none, or they were not reported."""
    total: Spending = Spending()
    """All requests of the main agent."""
    taken_back: Spending = Spending()
    """The requests that the conversation was taken back to before."""
    summaries: Spending = Spending()
    """The requests for the summaries of compactions; they are part of `total`."""
    sub_agents: Spending = Spending()
    sub_agent_count: int = 0


def session_use(entries: Iterable[Envelope], price_of: PriceOf) -> SessionUse:
    """The requests of a session, from all entries of its log, those of abandoned branches and sub-agents included."""
    entries = tuple(entries)
    chain = branch(entries, _MAIN)
    kept = {entry.seq for entry in chain}
    fold = _Fold()
    for entry in entries:
        fold.take(entry)
    models = frozenset((request.provider, request.model) for request, _ in fold.requests if _has_cache(request.usage))
    requests = tuple(_priced(request, seq in kept, models, price_of) for request, seq in fold.requests)
    return SessionUse(
        requests=requests,
        caching_models=models,
        last_reply=_last_reply(chain),
        total=_with(_sum(requests), fold.summaries),
        summaries=fold.summaries,
        taken_back=_sum(each for each in requests if each.is_taken_back),
        sub_agents=fold.sub_agents,
        sub_agent_count=len(fold.agents),
    )


def _has_cache(usage: Usage | None) -> bool:
    return usage is not None and bool(usage.cache_read or usage.cache_write)


def _sum(requests: Iterable[RequestUse]) -> Spending:
    total = Spending()
    for each in requests:
        total = total.plus(each.usage, each.cost)
    return total


def _with(first: Spending, second: Spending) -> Spending:
    return Spending(first.requests + second.requests, first.usage + second.usage, add_costs(first.cost, second.cost))


def _last_reply(chain: Iterable[Envelope]) -> Usage | None:
    last = next((each.event for each in reversed(tuple(chain)) if isinstance(each.event, AssistantReplied)), None)
    usage = None if last is None else last.usage
    return usage if usage is not None and usage.source == "reported" else None


def _priced(
    request: RequestUse, is_kept: bool, caching_models: frozenset[tuple[str, str]], price_of: PriceOf
) -> RequestUse:
    usage, missed, extra = request.usage, 0, None
    model = request.provider, request.model
    if usage is not None and usage.source == "reported" and model in caching_models:
        missed = max(0, request.shared - usage.cache_read)
        extra = extra_cost(usage, missed, price_of(*model))
    return msgspec.structs.replace(request, is_taken_back=not is_kept, missed=missed, extra_cost=extra)


def extra_cost(usage: Usage, missed: int, price: Price | None) -> float | None:
    """US dollars more than if `missed` tokens of the prompt had been read from the cache; None if it is unknown."""
    written = min(missed, usage.cache_write)
    unread = min(missed - written, usage.input)
    with_hit = msgspec.structs.replace(
        usage,
        input=usage.input - unread,
        cache_write=usage.cache_write - written,
        cache_read=usage.cache_read + written + unread,
    )
    paid, least = cost(usage, price), cost(with_hit, price)
    return None if paid is None or least is None else paid - least


class _Place(msgspec.Struct, frozen=True):
    """What is known at one entry of the log, on its branch."""

    provider: str = ""
    model: str = ""
    new_prefixes: tuple[NewPrefix, ...] = ()
    """Opened since the last request with a report."""
    prompt: int = 0
    """Tokens of the last reported prompt."""
    sent_ms: int = 0
    replied_ms: int | None = None


class _Fold:
    def __init__(self) -> None:
        self.requests: list[tuple[RequestUse, int]] = []
        """Each with the entry of its reply."""
        self.agents: set[str] = set()
        self.sub_agents = Spending()
        self.summaries = Spending()
        self._places: dict[int, _Place] = {}
        self._turn = self._number = 0
        self._request: int | None = None

    def take(self, entry: Envelope) -> None:
        event = entry.event
        if entry.agent != _MAIN:
            self.agents.add(entry.agent)
            if isinstance(event, AssistantReplied | ReplyWithdrawn | Compacted) and event.usage is not None:
                self.sub_agents = self.sub_agents.plus(event.usage, event.cost)
            return
        if isinstance(event, Compacted) and event.usage is not None:
            self.summaries = self.summaries.plus(event.usage, event.cost)
        before = event.to if isinstance(event, HeadMoved) and event.restore != "code" else entry.parent
        place = _Place() if before is None else self._places.get(before, _Place())
        self._places[entry.seq] = self._after(place, entry)

    def _after(self, place: _Place, entry: Envelope) -> _Place:
        match entry.event:
            case PromptSubmitted():
                self._turn, self._number, self._request = self._turn + 1, 1, None
            case PrefixOpened(provider=provider, model=model, reason=reason, first_change=change):
                new = (*place.new_prefixes, NewPrefix(reason, change))
                return msgspec.structs.replace(place, provider=provider, model=model, new_prefixes=new)
            case RequestSent(step):
                if self._request not in (None, step):
                    self._number += 1
                self._request = step
                return msgspec.structs.replace(place, sent_ms=entry.at)
            case AssistantReplied() | ReplyWithdrawn(usage=Usage()):
                return self._replied(place, entry, entry.event)
            case _:
                pass
        return place

    def _replied(self, place: _Place, entry: Envelope, event: AssistantReplied | ReplyWithdrawn) -> _Place:
        usage = event.usage
        prompt = 0 if usage is None or usage.source == "estimated" else usage.prompt
        request = RequestUse(
            step=f"{self._turn}" if self._number == 1 else f"{self._turn}.{self._number}",
            at=place.sent_ms,
            pause_s=None if place.replied_ms is None else max(0, place.sent_ms - place.replied_ms) / 1_000,
            provider=place.provider,
            model=place.model,
            usage=usage,
            cost=event.cost,
            is_withdrawn=isinstance(event, ReplyWithdrawn),
            is_taken_back=False,
            new_prefixes=place.new_prefixes,
            shared=min(place.prompt, prompt),
        )
        self.requests.append((request, entry.seq))
        if not prompt:
            return msgspec.structs.replace(place, replied_ms=entry.at)
        return msgspec.structs.replace(place, replied_ms=entry.at, prompt=prompt, new_prefixes=())
