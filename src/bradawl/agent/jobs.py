"""Commands that run in the background of a session, and the notes the model gets about them."""

import asyncio
from collections.abc import Iterable
from typing import Final

from bradawl.agent.changes import ConversationChanges
from bradawl.agent.conversation import Conversation
from bradawl.agent.job_checks import JobChecks
from bradawl.core.errors import ToolError
from bradawl.core.events import Envelope, JobEnded, JobStarted
from bradawl.core.ports import Process, Processes
from bradawl.core.workspace import CommandResult, Job

_KEPT_BYTES: Final = 250_000


class _Running:
    """One job; kept until the session is closed."""

    def __init__(self, job_id: str, changes_key: str, command: str, process: Process, now: float) -> None:
        self.job_id = job_id
        self.changes_key = changes_key
        self.command = command
        self.process = process
        self.started = now
        self.seconds = 0.0
        self.result: CommandResult | None = None
        self.has_ended = asyncio.Event()
        self.watchers = 0
        """Calls that wait for its end, or have ended it; while there are any the model needs no note."""
        self._unread = bytearray()
        self._dropped = 0
        self.last = b""
        """The last bytes that the job printed."""

    def collect(self) -> bool:
        """Collect its new output; False if there is none."""
        data, dropped = self.process.printed()
        self._unread += data
        excess = max(0, len(self._unread) - _KEPT_BYTES)
        del self._unread[:excess]
        self._dropped += dropped + excess
        self.last = (self.last + data)[-4_000:]
        return bool(data)

    @property
    def unread(self) -> tuple[bytes, int]:
        """The output that the model has not seen, and how many bytes of it were dropped."""
        return bytes(self._unread), self._dropped

    def take(self) -> tuple[bytes, int]:
        """Remove and return the unread output, and how many bytes of it were dropped."""
        taken = self.unread
        self._unread.clear()
        self._dropped = 0
        return taken


