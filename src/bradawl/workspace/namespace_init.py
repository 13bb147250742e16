"""The init process of a sandbox's PID namespace: when it ends, the kernel ends all others in it."""

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import Callable

import msgspec

from bradawl.workspace.process_tree import call_processes, running, signal_processes

_LONGEST = 4_096


class NamespaceInit:
    """Init of one sandbox. Its PID is read from the launcher; 0 until then, and nothing is signalled.

    It ends by itself after the last program in the namespace. Its owner calls `close()`.
    """

    def __init__(self, info_fd: int, mark: str, on_known: Callable[[int], None]) -> None:
        """`info_fd` is the descriptor for the launcher's JSON; it is closed here. `on_known` gets the PID, once."""
        self._info_fd = info_fd
        self._mark = mark
        self._on_known = on_known
        self._said = b""
        self._loop = asyncio.get_running_loop()
        self._pidfd = -1
        self.id = 0
        self.group = 0
        """Process group that takes signals for the programs in the namespace."""
        os.set_blocking(info_fd, False)
        self._loop.add_reader(info_fd, self.read_info)

    def read_info(self) -> None:
        """Read what the launcher has written so far."""
        if self._info_fd < 0:
            return
        try:
            data = os.read(self._info_fd, _LONGEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._said += data
        if not data or self._said.rstrip().endswith(b"}"):
            self._end_listening()
            self._take(self._said)

    def _take(self, said: bytes) -> None:
        try:
            info = msgspec.json.decode(said, type=dict[str, int])
            found = info["child-pid"]
        except (msgspec.DecodeError, KeyError):  # the launcher ended before it started init
            return
        with contextlib.suppress(ProcessLookupError):
            try:
                self._pidfd = os.pidfd_open(found)
            except OSError as error:
                if error.errno == errno.ESRCH:
                    raise
            self.id, self.group = found, info.get("group", found)
            self._on_known(found)

    def _end_listening(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._info_fd)
        os.close(self._info_fd)
        self._info_fd = -1

    @property
    def is_lost(self) -> bool:
        """Whether it has ended without ending what the program left running, which an init never does."""
        return False

    @property
    def is_running(self) -> bool:
        """Whether init runs, so that programs may be left in the namespace."""
        self.read_info()
        return bool(self.id and running((self.id,)))

    async def has_ended(self, within_s: float) -> bool:
        """Wait for its end; False if it still runs."""
        if not self.is_running or self._pidfd < 0:
            return not self.is_running
        ended = self._loop.create_future()
        self._loop.add_reader(self._pidfd, lambda: ended.done() or ended.set_result(None))
        try:
            await asyncio.wait((ended,), timeout=within_s)
        finally:
            if self._pidfd >= 0:  # not closed meanwhile, by another task that waited
                self._loop.remove_reader(self._pidfd)
        return ended.done()

    def remaining_pids(self) -> set[int]:
        """PIDs of all processes in the namespace, init included. Init ignores SIGTERM."""
        return {self.id, *call_processes(self._mark, self.id)} if self.is_running else set()

    def begin_kill(self) -> float:
        """As `kill`. Returns the seconds for which it is worth waiting then; the kernel ends all without that."""
        self.kill()
        return 0.0

    def kill(self) -> None:
        """Kill init, and with it all processes in the namespace."""
        if self.is_running:
            signal_processes((self.id,), signal.SIGKILL)

    def notes(self) -> tuple[str, ...]:
        """Sentences about the end of its processes for the program's result."""
        return ()

    def close(self) -> None:
        """Release the descriptors; init is not ended. Safe to call twice."""
        if self._info_fd >= 0:
            self._end_listening()
        if self._pidfd >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self.id:
            with contextlib.suppress(ChildProcessError):  # its parent is this process only if that reaps orphans
                os.waitpid(self.id, os.WNOHANG)
