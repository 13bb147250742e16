"""`LocalProcesses` runs programs and shell lines: results, reports, timeouts, cancellation and background programs."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.testing.conformance import PROCESSES_CASES
from bradawl.workspace.bounded_output import HeadAndTail
from bradawl.workspace.process_tree import call_processes, pids_since
from bradawl.workspace.processes import LocalProcesses
from bradawl.workspace.shell_prelude import Report, parse_report
from patience import no_wait
from real_processes import lives, shell


async def run(processes: LocalProcesses, command: Command, progress=None) -> CommandResult:
    return await processes.run(command, Grant(), progress)


def pids_in(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.glob("*.pid") if path.read_text().strip()]


@pytest.mark.parametrize("case", PROCESSES_CASES, ids=lambda case: case.__name__)
async def test_the_port_conformance_suite_passes(case, processes):
    await case(lambda results: processes)


async def test_nothing_starts_without_a_grant(processes, tmp_path):
    with pytest.raises(ToolError, match="no grant"):
        await processes.run(shell(f"touch {tmp_path}/x"), None)
    assert not (tmp_path / "x").exists()


async def test_a_line_gives_its_output_exit_code_and_last_folder(processes, tmp_path):
    (tmp_path / "sub").mkdir()
    result = await run(processes, shell("echo out; echo err >&2; cd sub; exit 3", tmp_path))
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert result.cwd == os.path.realpath(tmp_path / "sub")


@pytest.mark.parametrize(
    ("line", "code", "parts"),
    [
        ("false | true", 0, (1, 0)),
        ("exit 4 | exit 0 | exit 6", 6, (4, 0, 6)),
        ("IFS=,; false | true", 0, (1, 0)),
        ("set -e; true | false; echo no", 1, (0, 1)),
        ("printf() { :; }; pwd() { :; }; true | (exit 2)", 2, (0, 2)),
        ("printf '\\0junk\\0' >&200; true", 0, (0,)),
    ],
)
async def test_the_codes_of_a_pipeline_are_reported(processes, line, code, parts):
    result = await run(processes, shell(line))
    assert (result.exit_code, result.pipe_status, result.cwd) == (code, parts, "/")


@pytest.mark.parametrize("line", ["trap 'echo mine' EXIT; cd /usr", "cd /usr; exec true", "cd /usr; kill -9 $$"])
async def test_a_line_that_ends_without_its_report_has_no_folder(processes, line):
    assert (await run(processes, shell(line))).cwd is None


async def test_the_report_leaves_no_trace_in_the_output_or_in_nested_shells(processes):
    result = await run(processes, shell("set -x; bash -c 'echo [$BASH_ENV$BRADAWL_REPORT]'"))
    assert result.stdout == b"[]\n"
    assert b"__bradawl" not in result.stderr


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"\0m\0",
        b"\0m\0x\0m\0",
        b"\0m\0\0m\0001\0a b\0no slash\n\0\0m\0",
        b"junk\0m\0\0\0m\0002\0" + b"0 \0/\n\0\0m\0",
        b"\0m\0\0\0m\0001\0" + b"0 \0/\n\0",
    ],
)
def test_a_malformed_report_is_ignored(report):
    assert parse_report(report, "m", 1) == Report()


async def test_death_by_a_signal_is_a_negative_exit_code(processes):
    assert (await run(processes, shell("kill -TERM $$"))).exit_code == -signal.SIGTERM


async def test_there_is_no_input_no_terminal_and_no_pager(processes):
    result = await run(
        processes, shell("cat; read x; tty; echo $PAGER $GIT_EDITOR $TERM $GIT_TERMINAL_PROMPT; : </dev/tty")
    )
    assert result.stdout == b"not a tty\ncat true dumb 0\n"
    assert result.exit_code == 1


async def test_environment_variables_can_not_make_bash_run_something(tmp_path):
    (tmp_path / "evil").write_text("echo evil\n")
    evil = str(tmp_path / "evil")
    made = LocalProcesses({**os.environ, "BASH_ENV": evil, "ENV": evil, "SHELLOPTS": "xtrace"})
    result = await run(made, shell("echo good"))
    made.close()
    assert (result.stdout, result.stderr) == (b"good\n", b"")


async def test_arguments_reach_a_program_unchanged(processes, tmp_path):
    result = await run(processes, Command(("printf", "%s|", "a b", "$HOME", "*", ""), str(tmp_path)))
    assert result.stdout == b"a b|$HOME|*||"
    assert result.cwd is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Command(("no-such-program-here",), "/"), "not installed"),
        (Command(("true",), "/no/such/folder"), "working directory"),
        (shell("true", "/no/such/folder"), "working directory"),
        (Command(("/",), "/"), "can't be started"),
        (Command(("true", "a\0b"), "/"), "NUL"),
        (shell("true \ud800"), "half a character is in its arguments"),
        (shell("true " + "x" * 200_000), "too long"),
    ],
)
async def test_a_command_that_can_not_be_started_is_an_error(processes, command, message):
    with pytest.raises(ToolError, match=message):
        await run(processes, command)


async def test_without_bash_plain_sh_is_used(tmp_path):
    made = LocalProcesses({"PATH": str(tmp_path)}, bash="")
    result = await run(made, shell("echo $0 is here; exit 2"))
    assert (result.exit_code, result.cwd) == (2, None)
    assert result.stdout.endswith(b"is here\n")
    made.close()


async def test_a_timeout_keeps_the_output_and_ends_every_child(processes, tmp_path):
    line = (
        "echo before; (echo $BASHPID > a.pid; sleep 300) & "
        "setsid bash -c 'echo $$ > b.pid; sleep 300' & "
        "setsid bash -c 'echo $$ > c.pid; exec sleep 300 >/dev/null 2>&1 200>&-' & "
        "while ! [ -s a.pid -a -s b.pid -a -s c.pid ]; do sleep 0.01; done; echo ready; sleep 300"
    )
    with no_wait():
        result = await run(processes, shell(line, tmp_path, timeout_s=1.0))
    assert (result.exit_code, result.stdout) == (None, b"before\nready\n")
    assert len(pids_in(tmp_path)) == 3
    assert not [pid for pid in pids_in(tmp_path) if lives(pid)]


async def test_a_program_that_ignores_term_is_killed(tmp_path):
    processes = LocalProcesses(os.environ, term_grace_s=0.3)
    line = "trap '' TERM; echo $$ > a.pid; while :; do sleep 1; done"
    result = await run(processes, shell(line, tmp_path, timeout_s=0.2))
    assert result.exit_code is None
    processes.close()
    assert result.seconds > 0.5
    assert not any(map(lives, pids_in(tmp_path)))


async def test_a_program_may_clean_up_after_term(tmp_path):
    processes = LocalProcesses(os.environ, term_grace_s=60)
    line = "trap 'echo cleaned; exit 1' TERM; while :; do sleep 0.05; done"
    with no_wait():
        result = await run(processes, shell(line, tmp_path, timeout_s=0.3))
    processes.close()
    assert result.stdout == b"cleaned\n"


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
async def test_a_background_program_ends_with_the_line_and_is_reported(processes, tmp_path, redirect):
    with no_wait():
        result = await run(processes, shell(f"sleep 300 {redirect} & echo $! > a.pid; echo done", tmp_path))
    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert result.ended_background
    assert result.stderr == b""
    assert not any(map(lives, pids_in(tmp_path)))


@pytest.mark.parametrize(
    "start",
    [
        "setsid sleep 300 & echo $! > a.pid",
        "setsid sleep 300 >/dev/null 2>&1 200>&- & echo $! > a.pid",
        "setsid -f bash -c 'echo $$ > a.pid; trap : TERM; while :; do sleep 1; done'; until [ -s a.pid ]; do :; done",
        "setsid bash -c 'echo $$ > a.pid; env -i sleep 300 & echo $! > b.pid; wait' & until [ -s b.pid ]; do :; done",
        'setsid bash -c \'env -i bash -c "trap : TERM; echo \\$\\$ > b.pid; while :; do sleep 1; done" &'
        " echo $$ > a.pid; wait' & until [ -s a.pid ] && [ -s b.pid ]; do :; done",
        "sleep 1.1; setsid sleep 300 & echo $! > a.pid",
    ],
)
async def test_a_program_in_its_own_process_session_ends_with_the_line(processes, tmp_path, start):
    with no_wait():
        result = await run(processes, shell(f"{start}; echo done", tmp_path))
    survivors = [pid for pid in pids_in(tmp_path) if lives(pid)]
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)
    assert pids_in(tmp_path)
    assert not survivors
    assert result.stdout == b"done\n"
    assert result.ended_background


def test_without_a_range_of_pids_every_process_is_examined():
    assert pids_since(2**40) is None
    assert os.getpid() in call_processes("no such mark", os.getppid())
    assert os.getpid() not in call_processes("no such mark", os.getppid(), range(1, 2))


async def test_a_program_that_ends_right_after_the_line_is_not_reported(processes):
    assert not (await run(processes, shell("setsid sleep 0.02 & sleep 0.02 & :"))).ended_background


async def test_output_written_just_after_the_end_is_kept(processes):
    assert (await run(processes, shell("exec > >(sed s/a/b/); echo a"))).stdout == b"b\n"


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelling_ends_all_children_at_once(processes, tmp_path, times):
    line = (
        "setsid bash -c 'echo $$ > a.pid; sleep 300' & echo $$ > b.pid; "
        "while ! [ -s a.pid ]; do sleep 0.01; done; echo up; wait"
    )
    up = asyncio.Event()
    task = asyncio.create_task(processes.run(shell(line, tmp_path), Grant(), lambda data: up.set()))
    await up.wait()
    with no_wait():
        for _ in range(times):
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(pids_in(tmp_path)) == 2
    assert not any(map(lives, pids_in(tmp_path)))


async def test_cancelling_during_the_grace_of_a_timeout_kills_at_once(tmp_path):
    processes = LocalProcesses(os.environ, term_grace_s=60)
    line = "trap 'echo termed' TERM; echo $$ > a.pid; while :; do sleep 0.05; done"
    termed = asyncio.Event()
    task = asyncio.create_task(processes.run(shell(line, tmp_path, timeout_s=0.2), Grant(), lambda data: termed.set()))
    await termed.wait()
    with no_wait():
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    processes.close()
    assert not any(map(lives, pids_in(tmp_path)))


async def test_too_much_output_is_counted_and_its_ends_are_kept(processes):
    line = "echo first; head -c 100000000 /dev/zero; echo last"
    result = await run(processes, shell(line, output_limit_bytes=100_000))
    assert len(result.stdout) == 100_000
    assert result.stdout.startswith(b"first\n")
    assert result.stdout.endswith(b"\0last\n")
    assert result.dropped_bytes == 100_000_000 + 11 - 100_000


async def test_the_output_is_delivered_as_it_is_printed(processes):
    seen: list[bytes] = []
    await run(processes, shell("echo a; echo b >&2"), seen.append)
    assert sorted(b"".join(seen).split()) == [b"a", b"b"]


async def test_many_programs_run_at_the_same_time(processes):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(processes.run(shell(f"echo {n}; exit {n}"), Grant())) for n in range(20)]
    results = [task.result() for task in tasks]
    assert [(r.exit_code, r.stdout) for r in results] == [(n, b"%d\n" % n) for n in range(20)]


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(0, 40), st.integers(0, 30))
def test_head_and_tail_keep_both_ends_and_count_the_rest(pieces, limit, looked):
    kept = HeadAndTail(limit)
    for piece in pieces[:looked]:
        kept.add(piece)
    for part in (pieces[:looked], pieces[looked:]):
        whole = b"".join(part)
        assert kept.kept() == kept.kept()
        data, dropped = kept.take()
        assert len(data) + dropped == len(whole)
        assert data == (
            whole if len(whole) <= limit else whole[: limit // 2] + whole[len(whole) - limit + limit // 2 :]
        )
        for piece in pieces[looked:]:
            kept.add(piece)


@pytest.mark.parametrize("pieces", [[b""], [b"abcdefghij"], [b"a"] * 37, [b"abc", b"d" * 50, b"xyz"]])
def test_the_kept_ends_and_the_count_add_up(pieces):
    kept = HeadAndTail(10)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    data, dropped = kept.kept()
    assert len(data) + dropped == len(whole)
    assert data == (whole if len(whole) <= 10 else whole[:5] + whole[-5:])


@pytest.mark.parametrize("of_call", [False, True])
async def test_bash_in_posix_mode_still_reports_and_has_its_limit(of_call):
    """POSIXLY_CORRECT makes bash skip the file that sets up the report and the limit on processes."""
    posix = {"POSIXLY_CORRECT": "1"}
    made = LocalProcesses({**os.environ, **({} if of_call else posix)})
    try:
        command = Command(("cd /usr; export A=1",), "/", is_shell=True, env=posix if of_call else {})
        result = await made.run(command, Grant())
    finally:
        made.close()
    assert (result.cwd, result.exports["A"]) == ("/usr", "1")
