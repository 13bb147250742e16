"""What a background job plants is put back while the job runs, and honest git in a job is left alone.

A job runs in a sandbox. Its session asks for checks, as it does every few seconds while it is idle.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from bwrap import HAS_BWRAP, needs_bwrap
from landlock_programs import need_landlock
from planted_ways import SETUP, armed
from sandboxed_session import IDENTITY, SandboxedSession, remove_folder, sandboxed_session
from test_planted import FUNCTIONS, WAYS, Planted

from bradawl.core.errors import ToolError
from bradawl.core.workspace import Command
from bradawl.sandbox.landlock import LandlockBackend, why_unavailable
from bradawl.sandbox.restore import protected_files
from bradawl.workspace.child_process import ChildProcess

REDIRECTED = f"cp -r .git g2; {armed('g2/config')}; echo ../g2 > .git/commondir"
"""Plants a file that leads git to data with a program."""
BORROWED = "mkdir -p x; echo $PWD/x > .git/objects/info/alternates"
NEW = f"git init -q docs/n; {armed('docs/n/.git/config')}"
PLANTED = [
    *("deep", "in node_modules", "then closed, at each level", "with a name that is not UTF-8", "a bare layout"),
    *("hooks", "a relocated folder of hooks", "an included file", "a filter", "settings of a working tree"),
    *("a file that names data", "a link to data", "data that leads elsewhere", "the data of a new submodule"),
    *("a bare layout in the user's folder", "an armed repository that existed, now a submodule"),
    *("arming a deep one that existed", "arming a bare one that existed", "replacing a deep one that existed"),
    *("a file that the configuration includes", "the folder of hooks that the configuration names"),
    *("with reset times", "in a folder that replaced another", "behind 10,000 folders"),
]
HONEST = {
    "commits": "for i in $(seq 15); do echo $i > f; git add f; git commit -qm $i; done",
    "a rebase that runs a program": "for i in 1 2 3; do echo $i > g$i; git add .; git commit -qm $i; done;"
    " git rebase -q -x 'sleep 0.2' HEAD~3",
    "an edited rebase": "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~2 2> err; sleep 0.2;"
    " git -c core.editor=true rebase --continue > out 2>&1; git -c core.editor=true rebase --continue > out 2>&1",
    "a conflict": "echo 1 > q; git add q; git commit -qm q1; git checkout -qb side; echo 2 > q; git commit -qam q2;"
    " git checkout -q main; echo 3 > q; git commit -qam q3; ! git cherry-pick side > out 2>&1; sleep 0.2;"
    " echo 4 > q; git add q; git -c core.editor=true cherry-pick --continue > out",
    "stashes": "for i in 1 2 3; do echo $i > a; git add a; git stash -q; git stash pop -q; done",
    "clones": "for i in 1 2 3; do git clone -q . c$i; git -C c$i checkout -qb x;"
    " git -C c$i commit -q --allow-empty -m z; done; git clone -q --mirror . m.git; git -C m.git fetch -q; rm -rf c1",
    "a clone that borrows objects for a moment": "for i in 1 2; do git clone -q --reference . --dissociate . d$i; done",
    "a fetch": "git clone -q . other; git commit -q --allow-empty -m later; git -C other fetch -q;"
    " git -C other merge -q FETCH_HEAD; git -C other log -1 --format=%s | grep -q later",
    "garbage collection": "for i in $(seq 10); do git commit -q --allow-empty -m $i; done; git gc -q --prune=now;"
    " git repack -adq; git pack-refs --all; git fsck 2> err",
    "working trees": "for i in 1 2 3; do git worktree add -q w$i -b w$i 2> err;"
    " git -C w$i commit -q --allow-empty -m w;"
    " git worktree remove w$i; done",
    "a submodule in a new repository": "git init -q up; git -C up commit -q --allow-empty -m 1; git init -q host;"
    " cd host; git -c protocol.file.allow=always submodule add -q ../up sub; git commit -qm s; sleep 0.2;"
    " git submodule update -q --init",
    "repositories of a test watcher": "for i in $(seq 6); do git init -q t/$i; cd t/$i; git config user.name x;"
    " git config core.autocrlf false; echo 1 > f; git add f; git commit -qm 1; git checkout -qb o; git tag v1;"
    " git log -1 --format=%s | grep -q 1; cd ../..; rm -rf t/$i; done",
    "bare repositories of a test watcher": "for i in 1 2 3; do git init -q --bare r$i.git; git clone -q r$i.git k$i"
    " 2> err; git -C k$i commit -q --allow-empty -m 1; git -C k$i push -q origin HEAD; rm -rf r$i.git k$i; done",
    "packages": "for i in $(seq 100); do mkdir -p node_modules/p$i/lib; echo x > node_modules/p$i/package.json; done;"
    " rm -rf node_modules",
    "a folder that is closed for a moment": "mkdir shut; chmod 0 shut; sleep 0.2; chmod 700 shut; rmdir shut",
}


@pytest.fixture(params=["bubblewrap", "landlock"])
def session(request, tmp_path):
    """A session with each kind of sandbox."""
    with sandboxed_session(tmp_path) as made:
        if request.param == "bubblewrap" and not HAS_BWRAP:
            pytest.skip("bubblewrap does not work here")
        if request.param == "landlock":
            need_landlock()
            if why := why_unavailable(made.layout):
                pytest.skip(why)
            made.backend.close()
            Path(made.layout.scratch).mkdir()
            made.backend = LandlockBackend(made.layout)
        yield made
    remove_folder(str(made.root))


async def start(session: SandboxedSession, line: str) -> ChildProcess:
    """Start a job."""
    return await session.processes.start(
        Command((line,), session.cwd, is_shell=True, env=dict(session.env)), session.grant
    )


async def exists(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)


async def restored_by(session: SandboxedSession, *jobs: ChildProcess) -> tuple[str, ...]:
    """What one check puts back, with paths below the workspace."""
    report = await session.processes.check_running(jobs)
    assert report is not None
    return tuple(each.replace(f"{session.root}/", "") for each in report.restored)


def user_runs(session: SandboxedSession, line: str) -> None:
    """Run a line with the user's rights, outside the sandbox."""
    environment = {**session.environment, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["bash", "-c", line], cwd=session.root, env=environment, check=False, capture_output=True)


