"""`RunningChecks` searches first, stops programs only to restore files, and checks commands beside their jobs."""

import asyncio
import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from bradawl.core.errors import ToolError
from bradawl.sandbox.backend import CheckResult
from bradawl.workspace.running_checks import RunningChecks

FOUND = CheckResult(("/ws/.git/commondir",))
NOTHING = CheckResult()


class Child:
    """A running program."""

    def __init__(self, *, is_sandboxed: bool = True) -> None:
        self.is_sandboxed = is_sandboxed
        self.restored: tuple[str, ...] = ()
        self.name = "python3 server.py"
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True

    def add_restored(self, paths: tuple[str, ...]) -> None:
        self.restored += paths

    def unsaid(self) -> tuple[str, ...]:
        return ()


class Sandbox:
    """A backend, its check, and the gate. Records what is called."""

    def __init__(self, *results: CheckResult, is_quick: bool = True, can_stop: bool = True) -> None:
        self._results, self._is_quick, self._can_stop = list(results), is_quick, can_stop
        self.calls: list[str] = []
        self.is_watching = True
        self.descriptor = -1
        self.children: list[Child] = []

    def check_running(self, *, beside_command: bool):
        self.calls.append("beside command" if beside_command else "jobs alone")
        return self if self.is_watching else None

    def shortly(self) -> bool:
        self.calls.append("shortly")
        return self._is_quick

    def finish(self) -> None:
        self.calls.append("finish")

    def compare(self, *, restores: bool) -> CheckResult:
        self.calls.append("restore" if restores else "compare")
        return self._results.pop(0) if self._results else NOTHING

    def is_urgent(self) -> bool:
        """As reported by the byte in the pipe."""
        return os.read(self.descriptor, 100).endswith(b"!")

    @contextlib.asynccontextmanager
    async def programs_stopped(self, *, waits_for_searches: bool):
        assert waits_for_searches
        if not self._can_stop:
            raise ToolError("it still runs")
        self.calls.append("stop")
        yield
        self.calls.append("continue")

    def checks(self) -> RunningChecks:
        return RunningChecks(self, lambda: self.children, beside_s=0.001)


async def test_if_nothing_is_found_no_program_is_stopped():
    sandbox = Sandbox()
    report = await sandbox.checks().check(sandbox, ())
    assert sandbox.calls == ["jobs alone", "shortly", "compare"]
    assert report.restored == () and report.seconds >= 0


async def test_jobs_that_make_the_same_file_again_and_again_are_killed():
    job, command, unconfined = Child(), Child(), Child(is_sandboxed=False)
    other = CheckResult(("/ws/other/.git/config",))
    sandbox = Sandbox(*[FOUND] * 6, *[other] * 3, *[FOUND] * 3)
    sandbox.children = [job, command, unconfined]
    checks = sandbox.checks()
    for _ in range(3):
        assert (await checks.check(sandbox, (job, unconfined))).ended == ()
    assert not job.is_killed
    assert (await checks.check(sandbox, (job, unconfined))).ended == ("python3 server.py",)
    assert (job.is_killed, command.is_killed, unconfined.is_killed) == (True, False, False)
    sandbox.children.clear()
    checks.end(job)
    assert not checks._restored


async def test_a_large_workspace_is_searched_in_a_thread_without_stopping_programs():
    sandbox = Sandbox(is_quick=False)
    await sandbox.checks().check(sandbox, ())
    assert sandbox.calls == ["jobs alone", "shortly", "finish", "compare"]


class NoThreads(ThreadPoolExecutor):
    """An executor of a system that starts no more threads."""

    def submit(self, *_: object, **__: object):
        raise RuntimeError("can't start new thread")


async def test_a_large_workspace_is_searched_also_if_no_thread_can_be_started():
    asyncio.get_running_loop().set_default_executor(NoThreads())
    sandbox = Sandbox(FOUND, FOUND, FOUND, is_quick=False)
    report = await sandbox.checks().check(sandbox, ())
    assert sandbox.calls.count("finish") == 2 and report.restored == FOUND.found


async def test_what_is_found_is_restored_while_the_programs_are_stopped():
    sandbox = Sandbox(FOUND, FOUND, CheckResult(FOUND.found, ("/ws/x (could not be checked: no)",), ("/state/1",)))
    report = await sandbox.checks().check(sandbox, ())
    assert sandbox.calls[2:] == ["compare", "compare", "stop", "shortly", "restore", "continue"]
    assert report.restored == (*FOUND.found, "/ws/x (could not be checked: no)")
    assert report.set_aside == ("/state/1",)


async def test_what_is_gone_a_moment_later_is_left_alone():
    sandbox = Sandbox(FOUND, NOTHING)
    report = await sandbox.checks().check(sandbox, ())
    assert "stop" not in sandbox.calls and "restore" not in sandbox.calls
    assert report.restored == ()


async def test_programs_that_cannot_be_stopped_do_not_prevent_the_restore():
    sandbox = Sandbox(FOUND, FOUND, FOUND, can_stop=False)
    report = await sandbox.checks().check(sandbox, ())
    assert report.restored == FOUND.found


