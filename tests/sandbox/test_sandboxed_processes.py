"""Shell lines in bubblewrap: exit status, environment, time limits, jobs, seals, and the temporary folder."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SandboxedSession, sandboxed_session

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses
from patience import no_wait

pytestmark = needs_bwrap


def until(holds, within_s=60.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def sleepers(word: str) -> list[int]:
    """Processes of the machine that have this word among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and words[0].endswith((b"sleep", b"bash")):
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def seconds(request) -> str:
    """A duration for `sleep` that no other test uses, so that its processes can be found."""
    return f"300.{abs(hash(request.node.nodeid)) % 10**8}"


# ------------------------------------------------------------------ exit status and environment


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("exit 3", 3),
        ("kill -9 $$", -9),
        ("kill -TERM $$", -15),
        ("exit 137", 137),
        ("no-such-program", 127),
        ("bash -c 'kill -9 $$'", 137),
        ("", 0),
    ],
)
def test_the_exit_code_is_as_without_a_sandbox(made, line, code):
    assert made.run(line).exit_code == code == made.run(line, Grant(outside_sandbox=True)).exit_code


def test_output_cwd_exports_and_pipe_status_are_reported(made):
    result = made.run("mkdir a; cd a; export NEW='a b'; echo out; echo err >&2; false | true")
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 0)
    assert (result.cwd, result.pipe_status) == (str(made.root / "a"), (1, 0))
    assert result.exports["NEW"] == "a b"
    assert result.sandbox == "bubblewrap"
    assert made.out('echo "$NEW $PWD"') == f"a b {made.root}/a\n"


def test_only_the_standard_descriptors_are_open(made):
    assert made.out("ls /proc/$$/fd").split() == ["0", "1", "2", "200"]


@pytest.mark.parametrize("value", ["x\n--bind\n/\n/", "--", "", "ü" * 1_000, "\udcff"])
def test_variables_are_passed_unchanged(made, value):
    made.env["ODD"] = value
    assert made.run('printf %s "$ODD"').stdout == os.fsencode(value)


def test_a_variable_can_not_change_the_sandbox(made):
    made.env["ODD"] = "x\0--bind\0/\0/"
    with pytest.raises(ToolError, match="NUL"):
        made.run("true")


def test_variables_of_the_dynamic_linker_apply_inside_the_sandbox_only(made):
    made.env["LD_PRELOAD"] = str(made.root / "missing.so")
    result = made.run("true")
    assert result.exit_code == 0
    assert b"missing.so" in made.run("/bin/true").stderr


@pytest.mark.parametrize(
    "name", ["API_KEY", "GITHUB_TOKEN", "SOME_SETTING", "LD_LIBRARY_PATH", "PYTHONPATH", "BASH_ENV"]
)
def test_variables_of_the_agent_are_not_passed_to_programs(tmp_path, name):
    with sandboxed_session(tmp_path, {name: "agents", "LC_TIME": "C"}) as made:
        assert made.out(f'echo "${{{name}-none}} $LC_TIME"') == "none C\n"
        made.env[name] = "sessions"
        assert made.out(f'echo "${{{name}-none}}"') == "sessions\n"


def test_variables_the_user_has_named_are_kept(tmp_path):
    environment = {"MY_TOKEN": "t", "ACME_URL": "u", "ACME_KEY": "k"}
    with sandboxed_session(tmp_path, environment, kept_variables=("MY_TOKEN", "ACME_*")) as made:
        assert made.out('echo "$MY_TOKEN $ACME_URL ${ACME_KEY-none}"') == "t u none\n"


@pytest.mark.parametrize("path", ["{home}/.ssh", "{own}"])
def test_no_command_runs_in_a_hidden_working_directory(made, path):
    made.cwd = path.format(home=made.home, own=made.own)
    with pytest.raises(ToolError, match="cd elsewhere"):
        made.run("ls")


