"""Starts and counts the sub-agents of a session; each has its own conversation in the log of the session."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from bradawl.agent.calls.denials import Denials
from bradawl.agent.conversation import Conversation
from bradawl.agent.recovery import repair, what_changed
from bradawl.agent.session import Session
from bradawl.core.errors import ToolError
from bradawl.core.events import AgentEnded, AgentSpawned, Cwd, Env, Envelope, StateChanged, TurnReason
from bradawl.core.ports import Files
from bradawl.folds.transcript import branch

OpenChild = Callable[[AgentSpawned, str, tuple[Envelope, ...]], Session]
"""Opens the session of a sub-agent in a working directory, with its entries of the log."""

MOST_SUB_AGENTS: Final = 200
"""Maximum number of sub-agents of one session; a model that starts more is not making progress."""
KINDS: Final = ("explore", "general")


class CallSpawner(msgspec.Struct, frozen=True):
    """`Spawner` of one call: its sub-agent begins with the working directory and variables of the call."""

    sub_agents: "SubAgents"
    cwd: str
    env: Mapping[str, str | None]
    progress: Callable[[str], None]

    async def spawn(self, kind: str, prompt: str, call_id: str) -> tuple[str, AgentEnded]:
        """Run a sub-agent to its end. Returns its conclusion, or what it had found. Raises `ToolError`."""
        return await self.sub_agents.run(self, AgentSpawned("", call_id, kind, prompt))


class SubAgents:
    """All sub-agents of one session."""

    def __init__(
        self,
        conversation: Conversation,
        files: Files,
        entries: Sequence[Envelope],
        open_child: OpenChild,
        denials: Denials,
    ) -> None:
        """`entries` are those already in the log; refused calls of sub-agents are added to `denials`."""
        self._conversation, self._files = conversation, files
        self._open, self._denials = open_child, denials
        self._names = {entry.agent for entry in entries} - {conversation.name}
        self._names |= {entry.event.spawned for entry in entries if isinstance(entry.event, AgentSpawned)}
        self._left = _left_open(entries)

    def at(self, cwd: str, env: Mapping[str, str | None], progress: Callable[[str], None]) -> CallSpawner:
        """The spawner of a call with this working directory, these variables and this callback for progress."""
        return CallSpawner(self, cwd, env, progress)

    async def run(self, start: CallSpawner, wanted: AgentSpawned) -> tuple[str, AgentEnded]:
        """Run a sub-agent. Its end and its cost are logged in any case. Raises `ToolError`."""
        from bradawl.agent.subagents.child import conclusion, shown_with

        conversation, spawned = self._conversation, self._admitted(wanted)
        conversation.record(spawned)
        child = self._open(spawned, start.cwd, ())
        reason: TurnReason = "error"
        try:
            async with child:
                child.conversation.record(StateChanged(Cwd(start.cwd)))
                if start.env:
                    child.conversation.record(StateChanged(Env(dict(start.env))))
                result = await child.run(spawned.prompt, shown_with(conversation.emit, start.progress))
            reason = result.reason
        except asyncio.CancelledError:
            reason = "cancelled"
            raise
        finally:
            self._denials.add_sub_agent(spawned.call_id, child.denials)
            ended = AgentEnded(spawned.spawned, reason, child.state.usage, child.state.cost)
            conversation.record(ended)
        return conclusion(child.conversation, result), ended

    async def recover(self) -> dict[str, str]:
        """Log the end of the sub-agents that ran when the program ended. Returns what each had found, by call id."""
        found: dict[str, str] = {}
        left, self._left = self._left, ()
        if not left:
            return found
        from bradawl.agent.subagents.child import found_so_far

        for spawned, entries in left:
            session = self._open(spawned, "", entries)
            child, origin = session.conversation, session.prefix.info.origin
            if (changes := session.calls.changes) is not None:
                changes.end_interrupted(child.transcript.started)
            known = await what_changed(self._files, child.transcript)
            for event in repair(child.transcript, origin, child.state.steps, known):
                child.record(event)
            if changes is not None:
                await changes.settle_or_give_up()
            ended = AgentEnded(spawned.spawned, "interrupted", child.state.usage, child.state.cost)
            self._conversation.record(ended)
            found[spawned.call_id] = found_so_far(child)
        return found

    def _admitted(self, wanted: AgentSpawned) -> AgentSpawned:
        if self._conversation.is_sub_agent:
            raise ToolError("a sub-agent can't start others; do the task yourself")
        if wanted.kind not in KINDS:
            raise ToolError(f"there is no kind {wanted.kind!r} of sub-agents; the kinds are {', '.join(KINDS)}")
        if len(self._names) >= MOST_SUB_AGENTS:
            raise ToolError(
                f"{MOST_SUB_AGENTS} sub-agents were started in this session, which is the limit; do the rest yourself"
            )
        number = next(n for n in range(1, MOST_SUB_AGENTS + 2) if f"agent-{n}" not in self._names)
        self._names.add(f"agent-{number}")
        return msgspec.structs.replace(wanted, spawned=f"agent-{number}")


def _left_open(entries: Sequence[Envelope]) -> tuple[tuple[AgentSpawned, tuple[Envelope, ...]], ...]:
    """Sub-agents whose end is not in the log, with their entries."""
    if not any(isinstance(entry.event, AgentSpawned) for entry in entries):
        return ()
    events = [entry.event for entry in branch(entries)]
    ended = {event.spawned for event in events if isinstance(event, AgentEnded)}
    left = (event for event in events if isinstance(event, AgentSpawned) and event.spawned not in ended)
    return tuple((one, tuple(entry for entry in entries if entry.agent == one.spawned)) for one in left)
