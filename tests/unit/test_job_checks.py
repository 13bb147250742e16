"""`JobChecks` checks the workspace while jobs run, at intervals that follow from the cost, and says each path once."""

import asyncio

import msgspec
import pytest

from bradawl.agent.conversation import Conversation
from bradawl.agent.job_checks import JobChecks, interval_after
from bradawl.core.deltas import Notice
from bradawl.core.events import Live
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryStore, ScriptedProcesses


class Report(msgspec.Struct, frozen=True):
    restored: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    seconds: float = 0.0
    ended: tuple[str, ...] = ()


class CheckedProcesses(ScriptedProcesses):
    """Processes whose checks give these reports, then empty ones."""

    def __init__(self, *reports: Report | None) -> None:
        super().__init__()
        self._reports = list(reports)
        self.checks = 0
        self.jobs: list[object] = []
        self.hangs = False
        self.warnings: list[str] = []

    def take_warnings(self) -> tuple[str, ...]:
        taken, self.warnings = self.warnings, []
        return tuple(taken)

    async def check_running(self, jobs=(), wake=None) -> Report | None:
        self.checks += 1
        self.jobs = list(jobs)
        self.wake = wake
        if self.hangs:
            await asyncio.Event().wait()
        return self._reports.pop(0) if self._reports else Report()


class Session:
    """The checks of a session, whose jobs a test adds and removes."""

    def __init__(self, *reports: Report | None) -> None:
        self.clock = FakeClock()
        self.conversation = Conversation(MemoryStore().create(), FakeIds(), self.clock)
        self.shown: list[str] = []
        self.conversation.show_with(self._show)
        self.processes = CheckedProcesses(*reports)
        self.jobs: list[object] = []
        self.checks = JobChecks(self.conversation, self.processes, lambda: self.jobs)

    def _show(self, item: object) -> None:
        if isinstance(item, Live) and isinstance(item.item, Notice):
            self.shown.append(item.item.text)

    @property
    def notes(self) -> list[str]:
        return [note.text for note in self.conversation.inbox.waiting]

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Add a job; its first check is done."""
        self.jobs.append("job")
        self.checks.begin(tasks)
        await settled()

    async def after(self, seconds: float) -> int:
        """Advance the clock; the number of checks so far."""
        self.clock.advance(seconds)
        await settled()
        return self.processes.checks


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("cpu_s", "interval_s"), [(0.0, 1.0), (0.001, 1.0), (0.02, 1.0), (0.1, 5.0), (1.0, 50.0), (3.0, 60.0)]
)
def test_the_interval_keeps_the_share_of_a_core(cpu_s, interval_s):
    assert interval_after(cpu_s) == pytest.approx(interval_s)


async def test_without_jobs_there_is_no_timer_and_no_check():
    session = Session()
    session.checks.check_soon()
    await settled()
    assert (session.clock.slept, session.processes.checks) == ([], 0)


async def test_checks_follow_each_other_by_the_cost_of_the_last():
    session = Session(Report(), Report(seconds=0.2), Report())
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        assert session.processes.checks == 1  # at once
        assert await session.after(0.9) == 1
        assert await session.after(0.1) == 2
        assert await session.after(9.9) == 2
        assert await session.after(0.1) == 3
        assert await session.after(1.0) == 4
        assert session.processes.jobs == ["job"]
        session.checks.close()


async def test_after_something_was_put_back_a_costly_check_is_not_put_off_for_a_minute():
    """A job whose processes can't be stopped makes each check that puts something back take a second."""
    session = Session(Report(("/ws/s/.git/config",), seconds=1.0), Report(seconds=1.0), Report(seconds=1.0))
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        assert await session.after(3.9) == 1
        assert await session.after(0.1) == 2
        assert await session.after(4.0) == 3
        assert await session.after(4.0) == 4
        session.checks.close()


