"""The streams of a program on their way to us."""

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
        """Move the end the program inherits out of the way of the numbers scripts use."""
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
        loop.add_reader(self.source, self.pump)

    def pump(self) -> None:
        """Take what is there, a bounded amount at a time."""
        for _ in range(_PIECES_PER_WAKE):
            if not self.is_open:  # whoever took the last piece may have closed all
                return
            try:
                data = os.read(self.source, self._piece)
            except BlockingIOError:
                return
            except ConnectionResetError:  # of the report: the shell ended without having read the key
                data = b""
            if not data:
                self.close()
                return
            if len(data) == _PIECE == self._piece:
                self._widen()
            self._take(data)

    def _widen(self) -> None:
        """Much is coming: fewer and larger pieces cost less."""
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
    """A connected pair of sockets: unlike the end of a pipe, nobody can open one anew through /proc.

    It hands the shell the key that its reports have to bear.
    """

    def __init__(self, take: Callable[[bytes], None], key: str) -> None:
        self._key = key
        super().__init__(take, _LOWEST_REPORT_FD)

    def _ends(self) -> tuple[int, int]:
        source, sink = socket.socketpair()
        source.send(self._key.encode())
        return source.detach(), sink.detach()


class ProgramStreams:
    """What a program prints, and what its shell reports; kept within limits."""

    def __init__(self, command: Command, progress: Progress | None, folder: PrivateFolder, flood_bytes: int) -> None:
        """Who prints more than `flood_bytes` sets off `on_flood`. Raises `OSError` when no pipe is to be had."""
        limit = command.output_limit_bytes
        self._progress = progress
        self._stdout, self._stderr, self._report = HeadAndTail(limit), HeadAndTail(limit), HeadAndTail(_REPORT_LIMIT)
        self._recent = HeadAndTail(min(limit, _RECENT_BYTES))
        self._spill = SpillFile(folder, limit, command.spill_limit_bytes) if command.spill_limit_bytes else None
        self._left_bytes = flood_bytes
        self.keeps_recent = False
        """Whether someone will ask what was printed lately."""
        self.on_flood: Callable[[], None] | None = None
        self._pipes: list[_Pipe] = []
        self.key = os.urandom(KEY_LENGTH // 2).hex()
        """Marks what the shell itself reports."""
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
        """The ends for the program: standard output, standard error, and for a shell line the report."""
        return tuple(pipe.sink for pipe in self._pipes)

    def watch(self, loop: asyncio.AbstractEventLoop, on_drained: Callable[[], None]) -> None:
        """Take from now on what comes; `on_drained` is called when nobody can print any more."""

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

    def pump(self) -> None:
        """Take what is there now."""
        for pipe in self._pipes:
            pipe.pump()

    def recent(self) -> tuple[bytes, int]:
        """What came since the last look; who looks on and on needs no file with all of it."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None
        return self._recent.take()

    def output(self) -> tuple[bytes, bytes, int]:
        """Both streams as far as they were kept, and how much was not."""
        (stdout, dropped_out), (stderr, dropped_err) = self._stdout.kept(), self._stderr.kept()
        return stdout, stderr, dropped_out + dropped_err

    def report(self) -> bytes:
        """What the shell has said; nothing if it was too much to be true."""
        said, dropped = self._report.kept()
        return b"" if dropped else said

    def spilled(self, is_needed: bool) -> str:
        """The file with all of the output, for who takes it over; empty if there is none, or it is not needed."""
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
