"""Commands that go on in the background of a session."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from bradawl.core.errors import ToolError
from bradawl.core.events import Envelope, JobEnded, JobStarted
from bradawl.core.ports import Process
from bradawl.core.workspace import CommandResult, Job

if TYPE_CHECKING:
    from bradawl.agent.session import Session

_KEPT_BYTES: Final = 250_000


class _Running:
    """One job, as long as the session lives."""

    def __init__(self, job_id: str, command: str, process: Process, now: float) -> None:
        self.job_id = job_id
        self.command = command
        self.process = process
        self.started = now
        self.seconds = 0.0
        self.result: CommandResult | None = None
        self.has_ended = asyncio.Event()
        self.watchers = 0
        """Of those who wait for its end, or have ended it; no note is needed."""
        self._unread = bytearray()
        self._dropped = 0
        self.last = b""
        """The end of all it has printed."""

    def collect(self) -> bool:
        """Take what it has printed; false if that is nothing."""
        data, dropped = self.process.printed()
        self._unread += data
        excess = max(0, len(self._unread) - _KEPT_BYTES)
        del self._unread[:excess]
        self._dropped += dropped + excess
        self.last = (self.last + data)[-4_000:]
        return bool(data)

    def take(self) -> tuple[bytes, int]:
        """What was printed since the last look."""
        taken = bytes(self._unread), self._dropped
        self._unread.clear()
        self._dropped = 0
        return taken


class BackgroundJobs:
    """`Jobs` of one session: they go on when a turn is cancelled, and end with the session."""

    def __init__(self, session: "Session", entries: Iterable[Envelope] = (), stall_s: float = 15.0) -> None:
        """`entries` is what is in the log already; who prints a question and nothing for `stall_s` is told of."""
        self._session = session
        self._stall_s = stall_s
        self._jobs: dict[str, _Running] = {}
        events = [entry.event for entry in entries if entry.agent == session.name]
        ended = {event.job_id for event in events if isinstance(event, JobEnded)}
        started = [event for event in events if isinstance(event, JobStarted)]
        self._number = len(started)
        self._lost = [event for event in started if event.job_id not in ended]

    def recover(self) -> None:
        """Close in the log what ran when the program ended, and tell the model."""
        for job in self._lost:
            from bradawl.shaping import job_notes

            self._session.record(JobEnded(job.job_id))
            self._session.note(job_notes.lost(job_notes.named(job.job_id, job.command)))
        self._lost = []

    def add(self, process: Process, command: str, call_id: str) -> str:
        """Take over a running process. Raises `ToolError` where nothing can outlive a call."""
        if self._session.tasks is None:
            raise ToolError("nothing can go on in the background here")
        self._number += 1
        job = _Running(f"job-{self._number}", command, process, self._session.agent.clock.monotonic())
        self._jobs[job.job_id] = job
        self._session.record(JobStarted(job.job_id, call_id, command))
        self._session.tasks.create_task(self._watch(job))
        return job.job_id

    async def look(self, job_id: str, wait_s: float = 0.0) -> Job:
        """What it has printed since the last look. Raises `ToolError`: no such job."""
        job = self._job(job_id)
        if wait_s > 0 and job.result is None:
            job.watchers += 1
            try:
                async with asyncio.timeout(wait_s):
                    await job.has_ended.wait()
            except TimeoutError:
                pass
            finally:
                job.watchers -= 1
        job.collect()
        printed, dropped = job.take()
        seconds = self._session.agent.clock.monotonic() - job.started if job.result is None else job.seconds
        return Job(job_id, job.command, seconds, printed, dropped, job.result)

    async def end(self, job_id: str) -> Job:
        """End it, unless it has ended. Raises `ToolError`: no such job."""
        await self._end(self._job(job_id))
        return await self.look(job_id)

    async def close(self) -> None:
        """End all."""
        running = [job for job in self._jobs.values() if job.result is None]
        async with asyncio.TaskGroup() as group:
            for job in running:
                group.create_task(self._end(job))

    async def _end(self, job: _Running) -> None:
        job.watchers += 1
        await job.process.end()
        await job.has_ended.wait()

    def _job(self, job_id: str) -> _Running:
        job = self._jobs.get(job_id)
        if job is None:
            known = ", ".join(self._jobs)
            raise ToolError(f"there is no job {job_id!r}; " + (f"there are {known}" if known else "none was started"))
        return job

    async def _watch(self, job: _Running) -> None:
        try:
            is_told = False
            while not await job.process.wait(self._stall_s):
                if job.collect():
                    is_told = False
                elif not is_told:
                    is_told = self._tell_stall(job)
        finally:
            job.result = job.process.result()
            job.collect()
            job.seconds = self._session.agent.clock.monotonic() - job.started
            self._session.record(JobEnded(job.job_id, job.result.exit_code))
            job.has_ended.set()
        if not job.watchers:
            self._tell_end(job, job.result.exit_code)

    def _tell_stall(self, job: _Running) -> bool:
        """True if it was worth telling."""
        from bradawl.shaping import job_notes

        if not job_notes.asks(job.last):
            return False
        self._session.note(job_notes.stalled(job_notes.named(job.job_id, job.command), self._stall_s, job.last))
        return True

    def _tell_end(self, job: _Running, exit_code: int | None) -> None:
        from bradawl.shaping import job_notes

        name = job_notes.named(job.job_id, job.command)
        self._session.note(job_notes.ended(name, exit_code, job.seconds, job.last))
