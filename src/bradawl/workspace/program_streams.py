"""Reads a program's output and its shell's report through pipes, within limits."""

import asyncio
import contextlib
import fcntl
import os
import socket
from collections.abc import Callable

from bradawl.core.workspace import Command
from bradawl.workspace.bounded_output import HeadAndTail
from bradawl.workspace.private_folder import PrivateFolder, SpillFile
from bradawl.workspace.shell_prelude import KEY_LENGTH

Progress = Callable[[bytes], None]

_PIECE = 65_536
_LARGE_PIECE = 1_048_576
_PIECES_PER_WAKE = 4
_REPORT_LIMIT = 8_000_000
_RECENT_BYTES = 250_000
_LOWEST_REPORT_FD = 200
_REPORT_PAUSE_S = 0.002
"""bash writes each exported variable by a call of its own, which would wake the event loop each time."""


class _Pipe:
    def __init__(self, take: Callable[[bytes], None], lowest_sink: int = 0) -> None:
        self._take = take
        self._loop: asyncio.AbstractEventLoop | None = None
        self._piece = _PIECE
        self.on_end: Callable[[], None] | None = None
        self.source, self.sink = self._ends()
        os.set_blocking(self.source, False)
        if lowest_sink:
            self._raise_sink(lowest_sink)

    def _ends(self) -> tuple[int, int]:
        return os.pipe()

    def _raise_sink(self, lowest: int) -> None:
        """Move the program's end away from the descriptor numbers that scripts use."""
        with contextlib.suppress(OSError):
            raised = fcntl.fcntl(self.sink, fcntl.F_DUPFD_CLOEXEC, lowest)
            os.close(self.sink)
            self.sink = raised

    @property
    def is_open(self) -> bool:
        return self.source >= 0

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._close_sink()
        self._loop = loop
        loop.add_reader(self.source, self.read_available)

    def read_available(self) -> None:
        """Read what is available, a bounded amount at a time."""
        for _ in range(_PIECES_PER_WAKE):
            if not self.is_open:  # the callback may have closed all pipes
                return
            try:
                data = os.read(self.source, self._piece)
            except BlockingIOError:
                return
            except ConnectionResetError:  # report: the shell ended without having read the key
                data = b""
            if not data:
                self.close()
                return
            if len(data) == _PIECE == self._piece:
                self._widen()
            self._take(data)

    def _widen(self) -> None:
        """Use fewer and larger pieces for a stream with much output."""
        self._piece = _LARGE_PIECE
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self.source, fcntl.F_SETPIPE_SZ, _LARGE_PIECE)

    def _close_sink(self) -> None:
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def close(self) -> None:
        self._close_sink()
        if self.is_open:
            if self._loop and not self._loop.is_closed():
                self._loop.remove_reader(self.source)
            os.close(self.source)
            self.source = -1
            if self.on_end:
                self.on_end()


class _ReportPipe(_Pipe):
    """A socket pair for the shell's report: unlike a pipe, it can't be opened by another process through /proc.

    Sends the shell the key that marks its reports.
    """

    def __init__(self, take: Callable[[bytes], None], key: str) -> None:
        self._key = key
        self._pause: asyncio.TimerHandle | None = None
        super().__init__(take, _LOWEST_REPORT_FD)

    def _ends(self) -> tuple[int, int]:
        source, sink = socket.socketpair()
        source.send(self._key.encode())
        return source.detach(), sink.detach()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._close_sink()
        self._loop = loop
        self._resume()

    def _resume(self) -> None:
        if self._loop and self.is_open:
            self._loop.add_reader(self.source, self._read_and_pause)

    def _read_and_pause(self) -> None:
        self.read_available()
        if self._loop and self.is_open:
            self._loop.remove_reader(self.source)
            self._pause = self._loop.call_later(_REPORT_PAUSE_S, self._resume)

    def close(self) -> None:
        if self._pause:
            self._pause.cancel()
        super().close()


class ProgramStreams:
    """Standard output, standard error and the shell's report of one program, kept within limits."""

    def __init__(self, command: Command, progress: Progress | None, folder: PrivateFolder, flood_bytes: int) -> None:
        """More than `flood_bytes` of output calls `on_flood`. Raises `OSError` if no pipe can be created."""
        limit = command.output_limit_bytes
        self._progress = progress
        self._stdout, self._stderr, self._report = HeadAndTail(limit), HeadAndTail(limit), HeadAndTail(_REPORT_LIMIT)
        self._recent = HeadAndTail(min(limit, _RECENT_BYTES))
        self._spill = SpillFile(folder, limit, command.spill_limit_bytes) if command.spill_limit_bytes else None
        self._left_bytes = flood_bytes
        self.keeps_recent = False
        """Whether output is kept for `recent`."""
        self.on_flood: Callable[[], None] | None = None
        self._pipes: list[_Pipe] = []
        self.key = os.urandom(KEY_LENGTH // 2).hex()
        """The mark of reports that the shell itself writes."""
        try:
            self._pipes.append(_Pipe(lambda data: self._take(self._stdout, data)))
            self._pipes.append(_Pipe(lambda data: self._take(self._stderr, data)))
            if command.is_shell:
                self._pipes.append(_ReportPipe(self._report.add, self.key))
        except OSError:
            self.close()
            raise

    @property
    def sinks(self) -> tuple[int, ...]:
        """The program's ends: standard output, standard error and, for a shell line, the report."""
        return tuple(pipe.sink for pipe in self._pipes)

    def watch(self, loop: asyncio.AbstractEventLoop, on_drained: Callable[[], None]) -> None:
        """Read output from now on. `on_drained` is called when all writers have closed their ends."""

        def ended() -> None:
            if not any(pipe.is_open for pipe in self._pipes[:2]):
                on_drained()

        for pipe in self._pipes:
            pipe.on_end = ended
            pipe.watch(loop)

    def _take(self, kept: HeadAndTail, data: bytes) -> None:
        kept.add(data)
        if self.keeps_recent:
            self._recent.add(data)
        if self._spill is not None:
            self._spill.add(data)
        self._left_bytes -= len(data)
        if self._left_bytes < 0 and self.on_flood is not None:
            self.on_flood()
            self.on_flood = None
        if self._progress is not None:
            self._progress(data)

    def read_available(self) -> None:
        """Read what is available."""
        for pipe in self._pipes:
            pipe.read_available()

    def take_recent(self) -> tuple[bytes, int]:
        """Output since the last call, and the number of dropped bytes. Stops writing the file with all output."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None
        return self._recent.take()

    def output(self) -> tuple[bytes, bytes, int]:
        """Kept standard output and standard error, and the number of dropped bytes."""
        (stdout, dropped_out), (stderr, dropped_err) = self._stdout.kept(), self._stderr.kept()
        return stdout, stderr, dropped_out + dropped_err

    def report(self) -> bytes:
        """The shell's report; empty if it exceeds the limit."""
        said, dropped = self._report.kept()
        return b"" if dropped else said

    def spilled(self, is_needed: bool) -> str:
        """Path of the file with all output, which the caller then owns; empty if there is none or it is not needed."""
        spill, self._spill = self._spill, None
        if spill is None:
            return ""
        if is_needed:
            return spill.finish()
        spill.discard()
        return ""

    def close(self) -> None:
        """Release every descriptor."""
        for pipe in self._pipes:
            pipe.close()
        if self._spill is not None:
            self._spill.close()