class BackgroundJobs:
    """`Jobs` of one session: they continue when a turn is cancelled, and end with the session."""

    def __init__(
        self,
        conversation: Conversation,
        entries: Iterable[Envelope] = (),
        stall_s: float = 15.0,
        changes: ConversationChanges | None = None,
        processes: Processes | None = None,
    ) -> None:
        """`entries` are those already in the log. `processes` check the workspace while jobs run, if they can.

        The model gets a note about a job that printed a question and then nothing for `stall_s` seconds.
        """
        self.tasks: asyncio.TaskGroup | None = None
        """Watches the jobs; owned by the session, None while the session is not open."""
        self._conversation = conversation
        self._changes = changes
        self.stall_s = stall_s
        self._jobs: dict[str, _Running] = {}
        self._checks = JobChecks(conversation, processes, self._running_processes)
        events = [entry.event for entry in entries if entry.agent == conversation.name]
        ended = {event.job_id for event in events if isinstance(event, JobEnded)}
        started = [event for event in events if isinstance(event, JobStarted)]
        self._number = len(started)
        self._times_asked = 0
        self._earlier = {event.job_id: event.command for event in started}
        """The commands of the jobs of earlier runs, by job id."""
        self._lost = [event for event in started if event.job_id not in ended]

    def recover(self) -> None:
        """Log the end of the jobs that ran when the program ended, and note it for the model."""
        for job in self._lost:
            from bradawl.shaping import job_notes

            self._conversation.record(JobEnded(job.job_id))
            self._conversation.note(job_notes.lost(job_notes.named(job.job_id, job.command)))
        self._lost = []

    @property
    def running(self) -> dict[str, str]:
        """The commands of the jobs that have not ended, by job id."""
        return {job.job_id: job.command for job in self._jobs.values() if job.result is None}

    @property
    def known(self) -> tuple[Job, ...]:
        """The jobs of this run, also those that have ended, with the end of their output, which stays unread."""
        for job in self._jobs.values():
            if job.result is None:
                job.collect()
        return tuple(
            Job(each.job_id, each.command, self._seconds(each), each.last, 0, each.result)
            for each in self._jobs.values()
        )

    def add(self, process: Process, command: str, call_id: str, ran_s: float = 0.0) -> str:
        """Take over a process that has run for `ran_s` seconds, and return the job's id. Raises `ToolError` while the
        session is not open.
        """
        if self.tasks is None:
            raise ToolError("nothing can go on in the background here")
        self._number += 1
        job_id = f"job-{self._number}"
        key = self._changes.continues(call_id, job_id) if self._changes is not None else call_id
        job = _Running(job_id, key, command, process, self._conversation.clock.monotonic() - ran_s)
        self._jobs[job.job_id] = job
        self._conversation.record(JobStarted(job.job_id, call_id, command))
        self.tasks.create_task(self._watch(job))
        self._checks.begin(self.tasks)
        return job.job_id

    def ask_for_background(self) -> None:
        """Have the commands that run now moved to the background."""
        self._times_asked += 1

    def times_asked(self) -> int:
        """See `Jobs`."""
        return self._times_asked

    def check_soon(self) -> None:
        """Check the workspace at once if jobs run that could change it. Call at the end of a turn."""
        self._checks.check_soon()

    def warn_user(self) -> None:
        """Show the user what was found while commands ran. Call before the end of a turn."""
        self._checks.warn_user()

    def _running_processes(self) -> tuple[Process, ...]:
        return tuple(job.process for job in self._jobs.values() if job.result is None)

    async def read_output(self, job_id: str, wait_s: float = 0.0) -> Job:
        """Wait up to `wait_s` seconds for its end, and return its unread output. Raises `ToolError` for an unknown
        job.
        """
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
        return Job(job.job_id, job.command, self._seconds(job), printed, dropped, job.result)

    def _seconds(self, job: _Running) -> float:
        return self._conversation.clock.monotonic() - job.started if job.result is None else job.seconds

    async def end(self, job_id: str) -> Job:
        """End the job unless it has ended, and return its unread output. Raises `ToolError` for an unknown job."""
        await self._end(self._job(job_id))
        return await self.read_output(job_id)

    async def close(self) -> None:
        """End all jobs. The user is told of those that were running, and the model if the session is continued."""
        self._checks.close()
        running = [job for job in self._jobs.values() if job.result is None]
        for job in running:
            from bradawl.shaping import job_notes

            text = job_notes.ended_with_run(job_notes.named(job.job_id, job.command))
            self._conversation.warn(text)
            self._conversation.note(text)
        async with asyncio.TaskGroup() as group:
            for job in running:
                group.create_task(self._end(job))

    async def _end(self, job: _Running) -> None:
        job.watchers += 1
        await job.process.end()
        await job.has_ended.wait()

    def _job(self, job_id: str) -> _Running:
        job_id = f"job-{job_id}" if job_id.isdecimal() else job_id
        if (job := self._jobs.get(job_id)) is not None:
            return job
        from bradawl.shaping import job_notes

        if job_id in self._earlier:
            raise ToolError(job_notes.ended_before(job_notes.named(job_id, self._earlier[job_id])))
        known = ", ".join(self._jobs)
        raise ToolError(f"there is no job {job_id!r}; " + (f"there are {known}" if known else "none was started"))

    async def _watch(self, job: _Running) -> None:
        try:
            is_noted = False
            while not await job.process.wait(self.stall_s):
                if job.collect():
                    is_noted = False
                elif not is_noted:
                    is_noted = self._note_stall(job)
        finally:
            job.result = job.process.result()
            job.collect()
            job.seconds = self._conversation.clock.monotonic() - job.started
            self._conversation.record(JobEnded(job.job_id, job.result.exit_code))
            if self._changes is not None:
                self._changes.end_job(job.changes_key)
            job.has_ended.set()
            self._checks.say(job.result.restored, to_model=not job.watchers)
            self._checks.warn_user()
            self._checks.check_soon()
        if not job.watchers:
            self._note_end(job, job.result.exit_code)

    def _note_stall(self, job: _Running) -> bool:
        """Queue a note if the job seems to wait for input; True if it does."""
        from bradawl.shaping import job_notes

        if not job_notes.asks(job.last):
            return False
        self._conversation.note(job_notes.stalled(job_notes.named(job.job_id, job.command), self.stall_s, job.last))
        return True

    def _note_end(self, job: _Running, exit_code: int | None) -> None:
        from bradawl.shaping import job_notes

        name = job_notes.named(job.job_id, job.command)
        note, tells_all = job_notes.ended(name, exit_code, job.seconds, *job.unread)
        if tells_all:
            job.take()
        self._conversation.note(note)