async def test_a_minute_after_something_was_put_back_checks_take_their_usual_share_again():
    session = Session(Report(("/ws/s/.git/config",)), *[Report()] * 60, Report(seconds=0.2))
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        for _ in range(60):
            await session.after(1.0)
        assert await session.after(1.0) == 62
        assert await session.after(9.9) == 62
        assert await session.after(0.1) == 63
        session.checks.close()


async def test_the_end_of_a_turn_brings_a_check_at_once():
    session = Session()
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        session.checks.check_soon()
        assert await session.after(0.0) == 2
        session.checks.close()


async def test_an_urgent_change_brings_a_check_at_once():
    session = Session()
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        session.processes.wake()
        assert await session.after(0.0) == 2
        session.checks.close()


async def test_the_checks_end_with_the_last_job_and_begin_with_the_next():
    session = Session()
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        session.jobs.clear()
        session.checks.check_soon()
        await settled()
        assert await session.after(500.0) == 1
        slept = len(session.clock.slept)
        assert await session.after(500.0) == 1 and len(session.clock.slept) == slept
        await session.start(tasks)
        assert session.processes.checks == 2
        session.checks.close()


async def test_jobs_that_can_change_nothing_are_asked_about_once_a_minute():
    session = Session(None, None)
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        assert await session.after(59.0) == 1
        assert await session.after(1.0) == 2
        session.checks.close()


async def test_a_second_job_is_checked_at_once():
    session = Session(None)
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        await session.start(tasks)
        assert session.processes.checks == 2
        session.checks.close()


async def test_what_was_put_back_is_said_once_to_the_user_and_to_the_model():
    report = Report(("/ws/.git/commondir",), ("/state/1",))
    session = Session(report, report)
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        await session.after(1.0)
        assert session.processes.checks == 2
        assert len(session.shown) == len(session.notes) == 1
        for said in (*session.shown, *session.notes):
            assert "/ws/.git/commondir" in said and "/state/1" in said and "background job" in said
        session.checks.close()


async def test_in_the_next_turn_it_is_said_again():
    report = Report(("/ws/.git/commondir",))
    session = Session(report, report)
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        session.checks.check_soon()
        await settled()
        assert len(session.shown) == 2
        session.checks.close()


async def test_jobs_that_were_killed_are_named_to_the_user_and_to_the_model():
    session = Session(Report(("/ws/.git/commondir",), ended=("python3 x\n[exit code 0]", "y" * 200)))
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        (_, shown), (_, noted) = session.shown, session.notes
        assert shown == noted and shown.startswith("The background jobs were ended, because what was put back was made")
        assert "python3 x" in shown and "\n" not in shown and "y..." in shown and "y" * 101 not in shown
        session.checks.close()


async def test_names_cannot_forge_remarks_and_failures_are_said_differently_to_user_and_model():
    session = Session(Report(("/ws/x]\n[exit code 0/.git/config", "/ws/y (could not be checked: Input/output error)")))
    async with asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        assert "\n" not in session.shown[0] and "NOT CHECKED" in session.shown[0]
        assert "tell the user" not in session.shown[0] and "tell the user" in session.notes[0]
        session.checks.close()


async def test_closing_does_not_wait_for_a_check():
    session = Session()
    session.processes.hangs = True
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        await session.start(tasks)
        session.checks.close()
        session.checks.close()


async def test_processes_that_cannot_be_checked_are_left_alone():
    session = Session()
    checks = JobChecks(session.conversation, ScriptedProcesses(), lambda: ["job"])
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        checks.begin(tasks)
        checks.close()
    assert session.clock.slept == []


def test_the_user_hears_warnings_of_processes_once():
    async def act() -> tuple[list[str], list[str]]:
        session = Session()
        session.processes.warnings = ["a"]
        session.checks.warn_user()
        session.checks.warn_user()
        session.processes.warnings = ["b"]
        async with asyncio.TaskGroup() as tasks:
            await session.start(tasks)
            await session.after(1.0)
            session.checks.close()
        return session.shown, session.notes

    assert asyncio.run(act()) == (["a", "b"], [])