async def test_what_could_not_be_examined_is_reported_without_stopping_programs():
    sandbox = Sandbox(CheckResult(unchecked=("/ws (could not be checked: no)",)))
    report = await sandbox.checks().check(sandbox, ())
    assert report.restored == ("/ws (could not be checked: no)",) and "stop" not in sandbox.calls


async def test_a_sandbox_without_checks_and_one_that_watches_nothing_report_nothing():
    sandbox = Sandbox()
    sandbox.is_watching = False
    assert await sandbox.checks().check(sandbox, ()) is None
    assert await sandbox.checks().check(None, ()) is None


async def test_jobs_of_another_session_are_no_commands():
    sandbox = Sandbox()
    mine, other, command, outside = Child(), Child(), Child(), Child(is_sandboxed=False)
    sandbox.children = [mine, other, outside]
    checks = sandbox.checks()
    await checks.check(sandbox, [other])
    await checks.check(sandbox, [mine])
    sandbox.children.append(command)
    await checks.check(sandbox, [mine])
    kinds = [each for each in sandbox.calls if each in ("beside command", "jobs alone")]
    assert kinds == ["beside command", "jobs alone", "beside command"]


async def test_one_check_runs_at_a_time():
    sandbox = Sandbox(FOUND, FOUND, FOUND)
    checks = sandbox.checks()
    async with asyncio.TaskGroup() as group:
        group.create_task(checks.check(sandbox, ()))
        group.create_task(checks.check(sandbox, ()))
    assert sandbox.calls.index("continue") < sandbox.calls.index("jobs alone", 1)


async def test_a_command_is_checked_while_it_runs_and_its_result_names_what_was_restored():
    sandbox, child = Sandbox(NOTHING, FOUND), Child()
    checks = sandbox.checks()
    checks.begin(child, sandbox)
    async with asyncio.timeout(60):
        while not child.restored:  # noqa: ASYNC110 - the timer sets no event
            await asyncio.sleep(0.001)
    checks.end(child)
    checks.end(child)
    seen = len(sandbox.calls)
    await asyncio.sleep(0.01)
    assert len(sandbox.calls) == seen
    assert set(sandbox.calls) == {"beside command", "restore"}  # neither searched nor stopped
    assert child.restored == FOUND.found


async def test_urgent_events_bring_a_check_of_a_command_at_once(reported):
    child = reported.children[0]
    checks = RunningChecks(reported, lambda: reported.children, beside_s=60)
    checks.begin(child, reported)
    seen = reported.calls.count("restore")
    reported.report(b"!")
    await until(lambda: reported.calls.count("restore") > seen)
    reported.children.clear()
    checks.end(child)
    assert not asyncio.get_running_loop().remove_reader(reported.descriptor)


async def test_a_command_that_became_a_job_is_left_to_the_checks_of_jobs():
    sandbox, child = Sandbox(), Child()
    checks = sandbox.checks()
    checks.begin(child, sandbox)
    await checks.check(sandbox, [child])
    seen = len(sandbox.calls)
    await asyncio.sleep(0.01)
    assert len(sandbox.calls) == seen


async def test_commands_without_a_sandbox_have_no_timer():
    sandbox, child = Sandbox(), Child(is_sandboxed=False)
    checks = sandbox.checks()
    checks.begin(child, None)
    checks.end(child)
    await asyncio.sleep(0.01)
    assert sandbox.calls == []


@pytest.fixture
def reported():
    """A sandbox with one program, whose events the test writes to a pipe: an urgent one ends with `!`."""
    sandbox = Sandbox()
    sandbox.children.append(Child())
    sandbox.descriptor, write = os.pipe()
    sandbox.report = lambda data: os.write(write, data)
    yield sandbox
    os.close(write)
    os.close(sandbox.descriptor)


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the condition sets no event
            await asyncio.sleep(0.005)


async def test_urgent_events_wake_each_session_and_others_do_not(reported):
    woken = []
    one, other = partial(woken.append, 1), partial(woken.append, 2)
    checks = reported.checks()
    for wake in (one, other, one):
        await checks.check(reported, (), wake)
    reported.report(b"?")
    await asyncio.sleep(0.02)
    assert woken == []
    reported.report(b"!")
    await until(lambda: sorted(woken) == [1, 2])
    reported.report(b"!")
    await until(lambda: sorted(woken) == [1, 1, 2, 2])
    reported.children.clear()
    checks.end(Child())


async def test_events_are_taken_ten_times_a_second_at_most(reported):
    woken: list[float] = []
    checks = reported.checks()
    await checks.check(reported, (), lambda: woken.append(asyncio.get_running_loop().time()))
    until_s = asyncio.get_running_loop().time() + 0.45
    while asyncio.get_running_loop().time() < until_s:
        reported.report(b"!")
        await asyncio.sleep(0.001)
    reported.children.clear()
    checks.end(Child())
    assert 2 <= len(woken) <= 6


async def test_events_end_with_the_last_program(reported):
    woken: list[int] = []
    checks = reported.checks()
    await checks.check(reported, (), partial(woken.append, 1))
    checks.end(Child())  # another program, outside the sandbox
    reported.report(b"!")
    await until(lambda: woken == [1])
    reported.children.clear()
    checks.end(Child())
    reported.report(b"!")
    await asyncio.sleep(0.15)
    assert woken == [1]
    assert not asyncio.get_running_loop().remove_reader(reported.descriptor)
