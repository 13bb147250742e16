"""Landlock: a process ends with its command, whatever it did with its session, group, environment and parents."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from landlock_programs import landlock_programs, needs_whole_landlock
from running import pids_of

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.workspace import child_process
from bradawl.workspace.process_tree import call_processes, running
from bradawl.workspace.processes import LocalProcesses
from patience import no_wait

pytestmark = needs_whole_landlock

ESCAPE = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
def leave():
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
    os.closerange(0, 1024)
def note():
    with open("pid", "w") as file: file.write(str(os.getpid()))
way, late = sys.argv[1:]
if os.fork():
    while not os.path.exists("pid"): time.sleep(0.01)
    if way == "stops": os.kill(int(open("pid").read()), signal.SIGSTOP)
    sys.exit()
if way == "adopts": libc.prctl(36, 1, 0, 0, 0)  # the process adopts the orphans below it
leave()
if way == "siblings":  # CLONE_PARENT: a sibling instead of a child
    if libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x8000 | 17, 0, 0, 0, 0): os._exit(0)
if way == "attacks":
    for pid in (os.getppid(), -1, -os.getppid(), 0):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            if pid == 0 or (pid == -1 and number != signal.SIGKILL): continue
            try: os.kill(pid, number)
            except OSError: pass
note()
if way == "forks":
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if os.fork(): os._exit(0)
os.execve("/bin/sh", ["sh", "-c", f"sleep {late}; echo '[x]' >> .git/config; sleep 60"], {})
"""
WAYS = ("plain", "adopts", "siblings", "attacks", "forks", "stops")


@pytest.fixture
def made():
    with landlock_programs() as built:
        built.write(built.root / "escape.py", ESCAPE)
        yield built


@pytest.fixture
def processes(made):
    environment = {"PATH": os.environ["PATH"], "HOME": str(made.home), "TMPDIR": "/tmp"}
    running = LocalProcesses(environment, sandbox_backend=lambda: made.backend)
    yield running
    running.close()


def escape(way: str, late: float) -> str:
    return f"{shlex.quote(sys.executable)} escape.py {way} {late}"


def escapee(made) -> int:
    return int((made.root / "pid").read_text())


async def run(processes, made, line, **options):
    command = Command((line,), str(made.root), is_shell=True, **options)
    return await processes.run(command, Grant(writable=made.layout.roots))


def test_without_a_sandbox_the_process_escapes(made):
    """The control: neither its parents nor its environment lead to it, and it writes after the command."""
    mark = f"test.{os.getpid()}"
    subprocess.run([sys.executable, "escape.py", "plain", "0.2"], cwd=made.root, env={"BRADAWL_CALL": mark}, check=True)
    pid = escapee(made)
    assert running([pid]) and not {pid} & call_processes(mark)
    deadline = time.monotonic() + 60
    while (made.root / ".git/config").read_text() == "[core]\n" and time.monotonic() < deadline:
        time.sleep(0.01)
    for each in (pid, *pids_of("sleep", "60", session=os.getsid(pid))):
        os.kill(each, signal.SIGKILL)
    assert (made.root / ".git/config").read_text() == "[core]\n[x]\n"


@pytest.mark.parametrize("way", WAYS)
async def test_it_has_ended_when_the_result_is_there(made, processes, way):
    result = await run(processes, made, f"{escape(way, 0)}; exit 3")
    last = escapee(made)
    assert not running([last])
    code = -signal.SIGKILL if way == "attacks" else 3  # a program can kill its own processes
    assert (result.exit_code, result.ended_background) == (code, True)
    assert not any("killed" in note or "ended in time" in note for note in result.notes)
    assert set(result.restored) <= {str(made.root / ".git/config")}
    assert (made.root / ".git/config").read_text() == "[core]\n"
    assert not pids_of(sys.executable, "escape.py", way, "0"), "also none that it forked meanwhile"