class Marked:
    """A workspace of the user, and a marker outside."""

    def __init__(self, session: SandboxedSession) -> None:
        self.session, self.marker = session, session.outside / "ran"
        user_runs(session, SETUP)

    def plant(self, line: str) -> str:
        return line.replace("@MARKER@", str(self.marker))

    def fires(self, line: str = "git status; cd docs/n && git status") -> bool:
        user_runs(self.session, line)
        return self.marker.exists()


@pytest.mark.parametrize("way", PLANTED)
async def test_what_a_job_plants_does_not_run_while_the_job_runs(session, way):
    planted = await asyncio.to_thread(Planted, session)
    done = session.root / "planting-is-over"
    job = await start(session, f"{FUNCTIONS} ({WAYS[way]}); : > {done}; sleep 60")
    await exists(done)
    assert await restored_by(session, job)
    await asyncio.to_thread(planted.user_starts_git)
    assert not planted.ran.exists()
    assert await restored_by(session, job) == ()
    assert job.process_states()
    planted._open_all()
    await job.end()


@pytest.mark.parametrize("plant", [REDIRECTED, NEW], ids=["redirected", "new"])
async def test_without_a_check_it_runs(session, plant):
    """The control of the other tests."""
    marked = await asyncio.to_thread(Marked, session)
    user_runs(session, marked.plant(plant))
    assert await asyncio.to_thread(marked.fires)


@pytest.mark.parametrize("name", HONEST)
async def test_honest_git_in_a_job_is_left_alone(session, name):
    await asyncio.to_thread(session.git_init)
    user_runs(session, f"{IDENTITY}; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm $i; done")
    identity = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"
    job = await start(session, f"set -e; {identity}; {HONEST[name]}")
    checks = 0
    while not await job.wait(0.005):
        if (report := await session.processes.check_running([job])) is not None:
            checks += 1
            assert report.restored == ()
    result = job.result()
    assert result.exit_code == 0, result.stderr
    assert result.restored == () and checks  # how many depends on how fast the machine is


