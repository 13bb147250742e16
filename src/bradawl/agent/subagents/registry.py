"""Runs sub-agents: conversations of their own inside a session, written into its log under their own names."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.agent.recovery import repair, what_changed
from bradawl.core.errors import ToolError
from bradawl.core.events import AgentEnded, AgentSpawned, Cwd, Env, Envelope, StateChanged, TurnReason
from bradawl.folds.transcript import branch

if TYPE_CHECKING:
    from bradawl.agent.session import Session

MOST: Final = 200
"""Sub-agents of one session; more are a model that has lost its way."""
KINDS: Final = ("explore", "general")


class Start(msgspec.Struct, frozen=True):
    """`Spawner` for one call: its sub-agent begins where the call runs."""

    sub_agents: "SubAgents"
    cwd: str
    env: Mapping[str, str | None]
    progress: Callable[[str], None]

    async def spawn(self, kind: str, prompt: str, call_id: str) -> tuple[str, AgentEnded]:
        """Run one to its end; gives back its conclusion, or else what it had found. Raises `ToolError`."""
        return await self.sub_agents.run(self, AgentSpawned("", call_id, kind, prompt))


class SubAgents:
    """All sub-agents of one session."""

    def __init__(self, session: "Session", entries: Sequence[Envelope]) -> None:
        """`entries` is what is in the log already."""
        self._session = session
        self._names = {entry.agent for entry in entries} - {session.name}
        self._names |= {entry.event.spawned for entry in entries if isinstance(entry.event, AgentSpawned)}
        self._left = _left_open(entries)

    def at(self, cwd: str, env: Mapping[str, str | None], progress: Callable[[str], None]) -> Start:
        """For a call that runs there and shows its progress so."""
        return Start(self, cwd, env, progress)

    async def run(self, start: Start, wanted: AgentSpawned) -> tuple[str, AgentEnded]:
        """Run one; whatever becomes of it, the log says that it ended and what it cost. Raises `ToolError`."""
        from bradawl.agent.subagents.child import conclusion, shown_with

        session, spawned = self._session, self._admitted(wanted)
        session.record(spawned)
        child = self._open(spawned, start.cwd)
        reason: TurnReason = "error"
        try:
            async with child:
                child.record(StateChanged(Cwd(start.cwd)))
                if start.env:
                    child.record(StateChanged(Env(dict(start.env))))
                result = await child.run(spawned.prompt, shown_with(session.emit, start.progress))
            reason = result.reason
        except asyncio.CancelledError:
            reason = "cancelled"
            raise
        finally:
            session.denials.extend(child.denials)
            ended = AgentEnded(spawned.spawned, reason, child.state.usage, child.state.cost)
            session.record(ended)
        return conclusion(child, result), ended

    async def recover(self) -> dict[str, str]:
        """Close in the log what ran when the program ended; by call, how far its sub-agent had come."""
        told: dict[str, str] = {}
        left, self._left = self._left, ()
        if not left:
            return told
        from bradawl.agent.subagents.child import found_so_far

        for spawned, entries in left:
            child = self._open(spawned, "", entries)
            for event in repair(child.transcript, child.info.origin, child.state.steps, await what_changed(child)):
                child.record(event)
            ended = AgentEnded(spawned.spawned, "interrupted", child.state.usage, child.state.cost)
            self._session.record(ended)
            told[spawned.call_id] = found_so_far(child)
        return told

    def _admitted(self, wanted: AgentSpawned) -> AgentSpawned:
        if self._session.is_sub_agent:
            raise ToolError("a sub-agent can't start others; do the task yourself")
        if wanted.kind not in KINDS:
            raise ToolError(f"there is no kind {wanted.kind!r} of sub-agents; the kinds are {', '.join(KINDS)}")
        if len(self._names) >= MOST:
            raise ToolError(f"{MOST} sub-agents were started in this session, which is the limit; do the rest yourself")
        number = next(n for n in range(1, MOST + 2) if f"agent-{n}" not in self._names)
        self._names.add(f"agent-{number}")
        return msgspec.structs.replace(wanted, spawned=f"agent-{number}")

    def _open(self, spawned: AgentSpawned, cwd: str, entries: tuple[Envelope, ...] = ()) -> "Session":
        from bradawl.agent.subagents.child import open_inside

        return open_inside(self._session, spawned, cwd, entries)


def _left_open(entries: Sequence[Envelope]) -> tuple[tuple[AgentSpawned, tuple[Envelope, ...]], ...]:
    """Sub-agents whose end nobody has written down, with their entries."""
    if not any(isinstance(entry.event, AgentSpawned) for entry in entries):
        return ()
    events = [entry.event for entry in branch(entries)]
    ended = {event.spawned for event in events if isinstance(event, AgentEnded)}
    left = (event for event in events if isinstance(event, AgentSpawned) and event.spawned not in ended)
    return tuple((one, tuple(entry for entry in entries if entry.agent == one.spawned)) for one in left)
