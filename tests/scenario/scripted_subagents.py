"""Builds an agent with sub-agents that have a script of their own, for scenario tests."""

import asyncio
import json
from typing import Any

from scripted_agent import Probe, ProbeParams, build

from bradawl.agent.agent import Agent
from bradawl.core.events import Envelope, Event
from bradawl.core.ports import CallContext, ModelInfo, ModelSession, Prefix, ToolOutput, Window
from bradawl.testing.fakes import MemoryStore
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.agent import AgentTool

MARK = "You are a sub-agent"


class TwoScripts:
    """A `Model` with two scripts. Each sub-agent starts at the beginning of the second one."""

    def __init__(self, main: list[dict[str, Any]], sub: list[dict[str, Any]], **facts: Any) -> None:
        self.main = ScriptedModel(json.dumps(main).encode(), **facts)
        self.sub = ScriptedModel(json.dumps(sub).encode(), per_session=True, **facts)
        self.ids: list[str] = []

    @property
    def info(self) -> ModelInfo:
        return self.main.info

    def open(self, prefix: Prefix, session_id: str = "") -> ModelSession:
        self.ids.append(session_id)
        return (self.sub if MARK in prefix.system else self.main).open(prefix, session_id)

    async def window(self) -> Window:
        return await self.main.window()

    async def aclose(self) -> None:
        """Nothing to close."""


class Crowd(Probe):
    """A probe whose calls wait for each other: `is_full` is set when `size` of them have started."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.is_full = asyncio.Event()
        self._missing = size

    async def run(self, params: ProbeParams, context: CallContext) -> ToolOutput:
        self._missing -= 1
        if self._missing == 0:
            self.is_full.set()
        return await super().run(params, context)


def task(call_id: str, prompt: str = "look", **arguments: Any) -> dict[str, Any]:
    """A script entry: one call that starts a sub-agent."""
    return {"id": call_id, "name": "agent", "arguments": {"prompt": prompt, **arguments}}


def family(
    main: list[dict[str, Any]], sub: list[dict[str, Any]], tools: tuple[Any, ...] = (), **changes: Any
) -> tuple[Agent, TwoScripts, Probe]:
    """An agent with sub-agents, its model, and the probe that all of them share."""
    probe = changes.pop("probe", None) or Probe()
    facts = {name: changes.pop(name) for name in ("price", "clock") if name in changes}
    model = TwoScripts(main, sub, **facts)
    if "clock" in facts:
        changes["clock"] = facts["clock"]
    agent, *_ = build([], model=model, tools=(AgentTool(), probe, *tools), **changes)
    return agent, model, probe


def entries_of(store: MemoryStore, agent: str | None = None) -> list[Envelope]:
    """Entries of the only session in the store: all, or those of one agent."""
    (name,) = store.logs
    entries = (*store.history[name], *store.logs[name].entries)
    return [entry for entry in entries if agent in (None, entry.agent)]


def events_of(store: MemoryStore, kind: type[Event], agent: str | None = None) -> list[Any]:
    """Events of one type."""
    return [entry.event for entry in entries_of(store, agent) if isinstance(entry.event, kind)]
