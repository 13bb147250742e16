"""Reads plain lines from a pipe, a file or a terminal that can draw no input line."""

import asyncio
import os
from collections.abc import Callable
from select import select
from typing import Final, Protocol

from bradawl.app.console import Console

PROMPT: Final = "> "
MORE: Final = "  "


class LineReader(Protocol):
    """Reads prompts and answers. One read at a time."""

    async def prompt(self) -> str:
        """One prompt, which may have several lines. Raises `EOFError` at the end and `KeyboardInterrupt` for Ctrl+C."""
        ...

    async def ask(self, question: str) -> str:
        """One line in answer to a question; it does not enter the history. Raises like `prompt`."""
        ...

    def interrupt(self) -> bool:
        """End a running read with `KeyboardInterrupt`; false if there is none."""
        ...

    def take_unread(self) -> bytes:
        """Input that was read from the stream and has not been returned; it is forgotten."""
        ...


class TurnInput:
    """Takes lines that are typed during a turn; the terminal edits and echoes them.

    Only at a terminal: lines from a pipe wait for the next prompt.
    """

    def __init__(self, console: Console, take: Callable[[str], None]) -> None:
        """`take` is called with each text that is not blank."""
        self._take = take
        self._descriptor = descriptor_of_terminal(console)
        self._is_listening = False

    def listen(self) -> None:
        """Start taking lines; needs a running loop."""
        if self._descriptor is None or self._is_listening:
            return
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        except (OSError, ValueError):
            return
        self._is_listening = True

    def stop(self) -> None:
        """Take the lines entered so far and stop, so that a reader can read."""
        self._read()
        self._end()

    def _end(self) -> None:
        if self._descriptor is not None and self._is_listening:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._is_listening = False

    def _read(self) -> None:
        if self._descriptor is None or not self._is_listening or not is_in_foreground(self._descriptor):
            return
        data = b""
        try:
            while select([self._descriptor], [], [], 0)[0]:
                line = os.read(self._descriptor, 65_536)
                if not line:
                    break
                data += line
        except OSError:
            self._end()  # the terminal is gone
        if text := data.decode("utf-8", "replace").strip():
            self._take(text)


def descriptor_of_terminal(console: Console) -> int | None:
    """The descriptor of stdin if that is a terminal."""
    try:
        return console.stdin.fileno() if console.has_user else None
    except (OSError, ValueError):
        return None


def is_in_foreground(descriptor: int) -> bool:
    """Whether the program may read from the terminal; in the background a read would stop it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True


class PlainReader:
    """Reads lines from a pipe, a file or a dumb terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shows_prompt = console.is_interactive
        self._buffer = b""
        self._is_at_end = False
        self._waiting: asyncio.Future[None] | None = None
        self._was_interrupted = False
        self._prompt = ""
        """The prompt that is on the screen; empty while none is."""

    @property
    def shown_prompt(self) -> str:
        """The prompt behind which the user may be typing; empty if there is none."""
        return self._prompt if self._waiting is not None and not self._waiting.done() else ""

    def put_back(self, typed: bytes) -> None:
        """Add what was typed and is not at the terminal any more before what it gives next."""
        self._buffer += typed

    async def prompt(self) -> str:
        """Lines up to the first that does not end in a backslash."""
        lines: list[str] = []
        while True:
            line = await self._read(MORE if lines else PROMPT)
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    async def ask(self, question: str) -> str:
        """One line; the question is always shown."""
        self._console.answer(question)
        try:
            return await self._read("")
        finally:
            if not self._shows_prompt:
                self._console.answer("\n")

    def interrupt(self) -> bool:
        """End a running read."""
        if self._waiting is None or self._waiting.done():
            return False
        self._was_interrupted = True
        self._waiting.set_result(None)
        return True

    def take_unread(self) -> bytes:
        """Lines behind the one that was returned."""
        taken, self._buffer = self._buffer, b""
        return taken

    async def _read(self, prompt: str) -> str:
        if self._shows_prompt and prompt:
            self._console.answer(prompt)
        self._prompt = prompt if self._shows_prompt else ""
        while b"\n" not in self._buffer and not self._is_at_end:
            await self._more()
            if self._was_interrupted:
                self._was_interrupted = False
                self._buffer = b""
                raise KeyboardInterrupt
        if not self._buffer:
            raise EOFError
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    async def _more(self) -> None:
        """Wait for input without a thread, because a reading thread can't be stopped."""
        try:
            descriptor = self._console.stdin.fileno()
        except (OSError, ValueError):
            return self._take(self._console.stdin.readline().encode("utf-8", "replace"))
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        try:
            loop.add_reader(descriptor, self._is_ready)
        except (OSError, ValueError):
            return self._take(os.read(descriptor, 65_536))  # a regular file, which never blocks
        try:
            await self._waiting
        finally:
            loop.remove_reader(descriptor)
        if not self._was_interrupted:
            try:
                self._take(os.read(descriptor, 65_536))
            except OSError:
                self._is_at_end = True
        return None

    def _is_ready(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _take(self, data: bytes) -> None:
        self._buffer += data
        self._is_at_end = not data
