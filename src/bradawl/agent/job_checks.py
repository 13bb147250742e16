"""Checks the workspace every few seconds while background jobs of a session run, and says what was put back."""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, Protocol, runtime_checkable

from bradawl.agent.conversation import Conversation
from bradawl.core.ports import Process, Processes

_SHORTEST_S: Final = 1.0
_LONGEST_S: Final = 60.0
_SHARE: Final = 0.02
"""The share of one processor core that checks may take."""
_SHARE_ON_ALERT: Final = 0.25
_ALERT_S: Final = 60.0
"""After something was put back, checks may take the larger share for so long. A job that plants can also make its
checks costly, such as by processes that can't be stopped, and must not put off the next one by that.
"""


class CheckReport(Protocol):
    """What one check found."""

    @property
    def restored(self) -> tuple[str, ...]:
        """Paths that were put back or moved away, or that could not be; see `CommandResult.restored`."""
        ...

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Folders with what was moved away."""
        ...

    @property
    def seconds(self) -> float:
        """Processor time of the check."""
        ...

    @property
    def ended(self) -> tuple[str, ...]:
        """Commands of jobs that were killed, because what was put back came again each time."""
        ...


@runtime_checkable
class ChecksRunning(Protocol):
    """`Processes` whose sandbox can be checked while programs run in it."""

    async def check_running(
        self, jobs: Collection[Process] = (), wake: Callable[[], None] | None = None
    ) -> CheckReport | None:
        """Check what programs do in the workspace, while they run, and put back what may not stay.

        `jobs` are background commands among them. `wake` is called when another check is urgent. None if nothing runs
        that could change the workspace.
        """
        ...


@runtime_checkable
class WarnsUser(Protocol):
    """`Processes` that find what the user has to know while programs run."""

    def take_warnings(self) -> tuple[str, ...]:
        """Sentences since the last call."""
        ...


def interval_after(seconds: float, *, on_alert: bool = False) -> float:
    """Seconds until the next check, if the last one took so many seconds of processor time."""
    return min(max(_SHORTEST_S, seconds / (_SHARE_ON_ALERT if on_alert else _SHARE)), _LONGEST_S)


class JobChecks:
    """The checks of one session. They run while it has background jobs, and never otherwise."""

    def __init__(
        self, conversation: Conversation, processes: Processes | None, jobs: Callable[[], Collection[Process]]
    ) -> None:
        """`jobs` returns the background commands that run."""
        self._conversation = conversation
        self._processes = processes if isinstance(processes, ChecksRunning) else None
        self._warning = processes if isinstance(processes, WarnsUser) else None
        self._jobs = jobs
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._said: set[str] = set()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Call when a job has started. `tasks` are those of the session."""
        if self._processes is not None and (self._task is None or self._task.done()):
            self._task = tasks.create_task(self._run(self._processes))
        self._wake.set()

    def check_soon(self) -> None:
        """Call at the end of a turn or of a job. What was said before is said again if it happens again."""
        self._said.clear()
        self._wake.set()

    def warn_user(self) -> None:
        """Show the user what processes found since the last call, each sentence once."""
        for text in self._warning.take_warnings() if self._warning is not None else ():
            self._conversation.warn(text)

    def close(self) -> None:
        """End the checks at once; safe to call twice."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, processes: ChecksRunning) -> None:
        clock = self._conversation.clock
        interval, alert_until = _SHORTEST_S, clock.monotonic()
        while self._jobs():
            await self._wait(interval)
            if not (jobs := self._jobs()):
                return
            report = await processes.check_running(jobs, self._wake.set)
            self.warn_user()
            if report is None:  # the jobs run without a sandbox, or can't change the workspace
                interval = _LONGEST_S
                continue
            if report.restored:
                alert_until = clock.monotonic() + _ALERT_S
            interval = interval_after(report.seconds, on_alert=clock.monotonic() < alert_until)
            self.say(report.restored, report.set_aside)
            self._say_ended(report.ended)

    async def _wait(self, seconds: float) -> None:
        """Wait for `check_soon` or an urgent change, at most this long."""
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._sleep(seconds))
            await self._wake.wait()
            timer.cancel()
        self._wake.clear()

    async def _sleep(self, seconds: float) -> None:
        await self._conversation.clock.sleep(seconds)
        self._wake.set()

    def _say_ended(self, commands: tuple[str, ...]) -> None:
        if not commands:
            return
        from bradawl.safety.control_characters import in_remark
        from bradawl.shaping import job_notes

        text = job_notes.killed(tuple(map(in_remark, commands)))
        self._conversation.warn(text)
        self._conversation.note(text)

    def say(self, restored: tuple[str, ...], set_aside: tuple[str, ...] = (), *, to_model: bool = True) -> None:
        """Tell the user what was put back, and the model unless a result tells it; each path once."""
        new = tuple(each for each in restored if each not in self._said)
        self._said |= set(new)
        if not new:
            return
        from bradawl.safety.control_characters import in_remark
        from bradawl.shaping import job_notes
        from bradawl.shaping.restored_paths import restored_lines

        lines = restored_lines(new, in_remark, for_user=True)
        self._conversation.warn(job_notes.put_back(lines, set_aside, for_user=True))
        if to_model:
            self._conversation.note(job_notes.put_back(restored_lines(new, in_remark), set_aside))
