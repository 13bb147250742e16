"""Checks the workspace while sandboxed programs run.

Background jobs are checked when the session asks for it. They are stopped (SIGSTOP) only while files are restored. A
command that the model waits for is checked every few seconds, without being stopped, for the few files that honest git
never has in between.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import msgspec

from bradawl.core.errors import ToolError
from bradawl.workspace.job_freeze import FreezeGate
from bradawl.workspace.other_thread import in_other_thread

if TYPE_CHECKING:
    from bradawl.sandbox.backend import (
        CheckResult,
        ChecksWhileRunning,
        DataEvents,
        LaunchCovers,
        RunningCheck,
        SandboxBackend,
    )
    from bradawl.workspace.child_process import ChildProcess

_SETTLE_S: Final = 0.05
"""A file that git is writing is complete after this time."""
_BESIDE_S: Final = 2.0
_REST_S: Final = 0.1
"""After events, further ones wait so long."""
_SHARE: Final = 0.02
"""The share of one processor core that checks beside a command may take."""
_MOST_TIMES: Final = 3
"""When the same path has to be put back for this many times, the background commands are killed."""


class CheckReport(msgspec.Struct, frozen=True):
    """What a check found while programs ran."""

    restored: tuple[str, ...] = ()
    """Paths that were put back or moved away; `(could not be put back: ...)` follows one that was not, and
    `(could not be checked: ...)` one that could not be examined.
    """
    set_aside: tuple[str, ...] = ()
    """Folders with what was moved away."""
    seconds: float = 0.0
    """Processor time of this program that the check took, at most."""
    ended: tuple[str, ...] = ()
    """Background commands that were killed, because what was put back came again each time."""


class RunningChecks:
    """The checks while programs of one `LocalProcesses` run; one at a time."""

    def __init__(
        self, gate: FreezeGate, running: Callable[[], Iterable["ChildProcess"]], *, beside_s: float = _BESIDE_S
    ) -> None:
        """`running` returns all programs that run, sandboxed or not. A command is checked every `beside_s` seconds."""
        self._beside_s = beside_s
        self._gate = gate
        self._running = running
        self._jobs: WeakSet[object] = WeakSet()
        self._timers: dict[ChildProcess, asyncio.TimerHandle] = {}
        self._wakers: dict[object, Callable[[], None]] = {}
        """What to call when a check is urgent, by command, or by itself for a session."""
        self._restored: Counter[str] = Counter()
        """How often paths were put back since sandboxed programs run."""
        self._events: DataEvents | None = None
        """Is read from."""
        self._resting: asyncio.TimerHandle | None = None
        self._covers: LaunchCovers | None = None
        """Those of the last sandboxed program."""
        self._warnings: tuple[str, ...] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    def lock(self) -> asyncio.Lock:
        """Held during a check. A lock belongs to one event loop; a session may use several, one after another."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._stop_reading()
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock

    async def check(
        self, backend: "SandboxBackend | None", jobs: Collection[object], wake: Callable[[], None] | None = None
    ) -> CheckReport | None:
        """Check the workspace; None if nothing runs that could change it. `jobs` are background commands among the
        programs: beside another one, only what no honest git has in between is put back.

        `wake` is called if another check is urgent, until no sandboxed program runs.
        """
        from bradawl.sandbox.backend import ChecksWhileRunning
        from bradawl.sandbox.check_failures import CheckFailures

        for each in jobs:
            self._jobs.add(each)
        if not isinstance(backend, ChecksWhileRunning):
            return None
        async with self.lock():
            began = time.process_time()
            sandboxed = [child for child in self._running() if child.is_sandboxed]
            failures = CheckFailures()
            is_beside = any(child not in self._jobs for child in sandboxed)
            begin = partial(backend.check_running, beside_command=is_beside)
            check = failures.attempt("the workspace", begin, None)
            if failures.paths:
                return CheckReport(failures.remarks())
            if check is None:
                return None
            if wake is not None:
                self._wakers[wake] = wake
                self._read_events(check)
            result = await self._compared(check)
            ended = self._end_if_repeated(result.found)
            seconds = time.process_time() - began
            return CheckReport((*result.found, *result.unchecked), result.set_aside, seconds, ended)

    def _end_if_repeated(self, found: tuple[str, ...]) -> tuple[str, ...]:
        """Kill the background commands if one of them makes the same thing again and again: git would sooner or later
        start between two checks. Returns their names.
        """
        self._restored.update(found)
        if not any(self._restored[path] >= _MOST_TIMES for path in found):
            return ()
        jobs = [child for child in self._running() if child.is_sandboxed and child in self._jobs]
        for job in jobs:
            job.kill()
        return tuple(job.name for job in jobs)

    def begin(
        self, command: "ChildProcess", backend: "SandboxBackend | None", covers: "LaunchCovers | None" = None
    ) -> None:
        """Call when a command has started, with its sandbox. Its result names what is put back while it runs."""
        self._covers = covers or self._covers
        if backend is None:
            return
        from bradawl.sandbox.backend import ChecksWhileRunning

        if isinstance(backend, ChecksWhileRunning):
            self._check_later(command, backend, self._beside_s)
            events = None
            with contextlib.suppress(Exception):  # its end is checked in any case
                events = backend.check_running(beside_command=True)
            if events is not None:
                self._wakers[command] = partial(self._check_beside, command, backend)
                self._read_events(events)

    def take_warnings(self) -> tuple[str, ...]:
        """Sentences for the user about protected paths that were replaced while programs ran, since the last call."""
        warnings, self._warnings = self._warnings, ()
        return (*warnings, *(self._covers.take_warnings() if self._covers is not None else ()))

    def end(self, command: "ChildProcess") -> None:
        """Call when a program has ended; of others than those of `begin`, only `unsaid` is used."""
        self._warnings += command.unsaid()
        if (timer := self._timers.pop(command, None)) is not None:
            timer.cancel()
        self._wakers.pop(command, None)
        if not any(child.is_sandboxed for child in self._running()):
            self._stop_reading()
            self._wakers.clear()
            self._restored.clear()

    # ------------------------------------------------------------------ events

    def _read_events(self, events: "DataEvents") -> None:
        self.lock()  # begins anew in another event loop
        if self._events is None and self._resting is None and events.descriptor >= 0:
            self._events = events
            with contextlib.suppress(OSError, ValueError):  # closed meanwhile: checks follow by the clock alone
                asyncio.get_running_loop().add_reader(events.descriptor, self._on_events)

    def _stop_reading(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        events, self._events, self._resting = self._events, None, None
        if events is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(events.descriptor)

    def _on_events(self) -> None:
        """Wake the sessions. A program that changes git's data all the time does not keep this one busy."""
        events = self._events
        if events is None:
            return
        self._stop_reading()
        self._resting = asyncio.get_running_loop().call_later(_REST_S, self._read_again, events)
        if events.is_urgent():
            for wake in tuple(self._wakers.values()):
                wake()

    def _read_again(self, events: "DataEvents") -> None:
        self._resting = None
        if self._wakers:
            self._read_events(events)

    # ------------------------------------------------------------------ commands and jobs

    def _check_later(self, command: "ChildProcess", backend: "ChecksWhileRunning", seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers[command] = loop.call_later(seconds, self._check_beside, command, backend)

    def _check_beside(self, command: "ChildProcess", backend: "ChecksWhileRunning") -> None:
        if (timer := self._timers.pop(command, None)) is None or command in self._jobs:
            return  # it has ended, or is no command any more
        timer.cancel()
        began = time.process_time()
        with contextlib.suppress(Exception):  # its end is checked in any case
            if not self.lock().locked() and (check := backend.check_running(beside_command=True)) is not None:
                result = check.compare(restores=True)
                command.add_restored((*result.found, *result.unchecked))
        seconds = time.process_time() - began
        self._check_later(command, backend, max(self._beside_s, seconds / _SHARE))

    async def _compared(self, check: "RunningCheck") -> "CheckResult":
        await _search(check)
        result = check.compare(restores=False)
        if not result.found:
            return result
        await asyncio.sleep(_SETTLE_S)
        result = check.compare(restores=False)
        if not result.found:
            return result
        async with self._programs_stopped():
            await _search(check)  # a program may have moved folders meanwhile
            return check.compare(restores=True)

    @contextlib.asynccontextmanager
    async def _programs_stopped(self) -> AsyncIterator[None]:
        """Keep the programs stopped in the body, if that is possible: files are restored in any case."""
        async with contextlib.AsyncExitStack() as stopped:
            with contextlib.suppress(ToolError):
                await stopped.enter_async_context(self._gate.programs_stopped(waits_for_searches=True))
            yield


async def _search(check: "RunningCheck") -> None:
    if not check.shortly():
        await in_other_thread(check.finish)
