"""Shell lines with Landlock: exit status, time limits, cancellation, and restored files."""

import asyncio
import os
import subprocess
import sys

import pytest
from landlock_programs import landlock_programs, needs_whole_landlock

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.landlock_helper import rule_set
from bradawl.workspace.process_tree import running
from bradawl.workspace.processes import LocalProcesses
from patience import no_wait

pytestmark = needs_whole_landlock


@pytest.fixture
def made():
    with landlock_programs() as built:
        yield built


@pytest.fixture
def processes(made):
    environment = {"PATH": os.environ["PATH"], "HOME": str(made.home), "API_KEY": "secret", "TMPDIR": "/tmp"}
    running = LocalProcesses(environment, sandbox_backend=lambda: made.backend)
    yield running
    running.close()


async def run(processes, made, line, *, grant=None, **options):
    command = Command((line,), str(made.root), is_shell=True, **options)
    return await processes.run(command, grant or Grant(writable=made.layout.roots))


async def test_exit_status_cwd_and_exports_are_as_without_a_sandbox(made, processes):
    result = await run(processes, made, "mkdir a; cd a; export NEW=b; echo out; echo err >&2; false | true; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert result.cwd == str(made.root / "a")
    bare = await run(processes, made, "cd a; export NEW=b", grant=Grant(outside_sandbox=True))
    assert result.exports == bare.exports
    assert (result.sandbox, result.restored) == ("landlock", ())
    assert (await run(processes, made, "false | true")).pipe_status == (1, 0)
    assert (await run(processes, made, "kill -9 $$")).exit_code == -9


async def test_exported_variables_come_back_and_the_agents_keys_do_not(made, processes):
    result = await run(processes, made, 'echo "$MINE-$API_KEY-$TMPDIR"', env={"MINE": "a b"})
    assert result.stdout.decode() == f"a b--{made.scratch}\n"


async def test_restored_files_are_reported(made, processes):
    result = await run(processes, made, "echo bad > .git/config")
    assert result.restored == (str(made.root / ".git/config"),)
    assert (made.root / ".git/config").read_text() == "[core]\n"


async def test_a_process_left_running_can_change_nothing_after_the_check(made, processes):
    line = (
        "(echo $BASHPID > pid; trap '' TERM; while :; do echo bad > .git/config; sleep 0.01; done) > /dev/null 2>&1 &"
    )
    result = await run(processes, made, line)
    assert result.ended_background
    assert (made.root / ".git/config").read_text() == "[core]\n"
    assert not running([int((made.root / "pid").read_text())])


async def test_after_a_timeout_the_line_is_ended_and_its_changes_undone(made, processes):
    with no_wait():
        result = await run(processes, made, "echo bad > .git/config; setsid sleep 60 & sleep 60", timeout_s=0.3)
        assert result.exit_code is None
    assert len(result.restored) == 1


async def test_changes_of_a_cancelled_line_are_undone(made, processes):
    async def main():
        command = Command(("echo bad > .git/config; echo ready; sleep 60",), str(made.root), is_shell=True)
        ready = asyncio.Event()
        grant = Grant(writable=made.layout.roots)
        task = asyncio.create_task(processes.run(command, grant, lambda _: ready.set()))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await asyncio.wait_for(main(), 20)
    assert (made.root / ".git/config").read_text() == "[core]\n"


async def test_a_grant_for_outside_runs_the_line_without_landlock(made, processes):
    result = await run(processes, made, "echo x > ../outside/file", grant=Grant(outside_sandbox=True, network=True))
    assert (result.exit_code, result.sandbox) == (0, "")


async def test_a_missing_working_directory_is_reported_as_without_a_sandbox(made, processes):
    with pytest.raises(ToolError, match="does not exist any more"):
        await processes.run(Command(("true",), "/gone", is_shell=True), Grant(writable=made.layout.roots))


@pytest.mark.parametrize("older", range(1, 8))
def test_rules_are_made_for_every_version(older, tmp_path):
    (tmp_path / "file").touch()
    places = [b"r/", b"w" + os.fsencode(tmp_path), b"w" + os.fsencode(tmp_path / "file"), b"d/dev/null", b"r/gone"]
    os.close(rule_set(places, older, network=False))
    os.close(rule_set(places, older, network=True))


def test_a_start_takes_one_interpreter_that_imports_few_modules(made):
    """What the time of a start depends on. `benchmarks/sandbox.py` measures the time itself."""
    python = made.place / "python"
    made.write(python, f'#!/bin/sh\necho one >> "{made.place}/starts"\nexec "{sys.executable}" -X importtime "$@"\n')
    python.chmod(0o755)

    def imported(lines: str) -> set[str]:
        return {line.rpartition("|")[2].strip() for line in lines.splitlines() if line.startswith("import time:")}

    modules = "import ctypes, errno, marshal, os, stat, struct"
    bare = subprocess.run([python, "-I", "-S", "-c", modules], capture_output=True, text=True, check=True)
    backend = LandlockBackend(made.layout, interpreter=str(python))
    made.backend, shipped = backend, made.backend
    try:
        result = made.run(("/bin/echo", "ran"))
    finally:
        made.backend = shipped
        backend.close()
    assert result.out == "ran\n" and "ctypes" in imported(result.err), result
    assert imported(result.err) <= imported(bare.stderr)
    assert (made.place / "starts").read_text() == "one\n" * 2


def refusing(made, *texts: str) -> Grant:
    """A grant with rules that deny paths."""
    bases = Bases(str(made.root), str(made.home), str(made.root))
    rules = tuple(rule for text in texts for rule in parse_rule(text, "deny", "test", bases))
    return Grant(writable=made.layout.roots, rules=rules)


async def test_writes_denied_by_a_rule_are_undone(made, processes):
    (made.root / "migrations").mkdir()
    (made.root / "migrations/1.sql").write_text("one")
    grant = refusing(made, "Edit(migrations/**)", "Edit(*.lock)")
    line = "echo two > migrations/1.sql; echo x > migrations/2.sql; mkdir d; echo x > d/new.lock; echo x > fine"
    result = await run(processes, made, line, grant=grant)
    assert (made.root / "migrations/1.sql").read_text() == "one"
    assert not (made.root / "migrations/2.sql").exists()
    assert not (made.root / "d/new.lock").exists()
    assert (made.root / "fine").exists()
    assert len(result.restored) == 3
    await run(processes, made, "mv migrations m2; echo two > m2/1.sql", grant=grant)
    assert (made.root / "migrations/1.sql").read_text() == "one"


async def test_files_outside_the_workspace_that_a_rule_denies_to_read_are_hidden(made, processes):
    (made.home / "notes").mkdir()
    (made.home / "notes/n").write_text("very-secret")
    line = f"cat {made.home}/notes/n"
    assert b"very-secret" in (await run(processes, made, line)).stdout
    assert b"very-secret" not in (await run(processes, made, line, grant=refusing(made, "Read(~/notes/**)"))).stdout
