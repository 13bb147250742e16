"""Background jobs that exchange folders can't exploit the time between bradawl's checks and its actions."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SandboxedSession

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.workspace.child_process import ChildProcess
from bradawl.workspace.process_tree import ProcessState, descendants

pytestmark = needs_bwrap

PYTHON = shlex.quote(sys.executable)
ROUNDS = 40
EXCHANGE = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    libc.renameat2(-100, one.encode(), -100, other.encode(), 2)
"""


def shell(made: SandboxedSession, line: str) -> Command:
    return Command((line,), made.cwd, is_shell=True)


async def job(made: SandboxedSession, line: str) -> ChildProcess:
    """A background command, after it has created the file `ready`."""
    started = await made.processes.start(shell(made, line), made.grant)
    for _ in range(1_000):
        if (made.root / "ready").exists():
            return started
        await asyncio.sleep(0.01)
    raise AssertionError(started.printed())


async def racer(made: SandboxedSession, program: str) -> ChildProcess:
    made.write("racer.py", EXCHANGE + program)
    return await job(made, f"{PYTHON} -I racer.py")


def runs(child: ChildProcess) -> bool:
    found = child.process_states().values()
    return bool(found) and not any(member.states.strip(b"Tt") == b"" for member in found)


async def settles(child: ChildProcess) -> bool:
    """Whether the process is running soon after, since signals take effect asynchronously."""
    for _ in range(200):
        if runs(child):
            return True
        await asyncio.sleep(0.01)
    return False


@contextlib.asynccontextmanager
async def survives(starting):
    """The started job. Checks that it runs at the end of the body, and ends it."""
    child = await starting
    yield child
    assert await settles(child)
    await child.end()


async def commands_at_once(made: SandboxedSession) -> list[bytes]:
    """Output of six commands that were started concurrently."""
    results = await asyncio.gather(*(made.processes.run(shell(made, f"echo {n}"), made.grant) for n in range(6)))
    assert [result.exit_code for result in results] == [0] * 6
    return [result.stdout for result in results]


def endless_search(end: Path) -> Command:
    """A search outside of the sandbox that ends as soon as the file `end` exists."""
    argv = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import os, time\nwhile not os.path.exists({str(end)!r}): time.sleep(0.01)",
    )
    return Command(argv, "/", is_helper=True, unmoved=("/",))


async def test_a_constantly_renamed_folder_shows_no_hidden_file(made):
    program = """
os.makedirs("sub/deep")
open("sub/deep/.env", "w").write("SECRET")
open("ready", "w")
while True:
    os.rename("sub", "sub2"); time.sleep(0.003); os.rename("sub2", "sub"); time.sleep(0.003)
"""
    async with survives(racer(made, program)):
        for _ in range(ROUNDS):
            line = "for i in 1 2 3; do cat s*b*/deep/.env; done"
            result = await made.processes.run(shell(made, line), made.grant)
            assert b"SECRET" not in result.stdout


async def test_exchanging_a_folder_with_a_link_creates_nothing_outside(made):
    program = f"""
os.makedirs("sub/deep")
open("sub/deep/.env", "w").write("SECRET")
os.symlink("/oldroot{made.outside}", "link")
open("ready", "w")
while True:
    exchange("sub/deep", "link"); time.sleep(0.002)
"""
    async with survives(racer(made, program)):
        for _ in range(ROUNDS):
            result = await made.processes.run(shell(made, "true"), made.grant)
            assert result.exit_code == 0
            assert [each.name for each in made.outside.iterdir()] == ["file"]


async def test_exchanging_a_repository_with_a_relative_link_gives_no_access_outside(made):
    (made.outside / ".git").mkdir()
    program = f"""
import subprocess
for n in range(4):
    subprocess.run(["git", "init", "-q", f"n{{n}}/r"], check=True)
    os.symlink("../../{made.outside.name}", f"n{{n}}/link")
open("ready", "w")
while True:
    for n in range(4):
        exchange(f"n{{n}}/r", f"n{{n}}/link")
    time.sleep(0.002)
"""
    child = await racer(made, program)
    for _ in range(ROUNDS):
        line = "for i in 1 2 3; do for n in 0 1 2 3; do echo gone > n$n/r/file; echo gone > n$n/link/file; done; done"
        await made.processes.run(shell(made, f"{{ {line}; }} 2>/dev/null"), made.grant)
        assert (made.outside / "file").read_text() == "outside"
    await child.end()


READ_TWICE = """
import os, sys, time
for entry in os.scandir(sys.argv[1]):
    time.sleep(0.02)
    sys.stdout.write(open(entry.path).read())
"""
"""Lists a folder and opens its files later, as ripgrep does with threads; the delay makes every race a hit."""


async def test_a_search_outside_of_the_sandbox_follows_no_exchanged_link(made):
    (made.outside / "key").write_text("SECRET")
    program = f"""
os.mkdir("d")
open("d/key", "w").write("own")
os.symlink("{made.outside}", "link")
open("ready", "w")
while True:
    exchange("d", "link"); time.sleep(0.002)
"""
    async with survives(racer(made, program)):
        folder = str(made.root / "d")
        argv = (sys.executable, "-I", "-S", "-c", READ_TWICE, folder)
        seen = refused = 0
        for _ in range(ROUNDS):
            try:
                result = await made.processes.run(Command(argv, "/", is_helper=True, unmoved=(folder,)), made.grant)
            except ToolError as error:
                assert "replaced by a link" in str(error)
                refused += 1
            else:
                assert (result.stdout, result.exit_code) == (b"own", 0)
                seen += 1
        assert seen + refused == ROUNDS


