"""Shell lines held by bubblewrap are told, timed, ended and cleaned up after like any other."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from held import Held, held

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses
from patience import is_within

pytestmark = needs_bwrap


def until(holds, within_s=10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def sleepers(word: str) -> list[int]:
    """Processes on the machine that have a word among their arguments."""
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
    """A time to sleep for that no other test sleeps for."""
    return f"300.{abs(hash(request.node.nodeid)) % 10**8}"


# ------------------------------------------------------------------ how it ended


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
def test_the_exit_code_is_that_of_the_bare_line(made, line, code):
    assert made.run(line).exit_code == code == made.run(line, Grant(outside_sandbox=True)).exit_code


def test_output_folder_exports_and_parts_are_told(made):
    result = made.run("mkdir a; cd a; export NEW='a b'; echo out; echo err >&2; false | true")
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 0)
    assert (result.cwd, result.pipe_status) == (str(made.root / "a"), (1, 0))
    assert result.exports["NEW"] == "a b"
    assert result.sandbox == "bubblewrap"
    assert made.out('echo "$NEW $PWD"') == f"a b {made.root}/a\n"


def test_no_descriptor_but_the_usual_ones_is_open(made):
    assert made.out("ls /proc/$$/fd").split() == ["0", "1", "2", "200"]


@pytest.mark.parametrize("value", ["x\n--bind\n/\n/", "--", "", "ü" * 1_000, "\udcff"])
def test_any_variable_reaches_the_program_as_it_is(made, value):
    made.env["ODD"] = value
    assert made.run('printf %s "$ODD"').stdout == os.fsencode(value)


def test_a_variable_can_add_nothing_to_the_walls(made):
    made.env["ODD"] = "x\0--bind\0/\0/"
    with pytest.raises(ToolError, match="NUL"):
        made.run("true")


def test_what_the_dynamic_linker_is_told_is_told_inside_only(made):
    made.env["LD_PRELOAD"] = str(made.root / "missing.so")
    result = made.run("true")
    assert result.exit_code == 0
    assert b"missing.so" in made.run("/bin/true").stderr


@pytest.mark.parametrize(
    "name", ["API_KEY", "GITHUB_TOKEN", "SOME_SETTING", "LD_LIBRARY_PATH", "PYTHONPATH", "BASH_ENV"]
)
def test_the_agents_variables_are_not_the_programs(tmp_path, name):
    with held(tmp_path, {name: "agents", "LC_TIME": "C"}) as made:
        assert made.out(f'echo "${{{name}-none}} $LC_TIME"') == "none C\n"
        made.env[name] = "sessions"
        assert made.out(f'echo "${{{name}-none}}"') == "sessions\n"


def test_variables_the_user_has_named_are_kept(tmp_path):
    environment = {"MY_TOKEN": "t", "ACME_URL": "u", "ACME_KEY": "k"}
    with held(tmp_path, environment, kept_variables=("MY_TOKEN", "ACME_*")) as made:
        assert made.out('echo "$MY_TOKEN $ACME_URL ${ACME_KEY-none}"') == "t u none\n"


@pytest.mark.parametrize("path", ["{home}/.ssh", "{own}"])
def test_nothing_runs_in_a_hidden_folder(made, path):
    made.cwd = path.format(home=made.home, own=made.own)
    with pytest.raises(ToolError, match="cd elsewhere"):
        made.run("ls")


def test_a_folder_that_is_gone_is_told_as_ever(made):
    made.cwd = str(made.root / "gone")
    with pytest.raises(ToolError, match="does not exist any more"):
        made.run("ls")
    made.cwd = str(made.root)
    assert made.run("mkdir x; cd x; rmdir ../x; pwd; true").exit_code == 0


def test_a_long_line_and_many_words_are_as_long_as_without(made):
    assert made.out("echo " + "x " * 10_000 + "| wc -w") == "10000\n"
    with pytest.raises(ToolError, match="too long for the system"):
        made.run("true " + "x" * 200_000)


# ------------------------------------------------------------------ its end


def test_a_timeout_asks_first_and_then_kills(made, seconds):
    line = f"trap 'echo asked; exit' TERM; echo up; sleep {seconds} & wait"
    result = made.run(line, timeout_s=0.4)
    assert (result.exit_code, result.stdout) == (None, b"up\nasked\n")
    stubborn = (
        f"trap '' TERM; echo up; setsid bash -c 'trap \"\" TERM; sleep {seconds}; sleep {seconds}' & sleep {seconds}"
    )
    started = time.monotonic()
    assert made.run(stubborn, timeout_s=0.4).exit_code is None
    assert is_within(time.monotonic() - started, 3)
    assert not sleepers(seconds)


@pytest.mark.parametrize("start", ["{} &", "setsid {} &", "setsid -f env -i {} >/dev/null 2>&1 </dev/null", "({} &)"])
def test_what_is_left_running_ends_and_is_mentioned(made, start, seconds):
    result = made.run(start.format(f"sleep {seconds}") + "\necho done")
    assert (result.stdout, result.ended_background) == (b"done\n", True)
    assert not sleepers(seconds)


def test_what_is_left_running_is_asked_first(made):
    made.run(
        "(trap 'echo asked > asked; exit' TERM; touch up; while :; do sleep 0.01; done) & until [ -e up ]; do :; done"
    )
    assert (made.root / "asked").read_text() == "asked\n"


def test_a_line_that_leaves_nothing_does_not_say_so(made):
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


async def test_closing_ends_what_runs(made, seconds):
    command = Command((f"sleep {seconds}",), made.cwd, is_shell=True)
    await made.processes.start(command, made.grant)
    await asyncio.to_thread(until, lambda: sleepers(seconds))
    made.processes.close()
    assert not sleepers(seconds)


async def test_a_job_goes_on_while_others_come_and_go(made, seconds):
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
from held import Held

async def main():
    made = Held(Path(sys.argv[2]))
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


def test_a_flood_is_ended(made):
    made.processes.close()
    made.processes = LocalProcesses(made.environment, flood_bytes=20_000_000, sandbox_backend=lambda: made.backend)
    assert made.run("yes", output_limit_bytes=1_000, timeout_s=20).exit_code is None
    assert not sleepers("yes")


async def test_many_calls_leave_no_descriptor(made):
    await made.arun("true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    for number in range(40):
        await made.arun(("true", "exit 3", "kill -9 $$", "sleep 9 &")[number % 4])
    after = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    assert after <= before


async def test_many_at_once_do_not_meet(made):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(made.arun(f"echo {n} > {n}; cat {n}; ls -d .mcp.json")) for n in range(16)]
    assert [task.result().stdout for task in tasks] == [f"{n}\n.mcp.json\n".encode() for n in range(16)]
    assert not (made.root / ".mcp.json").exists()


async def test_two_agents_in_one_workspace_do_not_take_each_others_cover_away(tmp_path):
    with held(tmp_path) as first:
        second = Held(tmp_path, scratch=str(tmp_path / "scratch2"), state=str(first.own / "state2"))

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


async def test_a_line_starts_only_with_the_grant_for_its_seal(made):
    command = Command(("echo ran",), made.cwd, is_shell=True)

    async def started(**changed) -> bool:
        grant = Grant(writable=made.layout.roots, command_hash=made.processes.seal(command))
        again = Command(changed.get("argv", command.argv), made.cwd, is_shell=True, env=changed.get("env", {}))
        return (await made.processes.run(again, grant)).stdout == b"ran\n"

    assert await started()
    for changed in ({"argv": ("echo ran ",)}, {"env": {"A": "1"}}):
        with pytest.raises(ToolError, match="changed since it was approved"):
            await started(**changed)


async def test_another_folder_of_the_same_name_is_another_place(made):
    (made.root / "sub").mkdir()
    command = Command(("echo ran",), f"{made.root}/sub", is_shell=True)
    grant = Grant(writable=made.layout.roots, command_hash=made.processes.seal(command))
    (made.root / "sub").rename(made.root / "old")
    (made.root / "sub").mkdir()
    with pytest.raises(ToolError, match="changed since it was approved"):
        await made.processes.run(command, grant)


def test_a_grant_for_the_sandbox_is_none_for_the_machine(made):
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


def test_the_machines_own_temporary_files_are_found_if_no_others_are(made, tmp_path):
    files = LocalFiles(str(made.home), real=made.backend.host_path)
    shared = Path(f"/tmp/bradawl-test-{os.getpid()}")
    shared.write_text("machine")
    try:
        assert files.resolve(str(shared), "/") == str(shared)
        made.run(f"echo session > {shared}")
        assert Path(files.resolve(str(shared), "/")).read_text() == "session\n"
        assert shared.read_text() == "machine"
    finally:
        shared.unlink()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "{root}/x", "{cache}/x", "/tmp/../etc/passwd", "/tmpfile", "{root}/../x"]
)
def test_everything_else_is_where_it_is(made, path):
    files = LocalFiles(str(made.home), real=made.backend.host_path)
    path = path.format(root=made.root, cache=made.cache)
    if not path.endswith("../x"):
        assert files.resolve(path, "/") == os.path.realpath(path)


def test_a_folder_below_it_is_where_the_next_line_runs(made):
    result = made.run("mkdir -p /tmp/a/b && cd /tmp/a/b && pwd")
    assert result.stdout == b"/tmp/a/b\n"
    assert result.cwd == f"{made.layout.scratch}/a/b"
    assert made.out("pwd; echo $PWD; echo x > file; cd ..; pwd") == "/tmp/a/b\n/tmp/a/b\n/tmp/a\n"
    assert Path(made.layout.scratch, "a/b/file").exists()
    assert made.bare("pwd") == f"{made.layout.scratch}/a\n"


def test_folders_on_the_way_to_the_workspace_can_not_be_cleared_away(made):
    made.write("kept", "kept")
    top = Path("/tmp", made.root.relative_to("/tmp").parts[0])
    made.run(f"mv {top} /tmp/moved; mv {made.place} {made.place}-moved")
    assert made.out("cat kept") == "kept"


def test_what_programs_made_unremovable_is_removed(made):
    line = (
        "mkdir -p /tmp/a/b; touch /tmp/a/b/c; chmod 0 /tmp/a/b /tmp/a; ln -s / /tmp/root; cd /tmp; "
        "for i in $(seq 300); do mkdir d23456789012345678901234567890 && cd d2*; done; true"
    )
    assert made.run(line).exit_code == 0
    made.backend.close()
    assert not Path(made.layout.scratch).exists()
    assert Path("/etc/passwd").exists()
