"""The sub-agents of a session, as a fold over its log: what each was asked, how far it came, what it cost."""

from collections.abc import Iterable

import msgspec

from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    Compacted,
    Envelope,
    ReplyWithdrawn,
    TurnReason,
)
from bradawl.core.usage import Usage, add_costs


class SubAgentWork(msgspec.Struct, frozen=True):
    """One sub-agent."""

    name: str
    kind: str
    prompt: str
    started_ms: int
    ended_ms: int | None = None
    """None while it runs, and if the program ended meanwhile."""
    reason: TurnReason | None = None
    """How it ended; None while it runs."""
    steps: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    """US dollars; None if a reply had no known price."""


def sub_agents_in(entries: Iterable[Envelope]) -> tuple[SubAgentWork, ...]:
    """All sub-agents of a session, in the order in which they were started; from all entries of its log."""
    found: dict[str, SubAgentWork] = {}
    for entry in entries:
        match entry.event:
            case AgentSpawned(spawned, _, kind, prompt):
                found[spawned] = SubAgentWork(spawned, kind, prompt, entry.at)
            case AgentEnded(spawned, reason) if spawned in found:
                found[spawned] = msgspec.structs.replace(found[spawned], ended_ms=entry.at, reason=reason)
            case AssistantReplied() | ReplyWithdrawn() | Compacted() if entry.agent in found:
                found[entry.agent] = _after_request(found[entry.agent], entry.event)
            case _:
                pass
    return tuple(found.values())


def _after_request(work: SubAgentWork, event: AssistantReplied | ReplyWithdrawn | Compacted) -> SubAgentWork:
    steps = work.steps + isinstance(event, AssistantReplied)
    if event.usage is None:
        is_unknown = isinstance(event, AssistantReplied)
        return msgspec.structs.replace(work, steps=steps, cost=None if is_unknown else work.cost)
    cost = add_costs(work.cost, event.cost)
    return msgspec.structs.replace(work, steps=steps, usage=work.usage + event.usage, cost=cost)