def test_a_missing_working_directory_is_reported(made):
    made.cwd = str(made.root / "gone")
    with pytest.raises(ToolError, match="does not exist any more"):
        made.run("ls")
    made.cwd = str(made.root)
    assert made.run("mkdir x; cd x; rmdir ../x; pwd; true").exit_code == 0


def test_long_lines_and_many_arguments_work_as_without_a_sandbox(made):
    assert made.out("echo " + "x " * 10_000 + "| wc -w") == "10000\n"
    with pytest.raises(ToolError, match="too long for the system"):
        made.run("true " + "x" * 200_000)


# ------------------------------------------------------------------ end of processes


def test_a_timeout_sends_sigterm_first_and_then_sigkill(made, seconds):
    line = f"trap 'echo asked; exit' TERM; echo up; sleep {seconds} & wait"
    result = made.run(line, timeout_s=0.4)
    assert (result.exit_code, result.stdout) == (None, b"up\nasked\n")
    stubborn = (
        f"trap '' TERM; echo up; setsid bash -c 'trap \"\" TERM; sleep {seconds}; sleep {seconds}' & sleep {seconds}"
    )
    with no_wait():
        assert made.run(stubborn, timeout_s=0.4).exit_code is None
    assert not sleepers(seconds)


@pytest.mark.parametrize("start", ["{} &", "setsid {} &", "setsid -f env -i {} >/dev/null 2>&1 </dev/null", "({} &)"])
def test_processes_left_running_are_ended_and_reported(made, start, seconds):
    result = made.run(start.format(f"sleep {seconds}") + "\necho done")
    assert (result.stdout, result.ended_background) == (b"done\n", True)
    assert not sleepers(seconds)


def test_processes_left_running_get_sigterm_first(made):
    made.run(
        "(trap 'echo asked > asked; exit' TERM; touch up; while :; do sleep 0.01; done) & until [ -e up ]; do :; done"
    )
    assert (made.root / "asked").read_text() == "asked\n"


def test_a_line_that_leaves_no_process_reports_none(made):
    assert not any(made.run("sleep 0.01 & wait; true | cat").ended_background for _ in range(5))


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.003, 0.006, 0.01, 0.1])
async def test_cancelling_at_any_time_leaves_nothing(made, seconds, after_s):
    for _ in range(3):
        task = asyncio.ensure_future(made.arun(f"setsid sleep {seconds} & sleep {seconds}"))
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert until(lambda: not sleepers(seconds))
    assert not (made.root / ".mcp.json").exists()


async def test_close_ends_all_processes(made, seconds):
    command = Command((f"sleep {seconds}",), made.cwd, is_shell=True)
    await made.processes.start(command, made.grant)
    await asyncio.to_thread(until, lambda: sleepers(seconds))
    made.processes.close()
    assert not sleepers(seconds)


async def test_a_job_continues_while_other_commands_run(made, seconds):
    command = Command((f"echo up; sleep {seconds}",), made.cwd, is_shell=True)
    job = await made.processes.start(command, made.grant)
    assert not await job.wait(0.1)
    assert (await made.arun("[ -d .mcp.json ] && echo standing")).stdout == b"standing\n"
    assert (made.root / ".mcp.json").is_dir()
    printed, _ = job.printed()
    await job.end()
    assert (printed, (made.root / ".mcp.json").exists()) == (b"up\n", False)
    assert not sleepers(seconds)


AGENT = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sandboxed_session import SandboxedSession