async def test_a_program_started_during_a_search_waits_for_its_end(made):
    search = endless_search(made.outside / "end")
    searching = await made.processes.start(search, made.grant)
    other = await made.processes.start(search, made.grant)  # another search does not have to wait
    running = asyncio.create_task(made.processes.run(shell(made, "true"), made.grant))
    await asyncio.sleep(0.1)
    assert not running.done()
    (made.outside / "end").touch()
    for each in (searching, other):
        assert await each.wait(20)
    assert (await running).exit_code == 0


async def test_jobs_are_stopped_during_a_search_and_continue_after_it_even_if_it_is_cancelled(made):
    async with survives(job(made, "touch ready; while :; do sleep 0.01; done")) as child:
        search = endless_search(made.outside / "never")
        running = asyncio.create_task(made.processes.run(search, made.grant))
        for _ in range(500):
            await asyncio.sleep(0.01)
            if all(member.is_stopped for member in child.process_states().values()):
                break
        assert all(member.is_stopped for member in child.process_states().values())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize("delay_s", [0.0, 0.0005, 0.002, 0.005, 0.01, 0.02])
async def test_a_cancelled_start_leaves_no_job_stopped(made, delay_s):
    child = await job(made, "touch ready; while :; do sleep 0.01; done")
    starting = asyncio.create_task(made.processes.start(shell(made, "sleep 300.77"), made.grant))
    await asyncio.sleep(delay_s)
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await (await starting).end()
    assert await settles(child)
    assert (await made.processes.run(shell(made, "true"), made.grant)).exit_code == 0
    await child.end()


FORKING = """
import os, signal
open("ready", "w")
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(200_000):
    if os.fork():
        os._exit(0)
"""


async def test_a_job_that_forks_and_ends_is_stopped_or_nothing_starts(made):
    made.write("racer.py", FORKING)
    child = await job(made, f"{PYTHON} -I racer.py; sleep 100")
    for _ in range(5):
        try:
            result = await made.processes.run(shell(made, "true"), made.grant)
        except ToolError as error:
            assert "bash_kill" in str(error)
        else:
            assert result.exit_code == 0
    await child.end()


THREADS = """
import ctypes, os, threading, time
def work():
    open("beat", "w").write("0")
    open("ready", "w")
    while True:
        time.sleep(0.001)
        open("beat", "w").write(str(time.monotonic_ns()))
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


async def test_a_process_whose_first_thread_has_ended_is_stopped_too(made):
    made.write("racer.py", THREADS)
    async with survives(job(made, f"{PYTHON} -I racer.py")):
        folder = str(made.root)
        look = "import os, time; first = open('beat').read(); time.sleep(0.2); print(first == open('beat').read())"
        search = Command((sys.executable, "-I", "-S", "-c", look), folder, is_helper=True, unmoved=(folder,))
        assert (await made.processes.run(search, made.grant)).stdout == b"True\n"


async def test_processes_that_were_stopped_before_a_search_stay_stopped(made):
    child = await job(made, "sleep 300.78 & kill -STOP $!; touch ready; sleep 300.79")
    await made.processes.run(shell(made, "true"), made.grant)
    for _ in range(200):  # the others continue a moment later
        states = [member.states for member in child.process_states().values()]
        if states.count(b"T") == 1:
            break
        await asyncio.sleep(0.01)
    assert (len(states), states.count(b"T")) == (3, 1)
    await child.end()


async def test_a_job_that_constantly_starts_programs_does_not_block_other_commands(made):
    line = f"touch ready; {PYTHON} -I -c 'import subprocess\nwhile 1: subprocess.run([\"/bin/true\"])'"
    async with survives(job(made, line)):
        for _ in range(10):
            assert (await made.processes.run(shell(made, "true"), made.grant)).exit_code == 0


async def test_concurrent_commands_all_run(made):
    child = await job(made, "touch ready; sleep 300.8")
    assert await commands_at_once(made) == [b"%d\n" % n for n in range(6)]
    await child.end()


async def test_without_a_job_nothing_is_stopped(made):
    assert await commands_at_once(made) == [b"%d\n" % n for n in range(6)]


def test_a_tree_knows_children_of_all_threads():
    pid = os.fork()
    if not pid:
        signal.pause()
    try:
        assert descendants(os.getpid())[pid].parent == os.getpid()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(("states", "is_stopped"), [(b"T", True), (b"TZ", True), (b"ZS", False), (b"TD", False)])
def test_a_process_is_stopped_when_all_its_threads_are(states, is_stopped):
    assert ProcessState(1, states).is_stopped == is_stopped


def test_a_command_that_only_reads_does_not_make_git_unusable_while_a_job_runs(made: SandboxedSession):
    made.git_init()
    asyncio.run(_read_and_use_git_while_a_job_runs(made))


async def _read_and_use_git_while_a_job_runs(made: SandboxedSession) -> None:
    child = await job(made, "touch ready; sleep 30")
    try:
        assert (await made.arun("ls", Grant())).exit_code == 0
        again = await made.arun("git status --short && cat .git/config")
        assert again.exit_code == 0, again.stderr
        assert (await made.arun("echo bad >> .git/config")).exit_code != 0
    finally:
        await child.end()
