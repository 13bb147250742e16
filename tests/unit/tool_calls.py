"""Calls tools on real files and processes, with the state that a session keeps between calls."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.core.events import Cwd, Env, Envelope, Event, FileSeen, State, StateChanged
from bradawl.core.messages import Message, text_of
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext, Jobs, ToolOutput
from bradawl.folds.session_state import SessionState, remember
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses

RG = str(Path(sys.executable).with_name("rg"))


class Workspace:
    """Session state for tools: files seen, working directory, exported variables, progress."""

    def __init__(self, root: Path, environment: Mapping[str, str] = os.environ) -> None:
        self.cwd = self.project = os.path.realpath(root)
        self.files = LocalFiles(str(root))
        self.processes = LocalProcesses(environment)
        self.seen: dict[str, str] = {}
        self.env: dict[str, str | None] = {}
        self.state = SessionState()
        self.state.files_seen = self.seen
        self.memory = SeenFiles(self.seen, self._change, self.state.files_shown)
        self.progress: list[str] = []
        self.may_persist: tuple[str, ...] = ()
        self.jobs: Jobs | None = None
        self.messages: list[Message] = []

    def context(self) -> CallContext:
        return CallContext(
            call_id="call",
            cwd=self.cwd,
            project=self.project,
            env=dict(self.env),
            files=self.files,
            processes=self.processes,
            seen=self.memory,
            grant=Grant(environment=self.may_persist),
            progress=self.progress.append,
            change=self._change,
            jobs=self.jobs,
            messages=lambda: tuple(self.messages),
        )

    def _change(self, state: State) -> None:
        match state:
            case FileSeen():
                self.record(StateChanged(state))
            case Env(variables):
                self.env |= variables
            case Cwd(path):
                self.cwd = path
            case _:
                raise AssertionError(state)

    def record(self, event: Event) -> None:
        """An event of the session, as its log records it."""
        remember(self.state, Envelope(0, None, 0, "main", event))

    async def call(self, tool, /, **arguments) -> ToolOutput:
        return await tool.run(tool.params(**arguments), self.context())

    async def text(self, tool, /, **arguments) -> str:
        """The text that the model would see."""
        return text_of((await self.call(tool, **arguments)).parts)


@contextmanager
def workspace(root: Path, **options) -> Iterator[Workspace]:
    made = Workspace(root, **options)
    try:
        yield made
    finally:
        made.processes.close()
