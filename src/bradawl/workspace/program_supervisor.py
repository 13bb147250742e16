"""The supervisor of a program that has no PID namespace: the process that ends all of the program's processes."""

import contextlib
import os
import select
import time
from collections.abc import Callable
from typing import Final

from bradawl.workspace.namespace_init import NamespaceInit
from bradawl.workspace.process_tree import call_processes

_END_LIMIT_S: Final = 2.0
_LONGEST: Final = 4_096
_INFO_END: Final = b"}"
_ENDED: Final = b"e"
_KILL: Final = b"k"
_LOST: Final = (
    "the process that ends what the command leaves running was killed: processes of the command may still run, and "
    "what they write from now on is not checked"
)
_STUCK: Final = (
    "a process of the command could not be ended in time, and still waits in the kernel: what it writes from now on is "
    "not checked"
)


class ProgramSupervisor(NamespaceInit):
    """The supervisor of one program (`sandbox.landlock_supervisor`). Its owner calls `close()`.

    It ends by itself after the last process of the program, which it reports before. It must not be killed: it would
    leave its processes behind.
    """

    def __init__(self, info_fd: int, mark: str, on_known: Callable[[int], None]) -> None:
        """`info_fd` is the socket to the supervisor; `close` closes it, which ends all processes."""
        self._has_ended = self._is_lost = False
        self._deadline = 0.0
        """Until when the end of all processes is awaited; 0 before it was ordered."""
        super().__init__(info_fd, mark, on_known)

    @property
    def is_lost(self) -> bool:
        """Whether it was killed, so that it does not end what the program left running."""
        return self._is_lost

    @property
    def is_running(self) -> bool:
        """Whether it runs, so that processes of the program may be left."""
        self.read_info()
        return bool(self.id) and not (self._has_ended or self._is_lost)

    def read_info(self) -> None:
        """Read what the supervisor has written so far."""
        while self._info_fd >= 0:
            try:
                data = os.read(self._info_fd, _LONGEST)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self._said += data
            info, end, report = self._said.partition(_INFO_END)
            if end and not self.id:
                self._take(info + end)
            self._has_ended = self._has_ended or report.endswith(_ENDED)
            if not data or self._has_ended:
                self._is_lost = not self._has_ended
                self._end_listening()

    def remaining_pids(self) -> set[int]:
        """PIDs of all processes of the program, without the supervisor."""
        return call_processes(self._mark, self.id) if self.is_running else set()

    def begin_kill(self) -> float:
        """As `kill`, without waiting. Returns the seconds after which a `kill` waits no longer."""
        self.read_info()
        self._deadline = self._deadline or time.monotonic() + _END_LIMIT_S
        if self._info_fd >= 0:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                os.write(self._info_fd, _KILL)
        return max(0.0, self._deadline - time.monotonic())

    def kill(self) -> None:
        """End all processes, and wait for their end, at most two seconds after this or `begin_kill` is first called."""
        self.begin_kill()
        self._wait_for_report()

    def _wait_for_report(self) -> None:
        while self._info_fd >= 0 and (left_s := self._deadline - time.monotonic()) > 0:
            waiting = select.poll()
            waiting.register(self._info_fd, select.POLLIN)
            waiting.poll(left_s * 1_000)
            self.read_info()

    def notes(self) -> tuple[str, ...]:
        """Sentences about the end of its processes for the program's result."""
        if self._has_ended or not self.id:
            return ()
        return (_LOST if self._is_lost else _STUCK,)

    def close(self) -> None:
        """Release the descriptors. Processes that are left are ended. Safe to call twice."""
        self.read_info()
        super().close()
