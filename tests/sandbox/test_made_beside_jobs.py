"""What the user or the agent makes while a background job runs is protected and readable for further commands."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SandboxedSession

from bradawl.core.workspace import Command, CommandResult

pytestmark = needs_bwrap

JOB = "touch up; while :; do sleep 0.05; done"


@contextlib.asynccontextmanager
async def job(made: SandboxedSession, line: str = JOB) -> AsyncIterator[Callable[[], CommandResult]]:
    """A job that has started. Yields its result, after its end."""
    started = await made.processes.start(Command((line,), made.cwd, is_shell=True), made.grant)
    async with asyncio.timeout(60):
        while not (made.root / "up").exists():  # noqa: ASYNC110 - another program makes it
            await asyncio.sleep(0.02)
    try:
        yield started.result
    finally:
        await started.end()


async def outside(made: SandboxedSession, line: str) -> None:
    process = await asyncio.create_subprocess_exec("bash", "-ec", line, cwd=made.root)
    assert await process.wait() == 0


async def test_a_folder_of_another_branch_is_readable_and_read_only_and_not_reported(made):
    await outside(made, "git init -q -b main; git config user.name A; git config user.email a@b.c; echo A > f")
    await outside(made, "git add f; git commit -qm 1; git switch -qc ide; mkdir -p .github/workflows pkg/.vscode")
    await outside(made, "echo 1 > .github/workflows/c.yml; echo 1 > pkg/.vscode/s.json; git add -A; git commit -qm 2")
    await outside(made, "git switch -q main")
    async with job(made):
        await outside(made, "git switch -q ide")
        for _ in range(2):
            result = await made.arun("cat .github/workflows/c.yml pkg/.vscode/s.json && git status --porcelain")
            assert (result.exit_code, result.stdout, result.stderr) == (0, b"1\n1\n?? up\n", b"")
            result = await made.arun("echo 2 > .github/workflows/c.yml")
            assert result.exit_code != 0 and b"Read-only" in result.stderr
            assert not any("run or obey later" in note for note in result.notes)
    assert (made.root / ".github/workflows/c.yml").read_text() == "1\n"


async def test_git_works_in_a_new_submodule(made):
    await outside(made, "git init -q -b main ../up; cd ../up; git config user.name A; git config user.email a@b.c")
    await outside(made, "cd ../up; git commit -q --allow-empty -m 1; cd ../ws; git init -q -b main")
    await outside(made, "git config user.name A; git config user.email a@b.c")
    async with job(made):
        await outside(made, "git -c protocol.file.allow=always submodule --quiet add ../up sm; git commit -qm sm")
        result = await made.arun("git status --porcelain; git diff; git submodule status")
        assert (result.exit_code, result.stderr) == (0, b"")
        assert b"sm" in result.stdout


async def test_a_job_can_not_change_what_was_covered_beside_it(made):
    line = """touch up
    while ! [ -e go ]; do sleep 0.02; done
    echo bad >> .github/c.yml; rm -rf .github; mv .github g; ln -sfn /tmp .github; mv .github/c.yml x; touch done
    while :; do sleep 0.05; done"""
    async with job(made, line):
        await outside(made, "mkdir .github; echo 1 > .github/c.yml")
        assert (await made.arun("cat .github/c.yml")).stdout == b"1\n"
        await outside(made, "touch go; for i in $(seq 200); do [ -e done ] && exit 0; sleep 0.05; done; exit 1")
        assert (made.root / ".github/c.yml").read_text() == "1\n"
        await outside(made, "rm -r .github; mkdir .github; echo 2 > .github/c.yml")
        assert (await made.arun("cat .github/c.yml")).stdout == b"2\n"


@pytest.mark.parametrize(
    "entered",
    [
        "cd .github/workflows",
        "exec 5< .github",
        "exec 5>> .github/c.yml",
        "cd pkg; exec 5>> ../.github/c.yml",
        "ln .github/c.yml also",
    ],
)
async def test_what_a_job_can_change_all_the_same_stays_closed(made, entered):
    line = f"""while ! [ -e go ]; do sleep 0.02; done
    {entered}; touch $OLDPWD/entered entered ../../entered 2>/dev/null; while :; do sleep 0.05; done"""
    async with job(made, f"touch up; {line}"):
        await outside(made, "mkdir -p .github/workflows pkg; echo 1 > .github/c.yml; touch go")
        await outside(made, "for i in $(seq 200); do [ -e entered ] && exit 0; sleep 0.05; done; exit 1")
        result = await made.arun("cat .github/c.yml")
        assert result.stdout == b"" and b"Permission denied" in result.stderr
        assert any("End the job" in note and ".github" in note for note in result.notes)
        again = await made.arun("true")
        assert (again.exit_code, again.notes) == (0, ())
    assert (await made.arun("cat .github/c.yml")).stdout == b"1\n"


async def test_what_a_command_makes_beside_a_job_is_reported_once(made):
    async with job(made):
        first = await made.arun("mkdir -p pkg/.vscode; echo 1 > pkg/.vscode/tasks.json")
        assert any("run or obey later" in note and "pkg/.vscode" in note for note in first.notes)
        second = await made.arun("echo 1 > other")
        assert not any("run or obey later" in note for note in second.notes)
