"""Calls tools that need only session state, with fakes of files and processes, and records their changes."""

from typing import Any

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.core.events import State
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext, Tool, ToolOutput
from bradawl.shaping.fitting import decoded
from bradawl.testing.fakes import MemoryFiles, ScriptedProcesses


class FakeSession:
    """The context of a session's calls; `changes` are the state changes that tools made."""

    def __init__(self, **given: Any) -> None:
        self.changes: list[State] = []
        self.context = CallContext(
            call_id="call",
            cwd="/project",
            files=MemoryFiles(),
            processes=ScriptedProcesses(),
            seen=SeenFiles({}, self.changes.append),
            grant=Grant(),
            progress=lambda _: None,
            change=self.changes.append,
            **given,
        )

    async def call(self, tool: Tool[Any], /, **arguments: Any) -> ToolOutput:
        """Runs a tool with arguments in the form a model sends."""
        params = decoded(arguments, tool.params)
        return await tool.run(params, self.context)

    async def text(self, tool: Tool[Any], /, **arguments: Any) -> str:
        """The text that the model would see."""
        output = await self.call(tool, **arguments)
        return "".join(getattr(part, "text", "") for part in output.parts)