async def test_a_stopped_rebase_of_the_user_gets_no_program(session):
    marked = await asyncio.to_thread(Marked, session)
    user_runs(session, "GIT_SEQUENCE_EDITOR='sed -i 1i\\\\break' git rebase -q -i HEAD~1")
    todo = session.root / ".git/rebase-merge/git-rebase-todo"
    steps = todo.read_text()
    job = await start(session, marked.plant(f"sed -i '1i exec touch @MARKER@' {todo}; : > done; sleep 60"))
    await exists(session.root / "done")
    assert "exec" in todo.read_text()
    assert await restored_by(session, job) == (".git/rebase-merge/git-rebase-todo",)
    assert todo.read_text() == steps
    await job.end()


async def test_a_job_that_plants_again_and_again_is_put_back_each_time_and_ended(session):
    await asyncio.to_thread(Marked, session)
    line = "until [ -e go ]; do sleep 0.02; done; while :; do echo ../g2 > .git/commondir; sleep 0.3; done"
    job = await start(session, line)
    assert await restored_by(session, job) == ()
    (session.root / "go").touch()
    for _ in range(3):
        await exists(session.root / ".git/commondir")
        assert await restored_by(session, job) == (".git/commondir",)
    assert await job.wait(1)
    assert not (session.root / ".git/commondir").exists()


async def test_jobs_are_stopped_only_while_something_is_put_back(session):
    marked = await asyncio.to_thread(Marked, session)
    job = await start(session, marked.plant(f"{NEW}; : > done; exec sleep 60"))
    await exists(session.root / "done")
    signals: list[int] = []
    given, signal_processes = session.processes._gate, "bradawl.workspace.job_freeze.signal_processes"
    assert given.is_open is False
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(signal_processes, lambda pids, number: signals.append(number) if pids else None)
        given._stop_limit_s = 0.05
        assert await restored_by(session, job) == ("docs/n/.git/config",)
        assert signal.SIGSTOP in signals
        signals.clear()
        assert await restored_by(session, job) == () and signals == []
    await job.end()


async def test_beside_a_command_only_files_that_lead_elsewhere_are_put_back(session):
    """A test suite in the foreground may make repositories with hooks; its end is checked as usual."""
    marked = await asyncio.to_thread(Marked, session)
    line = f"{marked.plant(REDIRECTED)}; {BORROWED}; {marked.plant(NEW)}; : > done; until [ -e go ]; do sleep 0.1; done"
    async with asyncio.TaskGroup() as group:
        running = group.create_task(session.arun(line))
        await exists(session.root / "done")
        async with asyncio.timeout(60):
            planted = [session.root / ".git/commondir", session.root / ".git/objects/info/alternates"]
            while any(each.exists() for each in planted):  # noqa: ASYNC110 - the check sets no event
                await asyncio.sleep(0.05)
        assert (session.root / "docs/n/.git/config").exists()
        (session.root / "go").touch()
    restored = running.result().restored
    for name in (".git/commondir", ".git/objects/info/alternates", "docs/n/.git/config"):
        assert f"{session.root}/{name}" in restored
    assert any("30 days" in note for note in running.result().notes)
    assert not await asyncio.to_thread(marked.fires)


async def test_a_file_that_leads_elsewhere_is_put_back_beside_a_command_within_a_second(session):
    marked = await asyncio.to_thread(Marked, session)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(session.arun(f"{marked.plant(REDIRECTED)}; : > done; sleep 1.5"))
        await exists(session.root / "done")
        await asyncio.sleep(0.5)
        assert not running.done() and not (session.root / ".git/commondir").exists()
    assert f"{session.root}/.git/commondir" in running.result().restored


async def test_what_the_grant_of_a_job_allows_stays(session):
    marked = await asyncio.to_thread(Marked, session)
    config = f"{session.root}/.git/config"
    from bradawl.core.permissions import Grant

    session.grant = Grant(writable=session.layout.roots, uncovered=(config,))
    job = await start(session, marked.plant(f"{armed('.git/config')}; : > done; sleep 60"))
    await exists(session.root / "done")
    assert await restored_by(session, job) == ()
    assert "fsmonitor" in Path(config).read_text()
    await job.end()


