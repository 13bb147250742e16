"""Runs a command that the user types after `!`: with the user's rights, outside of the sandbox."""

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NamedTuple

from bradawl.core.errors import SettingsError
from bradawl.safety.control_characters import StreamCleaner

_KEPT: Final = 10_000
"""Characters kept of the beginning and of the end of the output."""
_PIECE: Final = 65_536


class CommandRun(NamedTuple):
    """How a command ended."""

    output: str
    """Of both streams; the middle of a long one is left out."""
    exit_code: int | None
    """None if it was cancelled."""

    def note(self, command: str) -> str:
        """The text for the model."""
        ending = "was cancelled" if self.exit_code is None else f"exit code {self.exit_code}"
        return f"The user ran this command in a shell of their own ({ending}):\n$ {command}\n{self.output}".rstrip()


class UserShell:
    """Runs the user's commands, one at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[CommandRun] | None = None

    @property
    def is_running(self) -> bool:
        """A command runs."""
        return self._task is not None

    def cancel(self) -> None:
        """End the running command."""
        if self._task is not None:
            self._task.cancel()

    async def run(
        self, command: str, cwd: str, environment: Mapping[str, str], show: Callable[[str], None]
    ) -> CommandRun:
        """Run a command to its end; `show` gets the output as it comes. Raises `SettingsError` without a shell."""
        try:
            async with asyncio.TaskGroup() as group:
                task = self._task = group.create_task(run_user_command(command, cwd, environment, show))
        except* OSError as errors:
            raise SettingsError(f"The command could not be started: {errors.exceptions[0]}") from errors
        finally:
            self._task = None
        return task.result()


async def run_user_command(
    command: str, cwd: str, environment: Mapping[str, str], show: Callable[[str], None]
) -> CommandRun:
    """Run a line of shell to its end; `show` gets the output as it comes. Cancelling ends it with its children."""
    shell = (
        environment.get("SHELL", "") if environment.get("SHELL", "").endswith(("/bash", "/zsh", "/sh")) else "/bin/sh"
    )
    kept = _Kept()

    def take(text: str) -> None:
        kept.add(text)
        show(text)

    reading, writing = os.pipe()
    async with _pipe_reader(reading) as output:
        try:
            process = await asyncio.create_subprocess_exec(
                shell,
                "-c",
                command,
                cwd=cwd,
                env=dict(environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            os.close(writing)
        decoder, cleaner = codecs.getincrementaldecoder("utf-8")("replace"), StreamCleaner()
        try:
            while data := await output.read(_PIECE):
                take(cleaner.feed(decoder.decode(data)))
            take(cleaner.feed(decoder.decode(b"", final=True)) + cleaner.finish())
            return CommandRun(kept.text, await process.wait())
        except asyncio.CancelledError:
            return CommandRun(kept.text, None)
        finally:
            _end(process.pid)
            await process.wait()


@contextlib.asynccontextmanager
async def _pipe_reader(descriptor: int) -> AsyncIterator[asyncio.StreamReader]:
    """A reader of a pipe, which is closed at the end.

    asyncio's own pipe of a process would hold up `wait` while unread output is in it, or another program has it open.
    """
    reader = asyncio.StreamReader(limit=_PIECE)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
    try:
        yield reader
    finally:
        transport.close()


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it has ended
        os.killpg(group, signal.SIGKILL)


class _Kept:
    """The beginning and the end of a text that may be long."""

    def __init__(self) -> None:
        self._head, self._tail, self._left_out = "", "", 0

    def add(self, text: str) -> None:
        room = _KEPT - len(self._head)
        self._head += text[:room]
        tail = self._tail + text[room:]
        self._left_out += max(0, len(tail) - _KEPT)
        self._tail = tail[-_KEPT:]

    @property
    def text(self) -> str:
        gap = f"\n[... {self._left_out:,} characters left out ...]\n" if self._left_out else ""
        return self._head + gap + self._tail
