"""The time of `/context` in a long session, in seconds: `python benchmarks/context.py [STEPS]`."""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from bradawl.agent.agent import Agent
from bradawl.app.context_report import context_report
from bradawl.app.context_text import context_text
from bradawl.core.effects import Effects
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    PrefixOpened,
    PromptSubmitted,
    RequestSent,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Origin, Text, ToolCall
from bradawl.core.permissions import Policy
from bradawl.core.ports import SessionLog
from bradawl.core.usage import Usage
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryFiles, ScriptedApprover, ScriptedProcesses
from bradawl.testing.scripted import ScriptedModel

STEPS = 5_000
ORIGIN = Origin("scripted", "scripted", "script")
OUTPUT = "src/module.py:12:    return value * 3  # a line of a result, as a search finds it\n" * 8


def write(log: SessionLog, steps: int) -> None:
    """A session of one turn with so many steps, each with one call."""
    log.append(SessionOpened(1, "/project", "/project"))
    log.append(PrefixOpened("0" * 64, "0" * 64, ORIGIN.provider, ORIGIN.model))
    log.append(PromptSubmitted((Text("Look at everything."),)))
    for step in range(1, steps + 1):
        call = ToolCall(f"call_{step}", "grep", json.dumps({"pattern": f"value_{step}", "path": "src"}))
        prompt = 5_000 + step * 150
        log.append(RequestSent(step, "0" * 64, estimated_tokens=prompt, marks=("0" * 16, "1" * 16)[: min(2, step)]))
        usage = Usage(input=10, output=40, cache_read=prompt - 160, cache_write=150)
        log.append(AssistantReplied(step, Assistant((Text("I look on."), call), ORIGIN), "tool_use", usage=usage))
        log.append(CallPrepared(call.id, step, call.name, call.raw_arguments, Effects()))
        log.append(ToolStarted(call.id))
        log.append(ToolFinished(call.id, "ok", (Text(OUTPUT),)))
    log.append(TurnFinished("completed"))


async def measure(store: LocalStore, session_id: str) -> list[float]:
    """Seconds of the report and its picture, three times."""
    agent = Agent(
        model=ScriptedModel(b'[{"text": "Done."}]'),
        tools=(),
        store=store,
        files=MemoryFiles(),
        processes=ScriptedProcesses(),
        approver=ScriptedApprover(),
        clock=FakeClock(is_eager=True),
        ids=FakeIds(),
        policy=lambda: Policy("bypass"),
        system_prompt=_prompt,
        project="/project",
    )
    seconds: list[float] = []
    async with agent.open(session_id) as session:
        for _ in range(3):
            started = time.perf_counter()
            context_text(await context_report(session))
            seconds.append(time.perf_counter() - started)
    return seconds


async def _prompt() -> str:
    return "You are a test."


def main() -> None:
    """Write the session to a temporary folder and measure."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder), "/project", FakeClock(), FakeIds())
        opened = store.create()
        write(opened.log, steps)
        opened.log.close()
        seconds = asyncio.run(measure(store, opened.log.session_id))
    print(f"{steps:,} steps: {min(seconds):.2f} s")


if __name__ == "__main__":
    main()