@pytest.mark.parametrize("plant", [REDIRECTED, BORROWED], ids=["commondir", "alternates"])
async def test_a_file_that_leads_elsewhere_makes_the_check_urgent(session, plant):
    marked = await asyncio.to_thread(Marked, session)
    woken = asyncio.Event()
    job = await start(session, f"until [ -e go ]; do sleep 0.02; done; {marked.plant(plant)}; sleep 60")
    assert await session.processes.check_running([job], woken.set) is not None
    await asyncio.sleep(0.3)
    assert not woken.is_set()
    (session.root / "go").touch()
    async with asyncio.timeout(60):
        await woken.wait()
    assert await restored_by(session, job)
    await job.end()


async def test_without_sandboxed_programs_there_is_nothing_to_check(session):
    assert await session.processes.check_running() is None
    job = await start(session, "sleep 60")
    assert await session.processes.check_running([job]) is not None
    await job.end()
    assert await session.processes.check_running() is None


async def test_a_check_that_fails_is_named_and_blocks_the_next_command_until_it_succeeds(session, monkeypatch):
    marked = await asyncio.to_thread(Marked, session)
    job = await start(session, f"{marked.plant(REDIRECTED)}; : > done; sleep 60")
    await exists(session.root / "done")
    with monkeypatch.context() as patched:
        patched.setattr(protected_files, "retake_snapshot", _fails)
        found = await restored_by(session, job)
        assert any("could not be checked: Input/output error" in each for each in found)
        with pytest.raises(ToolError, match="could not be checked"):
            await session.arun("true")
    assert (await session.arun("true")).exit_code == 0
    assert not (session.root / ".git/commondir").exists()
    await job.end()
    assert not await asyncio.to_thread(marked.fires)


def _fails(*_: object) -> object:
    raise OSError(5, os.strerror(5))


async def test_a_check_beside_starts_and_ends_of_other_commands_changes_nothing_of_theirs(session, monkeypatch):
    """Checks, starts and ends overlap at random."""
    monkeypatch.setattr("bradawl.workspace.running_checks._MOST_TIMES", 10**6)  # the job goes on
    marked = await asyncio.to_thread(Marked, session)
    job = await start(session, "while :; do sleep 0.1; done")
    until = time.monotonic() + 6

    async def repeat(act: Callable[[], Awaitable[object]]) -> int:
        count = 0
        while time.monotonic() < until:
            await act()
            await asyncio.sleep(0.002)
            count += 1
        return count

    async def honest() -> None:
        result = await session.arun("git init -q n; git -C n config user.name x; rm -rf n; echo 1 > kept")
        assert result.exit_code == 0, result
        assert all(each.startswith(f"{session.root}/docs/") for each in result.restored), result

    async def hostile() -> None:
        # Fails if a check writes the configuration without its programs while it is being removed.
        await session.arun(f"{marked.plant(NEW)}; mv docs/n docs/m; rm -rf docs/m")

    async with asyncio.TaskGroup() as group:
        counts = [
            group.create_task(repeat(lambda: session.processes.check_running([job]))),
            group.create_task(repeat(honest)),
            group.create_task(repeat(hostile)),
        ]
    assert min(count.result() for count in counts) > 2, [count.result() for count in counts]
    assert (session.root / "kept").read_text() == "1\n"
    await job.end()
    assert not await asyncio.to_thread(marked.fires)


@needs_bwrap
async def test_moving_a_planted_repository_from_place_to_place_does_not_help(tmp_path):
    with sandboxed_session(tmp_path) as session:
        marked = await asyncio.to_thread(Marked, session)
        move = "i=0; while :; do mv docs/n d$i/n; mv d$i/n docs/n; i=$(( (i + 1) % 20 )); done"
        job = await start(session, f"mkdir d{{0..19}}; {marked.plant(NEW)}; : > done; {move}")
        await exists(session.root / "done")
        async with asyncio.timeout(60):
            while list(session.root.glob("*/n/.git/config")):
                await restored_by(session, job)
        await job.end()
        assert not await asyncio.to_thread(marked.fires)
