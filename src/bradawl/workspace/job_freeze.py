"""Stops background jobs of the sandbox (SIGSTOP) while bradawl examines or mounts paths.

A job can rename folders and replace them by links. Finding the paths to protect, mounting them, and searching without a
sandbox take several steps; a job must not act between them.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from bradawl.core.errors import ToolError
from bradawl.workspace.process_tree import ProcessState, signal_processes

if TYPE_CHECKING:
    from bradawl.workspace.child_process import ChildProcess

_STOP_LIMIT_S: Final = 1.0
"""A process that waits for a disk stops only afterwards."""
_START_LIMIT_S: Final = 10.0
_POLL_S: Final = 0.0005
_SLOW_POLL_S: Final = 0.01
"""Used when most programs would have stopped: polling takes processor time, and a costly check puts off the next."""
_SLOW_AFTER_S: Final = 0.05
_SHOWN: Final = 80


class FreezeGate:
    """Starts sandboxed programs one at a time, with all running ones stopped meanwhile."""

    def __init__(
        self,
        running: Callable[[], Iterable["ChildProcess"]],
        *,
        stop_limit_s: float = _STOP_LIMIT_S,
        start_limit_s: float = _START_LIMIT_S,
    ) -> None:
        """`running` returns all programs that run, sandboxed or not."""
        self._running = running
        self._stop_limit_s = stop_limit_s
        self._start_limit_s = start_limit_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self._holders: set[object] = set()
        self._stopped: set[int] = set()
        self._released: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether no sandboxed program runs and no other start or search is in progress."""
        return not (self._holders or self._lock.locked() or any(child.is_sandboxed for child in self._running()))

    @asynccontextmanager
    async def programs_stopped(self, *, waits_for_searches: bool) -> AsyncIterator[None]:
        """Keep all sandboxed programs stopped in the body. Raises `ToolError` if one can't be stopped.

        With `waits_for_searches` it waits until no search holds the programs stopped.
        """
        async with self._loop_lock():
            while waits_for_searches and self._holders:
                self._released = asyncio.get_running_loop().create_future()
                await self._released
            turn = object()
            self._holders.add(turn)
            try:
                for child in self._sandboxed():
                    await self.wait_until_begun(child)
                await self._stop_all()
                yield
            finally:
                self.release(turn)

    def _loop_lock(self) -> asyncio.Lock:
        """A lock belongs to one event loop; a session may use several, one after another."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock

    @contextmanager
    def stopped_now(self) -> Iterator[frozenset[int]]:
        """Keep all sandboxed programs that have begun stopped in the body, without awaiting. Yields the PIDs of their
        processes. Blocks up to the time limit; a process that can't be stopped within it runs on.
        """
        turn = object()
        self._holders.add(turn)
        try:
            yield self._stop_begun()
        finally:
            self.release(turn)

    def _stop_begun(self) -> frozenset[int]:
        began = time.monotonic()
        before: dict[int, ProcessState] | None = None
        while True:
            now = self._members()
            running = {each for each, member in now.items() if not member.is_stopped}
            if now == before and running <= _held_by_vfork(now):
                return frozenset(now)
            if time.monotonic() - began > self._stop_limit_s:
                return frozenset(now)
            self._signal_round(now, frozenset())
            before = now
            time.sleep(_POLL_S)

    def hold_for(self, search: "ChildProcess") -> None:
        """Keep the programs stopped until `release(search)`. Call it inside `programs_stopped`."""
        self._holders.add(search)

    def release(self, holder: object) -> None:
        """Continue the programs, unless another start or search holds them stopped. Unknown holders are ignored."""
        self._holders.discard(holder)
        if self._holders:
            return
        self._resume()
        if self._released is not None:
            if not self._released.done() and not self._released.get_loop().is_closed():
                self._released.set_result(None)
            self._released = None

    async def wait_until_begun(self, child: "ChildProcess") -> None:
        """Wait until a program runs in its sandbox, or has ended. Raises `ToolError` after a time limit."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._start_limit_s
        while not child.has_begun():
            if loop.time() > deadline:
                raise ToolError(
                    f"the sandbox of {child.name[:_SHOWN]!r} was not set up within {self._start_limit_s:.0f} s; "
                    "end other programs, then call again"
                )
            await asyncio.sleep(_POLL_S)

    # ------------------------------------------------------------------ stopping

    def _sandboxed(self) -> list["ChildProcess"]:
        return [child for child in self._running() if child.is_sandboxed]

    async def _stop_all(self) -> None:
        """Signal all processes until two rounds in a row find the same ones, none of which runs.

        Each round signals every process: a stopped one may be continued by one that still runs.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        before: dict[int, ProcessState] | None = None
        while True:
            now = self._members()
            running = {each for each, member in now.items() if not member.is_stopped}
            if not running and now == before:
                return
            taken_s = loop.time() - began
            if taken_s > self._stop_limit_s:
                raise self._not_stopped(running)
            self._signal_round(now, _children_of_vfork(now) if taken_s < self._stop_limit_s / 2 else frozenset())
            before = now
            await asyncio.sleep(_POLL_S if taken_s < _SLOW_AFTER_S else _SLOW_POLL_S)

    def _signal_round(self, now: dict[int, ProcessState], spared: frozenset[int]) -> None:
        self._stopped |= {each for each, member in now.items() if not member.is_stopped}
        signal_processes(
            sorted(set(now) - spared), signal.SIGSTOP
        )  # parents first, so that they don't see a stopped child

    def _members(self) -> dict[int, ProcessState]:
        found: dict[int, ProcessState] = {}
        for child in self._sandboxed():
            if child.has_begun():
                found |= child.process_states()
        return found

    def _resume(self) -> None:
        stopped, self._stopped = self._stopped, set()
        signal_processes(sorted(stopped, reverse=True), signal.SIGCONT)

    def _not_stopped(self, running: set[int]) -> ToolError:
        names = [child.name for child in self._sandboxed() if not running or running & set(child.process_states())]
        name = (names or ["a background job"])[0]
        return ToolError(
            f"nothing was started: {name[:_SHOWN]!r} still runs, and its processes could not be stopped for the moment "
            f"in which bradawl examines the files. End that job (bash_kill), then call again"
        )


def _children_of_vfork(process_states: dict[int, ProcessState]) -> frozenset[int]:
    """A parent in vfork waits uninterruptibly for its child to execute a program, and can't stop before."""
    return frozenset(
        each
        for each, member in process_states.items()
        if (above := process_states.get(member.parent)) and above.is_waiting
    )


def _held_by_vfork(process_states: dict[int, ProcessState]) -> frozenset[int]:
    """Parents that wait for a child in vfork, which is stopped; their other threads are stopped as well."""
    stopped = (each for each in _children_of_vfork(process_states) if process_states[each].is_stopped)
    parents = frozenset(process_states[each].parent for each in stopped)
    return frozenset(each for each in parents if process_states[each].is_stopped_or_waiting)


def check_not_replaced(paths: Iterable[str]) -> None:
    """Raise `ToolError` if a path, or a folder above it, became a link since it was resolved."""
    folders: dict[str, str] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or "/").rstrip("/")
        if folders[folder] != folder or os.path.islink(path):  # noqa: PTH114 - half of the time, for many paths
            raise ToolError(
                f"{path} was replaced by a link while a background job runs, so it was not examined; "
                "call again, or end the job first (bash_kill)"
            )
