"""What `/context` says of a session, as data: the context window by part, the next compaction, and the cache.

All of it is read when it is asked for, from the log and the transcript; nothing is counted while a turn runs. The
structs are the fields of `/context json`, which docs/context.md explains.
"""

from typing import TYPE_CHECKING, Literal

import msgspec

from bradawl.core.errors import SessionError
from bradawl.core.messages import Assistant
from bradawl.core.ports import ToolSchema, Window
from bradawl.core.usage import Price, Usage
from bradawl.folds.request_use import NewPrefix, RequestUse, SessionUse, Spending, session_use
from bradawl.shaping.compaction.limits import reserved_output
from bradawl.shaping.context_size import message_tokens
from bradawl.shaping.context_use import Context, ContextPart, ContextUse, context_use
from bradawl.shaping.tool_schema import schemas_of

if TYPE_CHECKING:
    from bradawl.agent.session import Session


class FreedPart(msgspec.Struct, frozen=True):
    """Something that a compaction would remove or shorten."""

    label: str
    tokens: int


class CompactionForecast(msgspec.Struct, frozen=True):
    """The next compaction, as it would be done now."""

    tier: str
    at_tokens: int
    """It is done when the conversation has so many tokens."""
    frees_tokens: int
    what: tuple[FreedPart, ...] = ()


class UsedTokens(msgspec.Struct, frozen=True):
    """Tokens of the conversation now."""

    tokens: int
    reported: int
    """Of these, counted by the model; the rest is estimated."""
    factor: float
    """Ratio of reported to estimated tokens, by which estimates are multiplied."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost of some requests."""

    requests: int
    uncached: int
    """Prompt tokens neither read from the cache nor written to it."""
    cache_read: int
    cache_write: int
    output: int
    reasoning: int
    source: Literal["reported", "estimated"]
    cost_usd: float | None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the main agent."""

    step: str
    sent_ms: int
    pause_s: float | None
    provider: str
    model: str
    spent: Spent | None
    """None if nothing is known of it."""
    withdrawn: bool
    taken_back: bool
    new_prefixes: tuple[NewPrefix, ...]
    missed: int
    extra_cost_usd: float | None
    is_miss: bool


class CacheSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The cache over all requests with a report."""

    is_reported: bool
    """False if no request reported cached tokens."""
    hit_rate: float | None
    """Part of the prompt tokens that was read from the cache; None without a report."""
    missed: int
    extra_cost_usd: float | None
    """US dollars that the missed tokens cost more; None if one is unknown."""


