"""`Processes` with scripted results; import it from `bradawl.testing.fakes`."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.ports import Permit, Progress
from bradawl.core.workspace import Command, CommandResult

ScriptedResult = CommandResult | ToolError
Key = str | tuple[str, ...]


class ScriptedProcess:
    """A scripted `Process`: gives its output, waits until it is released, and ends with the scripted result."""

    def __init__(self, end: CommandResult, gate: asyncio.Event, on_end: Callable[[bool], None]) -> None:
        self._result = end
        self._gate = gate
        self._on_end = on_end
        self._unread = end.stdout + end.stderr
        self.has_ended = False
        self.was_ended = False
        """True if `end` was called before it ended by itself."""

    async def wait(self, timeout_s: float) -> bool:
        """True once the process is released; cancelling ends it."""
        if self.has_ended:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(0)
                await self._gate.wait()
        except TimeoutError:
            return self.has_ended
        except asyncio.CancelledError:
            self._finish(by_itself=False)
            raise
        self._finish(by_itself=True)
        return True

    async def end(self) -> None:
        """End the process as SIGTERM does."""
        self._finish(by_itself=False)
        self._gate.set()

    def _finish(self, *, by_itself: bool) -> None:
        if not self.has_ended:
            self.has_ended, self.was_ended = True, not by_itself
            if not by_itself:
                self._result = msgspec.structs.replace(self._result, exit_code=-15)
            self._on_end(by_itself)

    def print(self, data: bytes) -> None:
        """Add output."""
        self._unread += data

    def printed(self) -> tuple[bytes, int]:
        """The output since the last call."""
        unread, self._unread = self._unread, b""
        return unread, 0

    def result(self) -> CommandResult:
        """The scripted result."""
        return self._result


class ScriptedProcesses:
    """`Processes` that starts nothing and gives scripted results.

    `answers` maps a shell line or an argv to its result; `hold` makes a command wait until `release`.
    """

    def __init__(self, answers: Mapping[Key, ScriptedResult] | None = None) -> None:
        self._answers = dict(answers or {})
        self._held: dict[Key, list[asyncio.Event]] = {}
        self.commands: list[Command] = []
        """The commands run, in order."""
        self.grants: list[Grant] = []
        """The grant of each command."""
        self.permits: list[Permit | None] = []
        """The `permit` of each command."""
        self.cancelled: list[Command] = []
        """Commands that were cancelled or ended."""
        self.started: list[ScriptedProcess] = []
        """The processes started, in order, also those by `run`."""
        self.running = 0

    def seal(self, command: Command) -> str:
        """A key of folder and command line."""
        return f"{command.cwd}: {' '.join(command.argv)}"

    def hold(self, command: Key) -> None:
        """Make the command wait when it runs."""
        self._held[command] = []

    def release(self, command: Key) -> None:
        """Let a held command end."""
        for gate in self._held.pop(command):
            gate.set()

    async def run(
        self, command: Command, grant: Grant | None, progress: Progress | None = None, permit: Permit | None = None
    ) -> CommandResult:
        """The scripted result. Raises `ToolError` without a grant and for a command that is not scripted."""
        process = await self.start(command, grant, progress, permit)
        if await process.wait(command.timeout_s):
            return process.result()
        await process.end()
        return msgspec.structs.replace(process.result(), exit_code=None)

    async def start(
        self, command: Command, grant: Grant | None, progress: Progress | None = None, permit: Permit | None = None
    ) -> ScriptedProcess:
        """A scripted process. Raises `ToolError` without a grant and for a command that is not scripted."""
        if grant is None:
            raise ToolError("A command needs a grant to run.")
        key = command.argv[0] if command.is_shell else command.argv
        self.commands.append(command)
        self.grants.append(grant)
        self.permits.append(permit)
        result = self._answers.get(key)
        if result is None:
            raise ToolError(f"No answer was scripted for {key!r}.")
        if isinstance(result, ToolError):
            raise result
        if progress is not None and result.stdout:
            progress(result.stdout)
        self.running += 1
        process = ScriptedProcess(result, self._gate(key), lambda by_itself: self._ended(command, by_itself))
        self.started.append(process)
        return process

    def _gate(self, key: Key) -> asyncio.Event:
        gate = asyncio.Event()
        if (held := self._held.get(key)) is None:
            gate.set()
        else:
            held.append(gate)
        return gate

    def _ended(self, command: Command, by_itself: bool) -> None:
        self.running -= 1
        if not by_itself:
            self.cancelled.append(command)
