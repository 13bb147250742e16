"""Reads stdin in a thread, line by line. Regular files, pipes and terminals are read alike."""

import asyncio
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

LINE_LIMIT_BYTES: Final = 50_000_000
"""The longest line; one with an image of the largest size that providers take has less."""
_PIECE_BYTES: Final = 1 << 16


class LongLine(Exception):
    """A line has more bytes than are read."""


class LineSplitter:
    """Splits bytes that arrive in any pieces into lines."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their newlines. Raises `LongLine`."""
        *complete, rest = data.split(b"\n")
        lines: list[bytes] = []
        for line in complete:
            self._add(line)
            lines.append(self.end())
        self._add(rest)
        return lines

    def end(self) -> bytes:
        """The line so far, which has no newline if the input ends here."""
        line = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return line

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit_bytes:
            raise LongLine(f"it has more than {self._limit_bytes:,} bytes")
        if piece:
            self._pieces.append(piece)


Deliver = Callable[[bytes | LongLine | None], None]
"""Takes a line, a line that is too long, after which nothing is read, or None at the end of the input."""


class LineReader:
    """Calls `deliver` in the event loop with each line of a stream."""

    def __init__(self, stream: TextIO, deliver: Deliver, splitter: LineSplitter | None = None) -> None:
        self._stream, self._deliver = stream, deliver
        self._splitter = splitter or LineSplitter()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to read. The thread ends with the input or with the process; nothing waits for it."""
        descriptor = _descriptor_of(self._stream)
        if descriptor is None:
            self._loop.call_soon(self._read_text)
        else:
            threading.Thread(target=self._read, args=(descriptor,), name="stdin", daemon=True).start()

    def _read_text(self) -> None:
        """For a stream that has no descriptor, such as one in memory."""
        self._feed(self._stream.read().encode("utf-8", "replace"), self._deliver)
        self._end(self._deliver)

    def _read(self, descriptor: int) -> None:
        with suppress(RuntimeError):  # the loop is closed: the run is over
            while data := _read(descriptor):
                if not self._feed(data, self._tell):
                    return
            self._end(self._tell)

    def _feed(self, data: bytes, deliver: Deliver) -> bool:
        try:
            for line in self._splitter.feed(data):
                deliver(line)
        except LongLine as error:
            deliver(error)
            return False
        return True

    def _end(self, deliver: Deliver) -> None:
        if rest := self._splitter.end():
            deliver(rest)
        deliver(None)

    def _tell(self, line: bytes | LongLine | None) -> None:
        self._loop.call_soon_threadsafe(self._deliver, line)


def _read(descriptor: int) -> bytes:
    """The next bytes; empty at the end, and for an input that can't be read, such as a closed one."""
    while True:
        try:
            return os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:
            select.select([descriptor], [], [])
        except OSError:
            return b""


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