async def main():
    made = SandboxedSession(Path(sys.argv[2]))
    async def say(data): print("up", flush=True)
    from bradawl.core.workspace import Command
    command = Command((sys.argv[3],), made.cwd, is_shell=True)
    await made.processes.run(command, made.grant, lambda data: print("up", flush=True))

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_nothing_survives_a_killed_agent_and_the_next_one_cleans_up(tmp_path, seconds, number):
    line = f"env -i setsid sleep {seconds} & (trap '' TERM; sleep {seconds}) & echo up; exec sleep {seconds}"
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(Path(__file__).parent), str(tmp_path), line], stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout is not None and agent.stdout.readline() == b"up\n"
        assert until(lambda: len(sleepers(seconds)) >= 3)
        agent.send_signal(number)
    assert until(lambda: not sleepers(seconds))
    assert (tmp_path / "ws/.mcp.json").is_dir() and (tmp_path / "scratch").is_dir()
    (tmp_path / "ws/.vscode/settings.json").write_text("{}")
    PlaceholderStore(f"{tmp_path}/home/.config/bradawl/state").clean_up_after_others()
    assert not (tmp_path / "ws/.mcp.json").exists() and not (tmp_path / "scratch").exists()
    assert (tmp_path / "ws/.vscode/settings.json").read_text() == "{}"


def test_a_command_with_too_much_output_is_ended(made):
    made.processes.close()
    made.processes = LocalProcesses(made.environment, flood_bytes=20_000_000, sandbox_backend=lambda: made.backend)
    assert made.run("yes", output_limit_bytes=1_000, timeout_s=20).exit_code is None
    assert not sleepers("yes")


async def test_many_calls_leak_no_descriptor(made):
    await made.arun("true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    for number in range(40):
        await made.arun(("true", "exit 3", "kill -9 $$", "sleep 9 &")[number % 4])
    after = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    assert after <= before


async def test_concurrent_commands_do_not_interfere(made):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(made.arun(f"echo {n} > {n}; cat {n}; ls -d .mcp.json")) for n in range(16)]
    assert [task.result().stdout for task in tasks] == [f"{n}\n.mcp.json\n".encode() for n in range(16)]
    assert not (made.root / ".mcp.json").exists()


async def test_two_agents_in_one_workspace_keep_each_others_mounts(tmp_path):
    with sandboxed_session(tmp_path) as first:
        second = SandboxedSession(tmp_path, scratch=str(tmp_path / "scratch2"), state=str(first.own / "state2"))

        async def main() -> bytes:
            command = Command(("touch up; until [ -e on ]; do sleep 0.01; done",), first.cwd, is_shell=True)
            early = await first.processes.start(command, first.grant)
            assert await asyncio.to_thread(until, lambda: (first.root / "up").exists())
            line = "touch up2; until [ -e on2 ]; do sleep 0.01; done; rmdir .mcp.json; echo bad > .mcp.json"
            command = Command((f"{line}; ls -d .mcp.json",), second.cwd, is_shell=True)
            late = await second.processes.start(command, second.grant)
            assert await asyncio.to_thread(until, lambda: (first.root / "up2").exists())
            (first.root / "on").touch()
            assert await early.wait(10)
            first.backend.close()
            (first.root / "on2").touch()
            assert await late.wait(10)
            return late.result().stdout

        try:
            assert (await main()) == b".mcp.json\n"
        finally:
            second.close()
        assert not (first.root / ".mcp.json").is_file()
        PlaceholderStore(first.layout.state).clean_up_after_others()
        assert not (first.root / ".mcp.json").exists()


# ------------------------------------------------------------------ the seal


async def test_a_line_starts_only_with_a_grant_for_its_seal(made):
    command = Command(("echo ran",), made.cwd, is_shell=True)

    async def started(**changed) -> bool:
        grant = Grant(writable=made.layout.roots, command_hash=made.processes.seal(command))
        again = Command(changed.get("argv", command.argv), made.cwd, is_shell=True, env=changed.get("env", {}))
        return (await made.processes.run(again, grant)).stdout == b"ran\n"

    assert await started()
    for changed in ({"argv": ("echo ran ",)}, {"env": {"A": "1"}}):
        with pytest.raises(ToolError, match="changed since it was approved"):
            await started(**changed)


