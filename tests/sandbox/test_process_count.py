"""A control group limits the number of processes in the sandbox, for programs of root too."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from bwrap import BWRAP, HAS_BWRAP
from landlock_programs import need_landlock

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.sandbox import process_limit
from bradawl.sandbox.backend import SandboxBackend, SandboxLayout
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.process_limit import ProcessLimit, find_control_group
from bradawl.workspace.processes import LocalProcesses

PLACE = find_control_group()
needs_group = pytest.mark.skipif(PLACE is None, reason="no control group for processes can be made by this user")
MOST = 40
BOMB = """
import os, time
made = 0
for _ in range(200):
    try:
        if os.fork() == 0:
            HOW
            time.sleep(20)
            os._exit(0)
        made += 1
    except OSError:
        break
print(made, flush=True)
"""


def groups(pid: int | None = None) -> set[str]:
    """Names of the control groups of one process, by default this one. Other tests may run concurrently."""
    return {path.name for path in Path(PLACE.folder).glob(f"bradawl-{pid or os.getpid()}-*")} if PLACE else set()


class Run:
    def __init__(self, place: Path, kind: str) -> None:
        root, home, scratch = place / "ws", place / "home", place / "scratch"
        root.mkdir(), home.mkdir()
        own = home / "own"
        own.mkdir()
        layout = SandboxLayout((str(root),), str(home), (str(own),), scratch=str(scratch), state=f"{own}/state")
        self.backend: SandboxBackend
        if kind == "bubblewrap":
            self.backend = BubblewrapBackend(layout, BubblewrapFeatures(BWRAP), most_processes=MOST)
        else:
            scratch.mkdir()
            self.backend = LandlockBackend(layout, most_processes=MOST)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": os.environ["TMPDIR"]}
        self.processes = LocalProcesses(environment, sandbox_backend=lambda: self.backend)
        self.root, self.grant = root, Grant(writable=(str(root),))

    async def sh(self, line: str, *, outside: bool = False) -> str:
        command = Command((line,), str(self.root), is_shell=True, timeout_s=60)
        result = await self.processes.run(command, Grant(outside_sandbox=True) if outside else self.grant)
        return (result.stdout + result.stderr).decode()

    def close(self) -> None:
        self.processes.close()
        self.backend.close()


@pytest.fixture(params=["bubblewrap", "landlock"])
def made(tmp_path, request):
    if request.param == "bubblewrap" and not HAS_BWRAP:
        pytest.skip("bubblewrap does not work here")
    if request.param == "landlock":
        need_landlock()
    run = Run(tmp_path, request.param)
    try:
        yield run
    finally:
        run.close()


@needs_group
@pytest.mark.parametrize("how", ["pass", "os.setsid()", "os.setsid(); os.environ.clear()"])
async def test_a_fork_bomb_ends_at_the_limit(made, how):
    (made.root / "bomb.py").write_text(BOMB.replace("HOW", how))
    assert 10 < int(await made.sh("exec python3 bomb.py")) < MOST


@needs_group
async def test_threads_are_counted_and_programs_outside_the_sandbox_are_not(made):
    start = "for n in range(100): threading.Thread(target=time.sleep, args=(1,)).start()"
    text = f"import threading, time\nn = 0\ntry:\n {start}\nexcept RuntimeError: pass\nprint(n)"
    (made.root / "threads.py").write_text(text)
    assert int(await made.sh("python3 threads.py")) < MOST
    assert int(await made.sh("python3 threads.py", outside=True)) == 99


@needs_group
async def test_a_program_can_not_leave_its_group(made):
    ways = " ".join(f"{PLACE.folder}/{name}" for name in (PLACE.threads, "cgroup.procs"))
    await made.sh(f"for each in {ways}; do echo $$ > $each; echo 0 > $each; done")
    up = f"for each in {PLACE.folder}/bradawl-*/pids.max; do echo max > $each; done; true"
    await made.sh(up)
    await made.sh(f"mkdir {PLACE.folder}/bradawl-mine; rmdir {PLACE.folder}/bradawl-*")
    (made.root / "bomb.py").write_text(BOMB.replace("HOW", "pass"))
    assert int(await made.sh("exec python3 bomb.py")) < MOST


@needs_group
async def test_this_process_stays_in_its_group_and_the_new_group_is_removed_with_the_session(made):
    before, was = groups(), Path("/proc/self/cgroup").read_text()
    await made.sh("true")
    assert len(groups() - before) == 1
    assert Path("/proc/thread-self/cgroup").read_text() == Path("/proc/self/cgroup").read_text() == was
    made.close()
    assert groups() <= before


@needs_group
async def test_a_full_group_is_a_clear_error_and_later_commands_run(made):
    from bradawl.core.errors import ToolError

    before = groups()
    await made.sh("true")
    (group,) = (Path(PLACE.folder, each) for each in groups() - before)
    (group / "pids.max").write_text("0")
    with pytest.raises(ToolError, match=r"can't be started now: .*; end other programs, or try again later"):
        await made.sh("true")
    (group / "pids.max").write_text("40")
    assert await made.sh("echo again") == "again\n"


@needs_group
def test_the_group_of_a_killed_agent_is_removed_at_the_next_start():
    code = (
        "from bradawl.sandbox.process_limit import ProcessLimit as L\nimport os\n"
        "with L().limit_processes(): os.system('true')\nos.kill(os.getpid(), 9)"
    )
    killed = subprocess.Popen([sys.executable, "-c", code])
    killed.wait(20)
    assert groups(killed.pid)
    limit = ProcessLimit()
    with limit.limit_processes():
        pass
    limit.close()
    assert not groups(killed.pid)


@needs_group
def test_a_group_removed_from_outside_is_created_again():
    limit = ProcessLimit(MOST)
    with limit.limit_processes():
        pass
    next(Path(PLACE.folder).glob(f"bradawl-{os.getpid()}-*")).rmdir()
    with limit.limit_processes():
        inside = subprocess.run(["cat", "/proc/self/cgroup"], capture_output=True, text=True).stdout
    limit.close()
    assert f"/bradawl-{os.getpid()}-" in inside


@needs_group
def test_only_the_thread_that_starts_a_program_enters_the_group():
    limit, seen = ProcessLimit(MOST), []
    with limit.limit_processes():
        other = threading.Thread(target=lambda: seen.append(Path("/proc/thread-self/cgroup").read_text()))
        Path(f"{PLACE.folder}/{PLACE.threads}").write_text("0")
        other.start()
        other.join()
    limit.close()
    assert "bradawl-" not in seen[0]


@pytest.mark.parametrize(
    ("groups_text", "mounts", "expected"),
    [
        ("8:pids:/", "30 1 0:30 / {}/pids rw - cgroup cgroup rw,pids", "pids"),
        ("8:pids:/a", "30 1 0:30 / {}/pids rw - cgroup cgroup rw,pids", "pids/a"),
        ("8:cpu,pids:/c/a", "30 1 0:30 /c {}/pids rw - cgroup cgroup rw,cpu,pids", "pids/a"),
        ("8:pids:/ca", "30 1 0:30 /c {}/pids rw - cgroup cgroup rw,pids", None),
        ("8:pids:/../x", "30 1 0:30 / {}/pids rw - cgroup cgroup rw,pids", None),
        ("8:memory:/", "30 1 0:30 / {}/pids rw - cgroup cgroup rw,memory", None),
        ("0::/user.slice/app", "30 1 0:30 / {}/two rw - cgroup2 cgroup2 rw", "two/user.slice/app"),
        ("0::/user.slice/none", "30 1 0:30 / {}/two rw - cgroup2 cgroup2 rw", None),
        ("0::/missing", "30 1 0:30 / {}/two rw - cgroup2 cgroup2 rw", None),
        ("8:pids:/", "damaged", None),
    ],
)
def test_the_group_of_a_process_is_read_from_proc(tmp_path, groups_text, mounts, expected):
    for folder, kinds in (
        ("pids", ""),
        ("pids/a", ""),
        ("two/user.slice/app", "cpu pids"),
        ("two/user.slice/none", "cpu"),
    ):
        path = tmp_path / folder
        path.mkdir(parents=True, exist_ok=True)
        for name, text in (("tasks", ""), ("cgroup.threads", ""), ("cgroup.controllers", kinds)):
            (path / name).write_text(text)
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(f"9:devices:/\n{groups_text}\n")
    (proc / "mountinfo").write_text(f"{mounts.format(tmp_path)}\n")
    found = find_control_group(str(proc))
    assert (found and found.folder) == (expected and f"{tmp_path}/{expected}")


def test_without_control_groups_programs_start(monkeypatch):
    limit = ProcessLimit()
    monkeypatch.setattr(process_limit, "find_control_group", lambda: None)
    with limit.limit_processes():
        assert subprocess.run(["true"]).returncode == 0
    limit.close()