class SubAgentsSummary(msgspec.Struct, frozen=True):
    """What sub-agents used; their contexts are their own."""

    count: int
    spent: Spent


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that `/context` shows."""

    session: str
    provider: str
    model: str
    window: Window
    reserved_output: int
    used: UsedTokens
    free: int
    """Tokens that still fit beside those reserved for the reply."""
    parts: tuple[ContextPart, ...]
    compaction_thresholds: tuple[int, ...]
    """Empty if nothing will be compacted."""
    next_compaction: CompactionForecast | None
    compacts_after_errors: bool
    """A request that is refused as too long is compacted and sent again."""
    cache: CacheSummary
    requests: tuple[Request, ...]
    total: Spent
    taken_back: Spent
    sub_agents: SubAgentsSummary
    notes: tuple[str, ...]
    """What could not be read or is not known yet, in sentences."""

    def to_json(self) -> str:
        """One line without a newline; control characters are escaped."""
        from bradawl.safety.control_characters import json_for_terminals

        try:
            encoded = msgspec.json.encode(self)
        except UnicodeEncodeError:  # a lone surrogate in a name that the model wrote
            import json

            plain = json.dumps(msgspec.to_builtins(self)).encode()
            return plain.decode()
        return json_for_terminals(encoded.decode())


async def context_report(session: "Session", forecast: CompactionForecast | None = None) -> ContextReport:
    """Read and measure everything. May ask a local server for its window, which takes a second at most."""
    notes: list[str] = []
    window = await session.model.window()
    uses = _session_use(session, notes)
    used = _context_use(session, uses, notes)
    reserved = reserved_output(window.tokens, session.agent.params.max_output_tokens, session.prefix.info.max_output)
    limits = session.agent.compaction
    thresholds = (limits.snip, limits.summarise, limits.collapse) if limits.is_on and forecast else ()
    origin = session.prefix.info.origin
    room = window.tokens - reserved
    return ContextReport(
        session=session.id,
        provider=origin.provider,
        model=origin.model,
        window=window,
        reserved_output=reserved,
        used=UsedTokens(used.tokens, used.reported, round(session.prefix.factor, 3)),
        free=max(0, room - used.tokens),
        parts=used.parts,
        compaction_thresholds=tuple(int(room * part) for part in thresholds),
        next_compaction=forecast,
        compacts_after_errors=limits.is_on,
        cache=_cache(uses),
        requests=tuple(map(_request, uses.requests)),
        total=_spent(uses.total),
        taken_back=_spent(uses.taken_back),
        sub_agents=SubAgentsSummary(uses.sub_agent_count, _spent(uses.sub_agents)),
        notes=tuple(notes),
    )


# ------------------------------------------------------------------ the window


def _context_use(session: "Session", uses: SessionUse, notes: list[str]) -> ContextUse:
    transcript, factor = session.transcript, session.prefix.factor
    context = Context(
        system=_system(session, notes),
        tools=_tools(session, notes),
        messages=transcript.messages,
        replied_at=transcript.replied_at,
        is_compacted=bool(transcript.summary),
        request_tokens=session.state.estimated_tokens,
    )
    return context_use(context, _report(session, uses), factor)


def _report(session: "Session", uses: SessionUse) -> Usage | None:
    """What the model counted for the last reply and its request; None if the next request would be another one."""
    state, transcript = session.state, session.transcript
    if not state.is_anchored or not transcript.replied_at:
        return None
    if uses.last_reply is not None:
        return uses.last_reply
    last = transcript.messages[transcript.replied_at - 1]
    reply = message_tokens(last) if isinstance(last, Assistant) else 0
    output = min(state.context_tokens, round(session.prefix.factor * reply))
    return Usage(input=state.context_tokens - output, output=output)


def _system(session: "Session", notes: list[str]) -> str | None:
    opened = session.state.prefix
    if session.prefix.is_open:
        return session.prefix.system
    if opened is None:
        notes.append("The system prompt is made with the first prompt; it is not counted yet.")
        return ""
    try:
        return session.blobs.get(opened.system_ref).decode("utf-8", "replace")
    except SessionError as error:
        notes.append(f"The system prompt of this session is lost; the next prompt makes a new one: {error}")
        return None


def _tools(session: "Session", notes: list[str]) -> tuple[ToolSchema, ...] | None:
    opened = session.state.prefix
    if session.prefix.is_open or opened is None:
        return tuple(schemas_of(session.prefix.tools.values()))
    try:
        return msgspec.json.decode(session.blobs.get(opened.tools_ref), type=tuple[ToolSchema, ...])
    except (SessionError, msgspec.DecodeError) as error:
        notes.append(f"The tools as this session sent them are lost: {error}")
        return None


# ------------------------------------------------------------------ requests


def _session_use(session: "Session", notes: list[str]) -> SessionUse:
    infos = (session.prefix.info, session.model.info)
    prices = {(info.origin.provider, info.origin.model): info.price for info in reversed(infos)}

    def price_of(provider: str, model: str) -> Price | None:
        return prices.get((provider, model))

    try:
        return session_use(session.conversation.entries(), price_of)
    except SessionError as error:
        notes.append(f"The requests of this session can't be read: {error}")
        return SessionUse()


def _spent_by(requests: int, usage: Usage, cost: float | None) -> Spent:
    return Spent(
        requests=requests,
        uncached=usage.input,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        output=usage.output,
        reasoning=usage.reasoning,
        source=usage.source,
        cost_usd=cost,
    )


def _spent(spending: Spending) -> Spent:
    return _spent_by(spending.requests, spending.usage, spending.cost)


def _request(use: RequestUse) -> Request:
    return Request(
        step=use.step,
        sent_ms=use.at,
        pause_s=use.pause_s,
        provider=use.provider,
        model=use.model,
        spent=None if use.usage is None else _spent_by(1, use.usage, use.cost),
        withdrawn=use.is_withdrawn,
        taken_back=use.is_taken_back,
        new_prefixes=use.new_prefixes,
        missed=use.missed,
        extra_cost_usd=use.extra_cost,
        is_miss=use.is_miss,
    )


def _cache(uses: SessionUse) -> CacheSummary:
    reported = [each.usage for each in uses.requests if each.usage is not None and each.usage.source == "reported"]
    prompts, read = sum(each.prompt for each in reported), sum(each.cache_read for each in reported)
    extras = [each.extra_cost for each in uses.requests if each.missed]
    known = [extra for extra in extras if extra is not None]
    return CacheSummary(
        is_reported=bool(uses.caching_models),
        hit_rate=round(read / prompts, 4) if prompts and uses.caching_models else None,
        missed=sum(each.missed for each in uses.requests),
        extra_cost_usd=sum(known) if len(known) == len(extras) else None,
    )
