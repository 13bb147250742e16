"""The messages of stdin, in order: reads the lines, keeps the prompts until their turn, hands on the rest at once."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TextIO

from bradawl.app.rendering import one_line
from bradawl.app.stream_json.control_channel import ControlChannel
from bradawl.app.stream_json.input_messages import (
    Incoming,
    Other,
    Request,
    Response,
    UnreadableLine,
    UserPrompt,
    WrongPrompt,
    parse_line,
)
from bradawl.app.stream_json.line_reader import LineReader, LongLine

Prompt = UserPrompt | WrongPrompt


class IncomingMessages:
    """The prompts of a run. Requests and answers of the control channel overtake them."""

    def __init__(self, channel: ControlChannel, warn: Callable[[str], None]) -> None:
        self._channel, self._warn = channel, warn
        self._waiting: deque[Prompt | None] = deque()
        """Prompts that wait for their turn; None is the end of the input."""
        self._arrived = asyncio.Event()
        self._is_over = False
        self.lines = 0
        """Lines read so far."""
        self.problem = ""
        """What is wrong with the line at which the input ended."""

    @property
    def has_prompt(self) -> bool:
        """A prompt waits for its turn."""
        return bool(self._waiting) and self._waiting[0] is not None

    def read(self, stdin: TextIO) -> None:
        """Begin to read."""
        LineReader(stdin, self._received).start()

    def put(self, prompt: Prompt) -> None:
        """Queue a prompt."""
        self._add(prompt)

    def end(self) -> None:
        """No more messages and answers arrive: the prompts that came are the last ones."""
        if self._channel.is_open:
            self._channel.close()
            self._add(None)

    def stop(self) -> None:
        """End the run: `next` returns no further prompt."""
        self._is_over = True
        self._add(None)

    async def next(self) -> Prompt | None:
        """The next prompt; None if there is no other."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return None if self._is_over else self._waiting.popleft()

    def _add(self, prompt: Prompt | None) -> None:
        self._waiting.append(prompt)
        self._arrived.set()

    def _received(self, line: bytes | LongLine | None) -> None:
        if self.problem:
            return
        if line is None:
            self.end()
            return
        self.lines += 1
        if isinstance(line, LongLine):
            self._refuse(line)
            return
        try:
            message = parse_line(line)
        except UnreadableLine as error:
            self._refuse(error)
        else:
            self._take(message)

    def _refuse(self, error: Exception) -> None:
        """End the input: a program that writes such a line can't be trusted to write others."""
        self.problem = f"Line {self.lines} of stdin is no message, and the run ends there: {error}."
        self.end()

    def _take(self, message: Incoming | None) -> None:
        match message:
            case UserPrompt() | WrongPrompt():
                self._add(message)
            case Request():
                self._channel.handle(message)
            case Response():
                self._channel.answered(message)
            case Other(kind):
                self._warn(f"a message of the type {one_line(kind)[:60]} on stdin was ignored")
            case None:
                pass