async def test_after_a_timeout_and_a_cancellation_it_has_ended_too(made, processes):
    result = await run(processes, made, f"{escape('plain', 0.1)}; sleep 60", timeout_s=1.0)
    assert result.exit_code is None and not running([escapee(made)])
    (made.root / "pid").unlink()
    started = asyncio.Event()
    command = Command((f"{escape('plain', 0.1)}; echo ready; sleep 60",), str(made.root), is_shell=True)
    call = processes.run(command, Grant(writable=made.layout.roots), lambda _: started.set())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call)
        await started.wait()
        task.cancel()
    assert not running([escapee(made)])
    assert (made.root / ".git/config").read_text() == "[core]\n"


AGENT = """
import asyncio, os, sys
sys.path[:0] = [{tests!r}]
from landlock_programs import SandboxedPrograms
from pathlib import Path
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.workspace.processes import LocalProcesses
made = SandboxedPrograms(Path({place!r}), "me")
processes = LocalProcesses({{"PATH": os.environ["PATH"], "HOME": "/"}}, sandbox_backend=lambda: made.backend)
command = Command(({line!r},), str(made.root), is_shell=True)
asyncio.run(processes.run(command, Grant(writable=made.layout.roots), lambda text: print("ready", flush=True)))
"""


def test_if_the_agent_is_killed_it_ends_too(made):
    line = f"{escape('plain', 60)}; echo ready; sleep 60"
    program = AGENT.format(tests=str(Path(__file__).parent), place=str(made.place), line=line)
    agent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    with agent:
        assert agent.stdout and agent.stdout.readline() == b"ready\n"
        agent.kill()
    pid, deadline = escapee(made), time.monotonic() + 60
    while running([pid]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running([pid])


async def test_if_the_supervisor_is_killed_all_ends(made, processes):
    """Only a program outside the sandbox can kill it."""
    process = await processes.start(
        Command((f"{escape('plain', 60)}; sleep 60",), str(made.root), is_shell=True), Grant(writable=made.layout.roots)
    )
    while not (made.root / "pid").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    supervisor = process.leader_pids[1]
    os.kill(supervisor, signal.SIGKILL)
    assert await process.wait(20)
    assert not running([escapee(made)])
    assert process.result().exit_code == 137 and any("was killed" in each for each in process.result().notes)


async def test_a_program_that_leaves_nothing_ends_without_delay(made, processes, monkeypatch):
    await run(processes, made, "true")
    for wait in ("_BACKGROUND_GRACE_S", "_DRAIN_GRACE_S"):
        monkeypatch.setattr(child_process, wait, 60.0)
    with no_wait():
        result = await run(processes, made, "true")
    assert (result.exit_code, result.ended_background, result.notes) == (0, False, ())


@pytest.mark.parametrize("number", [1, 2, 4, 6, 9, 11, 13, 15])
async def test_the_program_ends_by_its_signal(made, processes, number):
    assert (await run(processes, made, f"kill -{number} $$")).exit_code == -number


async def test_signals_have_their_default_action_in_the_program(made, processes):
    result = await run(processes, made, "yes | head -n 1; grep -E '^Sig(Ign|Blk)' /proc/self/status")
    out, *masks = result.stdout.decode().split("\n", 1)
    assert (out, result.stderr) == ("y", b"")
    # Signals 32 and 33 belong to the C library: programs inherit what the caller of the tests did with them.
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in masks[0].splitlines()] == [0, 0]


async def test_the_programs_session_is_its_own_and_has_no_extra_descriptors(made, processes):
    result = await run(
        processes, made, "ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat; echo $$; ls /proc/self/fd"
    )
    session, pid, *descriptors = result.stdout.split()
    assert session == pid
    assert {b"0", b"1", b"2"} <= set(descriptors) and len(descriptors) <= 4, "3 is the folder that ls reads"


async def test_a_file_is_moved_to_another_folder_and_not_copied(made, processes):
    line = "mkdir a b; echo x > a/f; ln a/f a/g; stat -c %i a/f; mv a/f b/f; stat -c %i b/f; " + (
        'python3 -c \'import os; os.rename("b/f", "f")\''
    )
    result = await run(processes, made, line)
    first, second = result.stdout.split()
    assert first == second and (result.exit_code, result.stderr) == (0, b"")
