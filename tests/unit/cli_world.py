"""Runs the command line as a function, with a home folder, in-memory streams and a scripted model."""

import io
import json
from pathlib import Path

from bradawl.agent.agent import Agent
from bradawl.agent.configuration import Limits
from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.core.permissions import Policy
from bradawl.testing.fakes import FakeClock, FakeIds, FakeTool, MemoryFiles, MemoryStore, ScriptedProcesses
from bradawl.testing.scripted import ScriptedModel


class Terminal(io.StringIO):
    """A stream whose `isatty` is true."""

    def isatty(self) -> bool:
        return True


class World:
    """The surroundings of a run: home folder, environment, streams, session store, and an agent on a scripted model."""

    def __init__(self, home: Path, script: list[dict]) -> None:
        self.home = home
        self.script = script
        self.model: ScriptedModel | None = None
        self.store = MemoryStore()
        self.environ = {"HOME": str(home), "BRADAWL_MODEL": "scripted/none.json"}
        self.stdout = io.StringIO()
        self.stderr = io.StringIO()
        self.model_patience_s = 30.0

    def build(self, settings, approver) -> Agent:
        self.model = ScriptedModel(json.dumps(self.script).encode())
        return Agent(
            model=self.model,
            tools=(FakeTool("look"),),
            store=self.store,
            files=MemoryFiles(),
            processes=ScriptedProcesses(),
            approver=approver,
            clock=FakeClock(is_eager=True),
            ids=FakeIds(),
            policy=lambda: Policy("bypass" if settings.yolo else "default"),
            system_prompt=_prompt,
            project="/project",
            limits=Limits(max_steps=settings.max_steps),
        )

    def run(self, *argv: str, stdin: str | io.StringIO = "", build=None) -> int:
        stream = io.StringIO(stdin) if isinstance(stdin, str) else stdin
        console = Console(
            stream, self.stdout, self.stderr, self.environ, patience_s=0.05, model_patience_s=self.model_patience_s
        )
        return run(list(argv), self.environ, console, build or self.build)

    @property
    def out(self) -> str:
        return self.stdout.getvalue()

    @property
    def err(self) -> str:
        return self.stderr.getvalue()


async def _prompt() -> str:
    return "You are a test."