async def test_a_replaced_folder_of_the_same_name_changes_the_seal(made):
    (made.root / "sub").mkdir()
    command = Command(("echo ran",), f"{made.root}/sub", is_shell=True)
    grant = Grant(writable=made.layout.roots, command_hash=made.processes.seal(command))
    (made.root / "sub").rename(made.root / "old")
    (made.root / "sub").mkdir()
    with pytest.raises(ToolError, match="changed since it was approved"):
        await made.processes.run(command, grant)


def test_the_seal_differs_with_and_without_a_sandbox(made):
    command = Command(("echo ran",), made.cwd, is_shell=True)
    seal = made.processes.seal(command)
    bare = LocalProcesses(made.environment)
    try:
        assert bare.seal(command) != seal
    finally:
        bare.close()


# ------------------------------------------------------------------ the temporary folder


def test_tools_and_programs_see_the_same_temporary_folder(made):
    files = LocalFiles(str(made.home), real=made.backend.host_path)
    path = files.resolve("/tmp/by-tool/file", made.cwd)
    asyncio.run(files.replace(path, b"tools", None))
    assert (
        made.out("cat /tmp/by-tool/file; echo programs > /tmp/by-program; ln -s /tmp/by-program /tmp/link") == "tools"
    )
    for name in ("/tmp/by-program", "/tmp/link", "/tmp/by-tool/../link", "/tmp/../tmp/by-program"):
        found = asyncio.run(files.read(files.resolve(name, made.cwd), 100))
        assert found.data == b"programs\n"
        assert files.resolve(found.path, "/") == found.path
    assert not Path("/tmp/by-tool").exists()


def test_a_path_of_the_machines_temporary_folder_is_the_sessions_for_tools_as_for_programs(made, tmp_path):
    files = LocalFiles(str(made.home), real=made.backend.host_path)
    shared = Path(f"/tmp/bradawl-test-{os.getpid()}")
    shared.write_text("machine")
    try:
        assert files.resolve(str(shared), "/") == f"{made.layout.scratch}/{shared.name}"
        made.run(f"echo session > {shared}")
        assert Path(files.resolve(str(shared), "/")).read_text() == "session\n"
        assert shared.read_text() == "machine"
    finally:
        shared.unlink()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "{root}/x", "{cache}/x", "/tmp/../etc/passwd", "/tmpfile", "{root}/../x"]
)
def test_other_paths_are_not_translated(made, path):
    files = LocalFiles(str(made.home), real=made.backend.host_path)
    path = path.format(root=made.root, cache=made.cache)
    if not path.endswith("../x"):
        assert files.resolve(path, "/") == os.path.realpath(path)


def test_the_next_line_runs_in_a_folder_below_the_temporary_folder(made):
    result = made.run("mkdir -p /tmp/a/b && cd /tmp/a/b && pwd")
    assert result.stdout == b"/tmp/a/b\n"
    assert result.cwd == f"{made.layout.scratch}/a/b"
    assert made.out("pwd; echo $PWD; echo x > file; cd ..; pwd") == "/tmp/a/b\n/tmp/a/b\n/tmp/a\n"
    assert Path(made.layout.scratch, "a/b/file").exists()
    assert made.bare("pwd") == f"{made.layout.scratch}/a\n"


def test_parent_folders_of_the_workspace_can_not_be_removed(made):
    made.write("kept", "kept")
    top = Path("/tmp", made.root.relative_to("/tmp").parts[0])
    made.run(f"mv {top} /tmp/moved; mv {made.place} {made.place}-moved")
    assert made.out("cat kept") == "kept"


def test_files_that_programs_made_unremovable_are_removed(made):
    line = (
        "mkdir -p /tmp/a/b; touch /tmp/a/b/c; chmod 0 /tmp/a/b /tmp/a; ln -s / /tmp/root; cd /tmp; "
        "for i in $(seq 300); do mkdir d23456789012345678901234567890 && cd d2*; done; true"
    )
    assert made.run(line).exit_code == 0
    made.backend.close()
    assert not Path(made.layout.scratch).exists()
    assert Path("/etc/passwd").exists()
