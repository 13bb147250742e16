"""The tool `agent`: gives a task to a sub-agent."""

from typing import Annotated, Literal

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import AgentEnded, TurnReason
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec

LIMIT = 20_000
"""Characters of a conclusion that the model sees; a longer one is cut at its beginning."""

_ENDINGS: dict[TurnReason, str] = {
    "error": "it failed",
    "steps": "it reached its limit of steps",
    "budget": "it reached the limit of cost",
    "time": "it reached the limit of time",
    "limit": "it reached a limit",
    "refused": "calls of it, or its task, were refused",
    "cancelled": "it was cancelled",
    "interrupted": "it was interrupted",
}


class AgentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Give a task to a sub-agent with an empty context: it can't ask, and only its final text comes back.
    Several in one reply run at the same time."""

    prompt: Annotated[str, msgspec.Meta(description="All it must know, and what to report.")]
    kind: Annotated[Literal["explore", "general"], msgspec.Meta(description="explore only reads.")] = "general"
    description: Annotated[str, msgspec.Meta(description="A few words for the user.")] = ""


class AgentTool:
    """The tool `agent`."""

    spec: ToolSpec = ToolSpec(
        "agent",
        kind="run",
        rule_names=("Agent",),
        read_rules="later",
        shows=("description", "prompt"),
        main_agent_only=True,
    )
    params: type[AgentParams] = AgentParams
    is_listed: bool = True
    """False: calls are answered, but requests do not offer the tool."""

    def effects(self, params: AgentParams, context: CallContext) -> Effects:
        """Spends money and reads the working directory; the sub-agent's calls are judged one by one."""
        if not params.prompt.strip():
            raise ToolError("prompt is empty; say what the sub-agent is to do and what to report")
        return Effects(reads=(context.resolve("."),), spends=True)

    async def run(self, params: AgentParams, context: CallContext) -> ToolOutput:
        """The sub-agent's conclusion, after a note if it did not complete its task."""
        if context.spawner is None:
            raise ToolError("no sub-agents can be started here; do the task yourself")
        said, ended = await context.spawner.spawn(params.kind, params.prompt, context.call_id)
        notes = _how_it_ended(ended)
        whole = said.strip() or "(it said nothing)"
        shown = whole[-LIMIT:]
        if len(shown) < len(whole):
            notes.append(f"[the first {len(whole) - len(shown):,} characters are cut]")
        text = "\n".join([*notes, shown])
        full = whole.encode("utf-8", "replace") if shown != whole else None
        return ToolOutput((Text(text),), full, is_error=ended.reason != "completed", limit=None)


def _how_it_ended(ended: AgentEnded) -> list[str]:
    """Empty if the sub-agent completed its task."""
    if ended.reason == "completed":
        return []
    why = _ENDINGS[ended.reason]
    return [f"[the sub-agent did not complete its task: {why}; take what follows as unfinished]"]
