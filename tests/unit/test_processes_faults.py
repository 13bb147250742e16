"""Processes under system faults, hostile programs and a killed agent: errors are reported, nothing is left behind."""

import asyncio
import contextlib
import errno
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.workspace import processes as module
from bradawl.workspace.processes import LocalProcesses
from bradawl.workspace.watchdog import Watchdog
from patience import no_wait
from real_processes import lives, open_files, shell


async def run(processes: LocalProcesses, command: Command) -> CommandResult:
    return await processes.run(command, Grant())


def becomes_true(condition, within_s: float = 60.0) -> bool:
    """Whether the condition becomes true within the time, which is enough on a slow machine."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


AGENT = """
import asyncio, os, sys
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.workspace.processes import LocalProcesses

async def main():
    processes = LocalProcesses(os.environ)
    for _ in range(3):
        await processes.run(Command(("true",), "/", is_shell=True), Grant())
    command = Command((sys.argv[1],), sys.argv[2], is_shell=True, spill_limit_bytes=1000, output_limit_bytes=10)
    await processes.run(command, Grant(), lambda data: print("up", flush=True))

asyncio.run(main())
"""

TREE = (
    "(echo $BASHPID > a.pid; sleep 300) & "
    "setsid bash -c 'echo $$ > b.pid; sleep 300' & "
    "setsid bash -c 'env -i sleep 300 & echo $! > c.pid; wait' & "
    "bash -c 'trap : TERM; echo $$ > d.pid; while :; do sleep 1; done' & "
    "setsid -f bash -c 'echo $$ > e.pid; exec sleep 300 >/dev/null 2>&1 200>&-' & "
    "until [ -s a.pid -a -s b.pid -a -s c.pid -a -s d.pid -a -s e.pid ]; do sleep 0.01; done; "
    "echo $$ > f.pid; echo more than ten bytes; exec env -i sleep 300"
)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for survivors in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_no_process_survives_a_killed_agent_not_even_its_watchdog(tmp_path, number):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, TREE, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as agent:
        assert agent.stdout is not None and agent.stdout.readline() == b"up\n"
        (folder,) = temporary.iterdir()
        assert len(list(folder.iterdir())) == 1
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        pids = {int(path.read_text()) for path in tmp_path.glob("*.pid")} | set(map(int, children))
        assert len(pids) == 7  # six of the tree, and the watchdog
        agent.send_signal(number)
    survivors = lambda: [pid for pid in pids if lives(pid)]  # noqa: E731 - read twice below
    ended = becomes_true(lambda: not survivors())
    left = survivors()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert ended, left
    assert becomes_true(lambda: not list(temporary.iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for children")
async def test_the_watchdog_starts_with_the_first_shell_line_and_is_replaced_if_killed(processes):
    await run(processes, Command(("true",), "/"))
    assert not Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    await run(processes, shell("true"))
    (watchdog,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    await run(processes, shell("true"))
    assert Path(f"/proc/self/task/{os.getpid()}/children").read_text().split() == [watchdog]
    os.kill(int(watchdog), signal.SIGKILL)
    assert becomes_true(lambda: not lives(int(watchdog)))
    assert (await run(processes, shell("echo fine"))).stdout == b"fine\n"
    (again,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert again != watchdog


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for children")
def test_a_stopped_watchdog_does_not_block_the_agent():
    watchdog = Watchdog("no such mark", os.environ["PATH"])
    no_such_pid = 2**30
    watchdog.start()
    watchdog.guard(no_such_pid, "")
    (process,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    os.kill(int(process), signal.SIGSTOP)
    with no_wait():
        for _ in range(50_000):
            watchdog.guard(no_such_pid, "/nowhere")
            watchdog.release(no_such_pid)
        watchdog.close()
        watchdog.close()
    assert not lives(int(process))


def test_the_watchdog_is_told_the_folder_again_only_if_it_may_not_know_it():
    watchdog = Watchdog("mark", "")
    ours, theirs = socket.socketpair()
    watchdog._line = ours
    with ours, theirs:
        watchdog.guard(11, "/place")
        watchdog.guard(12, "/place")
        watchdog.release(11, 12)
        assert theirs.recv(1000) == b"+11\n=/place\n+12\n-11\n-12\n"
        with contextlib.suppress(BlockingIOError):
            while True:
                ours.send(b"\n" * 10_000, socket.MSG_DONTWAIT)
        watchdog.guard(13, "/other")  # dropped
        while select.select([theirs], [], [], 0)[0]:
            assert not theirs.recv(100_000).strip(b"\n")
        watchdog.guard(14, "/other")
        assert theirs.recv(1000) == b"+14\n=/other\n"


async def test_closing_ends_programs_that_still_run(processes, tmp_path):
    await processes.start(shell("setsid sleep 300 & echo $! > a.pid; wait", tmp_path), Grant())
    becomes_true(lambda: (tmp_path / "a.pid").exists() and (tmp_path / "a.pid").read_text() != "")
    processes.close()
    assert not lives(int((tmp_path / "a.pid").read_text()))


@pytest.mark.parametrize(
    "line",
    [
        "cat",
        "read -r x",
        "sudo -n true",
        "ssh -o BatchMode=no localhost true",
        "git commit",
        "less /etc/passwd",
        "man true",
        "python3 -c 'input()'",
        "stty sane",
        "cat < /dev/tty",
        "git -C / log",
        "git add -p",
        "su -c true",
        "passwd",
        "top -b -n1",
    ],
)
async def test_a_program_that_wants_input_or_a_terminal_ends_by_itself(processes, tmp_path, line):
    result = await run(processes, shell(line, tmp_path, timeout_s=60))
    assert result.exit_code is not None


async def test_a_timeout_ends_programs_that_ignore_it(processes, tmp_path):
    deaf = "trap '' TERM; while :; do sleep 1; done"
    line = f'for i in 1 2 3; do setsid bash -c "{deaf}" & done; {deaf}'
    with no_wait():
        result = await run(processes, shell(line, tmp_path, timeout_s=0.5))
        assert result.exit_code is None


async def test_a_line_may_end_while_other_programs_keep_its_output_open(processes):
    with no_wait():
        result = await run(processes, shell("setsid sleep 300 & exit 3"))
        assert (result.exit_code, result.ended_background) == (3, True)


async def test_without_descriptors_left_nothing_starts_and_nothing_breaks(processes):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert (await processes.run(shell("echo before"), Grant())).stdout == b"before\n"
    used = open_files()
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
        try:
            result = await processes.run(shell("echo tight", spill_limit_bytes=10, output_limit_bytes=1), Grant())
            assert result.exit_code == 0
        except ToolError as error:
            assert "end other programs, or try again later" in str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (await processes.run(shell("echo after"), Grant())).stdout == b"after\n"


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_a_fork_that_the_system_refuses_is_an_error(number):
    error = module._start_error(shell("true"), OSError(number, os.strerror(number)))
    assert f"the shell can't be started now: {os.strerror(number)}" in str(error)


async def test_a_missing_shell_is_an_error(tmp_path):
    made = LocalProcesses(os.environ, bash=str(tmp_path / "no-shell"))
    with pytest.raises(ToolError, match="the shell is not installed"):
        await run(made, shell("true"))
    made.close()


@pytest.mark.parametrize("path", ["", "/nowhere", ":"])
async def test_an_empty_path_finds_the_shell_and_little_else(path):
    made = LocalProcesses({"PATH": path, "TMPDIR": os.environ["TMPDIR"]})
    result = await run(made, shell("echo fine; no-such-program-anywhere"))
    assert (result.stdout, result.exit_code) == (b"fine\n", 127)
    made.close()


async def test_a_line_may_remove_its_folder_but_none_starts_in_a_removed_one(processes, tmp_path):
    (tmp_path / "sub").mkdir()
    result = await run(processes, shell("rmdir ../sub; true", tmp_path / "sub"))
    assert result.exit_code == 0
    with pytest.raises(ToolError, match="does not exist any more"):
        await run(processes, shell("true", tmp_path / "sub"))


async def test_a_killed_child_is_reported_by_its_exit_code(processes):
    assert (await run(processes, shell("bash -c 'kill -9 $$'"))).exit_code == 137
    assert (await run(processes, shell("kill -9 $$"))).exit_code == -9


async def test_a_thousand_calls_leave_no_descriptor(processes):
    await processes.run(shell("true"), Grant())
    before = open_files()
    for number in range(1_000):
        line = ("true", "echo x", "exit 3", "cd /usr; export A=1")[number % 4]
        await processes.run(shell(line, spill_limit_bytes=10, output_limit_bytes=1), Grant())
    assert open_files() == before


async def test_a_full_disk_leaves_no_half_file(tmp_path):
    made = LocalProcesses({**os.environ, "TMPDIR": str(tmp_path)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        result = await run(
            made, shell("head -c 100000 /dev/zero", output_limit_bytes=1_000, spill_limit_bytes=1_000_000)
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (result.spilled, result.dropped_bytes) == ("", 99_000)
    (folder,) = tmp_path.iterdir()
    assert not list(folder.iterdir())
    made.close()


async def test_all_output_goes_unchanged_to_a_file_up_to_a_limit(processes):
    command = shell("echo a; echo b >&2; seq 1 5000", output_limit_bytes=1_000, spill_limit_bytes=5_000)
    result = await run(processes, command)
    whole = b"".join(b"%d\n" % n for n in range(1, 5_001))
    data = Path(result.spilled).read_bytes()
    assert len(data) == 5_000
    assert data.startswith(b"a\n1\n2\n") or data.startswith(b"b\na\n") or data.startswith(b"a\nb\n")
    assert (b"a\n" + whole).startswith(data.replace(b"b\n", b""))
    assert result.dropped_bytes == len(whole) + 2 - 1_000


async def test_output_that_is_kept_whole_leaves_no_file(tmp_path):
    made = LocalProcesses({**os.environ, "TMPDIR": str(tmp_path)})
    command = shell(
        "head -c 900 /dev/zero; head -c 900 /dev/zero >&2", output_limit_bytes=1_000, spill_limit_bytes=5_000
    )
    result = await run(made, command)
    assert (len(result.stdout), len(result.stderr), result.dropped_bytes, result.spilled) == (900, 900, 0, "")
    (folder,) = tmp_path.iterdir()
    assert not list(folder.iterdir())
    made.close()


async def test_output_that_was_taken_while_running_needs_no_file(processes):
    command = shell("seq 1 5000; sleep 0.2; seq 1 100", output_limit_bytes=1_000, spill_limit_bytes=50_000)
    process = await processes.start(command, Grant())
    assert not await process.wait(0.1)
    first, dropped = process.printed()
    assert await process.wait(20)
    second, rest = process.printed()
    assert [len(first) + dropped, len(second) + rest] == [23_893, 292]
    assert process.result().spilled == ""


async def test_a_program_that_prints_without_end_is_ended():
    made = LocalProcesses(os.environ, flood_bytes=20_000_000)
    with no_wait():
        result = await run(made, shell("setsid yes & yes", timeout_s=60, output_limit_bytes=1_000))
    made.close()
    assert result.exit_code is None
    assert result.dropped_bytes > 19_000_000


async def test_cancelling_a_program_with_much_output_leaves_neither_file_nor_descriptor(tmp_path):
    made = LocalProcesses({**os.environ, "TMPDIR": str(tmp_path)})
    await made.run(shell("true"), Grant())
    before, printed = open_files(), 0
    flowing = asyncio.Event()

    def count(data: bytes) -> None:
        nonlocal printed
        printed += len(data)
        if printed > 5_000_000:
            flowing.set()

    task = asyncio.ensure_future(
        made.run(shell("yes", output_limit_bytes=1_000, spill_limit_bytes=10**9), Grant(), count)
    )
    await flowing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    after = open_files()
    (folder,) = tmp_path.iterdir()
    assert not list(folder.iterdir())
    made.close()
    assert after == before


LARGE = shell("seq 1 1000; cd /usr", output_limit_bytes=10, spill_limit_bytes=10_000)


async def test_a_removed_temporary_folder_is_made_again(tmp_path):
    made = LocalProcesses({**os.environ, "TMPDIR": str(tmp_path)})
    removed = Path((await run(made, LARGE)).spilled).parent
    assert removed.parent == tmp_path and removed.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(removed)
    result = await run(made, LARGE)
    assert result.cwd == "/usr" and len(Path(result.spilled).read_bytes()) == 3_893
    made.close()
    made.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "tmp", "link"])
async def test_large_output_is_not_kept_where_programs_may_write(tmp_path, name):
    root = tmp_path / "ws"
    (root / "tmp").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root / "tmp")
    temporary = tmp_path / "link" if name == "link" else root / name
    made = LocalProcesses({**os.environ, "TMPDIR": str(temporary)}, roots=(str(root),))
    result = await run(made, LARGE)
    assert result.cwd == "/usr" and not result.spilled.startswith(str(tmp_path))
    Path(result.spilled).unlink()
    made.close()


async def test_a_link_in_place_of_the_temporary_folder_is_not_used(tmp_path):
    made = LocalProcesses({**os.environ, "TMPDIR": str(tmp_path)})
    folder = Path((await run(made, LARGE)).spilled).parent
    shutil.rmtree(folder)
    (tmp_path / "theirs").mkdir()
    folder.symlink_to(tmp_path / "theirs")
    result = await run(made, LARGE)
    assert not list((tmp_path / "theirs").iterdir()) and Path(result.spilled).exists()
    made.close()


async def test_a_nested_call_carries_the_marks_of_both():
    made = LocalProcesses({**os.environ, "BRADAWL_CALL": "outer.mark"})
    result = await run(made, shell("echo $BRADAWL_CALL; unset BRADAWL_CALL; cd /usr; export A=1"))
    made.close()
    outer, own = result.stdout.decode().split()
    assert outer == "outer.mark" and "." in own
    assert (result.cwd, result.exports) == ("/usr", {"A": "1", "OLDPWD": "/"})


@pytest.mark.parametrize("temporary", ["/nonexistent/folder", "/proc"])
async def test_without_a_temporary_folder_programs_run_and_large_output_is_cut(tmp_path, temporary):
    processes = LocalProcesses({"PATH": os.environ["PATH"], "TMPDIR": temporary})
    result = await run(processes, LARGE)
    processes.close()
    assert (result.exit_code, result.cwd, result.spilled) == (0, "/usr", "") and result.dropped_bytes > 3_000


async def test_a_relative_temporary_folder_is_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    processes = LocalProcesses({"PATH": os.environ["PATH"], "TMPDIR": "."})
    result = await run(
        processes, shell("seq 1 999", tmp_path / "elsewhere", output_limit_bytes=10, spill_limit_bytes=10_000)
    )
    processes.close()
    assert Path(result.spilled).parent.parent == tmp_path
