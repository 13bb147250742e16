"""Writes lines to stdout in a thread, so that a program that reads slowly stops neither the run nor its signals."""

import asyncio
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TextIO

from bradawl.app.console import Console, OutputError


class LineWriter:
    """Writes lines in order. After the first failure nothing more is written: the lines would have a gap."""

    def __init__(self, console: Console, failed: Callable[[], None]) -> None:
        """`failed` is called in the event loop after the first failure. Needs a running loop."""
        self._console, self._failed = console, failed
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[str | asyncio.Future[None] | None] = SimpleQueue()
        self.error = ""
        """Why nothing more is written; empty as long as all was."""
        self.is_closed = False
        """Nobody reads stdout any more."""
        self._descriptor = _descriptor_of(console.stdout)
        self._thread: threading.Thread | None = None
        self._drained: asyncio.Future[None] | None = None
        self._has_written_all = False
        self.is_abandoned = False
        """`drain` did not wait until all lines were written."""

    def write(self, line: str) -> None:
        """Queue one line. Never blocks, and raises nothing."""
        if self._descriptor is None:
            self._write_now(line)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
            self._thread.start()
        self._waiting.put(line)

    async def drain(self) -> None:
        """Wait until all lines are written, or one could not be."""
        if self._thread is not None and self._thread.is_alive():
            self._drained = self._loop.create_future()
            self._waiting.put(self._drained)
            await self._drained

    def abandon(self) -> None:
        """End `drain` at once; lines that nobody reads are lost."""
        if self._drained is not None and not self._drained.done() and not self._has_written_all:
            self.is_abandoned, self.error = True, "The rest of the stream was not read."
            self._drained.set_result(None)

    def close(self) -> None:
        """End the thread after the queued lines; does not wait for it."""
        self._waiting.put(None)

    def _write_now(self, line: str) -> None:
        """For a stream that has no descriptor, such as one in memory."""
        if not self.error:
            try:
                self._console.answer(line)
            except OutputError as error:
                self.error = str(error)
                self._failed()

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            if isinstance(item, str):
                self._write(item)
            else:
                self._has_written_all = True
                self._tell(_settle, item)

    def _write(self, line: str) -> None:
        if self.error or self._descriptor is None:
            return
        try:
            _write_all(self._descriptor, line.encode("utf-8", "replace"))
        except OSError as error:
            self.is_closed = isinstance(error, BrokenPipeError)
            self.error = f"The stream could not be written: {error.strerror or error}."
            self._tell(self._failed)

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(callback, *arguments)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # the program that started bradawl made its end non-blocking, which both ends share
            select.select([], [descriptor], [])


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        stream.flush()
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
