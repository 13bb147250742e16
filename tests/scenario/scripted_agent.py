"""Builds the real agent with a scripted model and fakes for every other port, for scenario tests."""

import asyncio
import json
from typing import Any

import msgspec

from bradawl.agent.agent import Agent
from bradawl.agent.configuration import Limits
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import Event
from bradawl.core.messages import Assistant, Message, Text, ToolResults, User, calls_of
from bradawl.core.permissions import Policy
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryFiles, MemoryStore, ScriptedApprover, ScriptedProcesses
from bradawl.testing.scripted import ScriptedModel


class ProbeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a call of the probe declares and returns."""

    name: str
    reads: list[str] = []
    writes: list[str] = []
    unknown: bool = False
    fails: str = ""
    has_failed_part: bool = False


class Probe:
    """A tool that logs the start and end of each call. A call waits at its gate if the test has set one."""

    spec = ToolSpec("probe")
    params = ProbeParams

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.running = 0
        self.most_running = 0
        self.started: dict[str, asyncio.Event] = {}
        self.ended: dict[str, asyncio.Event] = {}

    def gate(self, name: str) -> asyncio.Event:
        """Event that the call with this name waits for."""
        return self.gates.setdefault(name, asyncio.Event())

    def has_started(self, name: str) -> asyncio.Event:
        """Event that is set when the call with this name starts."""
        return self.started.setdefault(name, asyncio.Event())

    def has_ended(self, name: str) -> asyncio.Event:
        """Event that is set when the call with this name has ended."""
        return self.ended.setdefault(name, asyncio.Event())

    def effects(self, params: ProbeParams, context: CallContext) -> Effects:
        """Effects that the arguments declare."""
        if params.unknown:
            return UNKNOWN
        return Effects(reads=tuple(params.reads), writes=tuple(params.writes))

    async def run(self, params: ProbeParams, context: CallContext) -> ToolOutput:
        """Log the start, wait at the gate, log the end."""
        self.log.append(f"+{params.name}")
        self.has_started(params.name).set()
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            if (gate := self.gates.get(params.name)) is not None:
                await gate.wait()
            else:
                await asyncio.sleep(0)
            if params.fails == "bug":
                raise RuntimeError("a defect")
            if params.fails:
                raise ToolError(params.fails)
        finally:
            self.running -= 1
        self.log.append(f"-{params.name}")
        self.has_ended(params.name).set()
        return ToolOutput((Text(f"did {params.name}"),), has_failed_part=params.has_failed_part)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A script entry: one call of the probe."""
    return {"id": f"id_{name}", "name": "probe", "arguments": {"name": name, **arguments}}


def build(script: list[dict[str, Any]], **changes: Any) -> tuple[Agent, ScriptedModel, Probe]:
    """The agent, its model and its probe. Every call is permitted, and the clock never waits."""
    model = ScriptedModel(json.dumps(script).encode())
    probe = Probe()
    given: dict[str, Any] = {
        "model": model,
        "tools": (probe,),
        "store": MemoryStore(),
        "files": MemoryFiles(),
        "processes": ScriptedProcesses(),
        "approver": ScriptedApprover(),
        "clock": FakeClock(is_eager=True),
        "ids": FakeIds(),
        "policy": lambda: Policy("bypass"),
        "system_prompt": _system_prompt,
        "project": "/project",
        "limits": Limits(),
        **changes,
    }
    return Agent(**given), model, probe


async def _system_prompt() -> str:
    return "You are a test."


def assert_valid(messages: list[Message]) -> None:
    """Checks what every provider requires: each call has one result, directly after its reply, in call order."""
    for index, message in enumerate(messages):
        if isinstance(message, Assistant) and (calls := calls_of(message)):
            answer = messages[index + 1] if index + 1 < len(messages) else None
            assert isinstance(answer, ToolResults), f"calls of message {index} are not answered"
            assert [c.id for c in calls] == [r.call_id for r in answer.results]
        elif isinstance(message, ToolResults):
            assert isinstance(messages[index - 1], Assistant)
        else:
            assert isinstance(message, Assistant | User)


def results(messages: list[Message] | tuple[Message, ...]) -> list[str]:
    """Texts of all results, in order."""
    found = [result for message in messages if isinstance(message, ToolResults) for result in message.results]
    return ["".join(part.text for part in result.parts if isinstance(part, Text)) for result in found]


def only(events: list[Event], kind: type[Event]) -> list[Any]:
    """Events of one type, in order."""
    return [event for event in events if isinstance(event, kind)]
